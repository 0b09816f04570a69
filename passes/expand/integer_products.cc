#include "passes/expand/integer_products.h"

#include <cmath>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "ir/whole_number.h"
#include "passes/core/node_inserter.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

bool IsIntegerProduct(const Workspace& workspace, const Node& node) {
  const bool product = IsOp(node, "MatMul") || IsOp(node, "Gemm") || IsOp(node, "Conv") || IsOp(node, "ConvTranspose");
  return !node.dead && product && node.input(0) != nullptr && workspace.facts().Of(node.input(0)).type == DataType::kInt8;
}

// The zero point of the codes, a scalar: what AscendQuant adds. Nodes between it and the product only move codes.
const Value* ZeroPoint(Workspace& workspace, const Node& product) {
  double offset = 0;
  for (const Node* node = product.input(0)->producer; node != nullptr && node->input(0) != nullptr;
       node = node->input(0)->producer) {
    if (Domain(*node) != "npu" || OpType(*node) != "AscendQuant") continue;
    offset = static_cast<double>(FloatAttribute(*node, "offset").value_or(0));
    break;
  }
  const auto zero = WholeNumber<int8_t>(std::nearbyint(offset));  // as GE reads it
  const std::string_view byte(reinterpret_cast<const char*>(&zero), 1);
  return workspace.rewriter().Constant(product.graph, DataType::kInt8, {}, byte, "zero_point");
}

// A bias [C] as it broadcasts to [N, C, ...].
const Value* OfChannels(NodeInserter& inserter, const Value* bias, int rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis < rank - 1; ++axis) axes.push_back(axis);
  return axes.empty() ? bias : inserter.Unsqueeze(bias, axes);
}

}  // namespace

absl::Status NameIntegerProducts(Workspace& workspace) {
  for (const auto& graph : workspace.model().graphs()) {
    const std::vector<const Node*> nodes(graph->nodes().begin(), graph->nodes().end());
    for (const Node* node : nodes) {
      if (!IsIntegerProduct(workspace, *node)) continue;
      const bool conv = IsOp(*node, "Conv");
      const int rank = workspace.facts().Of(node->input(0)).rank();
      const bool plain = FloatAttribute(*node, "alpha").value_or(1) == 1 && FloatAttribute(*node, "beta").value_or(1) == 1 &&
                         IntAttribute(*node, "transA").value_or(0) == 0;
      if (IsOp(*node, "ConvTranspose") || !plain || (conv && rank < 3)) {
        return absl::FailedPreconditionError(
            fmt::format("{} {} of int8 has no operator of integers in ONNX", OpType(*node), Label(*node)));
      }
      NodeInserter inserter(workspace, *node);
      const Value* weight = node->input(1);
      if (IntAttribute(*node, "transB").value_or(0) != 0) {
        weight = inserter.Op("Transpose", {weight}, {Attribute::Ints("perm", {1, 0})});
      }
      NewNode plan;
      plan.op_type = conv ? "ConvInteger" : "MatMulInteger";
      plan.name = std::string(NodeName(*node));
      plan.inputs = {node->input(0), weight, ZeroPoint(workspace, *node)};
      if (conv) plan.attributes = ReadAttributes(*node);
      const Value* const bias = node->input_count > 2 ? node->input(2) : nullptr;
      if (bias != nullptr) {
        plan = NewNode{"Add",
                       "",
                       plan.name,
                       false,
                       {inserter.Op(plan.op_type, plan.inputs, plan.attributes), conv ? OfChannels(inserter, bias, rank) : bias},
                       {}};
      }
      workspace.Refresh(workspace.rewriter().ReplaceNode(*node, plan));
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
