// What masks say of dims that have another name than those of the scores.
#pragma once

#include <optional>
#include <vector>

#include "passes/core/learned_dims.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

// A mask that has a batch, or a number of queries, of another name is taken to leave that of the scores as it is, where a node
// takes the attention; what is computed of it has those then, and the attentions and rotations after it are found for them. The
// site tells of it whatever becomes of it, as theirs may rest on it alone.
class DimsOfMasks {
 public:
  explicit DimsOfMasks(Workspace& workspace);

  // The attention of a site that was recognised. True where something was learned; nothing is with --strict.
  bool Learn(Site* site);

  // What was known of dims with which sites were found: without what loops were found to keep since, as what reads them may have
  // been looked at before.
  KnownDims Known();

 private:
  bool LearnOfBatch(const Value& query, const Value& mask, Site* site);
  bool LearnOfQueries(const Value& query, const Value& mask, Site* site);
  bool TakeForGranted(Dim of_query, Dim of_mask);
  void AskLoops();
  const Fact& Of(const Value& value) const { return workspace_.facts().Of(&value); }

  Workspace& workspace_;
  std::vector<const Node*> loops_;
  std::optional<KnownDims> known_;  // before a loop was found to keep more
};

}  // namespace ascend_fuse
