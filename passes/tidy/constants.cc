// Constants: what inference computed to the bit is a constant. Elements that came out of a function which runtimes round each in
// its own way (Exp, Log, Pow, Sin ...) are not.
#include <algorithm>
#include <string>

#include "passes/core/known_constant.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// One constant is no longer than that, so that no file grows by more than the nodes that go are worth: 128 numbers of 8 bytes.
constexpr size_t kMostBytes = 1024;
constexpr int kMostSteps = 16;

bool IsRoundedByEachRuntime(const Node& node) {
  static constexpr std::string_view kOps[] = {"Exp",        "Log",    "Pow",  "Sin",    "Cos",     "Tan",       "Tanh",
                                              "Sigmoid",    "Erf",    "Sqrt", "Mean",   "Sum",     "ReduceSum", "ReduceMean",
                                              "ReduceProd", "MatMul", "Gemm", "CumSum", "Softmax", "Mod"};
  return std::any_of(std::begin(kOps), std::end(kOps), [&](std::string_view op) { return IsOp(node, op); });
}

// Whether the elements are what every runtime computes. A whole number is, unless it was made of a float.
bool IsExact(const Facts& facts, const Value& value, int steps) {
  const Node* const node = value.producer;
  const bool constant = value.IsConstant() || (node != nullptr && IsOp(*node, "Constant"));
  if (constant || node == nullptr || facts.Of(&value).elements == nullptr) return true;
  const bool made_of_floats = std::any_of(node->inputs().begin(), node->inputs().end(), [&](const Use& use) {
    return use.value != nullptr && IsFloat(facts.Of(use.value).type) && facts.Of(use.value).elements != nullptr;
  });
  if (made_of_floats && IsRoundedByEachRuntime(*node)) return false;
  return steps > 0 && std::all_of(node->inputs().begin(), node->inputs().end(),
                                  [&](const Use& use) { return use.value == nullptr || IsExact(facts, *use.value, steps - 1); });
}

}  // namespace

std::optional<Tidied> AskConstants(TidyContext& context, const Node& node) {
  if (node.domain != NameId::kEmpty || IsOp(node, "Constant") || node.subgraph_count > 0) return std::nullopt;
  const Value* const value = node.output();
  if (value == nullptr || value->is_graph_output || !OnlyFirstIsUsed(node)) return std::nullopt;
  const Fact& fact = context.facts().Of(value);
  if (fact.elements == nullptr) return std::nullopt;
  const auto bytes = KnownBytes(fact, context.dims());
  if (!bytes.has_value() || bytes->empty() || bytes->size() > kMostBytes) return std::nullopt;
  if (!IsExact(context.facts(), *value, kMostSteps)) return std::nullopt;
  const Value* const constant = KnownConstant(context.workspace, *value, *bytes);
  if (constant == nullptr) return std::nullopt;
  return Tidied::Of(Term::Of(constant));
}

}  // namespace ascend_fuse
