// Constants: what inference computed to the bit is a constant. Elements that came out of a function which runtimes round each in
// its own way (Exp, Log, Pow, Sin ...) are not.
#include <algorithm>
#include <string>
#include <vector>

#include "ir/constant_tensor.h"
#include "passes/core/known_constant.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// One constant is no longer than that, so that no file grows by more than the nodes that go are worth: 128 numbers of 8 bytes.
constexpr size_t kMostBytes = 1024;

bool IsRoundedByEachRuntime(const Node& node) {
  static constexpr std::string_view kOps[] = {"Exp",        "Log",    "Pow",  "Sin",    "Cos",     "Tan",       "Tanh",
                                              "Sigmoid",    "Erf",    "Sqrt", "Mean",   "Sum",     "ReduceSum", "ReduceMean",
                                              "ReduceProd", "MatMul", "Gemm", "CumSum", "Softmax", "Mod"};
  return std::any_of(std::begin(kOps), std::end(kOps), [&](std::string_view op) { return IsOp(node, op); });
}

// Whether the elements are given, and not computed.
bool IsGiven(const Facts& facts, const Value& value) {
  return IsWrittenConstant(value) || value.producer == nullptr || facts.Of(&value).elements == nullptr;
}

// Whether the operator rounds in a way of the runtime. A whole number is exact, unless it was made of a float.
bool IsRoundedByRuntime(const Facts& facts, const Node& node) {
  return IsRoundedByEachRuntime(node) && std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Use& use) {
           return use.value != nullptr && IsFloat(facts.Of(use.value).type) && facts.Of(use.value).elements != nullptr;
         });
}

}  // namespace

// Operands first, by a list of our own: a chain of shape arithmetic may be as long as the graph.
bool ExactValues::Has(const Facts& facts, const Value& value) {
  std::vector<const Value*> open = {&value};
  while (!open.empty()) {
    const Value* const next = open.back();
    if (known_.contains(next)) {
      open.pop_back();
      continue;
    }
    if (IsGiven(facts, *next)) {
      known_[next] = true;
      continue;
    }
    const size_t before = open.size();
    bool exact = !IsRoundedByRuntime(facts, *next->producer);
    for (const Use& use : next->producer->inputs()) {
      if (use.value == nullptr || !exact) continue;
      const auto found = known_.find(use.value);
      if (found == known_.end()) {
        open.push_back(use.value);
      } else {
        exact = found->second;
      }
    }
    if (!exact) open.resize(before);
    if (open.size() == before) known_[next] = exact;
  }
  return known_.at(&value);
}

std::optional<Tidied> AskConstants(TidyContext& context, const Node& node) {
  if (node.domain != NameId::kEmpty || IsOp(node, "Constant") || node.subgraph_count > 0) return std::nullopt;
  const Value* const value = node.output();
  if (value == nullptr || value->is_graph_output || !OnlyFirstIsUsed(node)) return std::nullopt;
  const Fact& fact = context.facts().Of(value);
  if (fact.elements == nullptr) return std::nullopt;
  const auto bytes = KnownBytes(fact, context.dims());
  if (!bytes.has_value() || bytes->empty() || bytes->size() > kMostBytes) return std::nullopt;
  if (!context.exact.Has(context.facts(), *value)) return std::nullopt;
  const Value* const constant = KnownConstant(context.workspace, *value, *bytes);
  if (constant == nullptr) return std::nullopt;
  return Tidied::Of(Term::Of(constant));
}

}  // namespace ascend_fuse
