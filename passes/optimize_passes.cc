// The list of the passes of `optimize`, in their order, with what each takes and gives.
#include "passes/optimize_passes.h"

#include "passes/core/passes.h"
#include "passes/layout/passes.h"
#include "passes/legalise/passes.h"
#include "passes/lower/passes.h"
#include "passes/recognise/passes.h"

namespace ascend_fuse {
namespace {

Pass ReadsOnly(Pass pass) {
  pass.reads_only = true;
  return pass;
}

Pass Final(Pass pass) {
  pass.final = true;
  return pass;
}

}  // namespace

std::vector<Pass> OptimizePasses() {
  std::vector<Pass> passes = {
      {"inline", "a model that was just loaded", "nodes of local functions in place of their calls", Inline},
      ReadsOnly({"infer", "the graph", "facts of every value: type, symbolic shape, small elements", InferFacts}),
      ReadsOnly({"number", "facts", "which values are the same computation, or copies", Number}),
      {"decompose_contrib", "facts and numbers",
       "operators of ONNX Runtime that are no construct by themselves, written in standard ones", DecomposeContrib},
      {"recognise", "facts and numbers", "sites, each recognised construct as one operator", Recognise},
      ReadsOnly({"pair_rotations", "sites", "which rotations of query and key share cos and sin", PairRotations}),
      ReadsOnly({"read_masks", "sites", "what the mask of each attention means", ReadMasks}),
      ReadsOnly({"find_near_misses", "sites", "where a rule got far and what stopped it", FindNearMisses}),
      {"lower", "sites and a target", "NPU nodes where the target takes one", Lower},
      {"raise_opset", "sites that only miss an operator of a later opset",
       "opset 17, where all nodes mean the same there", RaiseOpset},
      ReadsOnly({"account", "sites that were not lowered", "each taken by GE, or left with a reason", Account}),
      {"restore", "decided sites", "original nodes in place of recognised operators that no node took", Restore},
      {"decompose_leftovers", "the graph without recognised operators",
       "operators of ONNX Runtime that nothing was made of, written in standard ones", DecomposeLeftovers},
      {"share_keys", "sites that were left, and their original nodes",
       "products of attentions that are left, without the repeats of keys that heads share", ShareKeys},
      ReadsOnly({"infer_again", "the graph with its final operators",
                 "facts anew where these say more of their results than was known", InferAgain}),
      {"fold_channel_orders", "the graph with its final operators",
       "channels of a rotation in the order of its kernel by the weights of the projection", FoldChannelOrders},
      {"order_rows", "the graph with its final operators",
       "the batch before the tokens around fused attentions where that leaves fewer Transposes", OrderRows},
      {"choose_layouts", "the graph with its final operators",
       "heads before or behind tokens around each fused attention, by what Transposes and kernels cost", ChooseLayouts},
      {"fold_constants", "the graph with its final operators",
       "constants in place of what the numbers of `--fix` decide", FoldConstants},
      {"convert_opset", "the graph with its final operators",
       "the opset that ATC reads best, where every node has a form there", ConvertOpset},
      {"adapt", "the graph at its final opset", "forms that ATC reads in place of those that it refuses or misreads", Adapt},
      {"keep_calls", "the graph with its final nodes", "calls of local functions again where nothing is to be changed", KeepCalls},
      ReadsOnly({"choose_style", "the graph with its final nodes and imports", "the emission style", ChooseStyle}),
      Final({"write_style", "the emission style", "domains as the style spells them", WriteStyle}),
      Final({"write_dims", "the graph with its final nodes", "the numbers of `--fix` in inputs and outputs", WriteDims}),
      Final({"sweep", "the graph with its final nodes", "no dead node, no initializer that only dead nodes used", Sweep}),
  };
  for (Pass& pass : passes) pass.by_rewriter = pass.name != "inline";  // which has ways of its own
  return passes;
}

}  // namespace ascend_fuse
