// The graph under construction: values, nodes and parameters, and what the names of a rule stand for in it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/data_type.h"
#include "ir/schema.h"
#include "patterns/language/rule_set.h"

namespace ascend_fuse::backwards {

inline constexpr int kUnknown = -1;  // no value, no node, no dim

// The opsets that graphs are written in.
inline constexpr int kOpsets[] = {14, 17, 17, 18, 20, 23, 23, 24};

struct Frame;

// What a name of a rule stands for in the graph under construction.
struct Slot {
  enum class Kind { kUnbound, kValue, kAbsent, kDim, kNumber, kText, kType, kList, kExpression, kOpaque };
  Kind kind = Kind::kUnbound;
  int value = kUnknown;  // kValue
  int dim = kUnknown;    // kDim
  double number = 0;
  std::string text;
  DataType type = DataType::kUndefined;
  std::vector<int64_t> list;
  Frame* frame = nullptr;  // kExpression: evaluated when the dims are known
  const Expression* expression = nullptr;

  static Slot Value(int value) {
    Slot slot;
    slot.kind = Kind::kValue;
    slot.value = value;
    return slot;
  }
  static Slot Of(Kind kind) {
    Slot slot;
    slot.kind = kind;
    return slot;
  }
};

struct Closure {
  const Pattern* pattern = nullptr;  // nullptr: none
  Frame* frame = nullptr;
  bool absent = false;
};

struct Frame {
  const RuleSet* rules = nullptr;
  const Rule* rule = nullptr;  // nullptr: a definition's frame
  const Scope* scope = nullptr;
  std::vector<Slot> slots;
  std::vector<Closure> closures;
  std::string path;  // of choices
};

struct Parameter {
  enum class Kind { kFree, kInts, kNumber, kText, kType };
  std::string name;
  Kind kind = Kind::kFree;
  std::vector<int64_t> ints;
  double number = 0;
  std::string text;
  DataType type = DataType::kUndefined;

  static Parameter Ints(std::string name, std::vector<int64_t> ints) {
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.kind = Kind::kInts;
    parameter.ints = std::move(ints);
    return parameter;
  }
  static Parameter Number(std::string name, double number) {
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.kind = Kind::kNumber;
    parameter.number = number;
    return parameter;
  }
};

struct GraphNode {
  std::string domain;
  std::string op;
  std::vector<int> inputs;  // kUnknown: absent
  std::vector<int> outputs;
  std::vector<Parameter> parameters;
  const Schema* schema = nullptr;
  bool ghost = false;          // a node that only exists in the rule's mind: let k = Transpose (r)
  int half = kUnknown;         // Slice, Split, Gather: which part of the last axis
  int parts = 2;               // of how many
  bool strided = false;        // every so many channels instead of a block of them
  bool axes_from_end = false;  // as the rule wants them written

  Parameter* Find(std::string_view name) {
    for (Parameter& parameter : parameters) {
      if (parameter.name == name) return &parameter;
    }
    return nullptr;
  }
  const Parameter* Find(std::string_view name) const {
    for (const Parameter& parameter : parameters) {
      if (parameter.name == name) return &parameter;
    }
    return nullptr;
  }
};

struct GraphValue {
  std::string name;
  int node = kUnknown;
  int output = 0;
  bool shaped = false;
  std::vector<int> dims;
  bool scalar = false;    // a constant number
  bool target = false;    // the shape operand of Reshape and Expand
  bool mask = false;      // holds only 0 and what takes a key out of the softmax
  bool constant = false;  // no input of the graph
  int fan_in = kUnknown;  // of a linear's weight, a dim: numbers as small as training keeps them, so that no
                          // sigmoid saturates
  std::function<double(int64_t index, int64_t count)> element;  // of a constant; random numbers where it is not set
  double number = 0;
  bool number_fixed = false;
};

struct PendingCondition {
  Frame* frame = nullptr;
  const Condition* condition = nullptr;
  bool done = false;
};

// Numbers, texts, types and lists: what expressions of conditions give.
struct Result {
  enum class Kind { kNumber, kText, kType, kList, kValue, kAbsent };
  Kind kind = Kind::kNumber;
  double number = 0;
  std::string text;
  DataType type = DataType::kUndefined;
  int value = kUnknown;
  std::vector<Result> list;

  static Result Number(double number) {
    Result result;
    result.number = number;
    return result;
  }
  static Result Text(std::string text) {
    Result result;
    result.kind = Kind::kText;
    result.text = std::move(text);
    return result;
  }
  static Result Value(int value) {
    Result result;
    result.kind = Kind::kValue;
    result.value = value;
    return result;
  }
};
// Whether two results are the same; a list of one is its element.
bool Same(const Result& a, const Result& b);

// Operators that give booleans: Equal, Less ... and Not, And, Or, Xor.
bool IsComparison(std::string_view op);
bool IsLogical(std::string_view op);

}  // namespace ascend_fuse::backwards
