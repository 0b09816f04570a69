#include "ir/infer/moved_elements.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace ascend_fuse::infer {
namespace {

using Numbers = absl::InlinedVector<int64_t, 6>;

std::optional<Numbers> NumbersOf(absl::Span<const Dim> dims) {
  Numbers numbers;
  for (const Dim dim : dims) {
    if (!dim.is_number() || dim.number() < 0) return std::nullopt;
    numbers.push_back(dim.number());
  }
  return numbers;
}

int64_t CountOf(const Numbers& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

// One result: which element of which part stands at each place.
class MovedElements {
 public:
  MovedElements(NodeContext& c, size_t output, const Movement& movement, int64_t count)
      : c_(c), output_(output), movement_(movement), count_(count) {}

  void Run() {
    floats_ = IsFloat(c_.out(output_).type);
    const auto dims = NumbersOf(movement_.places.empty() ? c_.out(output_).shape : movement_.places);
    if (!dims.has_value() || CountOf(*dims) != count_) return;
    dims_ = *dims;
    (floats_ ? numbers_.resize(static_cast<size_t>(count_), 0) : integers_.resize(static_cast<size_t>(count_)));
    known_ = 0;
    if (movement_.kind == MovementKind::kPads && !Fill()) return;
    for (const MovedPart& part : movement_.parts) {
      if (!Add(part)) return;
    }
    if (floats_ && known_ < count_) return;
    if (floats_) {
      c_.SetFloats(output_, numbers_);
    } else {
      c_.SetIntegers(output_, integers_);
    }
  }

 private:
  bool Fill() {
    known_ = count_;
    const size_t operand = movement_.fill_operand;
    if (floats_) {
      const std::optional<double> number = operand == 0 ? movement_.fill : c_.FloatScalar(operand);
      if (!number.has_value()) return false;
      std::fill(numbers_.begin(), numbers_.end(), *number);
      return true;
    }
    const Dim fill = operand == 0 ? Dim::Of(static_cast<int64_t>(movement_.fill)) : c_.Scalar(operand);
    std::fill(integers_.begin(), integers_.end(), fill);
    return true;
  }

  // Places that the part fills along each axis of the result.
  struct Window {
    int64_t begin = 0;
    int64_t step = 1;
    int64_t count = 0;
  };

  // False where it is not known what the part puts where.
  bool Add(const MovedPart& part) {
    const Fact& operand = c_.in(part.operand);
    if (!part.known || !operand.has_rank) return false;
    const auto own = NumbersOf(part.viewed() ? part.view : operand.shape);
    if (!own.has_value() || own->size() != part.axes.size()) return false;
    absl::InlinedVector<Window, 6> windows;
    for (const int64_t dim : dims_) windows.push_back({0, 1, dim});
    for (const PlaceWindow& window : part.windows) {
      if (!window.begin.is_number() || !window.count.is_number()) return false;
      windows[static_cast<size_t>(window.axis)] = {window.begin.number(), window.step, window.count.number()};
    }
    if (!ReadTables(part)) return false;
    Numbers place(dims_.size(), 0);  // counted in the windows
    int64_t most = 1;
    for (const Window& window : windows) most *= window.count;
    if (most > count_ && movement_.kind != MovementKind::kPads) return false;
    for (int64_t k = 0; k < most; ++k) {
      if (!Put(part, *own, windows, place, operand)) return false;
      for (size_t axis = place.size(); axis-- > 0;) {
        if (++place[axis] < windows[axis].count) break;
        place[axis] = 0;
      }
    }
    return true;
  }

  bool ReadTables(const MovedPart& part) {
    for (const AxisSource& source : part.axes) {
      if (source.kind == AxisSource::Kind::kPlace && (!source.start.is_number() || source.step == 0)) return false;
      if (source.kind == AxisSource::Kind::kFixed && !source.start.is_number()) return false;
      if (source.kind != AxisSource::Kind::kRead || !table_.empty()) continue;
      auto numbers = c_.Numbers(source.operand);
      const auto dims = NumbersOf(c_.in(source.operand).shape);
      if (!numbers.has_value() || !dims.has_value() || CountOf(*dims) != static_cast<int64_t>(numbers->size())) return false;
      table_ = *std::move(numbers);
      table_dims_ = *dims;
    }
    return true;
  }

  bool Put(const MovedPart& part, const Numbers& own, absl::Span<const Window> windows, const Numbers& place,
           const Fact& operand) {
    int64_t to = 0;
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      const int64_t at = windows[axis].begin + windows[axis].step * place[axis];
      if (at < 0 || at >= dims_[axis]) return true;  // a pad of less than nothing: it is cut off
      to = to * dims_[axis] + at;
    }
    int64_t from = 0;
    for (size_t axis = 0; axis < own.size(); ++axis) {
      const int64_t at = Position(part.axes[axis], place, own[axis]);
      if (at < 0 || at >= own[axis]) return false;
      from = from * own[axis] + at;
    }
    const size_t index = static_cast<size_t>(from);
    if (floats_) {
      if (operand.elements == nullptr || index >= operand.elements->floats.size()) return false;
      numbers_[static_cast<size_t>(to)] = operand.elements->floats[index];
      ++known_;
    } else {
      // An element that is not known leaves the others known.
      const bool given = operand.elements != nullptr && index < operand.elements->integers.size();
      integers_[static_cast<size_t>(to)] = given ? operand.elements->integers[index] : Dim();
    }
    return true;
  }

  int64_t Position(const AxisSource& source, const Numbers& place, int64_t extent) const {
    switch (source.kind) {
      case AxisSource::Kind::kPlace:
        return source.start.number() + source.step * place[static_cast<size_t>(source.axis)];
      case AxisSource::Kind::kFixed:
        return source.start.number();
      case AxisSource::Kind::kBroadcast:
        return extent == 1 ? 0 : place[static_cast<size_t>(source.axis)];
      case AxisSource::Kind::kWrapped:
        return place[static_cast<size_t>(source.axis)] % std::max<int64_t>(extent, 1);
      case AxisSource::Kind::kRead:
        break;
    }
    int64_t at = 0;
    const size_t read = table_dims_.size() - (source.component >= 0 ? 1 : 0);
    for (size_t i = 0; i < read; ++i) at = at * table_dims_[i] + place[static_cast<size_t>(source.axis) + i];
    if (source.component >= 0) at = at * table_dims_.back() + source.component;
    return NormalizePosition(table_[static_cast<size_t>(at)], extent);
  }

  NodeContext& c_;
  const size_t output_;
  const Movement& movement_;
  const int64_t count_;
  bool floats_ = false;
  int64_t known_ = 0;
  Numbers dims_;  // of the result
  std::vector<double> numbers_;
  Dims integers_;
  std::vector<int64_t> table_;  // what positions are read from
  Numbers table_dims_;
};

}  // namespace

void SetMovedElements(NodeContext& c, size_t i, const Movement& movement) {
  const Fact& first = c.in(movement.parts.empty() ? 0 : movement.parts[0].operand);
  if (movement.kind == MovementKind::kKeepsOrder) {
    const std::optional<int64_t> count = first.elements != nullptr ? c.SmallCount(i) : std::nullopt;
    const size_t given = first.elements != nullptr ? first.elements->integers.size() + first.elements->floats.size() : 0;
    if (count == static_cast<int64_t>(given)) c.out(i).elements = first.elements;
    if (first.is_splat) c.SetSplat(i, first.splat);
    return;
  }
  bool splat = first.is_splat;
  bool elements = false;
  for (const MovedPart& part : movement.parts) {
    const Fact& fact = c.in(part.operand);
    splat = splat && fact.is_splat && fact.splat == first.splat;
    elements = elements || fact.elements != nullptr;
  }
  if (splat && movement.kind != MovementKind::kPads) c.SetSplat(i, first.splat);
  const std::optional<int64_t> count = c.SmallCount(i);
  if (!elements || !count.has_value() || c.out(i).elements != nullptr) return;
  MovedElements(c, i, movement, *count).Run();
}

}  // namespace ascend_fuse::infer
