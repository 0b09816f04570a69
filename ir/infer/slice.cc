// Slice: lengths of symbolic parts, and which elements of small tensors they hold.
#include <algorithm>
#include <limits>
#include <utility>

#include "ir/infer/pick.h"

namespace ascend_fuse::infer {
namespace {

// Bounds from here on mean "to the end" or "from the beginning".
constexpr int64_t kEndless = 0x7fffffff;

class Slicer {
 public:
  explicit Slicer(NodeContext& c) : c_(c), d_(c.dims()) {}

  void Run() {
    c_.SetType(0, c_.type(0));
    const Fact& in = c_.in(0);
    if (!in.has_rank) return Splat(c_);
    const Shape original = c_.shape(0);
    Shape shape = original;
    if (!ReadParameters()) {
      c_.SetRank(0, shape.size());
      return Splat(c_);
    }
    std::vector<int64_t> first(shape.size(), 0);
    std::vector<int64_t> stride(shape.size(), 1);
    bool elements = true;
    for (size_t k = 0; k < starts_.size(); ++k) {
      const int64_t axis = NormalizeAxis(axes_[k], c_.rank(0));
      if (axis < 0) {
        c_.SetRank(0, shape.size());
        return;
      }
      const size_t a = static_cast<size_t>(axis);
      const Dim dim = original[a];
      if (steps_[k] != 0 && dim.is_number() && starts_[k].is_number() && ends_[k].is_number()) {
        const auto [from, items] = Count(k, dim.number());
        shape[a] = Dim::Of(items);
        first[a] = from;
        stride[a] = steps_[k];
      } else {
        shape[a] = SymbolicLength(k, dim);
        elements = false;
      }
    }
    c_.SetShape(0, shape);
    if (!elements || in.elements == nullptr || !NodeContext::SmallCountOf(in).has_value()) return Splat(c_);
    std::vector<int64_t> strides = StridesOf(original);
    int64_t base = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
      base += first[i] * strides[i];
      strides[i] *= stride[i];
    }
    PickElements(c_, Strided(shape, strides, base));
  }

 private:
  // The elements of input i; unknown ones, as many as it has, where they are not known.
  void ReadList(size_t i, Dims* list) {
    absl::Span<const Dim> elements;
    if (c_.Integers(i, &elements)) {
      list->assign(elements.begin(), elements.end());
      for (Dim& dim : *list) dim = d_.Resolve(dim);
    } else if (c_.in(i).rank() == 1 && c_.in(i).shape[0].is_number()) {
      constexpr int64_t kMostAxes = 64;
      const int64_t count = c_.in(i).shape[0].number();
      if (count >= 0 && count <= kMostAxes) list->assign(static_cast<size_t>(count), Dim());
    }
  }

  // Attributes before opset 10, then inputs. False where it is not known which axes are cut, or none is.
  bool ReadParameters() {
    bool axes_known = true;
    if (c_.opset() < 10) {
      for (int64_t value : c_.Ints("starts").value_or(std::vector<int64_t>())) starts_.push_back(Dim::Of(value));
      for (int64_t value : c_.Ints("ends").value_or(std::vector<int64_t>())) ends_.push_back(Dim::Of(value));
      if (const auto given = c_.Ints("axes"); given.has_value()) axes_ = *given;
    } else {
      ReadList(1, &starts_);
      ReadList(2, &ends_);
      if (c_.has(3)) {
        const auto given = c_.Numbers(3);
        axes_known = given.has_value();
        if (axes_known) axes_ = *given;
      }
      // 0: not known.
      if (c_.has(4)) steps_ = c_.Numbers(4).value_or(std::vector<int64_t>(starts_.size(), 0));
    }
    const size_t count = std::max(starts_.size(), ends_.size());
    if (!axes_known || count == 0) return false;
    starts_.resize(count);
    ends_.resize(count);
    if (axes_.empty()) {
      for (size_t i = 0; i < count; ++i) axes_.push_back(static_cast<int64_t>(i));
    }
    steps_.resize(count, 1);
    axes_.resize(count, -1);
    return true;
  }

  // Where slice k of `size` elements begins, and how many it takes.
  std::pair<int64_t, int64_t> Count(size_t k, int64_t size) const {
    const int64_t step = steps_[k];
    const int64_t start = starts_[k].number();
    const int64_t end = ends_[k].number();
    const auto clamp = [size](int64_t at, int64_t low, int64_t high) {
      if (at < 0) at = at < -size ? -1 : at + size;
      return std::clamp(at, low, high);
    };
    int64_t from = 0;
    int64_t items = 0;
    if (step > 0) {
      from = clamp(start, 0, size);
      const int64_t to = clamp(end, 0, size);
      items = to > from ? (to - from - 1) / step + 1 : 0;
    } else {
      from = clamp(start, 0, std::max<int64_t>(size - 1, 0));
      const int64_t to = clamp(end, -1, size - 1);
      if (start < -size) from = -1;
      items = from > to && step > std::numeric_limits<int64_t>::min() ? (from - to - 1) / -step + 1 : 0;
    }
    return {std::max<int64_t>(from, 0), std::max<int64_t>(items, 0)};
  }

  // The length of slice k of an axis of `dim` elements where not all are numbers; unknown where nothing can be said.
  Dim SymbolicLength(size_t k, Dim dim) {
    const Dim zero = Dim::Of(0);
    const int64_t step = steps_[k];
    const Dim start = starts_[k];
    const Dim end = ends_[k];
    if (step == -1 && start.is(-1) && end.is_number() && end.number() < -kEndless) return dim;  // reversed
    if (step <= 0 || !start.known() || !end.known()) return Dim();
    // Where a bound lies in [0, dim]; unknown when its sign is not known.
    const auto place = [&](Dim at) {
      if (at.is_number() && at.number() >= kEndless) return dim;
      if (at.is_number() && at.number() <= -kEndless) return zero;
      if (d_.AtLeast(at, zero)) return d_.Min(at, dim);
      if (d_.AtLeast(Dim::Of(-1), at)) return d_.Max(zero, d_.Add(dim, at));
      return Dim();
    };
    Dim length;
    if (start.is_number() && start.number() < 0 && start.number() > -kEndless && place(end) == dim) {
      length = d_.Min(dim, Dim::Of(-start.number()));  // the last rows
    } else {
      const Dim from = place(start);
      const Dim to = place(end);
      length = d_.Sub(to, from);
      // Both ends are clamped by the same dim, so their order is that of the bounds as given.
      const bool ordered = (d_.AtLeast(start, zero) && d_.AtLeast(end, start)) || from.is(0);
      if (!ordered) length = d_.Max(zero, length);
    }
    if (step > 1) length = d_.Sub(zero, d_.FloorDiv(d_.Sub(zero, length), Dim::Of(step)));
    return length;
  }

  NodeContext& c_;
  DimTable& d_;
  Dims starts_;
  Dims ends_;
  std::vector<int64_t> axes_;
  std::vector<int64_t> steps_;
};

void Slice(NodeContext& c) { Slicer(c).Run(); }

constexpr Entry kOps[] = {{"", "Slice", Slice}};

}  // namespace

absl::Span<const Entry> SliceOps() { return kOps; }

}  // namespace ascend_fuse::infer
