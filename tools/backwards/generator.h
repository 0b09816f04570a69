// Rules run backwards: from the match part of a rule a concrete graph that the rule must match, with random
// weights. Driven by the rule data alone; what a pattern cannot say (a mask, a half) is known by the name of
// the function that asks for it, in the table of hints.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/data_type.h"
#include "patterns/language/rule_set.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse::backwards {

// Random numbers that are the same on every machine: std::mt19937_64 is specified, the standard library's
// distributions are not.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // 0 .. count - 1
  int Below(int count) { return static_cast<int>(engine_() % static_cast<uint64_t>(count)); }
  bool Chance(int percent) { return Below(100) < percent; }
  double Uniform() { return static_cast<double>(engine_() >> 11) * (1.0 / 9007199254740992.0); }
  double Normal();
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(static_cast<int>(items.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

// How often each choice of a rule (an alternative, a definition's branch, an optional part taken or left) stood
// in a graph that the rule matched: by place in the rule text, then by option.
struct Coverage {
  struct Option {
    std::string name;
    int matched = 0;  // graphs that the rule matched
    int built = 0;    // graphs that could be built
    int tried = 0;
    bool unreached = false;  // known not to be reachable: chosen by chance only
  };
  std::map<std::string, std::vector<Option>> choices;
  std::set<std::string> unreached;  // "choice: option", as WithoutPlace writes it
};

// A choice without file, line and column, which move with every edit.
std::string WithoutPlace(const std::string& choice);

struct ValueInfo {
  DataType type = DataType::kUndefined;
  std::vector<int64_t> dims;
};

// Stands in the place of a choice that belongs to the rule of a recogniser, made for another rule's operator.
constexpr const char* kMade = " > made by ";

// A graph for a rule.
struct Specimen {
  onnx::ModelProto model;
  std::map<std::string, ValueInfo> values;  // of every value: type and dims under the first binding
  // For each symbolic dim a size; the second binding differs from the first.
  std::vector<std::map<std::string, int64_t>> bindings;
  std::vector<std::pair<std::string, int>> choices;  // into Coverage::choices
  std::vector<std::string> outputs;                  // values of the rule's outputs
  DataType type = DataType::kFloat;
  int opset = 0;
};

class Generator {
 public:
  // library: the recognisers, whose patterns stand where a lowering wants a recognised operator.
  explicit Generator(const RuleSet& library) : library_(library) {}

  // One graph for `rule` (of `rules`) or nullopt when the random choices do not fit
  // together, with the reason in `why`. Choices that were matched least are preferred; the ones made are
  // counted as tried and built.
  std::optional<Specimen> Generate(const RuleSet& rules, const Rule& rule, Random* random, Coverage* coverage, std::string* why);

 private:
  const RuleSet& library_;  // outlives the generator
};

// Copies that change no number, put on random edges: Identity, Cast to the same type, Slice over everything,
// Reshape to the same shape, multiplication by 1, addition of 0, pairs of Transposes, Concat of one, repeated
// computations. Returns what was put in, by name.
std::vector<std::string> AddNoise(Specimen* specimen, Random* random, int count);

struct Mutant {
  onnx::ModelProto model;
  std::string description;
};

// Every graph that differs from the specimen in one place (mutate.cc lists the kinds).
std::vector<Mutant> Mutate(const Specimen& specimen, Random* random);

// Used by all parts.
onnx::TensorProto FloatTensor(const std::string& name, DataType type, const std::vector<int64_t>& dims,
                              const std::vector<double>& elements);
onnx::TensorProto IntTensor(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& elements);

}  // namespace ascend_fuse::backwards
