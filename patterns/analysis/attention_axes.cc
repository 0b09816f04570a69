#include "patterns/analysis/attention_axes.h"

#include <algorithm>
#include <utility>

namespace ascend_fuse {
namespace {

// Whether those of `all` that are in `some` stand after those that are not: heads stand after the batch.
bool HasTheLastOf(const Atoms& all, const Atoms& some) {
  return std::is_partitioned(all.begin(), all.end(), [&](int atom) { return !Contains(some, atom); });
}

class HeadFinder {
 public:
  HeadFinder(const AtomTable& atoms, const AttentionAxes& axes, const AttentionOperands& operands)
      : atoms_(atoms), axes_(axes), operands_(operands) {}

  std::vector<Atoms> Find(const ScorePath& path, const AxisList& output) && {
    AddRowsOfTheQuery();
    for (const AxisList& stage : path.stages) AddBefore(stage, axes_.queries, axes_.keys);
    AddBefore(output, axes_.queries, axes_.channels);
    for (const AxisView& place : operands_.query.places) AddBefore(place.axes, axes_.queries, axes_.width);
    for (const AxisView& place : operands_.key.places) AddBefore(place.axes, axes_.keys, axes_.width);
    for (const AxisView& place : operands_.value.places) AddBefore(place.axes, axes_.keys, axes_.channels);
    AddSplitChannels();
    if (possible_.empty()) Add(axes_.leading.size() >= 2 ? Atoms{axes_.leading.back()} : Atoms{});
    return std::move(possible_);
  }

 private:
  void Add(Atoms heads) {
    if (HasAll(axes_.leading, heads) && std::find(possible_.begin(), possible_.end(), heads) == possible_.end()) {
      possible_.push_back(std::move(heads));
    }
  }

  // Heads that share a key may have become rows of the query: what one axis holds of them and of the heads of the key, or what
  // the channels of a layer were split into. An axis of batch and tokens is neither.
  void AddRowsOfTheQuery() {
    for (const AxisView& place : operands_.query.places) {
      for (const Atoms& given : place.axes) {
        const Atoms axis = atoms_.Leaves(given);
        const Atoms heads = Without(axis, axes_.width);
        const bool split = heads.size() < axis.size();
        const bool of_the_key = HasAny(heads, axes_.leading) && !(HasAll(heads, axes_.leading) && HasAll(heads, axes_.queries));
        if (HasAny(heads, axes_.queries) && (split || of_the_key) && HasTheLastOf(axes_.leading, heads)) {
          possible_.push_back(heads);
        }
      }
    }
  }

  // What stands before these rows and columns.
  void AddBefore(const AxisList& given, const Atoms& row, const Atoms& column) {
    const AxisList axes = atoms_.Leaves(given);
    const size_t rank = axes.size();
    if (rank < 4 || axes[rank - 2] != row || axes[rank - 1] != column) return;
    if (rank >= 5 && (!operands_.key.places.front().copied.empty() || !operands_.value.places.front().copied.empty())) {
      Add(Joined({axes[rank - 4], axes[rank - 3]}));
    }
    Add(axes[rank - 3]);
  }

  // Heads are what the channels of a layer are split into.
  void AddSplitChannels() {
    for (const AxisView& place : operands_.query.places) {
      for (const Atoms& given : place.axes) {
        const Atoms axis = atoms_.Leaves(given);
        if (HasAll(axis, axes_.width) && axis.size() > axes_.width.size()) Add(Without(axis, axes_.width));
      }
    }
  }

  const AtomTable& atoms_;
  const AttentionAxes& axes_;
  const AttentionOperands& operands_;
  std::vector<Atoms> possible_;
};

}  // namespace

bool HasAll(const Atoms& all, const Atoms& some) {
  return std::all_of(some.begin(), some.end(), [&](int atom) { return Contains(all, atom); });
}

bool HasAny(const Atoms& all, const Atoms& some) {
  return std::any_of(some.begin(), some.end(), [&](int atom) { return Contains(all, atom); });
}

Atoms Without(const Atoms& all, const Atoms& some) {
  Atoms rest;
  for (int atom : all) {
    if (!Contains(some, atom)) rest.push_back(atom);
  }
  return rest;
}

std::vector<Atoms> PossibleHeads(const AtomTable& atoms, const AttentionAxes& axes, const AttentionOperands& operands,
                                 const ScorePath& path, const AxisList& output) {
  return HeadFinder(atoms, axes, operands).Find(path, output);
}

AttentionAxes WithHeads(AttentionAxes axes, const Atoms& heads) {
  axes.heads = heads;
  axes.shared = Without(heads, axes.leading);
  axes.queries = Without(axes.queries, axes.shared);
  axes.batch = Without(axes.leading, heads);
  return axes;
}

}  // namespace ascend_fuse
