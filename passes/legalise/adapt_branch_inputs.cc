// Empty inputs of nodes in a branch of an If, which ATC takes for a tensor from outside of the branch (the code
// empty-input-in-branch): those that say what ONNX takes for them are written as constants.
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/rounding.h"
#include "passes/core/call_of.h"
#include "passes/core/workspace.h"
#include "passes/legalise/adapt.h"

namespace ascend_fuse {
namespace {

// The number that a Clip without a minimum clips to; nullopt for a type that has none here.
std::optional<double> Lowest(DataType type) {
  if (const std::optional<double> largest = LargestFinite(type); largest.has_value()) return -*largest;
  switch (type) {
    case DataType::kInt8:
      return std::numeric_limits<int8_t>::lowest();
    case DataType::kInt32:
      return std::numeric_limits<int32_t>::lowest();
    case DataType::kInt64:
      return static_cast<double>(std::numeric_limits<int64_t>::lowest());
    default:
      return std::nullopt;
  }
}

// What input i of the node is where it is left out; nullptr where that cannot be written.
const Value* DefaultOf(Workspace& workspace, const Node& node, size_t i) {
  Rewriter& rewriter = workspace.rewriter();
  const std::string name = std::string(Label(node)) + "_default";
  const DataType type = workspace.facts().Of(node.input(0)).type;
  if (IsOp(node, "Clip") && i == 1) {
    const std::optional<double> lowest = Lowest(type);
    return lowest.has_value() ? rewriter.NumberConstant(node.graph, type, *lowest, name) : nullptr;
  }
  if (IsOp(node, "Pad") && i == 2) return rewriter.NumberConstant(node.graph, type, 0, name);
  // A region of interest is read in one mode only, and scales that are empty leave it to the sizes.
  const bool crops = StringAttribute(node, "coordinate_transformation_mode").value_or("") == "tf_crop_and_resize";
  if (IsOp(node, "Resize") && (i == 2 || (i == 1 && !crops)))
    return rewriter.Constant(node.graph, DataType::kFloat, {0}, "", name);
  if (IsOp(node, "Slice") && i == 3) {
    const Fact& starts = workspace.facts().Of(node.input(1));
    if (starts.rank() != 1 || !starts.shape[0].is_number()) return nullptr;
    std::vector<int64_t> axes;
    for (int64_t axis = 0; axis < starts.shape[0].number(); ++axis) axes.push_back(axis);
    return rewriter.Int64Constant(node.graph, axes, name);
  }
  return nullptr;
}

}  // namespace

void AdaptBranchInputs(Workspace& workspace) {
  const std::optional<LeftReason> reason = workspace.target()->EmptyInputInBranch();
  if (!reason.has_value()) return;
  for (const auto& graph : workspace.model().graphs()) {
    if (!IsBranchOfIf(*graph)) continue;
    for (const Node* node : graph->nodes()) {
      if (node->dead || node->domain != NameId::kEmpty || node->input_count == 0 || node->input(0) == nullptr) continue;
      for (size_t i = 1; i < node->input_count; ++i) {
        const Value* const constant = node->input(i) == nullptr ? DefaultOf(workspace, *node, i) : nullptr;
        if (constant == nullptr) continue;
        InferConstant(constant, &workspace.facts());
        workspace.rewriter().SetInput(node, i, constant);
        workspace.result.adapted[{reason->code, std::string(OpType(*node))}].emplace_back(Label(*node));
      }
    }
  }
}

}  // namespace ascend_fuse
