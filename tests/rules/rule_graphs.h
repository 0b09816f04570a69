// Rules run backwards: a rule's match part is data, so graphs that it must recognise can be made from it, and near
// misses from those.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "patterns/rule_set.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse::testing {

// A graph made from a rule.
struct RuleGraph {
  onnx::ModelProto model;
  std::set<std::string> choices;  // "silu_of:2", "widen:left out": what was taken where there was a choice
};

// Thrown where a random choice led nowhere (another one may not), or where a rule needs what no generator is
// written for.
struct NoGraph : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Makes graphs of one rule. The choices are random, except that one made seldom so far is made rather.
class RuleGraphs {
 public:
  RuleGraphs(const RuleSet& rules, const Rule& rule) : rules_(rules), rule_(rule) {}

  // Throws NoGraph.
  RuleGraph Make(std::mt19937_64* random);

  // All choices that the rule has, as in RuleGraph::choices.
  std::set<std::string> Choices() const;

 private:
  struct Value {
    std::string name;
    std::vector<int64_t> shape;
    int type = 0;  // onnx::TensorProto::DataType
  };
  // What a name of a scope stands for.
  struct Bound {
    enum class Kind { kNone, kValue, kNumber, kAbsent, kBehind } kind = Kind::kNone;
    Value value;        // kValue; kBehind: only its shape and type, for a value that the graph has in another form
    double number = 0;  // kNumber
  };
  struct Frame {
    const Scope* scope = nullptr;
    const std::vector<Condition>* conditions = nullptr;
    std::vector<Bound> bound;
    std::vector<const Pattern*> closures;
    Frame* closure_frame = nullptr;
    std::vector<int64_t> result;  // the shape of what a definition gives, when the caller knows it
  };

  Value Build(const Pattern& pattern, Frame* frame, int like);
  Value BuildVariable(const Pattern& pattern, Frame* frame, int like);
  Value BuildDefinition(const Pattern& pattern, Frame* frame, int like);
  Value BuildOperator(const Pattern& pattern, Frame* frame, const std::vector<std::string>& outputs);
  Value SkipTo(const Pattern& pattern, Frame* frame, int like);
  void LeaveOut(const Definition& definition, const Pattern& pattern, Frame* frame);
  Value FreeVariable(int slot, Frame* frame, int like);
  Value RuleInput(int slot, int like);
  Value AdditiveMask(int like);
  Value BooleanMask();

  void ChooseSizes();
  void Solve(Frame* frame);
  std::vector<int64_t> ResultShape(Frame* frame, int64_t elements);
  bool Evaluate(const Expression& expression, Frame* frame, double* number);
  bool ListOf(const Expression& list, Frame* frame, std::vector<int64_t>* shape, int64_t elements);
  bool Unify(const Expression& list, Frame* frame, const std::vector<int64_t>& shape);
  void Bind(Frame* frame, int slot, double number);
  bool Mentions(const Expression& expression, std::string_view function, int slot) const;

  size_t Choose(const std::string& what, size_t count);
  void Note(const std::string& choice);
  int64_t Any(std::initializer_list<int64_t> numbers);
  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(*random_) < p; }

  Value Input(int type, const std::vector<int64_t>& shape);
  Value Numbers(int type, const std::vector<int64_t>& shape, const std::vector<double>& numbers);
  Value Scalar(int type, double number);
  Value Add(const std::string& domain, const std::string& op, const std::vector<Value>& inputs,
            const std::vector<onnx::AttributeProto>& attributes, const std::vector<std::string>& outputs,
            size_t wanted = 0);
  std::string Fresh(const std::string& stem);
  void Collect(const Pattern& pattern, std::set<int>* seen, std::set<std::string>* choices) const;

  const RuleSet& rules_;
  const Rule& rule_;
  std::mt19937_64* random_ = nullptr;
  std::map<std::string, int> taken_;  // over all graphs
  // of the graph that is being made
  RuleGraph graph_;
  std::vector<std::unique_ptr<Frame>> frames_;
  Frame* top_ = nullptr;
  std::map<int, std::vector<int64_t>> shapes_;  // of the rule's names
  std::vector<int64_t> prefix_;
  int type_ = 0;
  int64_t opset_ = 17;
  int names_ = 0;
  int depth_ = 0;
};

}  // namespace ascend_fuse::testing
