// Writes an attention whose heads are padded, and all that is padded with it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "passes/core/workspace.h"
#include "passes/layout/padding_plan.h"

namespace ascend_fuse {

// What was done to an attention.
struct PaddedHeads {
  const Node* attention = nullptr;                      // in the place of the old one
  std::vector<std::string> weights;                     // the names of the constants that were padded
  bool sliced = false;                                  // the result is cut back by a Slice
  absl::flat_hash_map<const Node*, const Node*> wider;  // what stands in the place of nodes whose results are padded
};

// Constants that were padded before: layers may share weights. By constant and axis.
using PaddedConstants = absl::flat_hash_map<std::pair<const Value*, size_t>, std::vector<std::pair<Places, const Value*>>>;

class PaddingWriter {
 public:
  PaddingWriter(Workspace& workspace, const PaddingPlan& plan, PaddedConstants& padded)
      : workspace_(workspace), facts_(workspace.facts()), plan_(plan), padded_(padded) {}

  // FAILED_PRECONDITION with a clause where the graph may be half changed.
  absl::StatusOr<PaddedHeads> Write();

 private:
  absl::Status WriteNode(const Node* node);
  absl::Status WriteSlice(const Value* padded);
  void Redirect(const Value& old, const Value* now);
  void WriteShape(const Node* shape);
  bool OtherDimsAlone(const Node& shape, const std::vector<int64_t>& less) const;
  absl::StatusOr<const Value*> PaddedConstant(const Value* constant, size_t axis, const Places& places);

  Workspace& workspace_;
  Facts& facts_;
  const PaddingPlan& plan_;
  PaddedConstants& padded_;
  PaddedHeads result_;
  absl::flat_hash_map<const Value*, const Value*> made_;
};

}  // namespace ascend_fuse
