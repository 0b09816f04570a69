#include "passes/quantised/rounded_between.h"

#include <string>
#include <vector>

#include "ir/constant_tensor.h"
#include "passes/core/module_path.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

constexpr int kMostSteps = 24;  // from a softmax back to the product of query and key

bool IsProduct(const Node& node) { return IsOp(node, "MatMul") || OpType(node) == "QLinearMatMul"; }
bool Dequantizes(const Node& node) { return OpType(node) == "DequantizeLinear"; }
bool Quantizes(const Node& node) { return OpType(node) == "QuantizeLinear"; }

const Value* SecondFactor(const Node& product) { return product.input(OpType(product) == "QLinearMatMul" ? 3 : 1); }

// What a value was before it was quantised and dequantised.
const Value* BeforeCodes(const Value* value) {
  while (value != nullptr && value->producer != nullptr && (Quantizes(*value->producer) || Dequantizes(*value->producer))) {
    value = value->producer->input(0);
  }
  return value;
}

bool IsActivation(const Value* value) {
  const Value* before = BeforeCodes(value);
  return before != nullptr && !ConstantTensor(*before).has_value();
}

// Whether a product of activations reads what is rounded of the value. A value may be read by any number of nodes, and their
// results by as many again: it ends after so many.
bool IsMultipliedAfterCodes(const Value* value, bool rounded) {
  constexpr size_t kMostValues = 64;
  struct Read {
    const Value* value;
    bool rounded;
  };
  std::vector<Read> open = {{value, rounded}};
  for (size_t i = 0; i < open.size() && i < kMostValues; ++i) {
    const Read at = open[i];
    for (const Use& use : LiveUses(*at.value)) {
      const Node& user = *use.user;
      if (user.output(0) == nullptr) continue;
      // A guard: exporters of softmax write 0 where a row has no key.
      const bool guards = use.index > 0 && IsOp(user, "Where");
      const bool codes = use.index == 0 && (Quantizes(user) || Dequantizes(user));
      if (use.index == 0 && at.rounded && IsProduct(user) && IsActivation(SecondFactor(user))) return true;
      if (guards || codes) open.push_back({user.output(0), at.rounded || codes});
    }
  }
  return false;
}

// Whether a value is scaled, masked or moved scores: of a product of activations.
bool IsOfScores(const Value* value) {
  for (int step = 0; step < kMostSteps && value != nullptr && value->producer != nullptr; ++step) {
    const Node& node = *value->producer;
    if (IsProduct(node)) return IsActivation(SecondFactor(node));
    const bool where = IsOp(node, "Where");
    value = node.input(where ? 1 : 0);
    if (where && value != nullptr && !IsActivation(value)) value = node.input(2);
  }
  return false;
}

}  // namespace

void FindRoundedBetween(Workspace& workspace) {
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      const bool in_codes = OpType(*node) == "QLinearSoftmax";
      if (node->dead || node->output(0) == nullptr || (!in_codes && !IsOp(*node, "Softmax"))) continue;
      if (!IsMultipliedAfterCodes(node->output(), in_codes) || !IsOfScores(node->input(0))) continue;
      Site site;
      site.value = node->output();
      site.order = node->order;
      site.record.kind = "attention";
      site.record.state = "left";
      site.record.rule = "native";
      site.record.node = std::string(Label(*node));
      site.record.module = ModulePath(*node);
      site.record.covers = {std::string(Label(*node))};
      site.Say(
          "rounded-between",
          "its probabilities are rounded to codes before they are multiplied, and no attention kernel rounds there; --quantised "
          "float leaves that rounding out",
          "docs/sources/ascend-contract.md 5.3");
      workspace.sites.push_back(std::move(site));
    }
  }
}

}  // namespace ascend_fuse
