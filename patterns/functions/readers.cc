// Functions of rules about who reads a value, and what it is read from.
#include <algorithm>
#include <array>

#include "absl/functional/function_ref.h"
#include "fmt/format.h"
#include "patterns/analysis/linear.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

// The value that x is a copy of. A weight of ones is a weight all the same: what it is multiplied with is read by that Mul.
const Value* CopiedBy(const ValueNumbering& numbering, const Value& x) {
  const Value* const source = numbering.Source(&x);
  return source != nullptr && !IsWeighting(*x.producer) ? source : nullptr;
}

// Shows every input that reads the value or a copy of it, and with a null node every output of the graph among these. Copies are
// no readers themselves: they go when the model is tidied.
void VisitReaders(const FunctionContext& context, const Value& value,
                  absl::FunctionRef<void(const Value& read, const Node* reader, uint32_t index)> visit) {
  if (value.is_graph_output) visit(value, nullptr, 0);
  for (const Use& use : LiveUses(value)) {
    const Value* const copy = use.user->output(0);
    if (context.numbering != nullptr && copy != nullptr && CopiedBy(*context.numbering, *copy) == &value) {
      VisitReaders(context, *copy, visit);
    } else {
      visit(value, use.user, use.index);
    }
  }
}

int64_t ReaderCount(const FunctionContext& context, const Value* x) {
  if (context.numbering != nullptr) {
    while (const Value* const source = CopiedBy(*context.numbering, *x)) x = source;
  }
  int64_t readers = 0;
  VisitReaders(context, *x, [&](const Value&, const Node*, uint32_t) { ++readers; });
  return readers;
}

Holds Unused(std::optional<const Value*> x) {
  if (!x.has_value() || (!(*x)->is_graph_output && CountReaders(**x) == 0)) return absl::OkStatus();
  return Refuse(fmt::format("{} is needed", ValueName(**x)), "value-shared");
}

Holds SingleReader(const Value* x) {
  const std::string why = OtherReader(x);
  return why.empty() ? absl::OkStatus() : Refuse(why, "value-shared");
}

// Whether the node reads no element of what it reads.
bool ReadsDimsAlone(const Node& node) { return IsOp(node, "Shape") || IsOp(node, "Size"); }

Holds InPlaceSafe(const Value* x) {
  int64_t readers = 0;
  for (const Use& use : LiveUses(*x)) readers += ReadsDimsAlone(*use.user) ? 0 : 1;
  if (!x->is_graph_output && x->producer != nullptr && readers <= 1) return absl::OkStatus();
  return Refuse(fmt::format("{} is also needed elsewhere, and the kernel writes its result in its place", ValueName(*x)),
                "value-shared");
}

Holds NoGate(const FunctionContext& context, const Value* x) {
  for (const Use& use : LiveUses(*x)) {
    const bool gated = Domain(*use.user) == "ascend_fuse" && OpType(*use.user) == "Glu";
    if (!gated && !IsOp(*use.user, "Mul")) continue;
    const Value* other = use.user->input(1 - std::min<uint32_t>(use.index, 1));
    if (other == nullptr || other == x || other->IsConstant()) continue;
    if (!gated && context.facts->Of(other).elements != nullptr) continue;
    return Refuse(fmt::format("{} is a gate: it is multiplied by {}", ValueName(*x), ValueName(*other)));
  }
  return absl::OkStatus();
}

// Whether w has the last `count` dims of y, and none but axes of length 1 before them.
bool HasLastDims(const FunctionContext& context, const Value& w, const Value& y, size_t count) {
  const Fact& own = context.facts->Of(&w);
  const Fact& whole = context.facts->Of(&y);
  if (!own.has_rank || !whole.has_rank || own.shape.size() < count || own.shape.size() > whole.shape.size()) return false;
  const size_t before = own.shape.size() - count;
  const bool ones = std::all_of(own.shape.begin(), own.shape.begin() + static_cast<std::ptrdiff_t>(before),
                                [&](Dim dim) { return context.dims->Resolve(dim).is(1); });
  return ones && context.dims->Equal(absl::MakeConstSpan(own.shape).subspan(before),
                                     absl::MakeConstSpan(whole.shape).subspan(whole.shape.size() - count));
}

// The constant of the last `count` dims of `read` that the node multiplies it by or adds to it; nullptr where it does anything
// else.
const Value* OperandAsWeight(const FunctionContext& context, const Value& read, const Node* node, uint32_t index, size_t count) {
  if (node == nullptr || (!IsOp(*node, "Mul") && !IsOp(*node, "Add"))) return nullptr;
  const Value* const other = node->input(index == 0 ? 1 : 0);
  const bool weighs = other != nullptr && IsOfConstants(*context.facts, *other) && HasLastDims(context, *other, read, count);
  return weighs ? other : nullptr;
}

Holds NoWeightAfter(const FunctionContext& context, const Value* y, int64_t axis) {
  const Value* weight = nullptr;
  bool all_weigh = true;
  VisitReaders(context, *y, [&](const Value& read, const Node* reader, uint32_t index) {
    if (all_weigh) weight = OperandAsWeight(context, read, reader, index, static_cast<size_t>(-axis));
    all_weigh = all_weigh && weight != nullptr;
  });
  return weight == nullptr ? absl::OkStatus() : Refuse(fmt::format("{} is a weight of it", ValueName(*weight)));
}

Holds NoFactorBeside(const FunctionContext& context, const Value* n, const Value* w) {
  const bool one = IsConstantOfOneElement(*context.facts, *w);
  const bool computed = IsComputed(*context.facts, *w);
  if ((!one && !computed) || ReaderCount(context, n) == 1) return absl::OkStatus();
  const std::string_view is = one ? "one number" : "computed";
  return Refuse(fmt::format("{} is {}, and others read {} as it is", ValueName(*w), is, ValueName(*n)));
}

constexpr std::array kRows = {
    Function<"reader_count (x)", ReaderCount>("How many inputs of nodes, and outputs of the graph, read x or a copy of it."),
    Function<"unused (x)", Unused>("Holds for an output x that is not there or that nothing reads."),
    Function<"single_reader (x)", SingleReader>("Holds where one node reads x, which is not an output of the graph."),
    Function<"in_place_safe (x)", InPlaceSafe>("Holds where one node reads the elements of x, which is not an input or output of "
                                               "the graph: a kernel may write over it."),
    Function<"no_gate (x)", NoGate>("Holds unless x is multiplied by a value that is computed."),
    Function<"no_weight_after (y, axis)", NoWeightAfter>(
        "Holds unless all that reads y are products or sums with a constant of the "
        "dims of y from the axis on, as a norm has weights."),
    Function<"no_factor_beside (n, w)", NoFactorBeside>(
        "Holds unless w is computed, or a constant of one element, and n, a norm "
        "without a weight, has other readers: it is computed for these all the same."),
};

}  // namespace

absl::Span<const FunctionRow> ReaderFunctions() { return kRows; }

}  // namespace ascend_fuse
