// The list of the passes of `optimize`, in their order, with what each takes and gives.
#include "passes/optimize_passes.h"

#include <utility>
#include <vector>

#include "passes/check/passes.h"
#include "passes/core/passes.h"
#include "passes/core/take_turns.h"
#include "passes/core/workspace.h"
#include "passes/layout/passes.h"
#include "passes/legalise/passes.h"
#include "passes/lower/passes.h"
#include "passes/quantised/passes.h"
#include "passes/recognise/passes.h"
#include "passes/tidy/passes.h"

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

Pass Needs(std::vector<Given> needs, Pass pass) {
  pass.needs = std::move(needs);
  return pass;
}

Pass Gives(std::vector<Given> provides, Pass pass) {
  pass.provides = std::move(provides);
  return pass;
}

// What passes need at four points of the list.
const std::vector<Given> kKnown = {Given::kFacts, Given::kNumbers};
const std::vector<Given> kFound = {Given::kFacts, Given::kNumbers, Given::kSites};
const std::vector<Given> kDecided = {Given::kFacts, Given::kNumbers, Given::kSites, Given::kDecisions};
const std::vector<Given> kOperators = {Given::kFacts, Given::kNumbers, Given::kFinalOperators};

// Fewer nodes may have other orders of axes, and those other nodes that are not needed.
absl::Status Settle(Workspace& workspace) {
  if (workspace.ChangesNothing() || workspace.options().keep_rest) return absl::OkStatus();
  return TakeTurns(workspace, {ChooseOrders, Adapt, Tidy, ShareKeys});
}

// The list without the last word on `by_rewriter`.
std::vector<Pass> ListOfPasses() {
  return {
      {"inline", "a model that was just loaded", "nodes of local functions in place of their calls", Inline},
      ReadsOnly(Gives({Given::kFacts},
                      {"infer", "the graph", "facts of every value: type, symbolic shape, small elements", InferFacts})),
      ReadsOnly(Needs({Given::kFacts},
                      Gives({Given::kNumbers}, {"number", "facts", "which values are the same computation, or copies", Number}))),
      Needs(kKnown, {"decide_branches", "facts and numbers",
                     "the branches that the numbers of `--fix` choose in place of their Ifs", DecideBranches}),
      Needs(kKnown, {"write_quantised", "facts and numbers",
                     "quantised operators, of which ATC reads none, written in standard ones", WriteQuantised}),
      Needs(kKnown,
            {"decompose_contrib", "facts and numbers",
             "operators of ONNX Runtime that are not a construct by themselves, written in standard ones", DecomposeContrib}),
      Needs(kKnown,
            {"equate_products", "facts and numbers",
             "products in place of Einsums that no kernel runs, where the product says that dims are equal", EquateProducts}),
      Needs(kKnown,
            {"group_halves", "facts and numbers", "a Concat for each rotation where one joins several of them", GroupHalves}),
      Needs(kKnown, {"straighten_norms", "facts and numbers",
                     "norms with Transposes between their parts, with their axes in one order", StraightenNorms}),
      Needs(kKnown, Gives({Given::kSites},
                          {"recognise", "facts and numbers", "sites, each recognised construct as one operator", Recognise})),
      ReadsOnly(Needs(kFound, {"pair_rotations", "sites", "which rotations of query and key share cos and sin", PairRotations})),
      ReadsOnly(Needs(kFound, {"describe_masks", "sites", "what the mask of each attention means", DescribeMasks})),
      ReadsOnly(Needs(kFound, {"find_near_misses", "sites", "where a rule got far and what stopped it", FindNearMisses})),
      Needs(kFound, {"choose_opset", "sites that only miss an operator of a later opset",
                     "opset 17, where all nodes mean the same there", ChooseOpset}),
      Needs(kFound, {"lower", "sites and a target", "NPU nodes where the target takes one", Lower}),
      Needs(kFound, {"quantise_norms", "norms that were lowered, and what makes int8 of them",
                     "one node of both and the sum, where the target has it", QuantiseNorms}),
      ReadsOnly(Needs(kFound, Gives({Given::kDecisions}, {"explain_unfused", "sites that were not lowered",
                                                          "each taken by GE, or left with a reason", ExplainUnfused}))),
      Needs(kDecided,
            Gives({Given::kFinalOperators},
                  {"restore", "decided sites", "original nodes in place of recognised operators that no node took", Restore})),
      Needs(kOperators, {"decompose_leftovers", "the graph without recognised operators",
                         "operators of ONNX Runtime that nothing was made of, written in standard ones", DecomposeLeftovers}),
      Needs(kOperators, {"adapt_products", "the graph with its final operators",
                         "products and Transposes in place of Einsums that no kernel runs", AdaptProducts}),
      ReadsOnly(Needs(kOperators, {"infer_again", "the graph with its final operators",
                                   "facts anew where these say more of their results than was known", InferAgain})),
      Needs(
          kOperators,
          {"choose_orders", "the graph with its final operators",
           "batch, tokens, heads and channels in the orders that move the fewest elements around fused attentions and rotations",
           ChooseOrders}),
      Needs(kOperators, {"fold_constants", "the graph with its final operators",
                         "constants in place of what the numbers of `--fix` decide", FoldConstants}),
      Needs(kOperators, {"convert_opset", "the graph with its final operators",
                         "the opset that ATC reads best, where every node has a form there", ConvertOpset}),
      Needs(kOperators,
            Gives({Given::kFinalNodes}, {"adapt", "the graph at its final opset",
                                         "forms that ATC reads in place of those that it refuses or misreads", Adapt})),
      ReadsOnly(Needs(kDecided, {"confirm_ge", "sites that GE was to take and the graph as ATC reads it",
                                 "a reason where a node of one had to be written in another form", ConfirmGe})),
      Needs(kDecided,
            {"tidy", "sites and the graph as ATC reads it", "the rest of the graph without what computes nothing", Tidy}),
      Needs(kDecided, {"share_keys", "sites that were left, and their nodes as ATC reads them",
                       "products of attentions that are left, without the repeats of keys that heads share", ShareKeys}),
      Needs(kDecided, {"settle", "what tidy and share_keys wrote",
                       "a graph in which neither orders, forms, tidying nor shared keys are to be changed any more", Settle}),
      Needs({Given::kFinalNodes}, {"keep_calls", "the graph with its final nodes",
                                   "calls of local functions again where nothing is to be changed", KeepCalls}),
      ReadsOnly(Needs({Given::kFinalNodes}, Gives({Given::kStyle}, {"choose_style", "the graph with its final nodes and imports",
                                                                    "the emission style", ChooseStyle}))),
      Final(Needs({Given::kStyle}, {"write_style", "the emission style", "domains as the style spells them", WriteStyle})),
      Final(Needs({Given::kFinalNodes},
                  {"write_dims", "the graph with its final nodes", "the numbers of `--fix` in inputs and outputs", WriteDims})),
      Final(Needs({Given::kFinalNodes}, {"write_ranks", "the graph with its final nodes",
                                         "ranks of what bodies of Scan give, where anything was rewritten", WriteRanks})),
      Final(Needs({Given::kFinalNodes},
                  {"sweep", "the graph with its final nodes", "no dead node, no initializer that only dead nodes used", Sweep})),
      ReadsOnly(Needs({Given::kFinalNodes, Given::kFacts, Given::kStyle},
                      {"check_result", "the graph with its final nodes", "what ATC would refuse or misread of it", CheckResult})),
  };
}

}  // namespace

std::vector<Pass> OptimizePasses() {
  std::vector<Pass> passes = ListOfPasses();
  for (Pass& pass : passes) pass.by_rewriter = pass.name != "inline";  // which has ways of its own
  return passes;
}

}  // namespace ascend_fuse
