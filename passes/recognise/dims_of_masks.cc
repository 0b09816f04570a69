#include "passes/recognise/dims_of_masks.h"

#include <cstdint>
#include <string>
#include <utility>

#include "ir/infer/carried.h"
#include "patterns/analysis/mask.h"

namespace ascend_fuse {

DimsOfMasks::DimsOfMasks(Workspace& workspace) : workspace_(workspace) {
  for (const auto& graph : workspace.model().graphs()) {
    if (graph->owner() != nullptr && !infer::CarriedValues(*graph->owner()).empty()) loops_.push_back(graph->owner());
  }
}

bool DimsOfMasks::Learn(Site* site) {
  const Node& node = *site->node;
  if (OperatorKey(node) != "ascend_fuse.Attention" || workspace_.options().strict) return false;
  bool learned = false;
  for (size_t i = 3; i < node.input_count; ++i) {  // mask, keep and bias
    if (node.input(i) == nullptr) continue;
    learned = LearnOfBatch(*node.input(0), *node.input(i), site) || learned;
    learned = LearnOfQueries(*node.input(0), *node.input(i), site) || learned;
  }
  return learned;
}

KnownDims DimsOfMasks::Known() { return known_.has_value() ? *known_ : KnownDimsOf(workspace_.model(), workspace_.facts()); }

bool DimsOfMasks::LearnOfBatch(const Value& query, const Value& mask, Site* site) {
  const auto assumed = [&] { return AssumedOfBatch(workspace_.facts().dims(), Of(mask), Of(query)); };
  const std::string before = assumed();
  if (before.empty() || !TakeForGranted(Of(query).shape[0], Of(mask).shape[0])) return false;
  const std::string now = assumed();  // with the names that its dims have since
  site->record.assumptions.push_back(now.empty() ? before : now);
  return true;
}

bool DimsOfMasks::LearnOfQueries(const Value& query, const Value& mask, Site* site) {
  const std::string assumed = AssumedOfQueries(workspace_.facts().dims(), Of(mask), Of(query));
  if (assumed.empty()) return false;
  const Dim of_mask = workspace_.facts().dims().Resolve(Of(mask).shape[Of(mask).shape.size() - 2]);
  if (of_mask.is_number() || !TakeForGranted(Of(query).shape[2], of_mask)) return false;
  site->record.assumptions.push_back(assumed);
  return true;
}

// That a mask leaves a dim of the scores as it is. False where that was known.
bool DimsOfMasks::TakeForGranted(Dim of_query, Dim of_mask) {
  DimTable& dims = workspace_.facts().dims();
  const uint64_t version = dims.version();
  if (!dims.Unify(dims.Broadcast(of_query, of_mask), of_query) || dims.version() == version) return false;
  AskLoops();
  return true;
}

// What the turns of a loop keep was asked before anything was learned. Of loops in loops the inner one may wait for the outer
// one, or the other way round.
void DimsOfMasks::AskLoops() {
  if (loops_.empty()) return;
  constexpr int kMostRounds = 4;
  KnownDims known = Known();
  bool learned = false;
  for (int round = 0; round < kMostRounds; ++round) {
    bool more = false;
    for (const Node* loop : loops_) more = (!loop->dead && infer::LearnOfTurns(*loop, &workspace_.facts())) || more;
    if (!more) break;
    learned = true;
  }
  if (learned) known_ = std::move(known);
}

}  // namespace ascend_fuse
