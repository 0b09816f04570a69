#include "passes/layout/regrouped_padding.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ascend_fuse {
namespace {

// Axes [begin, end) of both shapes that hold the same elements. Where the first of each is not a number, they are these multiples
// of one dim.
struct Group {
  size_t from_begin, from_end, to_begin, to_end;
  int64_t from_multiple = 0;
  int64_t to_multiple = 0;
};

class Regrouper {
 public:
  Regrouper(DimTable& dims, absl::Span<const Dim> from, absl::Span<const Dim> to) : dims_(dims), from_(from), to_(to) {}

  // Groups from the left, as far as dims are known, and from the right up to those; what is between is left out.
  std::vector<Group> Groups() {
    std::vector<Group> groups;
    size_t from_end = from_.size();
    size_t to_end = to_.size();
    while (Step(from_at_, from_end, to_at_, to_end, false, &groups)) {
      from_at_ = groups.back().from_end;
      to_at_ = groups.back().to_end;
    }
    while (Step(from_at_, from_end, to_at_, to_end, true, &groups)) {
      from_end = groups.back().from_begin;
      to_end = groups.back().to_begin;
    }
    return groups;
  }

 private:
  // The next group between these places, at the right end or at the left one.
  bool Step(size_t from_begin, size_t from_end, size_t to_begin, size_t to_end, bool right, std::vector<Group>* groups) const {
    const size_t from_size = from_end - from_begin;
    const size_t to_size = to_end - to_begin;
    const auto from = [&](size_t i) { return dims_.Resolve(from_[right ? from_end - 1 - i : from_begin + i]); };
    const auto to = [&](size_t i) { return dims_.Resolve(to_[right ? to_end - 1 - i : to_begin + i]); };
    const auto add = [&](size_t m, size_t n) {
      groups->push_back(right ? Group{from_end - m, from_end, to_end - n, to_end}
                              : Group{from_begin, from_begin + m, to_begin, to_begin + n});
      return true;
    };
    if (from_size > 0 && from(0).is(1)) return add(1, 0);
    if (to_size > 0 && to(0).is(1)) return add(0, 1);
    if (from_size == 0 || to_size == 0) return false;
    if (dims_.Equal(from(0), to(0))) return add(1, 1);
    size_t m = 1;
    size_t n = 1;
    if (!from(0).is_number() || !to(0).is_number()) return false;
    int64_t a = from(0).number();
    int64_t b = to(0).number();
    while (a != b) {
      const bool more_from = a < b;
      if (a < 1 || b < 1 || (more_from ? m == from_size : n == to_size)) return false;
      const Dim next = more_from ? from(m++) : to(n++);
      if (!next.is_number() && right) {
        // [tokens, batch, heads * head] as [tokens, batch * heads, head]
        const size_t other = more_from ? n++ : m++;
        if (other >= (more_from ? to_size : from_size)) return false;
        const int64_t multiple = std::max(a, b) / std::min(a, b);
        const Dim less = more_from ? to(other) : from(other);
        if (std::max(a, b) % std::min(a, b) != 0 || !dims_.Equal(next, dims_.Mul(less, Dim::Of(multiple)))) return false;
        add(m, n);
        groups->back().from_multiple = more_from ? multiple : 1;
        groups->back().to_multiple = more_from ? 1 : multiple;
        return true;
      }
      int64_t& product = more_from ? a : b;
      if (!next.is_number() || next.number() < 1 || next.number() > kMostPlaces / product) return false;
      product *= next.number();
    }
    return add(m, n);
  }

  DimTable& dims_;
  absl::Span<const Dim> from_;
  absl::Span<const Dim> to_;
  size_t from_at_ = 0;
  size_t to_at_ = 0;
};

// Axes of these sizes, padded so, as one.
std::optional<Places> Joined(absl::Span<const int64_t> sizes, absl::Span<const Places> padded) {
  Places joined = {0};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > kMostPlaces) return std::nullopt;
    const Places own = padded[i].empty() ? AllPlaces(sizes[i]) : padded[i];
    if (static_cast<int64_t>(joined.size() * own.size()) > kMostPlaces) return std::nullopt;
    Places next;
    for (const int64_t outer : joined) {
      for (const int64_t inner : own) next.push_back(outer < 0 || inner < 0 ? -1 : outer * sizes[i] + inner);
    }
    joined = std::move(next);
  }
  return joined;
}

// The same places as those of axes of these sizes, of which one is padded.
std::optional<ZeroPadding> Parted(const Places& joined, absl::Span<const int64_t> sizes) {
  for (size_t axis = sizes.size(); axis-- > 0;) {
    int64_t others = 1;
    for (size_t i = 0; i < sizes.size(); ++i) others *= i == axis ? 1 : sizes[i];
    const auto size = static_cast<int64_t>(joined.size());
    if (others == 0 || size % others != 0) continue;
    ZeroPadding padding(sizes.size());
    int64_t inner = 1;
    for (size_t i = axis + 1; i < sizes.size(); ++i) inner *= sizes[i];
    const int64_t width = size / others;
    // The places of the axis as the first element of each has them: then all the others must agree.
    for (int64_t i = 0; i < width; ++i) {
      const int64_t from = joined[static_cast<size_t>(i * inner)];
      padding[axis].push_back(from < 0 ? -1 : from / inner % sizes[axis]);
    }
    const std::optional<Places> again = Joined(sizes, padding);
    if (again.has_value() && *again == joined) return padding;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ZeroPadding> RegroupPadding(DimTable& dims, absl::Span<const Dim> from, const ZeroPadding& padding,
                                          absl::Span<const Dim> to) {
  ZeroPadding result(to.size());
  std::vector<bool> done(from.size(), false);
  for (const Group& group : Regrouper(dims, from, to).Groups()) {
    const absl::Span<const Places> own =
        absl::MakeConstSpan(padding).subspan(group.from_begin, group.from_end - group.from_begin);
    for (size_t i = group.from_begin; i < group.from_end; ++i) done[i] = true;
    if (std::all_of(own.begin(), own.end(), [](const Places& places) { return places.empty(); })) continue;
    if (group.from_end - group.from_begin == 1 && group.to_end - group.to_begin == 1) {
      result[group.to_begin] = own[0];
      continue;
    }
    std::vector<int64_t> before;
    std::vector<int64_t> after;
    for (size_t i = group.from_begin; i < group.from_end; ++i) before.push_back(dims.Resolve(from[i]).number());
    for (size_t i = group.to_begin; i < group.to_end; ++i) after.push_back(dims.Resolve(to[i]).number());
    if (after.empty()) return std::nullopt;
    const bool multiples = group.from_multiple > 0;
    if (multiples) {
      before[0] = group.from_multiple;
      after[0] = group.to_multiple;
    }
    const std::optional<Places> joined = Joined(before, own);
    const std::optional<ZeroPadding> parted = joined.has_value() ? Parted(*joined, after) : std::nullopt;
    if (!parted.has_value() || (multiples && !(*parted)[0].empty())) return std::nullopt;
    std::copy(parted->begin(), parted->end(), result.begin() + static_cast<std::ptrdiff_t>(group.to_begin));
  }
  for (size_t i = 0; i < from.size(); ++i) {
    if (!done[i] && !padding[i].empty()) return std::nullopt;
  }
  return result;
}

}  // namespace ascend_fuse
