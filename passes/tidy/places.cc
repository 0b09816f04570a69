// Places: rows that are picked or written one by one at indices that count places. GatherND (x, (b, k)), where b and k are a
// Range along an axis each, is x with axes of 1 between, and ScatterND at ranges of places is a Concat of what stays and what is
// written. Masks of transformers are indexed so, and slices are assigned so in exports with computed indices
// (docs/sources/surgery.md).
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "passes/tidy/counts.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// GatherND: each component goes over its axis from the beginning, in the order of the axes, and along no other axis there is more
// than one. An axis that is not provably as long as what is picked of it is read by a Gather of the places, which is an error in
// the same runs as the GatherND.
std::optional<Tidied> Gathered(TidyContext& context, const Node& node) {
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& indices = context.facts().Of(node.input(1));
  if (!x.has_rank || IntAttribute(node, "batch_dims").value_or(0) != 0) return std::nullopt;
  const std::vector<Count> runs = RunsOf(context, node.input(1));
  if (runs.empty() || runs.size() > x.shape.size()) return std::nullopt;
  Term picked = Term::Of(node.input(0));
  std::vector<int64_t> added;
  size_t component = 0;
  for (int64_t axis = 0; axis + 1 < indices.rank(); ++axis) {
    const Dim dim = context.dims().Resolve(indices.shape[static_cast<size_t>(axis)]);
    if (component < runs.size() && !runs[component].steps.empty() && runs[component].steps[0].axis == axis) {
      const Value* const places = runs[component].steps[0].places;
      if (!runs[component].start.is(0)) return std::nullopt;
      if (!context.dims().Equal(dim, x.shape[component])) {
        if (places == nullptr) return std::nullopt;
        picked = build::Gather(std::move(picked), Term::Of(places), static_cast<int64_t>(component));
      }
      ++component;
    } else if (dim.is(1)) {
      added.push_back(axis);
    } else {
      return std::nullopt;
    }
  }
  if (component < runs.size()) return std::nullopt;  // two along one axis, or in another order
  return Tidied::Of(added.empty() ? std::move(picked) : build::Unsqueeze(std::move(picked), added));
}

// A range of one axis that is written.
struct Written {
  int64_t axis = 0;
  int64_t first = 0;
  int64_t last = 0;
  int64_t length = 0;  // of the axis
};

// `x` with `part` in these ranges, and everything along the other axes. Each range takes apart what the ones before it leave.
Term WithPart(const Term& x, const Term& part, absl::Span<const Written> ranges) {
  if (ranges.empty()) return part;
  const Written& range = ranges.front();
  const auto slice = [&](int64_t first, int64_t last) { return build::Slice(x, first, last, range.axis); };
  std::vector<Term> parts;
  if (range.first > 0) parts.push_back(slice(0, range.first));
  parts.push_back(ranges.size() == 1 ? part : WithPart(slice(range.first, range.last), part, ranges.subspan(1)));
  if (range.last < range.length) parts.push_back(slice(range.last, range.length));
  return parts.size() == 1 ? parts[0] : build::Concat(std::move(parts), range.axis);
}

// Adds the range of axis `axis` that a component counts, unless that is all of it. False where it is not known.
bool AddRange(const TidyContext& context, const Count& count, int64_t axis, Dim extent, Dim length,
              std::vector<Written>* ranges) {
  if (count.steps.empty() ? !extent.is(1) : count.steps[0].axis != axis) return false;
  const int64_t start = count.start.number();
  if (start == 0 && context.dims().Equal(extent, length)) return true;
  if (!extent.is_number() || !length.is_number()) return false;
  const int64_t first = start < 0 ? start + length.number() : start;
  const int64_t last = first + extent.number();
  // Numbers from below 0 on count from the end, and those after them from the beginning.
  if (first < 0 || extent.number() < 1 || last > length.number() || (start < 0 && start + extent.number() > 0)) return false;
  ranges->push_back({axis, first, last, length.number()});
  return true;
}

// ScatterND: the components go over the first axes, each over a range of its own.
std::optional<Tidied> Scattered(TidyContext& context, const Node& node) {
  constexpr size_t kMostRanges = 2;  // two take up to seven nodes
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& indices = context.facts().Of(node.input(1));
  const Fact& updates = context.facts().Of(node.input(2));
  if (!x.has_rank || updates.rank() != x.rank() || StringAttribute(node, "reduction").value_or("none") != "none")
    return std::nullopt;
  const std::vector<Count> counts = RunsOf(context, node.input(1));
  if (counts.empty() || indices.rank() != static_cast<int>(counts.size()) + 1 || counts.size() > x.shape.size())
    return std::nullopt;
  std::vector<Written> ranges;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    const bool indexed = i < counts.size();
    const Dim extent = context.dims().Resolve(indexed ? indices.shape[i] : x.shape[i]);
    const Dim length = context.dims().Resolve(x.shape[i]);
    if (indexed && !AddRange(context, counts[i], static_cast<int64_t>(i), extent, length, &ranges)) return std::nullopt;
    if (!context.dims().Equal(extent, updates.shape[i])) return std::nullopt;
  }
  if (ranges.size() > kMostRanges) return std::nullopt;
  return Tidied::Of(WithPart(Term::Of(node.input(0)), Term::Of(node.input(2)), ranges));
}

}  // namespace

std::optional<Tidied> AskPlaces(TidyContext& context, const Node& node) {
  return IsOp(node, "GatherND") ? Gathered(context, node) : Scattered(context, node);
}

}  // namespace ascend_fuse
