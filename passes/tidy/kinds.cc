#include "passes/tidy/kinds.h"

#include <algorithm>

namespace ascend_fuse {

InputDims::InputDims(const Workspace& workspace) : dims_(workspace.facts().dims()) {
  for (const Value* input : workspace.model().graph().inputs()) {
    const Fact& fact = workspace.facts().Of(input);
    if (input->initializer != nullptr || !fact.has_rank) continue;
    for (size_t axis = 0; axis < fact.shape.size(); ++axis) {
      const Dim dim = dims_.Resolve(fact.shape[axis]);
      if (dim.known() && !dim.is_number()) places_.try_emplace(dim.id(), Place{input, static_cast<int64_t>(axis)});
    }
  }
}

const InputDims::Place* InputDims::Of(Dim dim) const {
  const Dim resolved = dims_.Resolve(dim);
  if (!resolved.known() || resolved.is_number()) return nullptr;
  const auto found = places_.find(resolved.id());
  return found == places_.end() ? nullptr : &found->second;
}

const std::vector<TidyKind>& TidyKinds() {
  static const auto* const kKinds = new std::vector<TidyKind>{
      {"copies", "tidy-copies", {}, AskCopies},
      {"constants", "tidy-constants", {}, AskConstants},
      {"shapes", "tidy-shapes", {"Reshape", "Expand", "Slice"}, AskShapes},
      {"dims", "tidy-dims", {}, AskDims},
      {"expands", "tidy-expands", {}, AskExpands},
      {"casts", "tidy-casts", {"Cast"}, AskCasts},
      {"reshapes", "tidy-reshapes", {"Reshape", "Squeeze", "Unsqueeze", "Flatten"}, AskReshapes},
      {"joins", "tidy-joins", {"Concat", "Slice", "Gather", "Add"}, AskJoins},
      {"transposes", "tidy-transposes", {"Transpose"}, AskTransposes},
      {"scatters", "tidy-scatters", {"ScatterND"}, AskScatters},
      {"pads", "tidy-pads", {"Pad"}, AskPads},
      {"columns", "tidy-columns", {"GatherElements"}, AskColumns},
      {"splits", "tidy-splits", {"Slice"}, AskSplits},
      {"places", "tidy-places", {"GatherND", "ScatterND"}, AskPlaces},
      {"rows", "tidy-rows", {"Gather"}, AskRows},
      {"kernels", "tidy-kernels", {"Abs", "ArgMax", "ArgMin", "CumSum", "Expand", "IsNaN", "Neg", "Sign"}, AskKernels},
      {"range", "tidy-range", {"Where", "Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}, AskHalfRange},
      {"negations", "tidy-negations", {"Not"}, AskNegations},
      {"heads", "tidy-heads", {"NPUPromptFlashAttention", "NPUFusedInferAttentionScore"}, AskHeads, false, "npu"},
      {"affines", "tidy-affines", {"BatchNormalization", "Add", "Mul"}, AskAffines, true},
  };
  return *kKinds;
}

const Node* Before(const Node& node, size_t index, std::string_view op_type) {
  const Value* const input = node.input(index);
  const Node* const producer = input != nullptr ? input->producer : nullptr;
  const bool found = producer != nullptr && !producer->dead && producer->graph == node.graph && IsOp(*producer, op_type);
  return found ? producer : nullptr;
}

Term IndexOf(TidyContext& context, const Node& node, int64_t number, int rank) {
  if (rank == 1) return build::Numbers({number});
  const std::string bytes(reinterpret_cast<const char*>(&number), sizeof number);
  const Value* const index = context.workspace.rewriter().Constant(node.graph, DataType::kInt64, {}, bytes, "index");
  InferConstant(index, &context.workspace.facts());
  return Term::Of(index);
}

bool OnlyFirstIsUsed(const Node& node) {
  for (size_t i = 1; i < node.output_count; ++i) {
    const Value* const output = node.output(i);
    if (output != nullptr && (output->is_graph_output || !LiveUses(*output).empty())) return false;
  }
  return node.output() != nullptr;
}

}  // namespace ascend_fuse
