// Scatters: a ScatterND that writes a whole range of an axis, as a slice assignment is exported, is a Concat of what stays and
// what is written. 310P computes ScatterND on one core: 125 of 186 ms of a PointPillars net, 43 ms without
// (docs/sources/surgery.md).
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "ir/constant_tensor.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;

// The places [first, last) of `axis` that are written, for all places of the axes before it.
struct Written {
  size_t axis = 0;
  int64_t first = 0;
  int64_t last = 0;
};

std::optional<std::vector<int64_t>> NumbersOf(const TidyContext& context, const Fact& shape, size_t count) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    const Dim dim = context.dims().Resolve(shape.shape[i]);
    if (!dim.is_number()) return std::nullopt;
    numbers.push_back(dim.number());
  }
  return numbers;
}

// Whether the rows name, in their order, every place of the axes before the last one and a range of that.
std::optional<Written> WrittenBy(const Model& model, const Tensor& indices, const std::vector<int64_t>& lengths) {
  const size_t depth = lengths.size();
  const auto bytes = ReadBytes(model, indices, kMostBytes);
  if (!bytes.ok() || indices.type != DataType::kInt64 || bytes->size() % (depth * sizeof(int64_t)) != 0) return std::nullopt;
  const size_t rows = bytes->size() / (depth * sizeof(int64_t));
  const auto at = [&](size_t row, size_t axis) {
    int64_t place = 0;
    std::memcpy(&place, bytes->data() + (row * depth + axis) * sizeof place, sizeof place);
    return place < 0 ? place + lengths[axis] : place;
  };
  int64_t before = 1;
  for (size_t axis = 0; axis + 1 < depth; ++axis) {
    if (before > static_cast<int64_t>(rows)) return std::nullopt;
    before *= lengths[axis];
  }
  if (rows == 0 || before <= 0 || static_cast<int64_t>(rows) % before != 0) return std::nullopt;
  const Written written = {depth - 1, at(0, depth - 1), at(0, depth - 1) + static_cast<int64_t>(rows) / before};
  if (written.first < 0 || written.last > lengths.back()) return std::nullopt;
  for (size_t row = 0; row < rows; ++row) {
    auto left = static_cast<int64_t>(row);
    const int64_t count = written.last - written.first;
    if (at(row, depth - 1) != written.first + left % count) return std::nullopt;
    left /= count;
    for (size_t axis = depth - 1; axis-- > 0; left /= lengths[axis]) {
      if (at(row, axis) != left % lengths[axis]) return std::nullopt;
    }
  }
  return written;
}

}  // namespace

std::optional<Tidied> AskScatters(TidyContext& context, const Node& node) {
  if (node.input(1) == nullptr || StringAttribute(node, "reduction").value_or("none") != "none") return std::nullopt;
  const Fact& x = context.facts().Of(node.input(0));
  const auto indices = ConstantTensor(*node.input(1));
  if (!x.has_rank || !indices.has_value() || indices->dims.empty()) return std::nullopt;
  const int64_t depth = indices->dims.back();
  if (depth < 1 || depth > x.rank()) return std::nullopt;
  const auto lengths = NumbersOf(context, x, static_cast<size_t>(depth));
  if (!lengths.has_value()) return std::nullopt;
  const auto written = WrittenBy(context.workspace.model(), *indices, *lengths);
  if (!written.has_value()) return std::nullopt;
  const auto rest = NumbersOf(context, x, x.shape.size());
  std::vector<int64_t> dims = rest.value_or(*lengths);
  dims[written->axis] = written->last - written->first;
  const Fact& updates = context.facts().Of(node.input(2));
  Term part = Term::Of(node.input(2));
  if (updates.rank() != x.rank()) {
    if (!rest.has_value()) return std::nullopt;
    part = build::Reshape(part, dims);
  } else {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!context.dims().Equal(updates.shape[i], Dim::Of(dims[i]))) return std::nullopt;
    }
  }
  const auto axis = static_cast<int64_t>(written->axis);
  std::vector<Term> parts;
  if (written->first > 0) parts.push_back(build::Slice(Term::Of(node.input(0)), 0, written->first, axis));
  parts.push_back(part);
  if (written->last < lengths->back()) {
    parts.push_back(build::Slice(Term::Of(node.input(0)), written->last, lengths->back(), axis));
  }
  return Tidied::Of(parts.size() == 1 ? parts[0] : build::Concat(std::move(parts), axis));
}

}  // namespace ascend_fuse
