// Ways: what a value is made of by moving elements alone, however that is spelled; and how rows of tokens and batch lie along it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/core/workspace.h"
#include "patterns/analysis/axis_map.h"

namespace ascend_fuse {

// How the rows of a tensor lie that has its tokens first: [S, B, ...], or [S * B, ...].
struct Rows {
  bool merged = false;
  Dim tokens;
  Dim batch;
};

// What lies on a way.
struct Moves {
  int transposes = 0;
  int reshapes = 0;                                   // and all other nodes of it
  std::optional<std::pair<AxisList, AxisList>> turn;  // axes before and after one Transpose of heads and tokens
};

// A value that is made of another one by moving elements alone.
struct Way : Moves {
  explicit Way(DimTable* dims) : atoms(dims, true) {}

  const Value* end = nullptr;
  const Value* source = nullptr;
  AtomTable atoms;
  AxisList from;                        // the axes of the source
  AxisList to;                          // those of the end
  std::optional<PickedElement> picked;  // of the source's last axis, the outermost part of it
  Atoms tokens;                         // the rows, where they are known
  Atoms batch;
};

// The atoms of tokens and batch in axes that have these rows.
std::optional<std::pair<Atoms, Atoms>> RowsIn(Way* way, const AxisList& axes, const Rows& rows);
// Axes that have these rows, with the batch first.
std::optional<AxisList> BatchFirst(Way* way, const AxisList& axes, const Rows& rows);
// The rows of axes that have the tokens first. Where one of the two has one element, that is where it stands after the other.
std::optional<Rows> TokensFirst(const Way& way, const AxisList& axes);

class RowWays {
 public:
  explicit RowWays(Workspace& workspace) : facts_(workspace.facts()), context_(workspace.Context()) {}

  // The way to this value, from as far back as what lies between can be written anew.
  Way& To(const Value* end);
  // The ways to all that is made of `source` by moving elements and read by what does more than that.
  std::vector<Way*> From(const Value* source);
  // Whether the reader only moves elements on.
  bool MovesOn(const Use& use) const;
  // All that were asked for, in that order.
  const std::vector<std::unique_ptr<Way>>& all() const { return ways_; }

 private:
  std::unique_ptr<Way> FollowBack(const Value* end) const;

  const Facts& facts_;
  const FunctionContext context_;
  std::vector<std::unique_ptr<Way>> ways_;
  absl::flat_hash_map<const Value*, size_t> way_to_;
};

}  // namespace ascend_fuse
