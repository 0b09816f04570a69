// How a way is written from another order of its source, or to another one of its end, and what that costs.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/core/workspace.h"
#include "passes/layout/attention_layout.h"
#include "passes/layout/row_ways.h"
#include "patterns/terms/node_builder.h"

namespace ascend_fuse {

class WayForms {
 public:
  WayForms(Workspace& workspace, const LayoutCosts& costs)
      : facts_(workspace.facts()), context_(workspace.Context()), costs_(costs) {}

  // What an attention takes, or gives, with the heads after the tokens too: one Transpose of the two is free there, because the
  // order of heads is chosen after that of rows.
  void AddFreeEnd(const Value* end) { free_ends_.insert(end); }
  void AddFreeSource(const Value* source) { free_sources_.insert(source); }

  // What the way costs as it is, and written from a source with axes `from` to an end with axes `to`; kNever where it cannot be.
  int64_t CostAsIs(const Way& way) const;
  int64_t CostOf(const Way& way, const std::optional<AxisList>& from, const std::optional<AxisList>& to) const;
  // Whether the way has the free Transpose, or would have it, or none at all, if it were written anew between the same orders.
  bool AsIsIsFree(const Way& way) const;
  bool CanBeFree(const Way& way) const;

  // The source with axes `from`, or what is picked of it, as the end with axes `to`; nullopt where that cannot be told.
  std::optional<Term> ArrangedOf(const Way& way, const Value* source, const std::optional<AxisList>& from,
                                 const std::optional<AxisList>& to) const;
  // The dims of the end of the way, read from those of the source, or of what is picked of it; nullopt where they are others.
  std::optional<Term> DimsOf(const Way& way, const Value* source, const AxisList& of_source) const;

  // `now` is computed in the place of `before`.
  void SetNow(const Value* before, const Value* now) { now_[before] = now; }
  // nullptr where it is computed as it was.
  const Value* NowOf(const Value* before) const;

 private:
  int64_t CostOf(int64_t transposes, int64_t reshapes, const Way& way) const;
  bool IsFree(const Way& way, const std::vector<const DeferredNode*>& nodes) const;
  const Value* WithDimsOf(const Way& way) const;

  const Facts& facts_;
  const FunctionContext context_;
  const LayoutCosts& costs_;
  absl::flat_hash_set<const Value*> free_ends_;
  absl::flat_hash_set<const Value*> free_sources_;
  absl::flat_hash_map<const Value*, const Value*> now_;
};

}  // namespace ascend_fuse
