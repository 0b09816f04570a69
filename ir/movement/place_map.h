// Which element of which source stands at each place of a tensor of known size, as ranges and strides: a rotation of any number
// of heads is two pieces, and no position is listed.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace ascend_fuse {

// The positions start, start + step ... along an axis, `count` of them.
struct PositionRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// Positions in this order as few ranges.
std::vector<PositionRange> RangesOf(absl::Span<const int64_t> positions);

// Places are counted in row-major order of the dims that an operation names, so that a Reshape changes nothing.
class PlaceMap {
 public:
  // One step goes on by so many places and by so many elements of the source.
  struct Stride {
    int64_t count = 1;
    int64_t place = 0;  // above 0
    int64_t index = 0;
    friend bool operator==(const Stride&, const Stride&) = default;
  };
  // Element `index` at `place`, and so on along each stride.
  struct Piece {
    int source = 0;
    bool negative = false;  // minus the element
    int64_t place = 0;
    int64_t index = 0;
    absl::InlinedVector<Stride, 4> strides;
  };
  struct Element {
    int source = 0;
    int64_t index = 0;
    bool negative = false;
  };

  // All `count` elements of a source in their order.
  static PlaceMap Whole(int source, int64_t count);

  int64_t size() const { return size_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  // Each of these is false, and the map is of no use then, where there would be more pieces than kMostPieces.
  static constexpr size_t kMostPieces = size_t{1} << 12;
  // A tensor of these dims with only those positions of one axis, one range after another.
  [[nodiscard]] bool Take(absl::Span<const int64_t> dims, size_t axis, absl::Span<const PositionRange> ranges);
  // Axis i is what axis order[i] was.
  [[nodiscard]] bool Permute(absl::Span<const int64_t> dims, absl::Span<const int64_t> order);
  // One after another along an axis: of each, so many places in a row belong to one place of the axes before it.
  [[nodiscard]] static bool Join(absl::Span<const PlaceMap> parts, int64_t outer, PlaceMap* joined);
  // Each element whose place, modulo the number of signs, is negative there.
  [[nodiscard]] bool Negate(const std::vector<bool>& signs);
  void NegateAll();

  // Every element by place. For maps that were made small enough to be looked at one by one.
  std::vector<Element> List() const;

 private:
  // Breaks pieces up until no stride crosses a multiple of `block` places: it is a multiple of it, or stays inside one.
  [[nodiscard]] bool BreakAt(int64_t block);
  // What stands at these positions of the middle one of three axes, at its old places or, counted anew from `first` of `length`,
  // at new ones.
  struct Middle {
    int64_t size = 1;
    int64_t inner = 1;
  };
  static bool Select(const Piece& piece, const Middle& axis, const PositionRange& range, int64_t first, int64_t length,
                     std::vector<Piece>* selected);
  void Compact();

  int64_t size_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace ascend_fuse
