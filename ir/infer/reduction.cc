// Reductions over axes, and the operators that keep the shape but look along an axis.
#include <algorithm>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

// Axes given as attribute or input; empty means all unless `noop` is set.
struct Axes {
  bool known = false;
  std::vector<bool> reduced;
};

Axes ReadAxes(NodeContext& c) {
  Axes result;
  bool given = false;
  const auto axes = c.IntsOrInput("axes", 1, &given);
  if (!c.in(0).has_rank) return result;
  const int64_t rank = c.rank(0);
  result.reduced.assign(static_cast<size_t>(rank), false);
  if (given && !axes.has_value()) return result;
  if (!given || axes->empty()) {
    if (c.Int("noop_with_empty_axes", 0) == 0) result.reduced.assign(static_cast<size_t>(rank), true);
    result.known = true;
    return result;
  }
  for (int64_t axis : *axes) {
    axis = NormalizeAxis(axis, rank);
    if (axis < 0) return result;
    result.reduced[static_cast<size_t>(axis)] = true;
  }
  result.known = true;
  return result;
}

void Reduce(NodeContext& c) {
  c.SetType(0, c.type(0));
  const Axes axes = ReadAxes(c);
  const bool keep = c.Int("keepdims", 1) != 0;
  const Fact& in = c.in(0);
  if (!in.has_rank) return;
  if (!axes.known) {
    if (keep) {
      c.SetRank(0, in.shape.size());
    } else if (c.in(1).rank() == 1 && c.in(1).shape[0].is_number() && c.in(1).shape[0].number() > 0 &&
               c.in(1).shape[0].number() <= in.rank()) {
      c.SetRank(0, in.shape.size() - static_cast<size_t>(c.in(1).shape[0].number()));
    }
    return;
  }
  Shape shape;
  bool all = true;
  bool none = true;
  for (size_t i = 0; i < in.shape.size(); ++i) {
    all = all && axes.reduced[i];
    none = none && !axes.reduced[i];
    if (!axes.reduced[i]) {
      shape.push_back(in.shape[i]);
    } else if (keep) {
      shape.push_back(Dim::Of(1));
    }
  }
  c.SetShape(0, shape);
  if (none && (c.op_type() == "ReduceMax" || c.op_type() == "ReduceMin" || c.op_type() == "ReduceSum" ||
               c.op_type() == "ReduceProd" || c.op_type() == "ReduceMean")) {
    return c.CopyElements(0, in);
  }
  // Shape arithmetic: ReduceProd and ReduceSum of a whole shape vector, ReduceMax of two.
  if (!all || in.elements == nullptr || in.elements->integers.empty()) return;
  DimTable& d = c.dims();
  Dim value = in.elements->integers[0];
  for (size_t i = 1; i < in.elements->integers.size(); ++i) {
    const Dim next = in.elements->integers[i];
    if (c.op_type() == "ReduceProd") {
      value = d.Mul(value, next);
    } else if (c.op_type() == "ReduceSum") {
      value = d.Add(value, next);
    } else if (c.op_type() == "ReduceMax") {
      value = d.Max(value, next);
    } else if (c.op_type() == "ReduceMin") {
      value = d.Min(value, next);
    } else {
      return;
    }
  }
  if (c.op_type() == "ReduceProd" || c.op_type() == "ReduceSum" || c.op_type() == "ReduceMax" || c.op_type() == "ReduceMin") {
    c.SetIntegers(0, {value});
  }
}

void ReduceSumInteger(NodeContext& c) {
  Reduce(c);
  c.out(0).elements = nullptr;
  c.SetType(0, c.type(0) == DataType::kInt8    ? DataType::kInt32
               : c.type(0) == DataType::kUint8 ? DataType::kUint32
                                               : DataType::kUndefined);
}

// The second input is a scale, not axes: those are an attribute.
void QLinearReduceMean(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.Ints("axes").has_value()) Reduce(c);
  c.out(0).elements = nullptr;
  c.out(0).is_splat = false;
}

void ArgReduce(NodeContext& c) {
  c.SetType(0, DataType::kInt64);
  if (!c.in(0).has_rank) return;
  const int64_t axis = NormalizeAxis(c.Int("axis", 0), c.rank(0));
  if (axis < 0) return;
  Shape shape = c.shape(0);
  if (c.Int("keepdims", 1) != 0) {
    shape[static_cast<size_t>(axis)] = Dim::Of(1);
  } else {
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  c.SetShape(0, shape);
}

void SameAsInput(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

constexpr Entry kOps[] = {
    {"", "ReduceL1", Reduce},
    {"", "ReduceL2", Reduce},
    {"", "ReduceLogSum", Reduce},
    {"", "ReduceMax", Reduce},
    {"", "ReduceLogSumExp", Reduce},
    {"", "ReduceMean", Reduce},
    {"", "ReduceMin", Reduce},
    {"", "ReduceProd", Reduce},
    {"", "ReduceSum", Reduce},
    {"", "ReduceSumSquare", Reduce},
    {"", "ArgMax", ArgReduce},
    {"", "ArgMin", ArgReduce},
    {"", "Softmax", SameAsInput},
    {"", "LogSoftmax", SameAsInput},
    {"", "Hardmax", SameAsInput},
    {"", "LpNormalization", SameAsInput},
    {"com.microsoft", "ReduceSumInteger", ReduceSumInteger},
    {"com.microsoft", "QLinearReduceMean", QLinearReduceMean},
};

}  // namespace

absl::Span<const Entry> ReductionOps() { return kOps; }

}  // namespace ascend_fuse::infer
