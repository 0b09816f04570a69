#include "ir/movement/place_map.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ascend_fuse {
namespace {

using Piece = PlaceMap::Piece;
using Stride = PlaceMap::Stride;

// Strides by falling places; no stride of one step; two that are one are one.
void Normalize(Piece* piece) {
  for (Stride& stride : piece->strides) {
    if (stride.place >= 0) continue;
    piece->place += (stride.count - 1) * stride.place;
    piece->index += (stride.count - 1) * stride.index;
    stride.place = -stride.place;
    stride.index = -stride.index;
  }
  const auto is_one = [](const Stride& stride) { return stride.count == 1; };
  piece->strides.erase(std::remove_if(piece->strides.begin(), piece->strides.end(), is_one), piece->strides.end());
  std::sort(piece->strides.begin(), piece->strides.end(), [](const Stride& a, const Stride& b) { return a.place > b.place; });
  for (size_t i = piece->strides.size(); i-- > 1;) {
    const Stride inner = piece->strides[i];
    Stride& outer = piece->strides[i - 1];
    if (outer.place != inner.place * inner.count || outer.index != inner.index * inner.count) continue;
    outer = {outer.count * inner.count, inner.place, inner.index};
    piece->strides.erase(piece->strides.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool SameForm(const Piece& a, const Piece& b) {
  return a.source == b.source && a.negative == b.negative && a.strides == b.strides;
}

// How far the places of a piece reach inside a block, beyond its first one.
int64_t ReachInside(const Piece& piece, int64_t block) {
  int64_t reach = 0;
  for (const Stride& stride : piece.strides) {
    if (stride.place % block != 0) reach += (stride.count - 1) * stride.place;
  }
  return reach;
}

// The piece with only `count` steps of one stride from step `first` on.
Piece Steps(const Piece& piece, size_t stride, int64_t first, int64_t count) {
  Piece part = piece;
  Stride& own = part.strides[stride];
  part.place += first * own.place;
  part.index += first * own.index;
  own.count = count;
  if (count == 1) part.strides.erase(part.strides.begin() + static_cast<std::ptrdiff_t>(stride));
  return part;
}

int64_t ProductOf(absl::Span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

}  // namespace

std::vector<PositionRange> RangesOf(absl::Span<const int64_t> positions) {
  std::vector<PositionRange> ranges;
  for (const int64_t position : positions) {
    PositionRange* last = ranges.empty() ? nullptr : &ranges.back();
    if (last != nullptr && last->count == 1) {
      last->step = position - last->start;
      if (last->step != 0) {
        last->count = 2;
        continue;
      }
      last->step = 1;
    } else if (last != nullptr && position == last->start + last->count * last->step) {
      ++last->count;
      continue;
    }
    ranges.push_back({position, 1, 1});
  }
  return ranges;
}

PlaceMap PlaceMap::Whole(int source, int64_t count) {
  PlaceMap map;
  map.size_ = count;
  map.pieces_.push_back({source, false, 0, 0, {{count, 1, 1}}});
  Normalize(&map.pieces_.back());
  return map;
}

bool PlaceMap::BreakAt(int64_t block) {
  if (block <= 1 || block >= size_) return true;
  std::vector<Piece> broken;
  std::vector<Piece> open = std::move(pieces_);
  while (!open.empty()) {
    Piece piece = std::move(open.back());
    open.pop_back();
    const int64_t offset = piece.place % block;
    if (offset + ReachInside(piece, block) < block) {
      broken.push_back(std::move(piece));
      if (broken.size() > kMostPieces) return false;
      continue;
    }
    // The longest stride inside goes too far.
    size_t longest = piece.strides.size();
    for (size_t i = piece.strides.size(); i-- > 0;) {
      if (piece.strides[i].place % block != 0) longest = i;
    }
    const Stride stride = piece.strides[longest];
    const int64_t rest = ReachInside(piece, block) - (stride.count - 1) * stride.place;
    const int64_t each = stride.place < block && block % stride.place == 0 ? block / stride.place : 0;  // steps of a block
    if (each == 0 || offset % stride.place + rest >= stride.place) {
      for (int64_t step = 0; step < stride.count; ++step) {
        open.push_back(Steps(piece, longest, step, 1));
        if (open.size() + broken.size() > kMostPieces) return false;
      }
      continue;
    }
    const int64_t head = std::min((block - offset + stride.place - 1) / stride.place % each, stride.count);
    const int64_t blocks = (stride.count - head) / each;
    const int64_t tail = stride.count - head - blocks * each;
    if (head > 0) open.push_back(Steps(piece, longest, 0, head));
    if (tail > 0) open.push_back(Steps(piece, longest, stride.count - tail, tail));
    if (blocks > 0) {
      Piece middle = Steps(piece, longest, head, std::max<int64_t>(each, 2));
      if (each == 1) {
        middle = Steps(piece, longest, head, 1);
      } else {
        middle.strides[longest].count = each;
      }
      if (blocks > 1) middle.strides.push_back({blocks, block, stride.index * each});
      std::sort(middle.strides.begin(), middle.strides.end(), [](const Stride& a, const Stride& b) { return a.place > b.place; });
      open.push_back(std::move(middle));
    }
  }
  pieces_ = std::move(broken);
  return true;
}

bool PlaceMap::Select(const Piece& piece, const Middle& axis, const PositionRange& range, int64_t first, int64_t length,
                      std::vector<Piece>* selected) {
  const int64_t whole = axis.size * axis.inner;
  size_t along = piece.strides.size();
  for (size_t i = 0; i < piece.strides.size(); ++i) {
    if (piece.strides[i].place % whole == 0 || piece.strides[i].place % axis.inner != 0) continue;
    if (along == piece.strides.size()) {
      along = i;
      continue;
    }
    // Several strides along the axis: the first one step by step.
    for (int64_t step = 0; step < piece.strides[along].count; ++step) {
      if (!Select(Steps(piece, along, step, 1), axis, range, first, length, selected)) return false;
    }
    return true;
  }
  const int64_t at = piece.place / axis.inner % axis.size;
  const bool stays = along == piece.strides.size();
  const Stride stride = stays ? Stride{1, axis.inner, 0} : piece.strides[along];
  const int64_t step = stride.place / axis.inner;
  // Every `period`-th step may be one of the range: at + k * step = start + j * range.step.
  const int64_t period = std::abs(range.step) / std::gcd(step, range.step);
  int64_t k = 0;
  while (k < period && k < stride.count && (at + k * step - range.start) % range.step != 0) ++k;
  if (k >= period || k >= stride.count) return true;
  int64_t j = (at + k * step - range.start) / range.step;
  const int64_t more = step * period / range.step;  // of j, for each period
  int64_t count = (stride.count - 1 - k) / period + 1;
  // Those with 0 <= j < range.count.
  const int64_t skipped =
      more > 0 ? (j < 0 ? (-j + more - 1) / more : 0) : (j >= range.count ? (j - range.count) / -more + 1 : 0);
  if (skipped >= count) return true;
  k += skipped * period;
  j += skipped * more;
  count -= skipped;
  if (j < 0 || j >= range.count) return true;
  count = std::min(count, more > 0 ? (range.count - 1 - j) / more + 1 : j / -more + 1);
  Piece part = piece;
  part.index += k * stride.index;
  const bool anew = length > 0;
  const int64_t own_length = anew ? length : axis.size;
  const int64_t position = anew ? first + j : at + k * step;
  part.place = (piece.place / whole * own_length + position) * axis.inner + piece.place % axis.inner;
  for (Stride& other : part.strides) {
    if (other.place % whole == 0) other.place = other.place / whole * own_length * axis.inner;
  }
  if (!stays) part.strides[along] = {count, (anew ? more : step * period) * axis.inner, stride.index * period};
  Normalize(&part);
  selected->push_back(std::move(part));
  return selected->size() <= kMostPieces;
}

bool PlaceMap::Take(absl::Span<const int64_t> dims, size_t axis, absl::Span<const PositionRange> ranges) {
  const Middle middle = {dims[axis], ProductOf(dims.subspan(axis + 1))};
  if (!BreakAt(middle.size * middle.inner) || !BreakAt(middle.inner)) return false;
  int64_t length = 0;
  for (const PositionRange& range : ranges) length += range.count;
  std::vector<Piece> taken;
  int64_t first = 0;
  for (const PositionRange& range : ranges) {
    for (const Piece& piece : pieces_) {
      if (!Select(piece, middle, range, first, length, &taken)) return false;
    }
    first += range.count;
  }
  size_ = size_ / std::max<int64_t>(middle.size, 1) * length;
  pieces_ = std::move(taken);
  Compact();
  return true;
}

bool PlaceMap::Permute(absl::Span<const int64_t> dims, absl::Span<const int64_t> order) {
  std::vector<int64_t> before(dims.size(), 1);  // places of one step along each axis
  for (size_t i = dims.size(); i-- > 1;) before[i - 1] = before[i] * dims[i];
  for (const int64_t block : before) {
    if (!BreakAt(block)) return false;
  }
  std::vector<int64_t> after(dims.size(), 1);
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    after[static_cast<size_t>(order[i])] = step;
    step *= dims[static_cast<size_t>(order[i])];
  }
  for (Piece& piece : pieces_) {
    int64_t place = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) place += piece.place / before[axis] % dims[axis] * after[axis];
    piece.place = place;
    for (Stride& stride : piece.strides) {
      size_t axis = 0;
      while (stride.place % before[axis] != 0) ++axis;
      // Axes of one element have the step of the axis after them.
      while (axis + 1 < dims.size() && before[axis] == before[axis + 1]) ++axis;
      while (axis > 0 && stride.place / before[axis] >= dims[axis]) --axis;
      stride.place = stride.place / before[axis] * after[axis];
    }
    Normalize(&piece);
  }
  Compact();
  return true;
}

bool PlaceMap::Join(absl::Span<const PlaceMap> parts, int64_t outer, PlaceMap* joined) {
  PlaceMap result;
  int64_t block = 0;
  for (const PlaceMap& part : parts) block += part.size_ / outer;
  int64_t first = 0;
  for (PlaceMap part : parts) {
    const int64_t own = part.size_ / outer;
    if (own == 0) continue;
    if (!part.BreakAt(own)) return false;
    for (Piece& piece : part.pieces_) {
      piece.place = piece.place / own * block + first + piece.place % own;
      for (Stride& stride : piece.strides) {
        if (stride.place % own == 0) stride.place = stride.place / own * block;
      }
      Normalize(&piece);
      result.pieces_.push_back(std::move(piece));
      if (result.pieces_.size() > kMostPieces) return false;
    }
    first += own;
  }
  result.size_ = block * outer;
  result.Compact();
  *joined = std::move(result);
  return true;
}

bool PlaceMap::Negate(const std::vector<bool>& signs) {
  const auto period = static_cast<int64_t>(signs.size());
  if (!BreakAt(period)) return false;
  std::vector<Piece> pieces;
  for (const bool negative : {false, true}) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < period; ++i) {
      if (signs[static_cast<size_t>(i)] == negative) positions.push_back(i);
    }
    for (const PositionRange& range : RangesOf(positions)) {
      const size_t before = pieces.size();
      for (const Piece& piece : pieces_) {
        if (!Select(piece, {period, 1}, range, 0, 0, &pieces)) return false;
      }
      for (size_t i = before; negative && i < pieces.size(); ++i) pieces[i].negative = !pieces[i].negative;
    }
  }
  pieces_ = std::move(pieces);
  Compact();
  return true;
}

void PlaceMap::NegateAll() {
  for (Piece& piece : pieces_) piece.negative = !piece.negative;
}

// Pieces of one form in equal distances are one piece with one more stride.
void PlaceMap::Compact() {
  for (;;) {
    std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.place < b.place; });
    std::vector<Piece> fewer;
    std::vector<bool> used(pieces_.size(), false);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (used[i]) continue;
      Piece piece = pieces_[i];
      Stride stride;
      size_t last = i;
      for (size_t next = i + 1; next < pieces_.size(); ++next) {
        const Piece& other = pieces_[next];
        if (used[next] || !SameForm(piece, other)) continue;
        const Stride step = {2, other.place - pieces_[last].place, other.index - pieces_[last].index};
        if (stride.count > 1 && (step.place != stride.place || step.index != stride.index)) break;
        stride = {stride.count + 1, step.place, step.index};
        used[next] = true;
        last = next;
      }
      if (stride.count > 1) piece.strides.push_back(stride);
      Normalize(&piece);
      fewer.push_back(std::move(piece));
    }
    const bool done = fewer.size() == pieces_.size();
    pieces_ = std::move(fewer);
    if (done) return;
  }
}

std::vector<PlaceMap::Element> PlaceMap::List() const {
  std::vector<Element> list(static_cast<size_t>(size_));
  for (const Piece& piece : pieces_) {
    absl::InlinedVector<int64_t, 4> step(piece.strides.size(), 0);
    for (;;) {
      int64_t place = piece.place;
      int64_t index = piece.index;
      for (size_t i = 0; i < step.size(); ++i) {
        place += step[i] * piece.strides[i].place;
        index += step[i] * piece.strides[i].index;
      }
      list[static_cast<size_t>(place)] = {piece.source, index, piece.negative};
      size_t i = step.size();
      while (i > 0 && ++step[i - 1] == piece.strides[i - 1].count) step[--i] = 0;
      if (i == 0) break;
    }
  }
  return list;
}

}  // namespace ascend_fuse
