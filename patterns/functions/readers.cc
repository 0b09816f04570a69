// Functions of rules about who reads a value, and what it is read from.
#include <algorithm>
#include <array>

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

// Readers of the value and of its copies, which are not readers themselves: they go when the model is tidied.
int64_t CountThroughCopies(const ValueNumbering& numbering, const Value& value) {
  int64_t readers = value.is_graph_output ? 1 : 0;
  for (const Use& use : LiveUses(value)) {
    const Value* const copy = use.user->output(0);
    const bool copies = copy != nullptr && CopiedBy(numbering, *copy) == &value;
    readers += copies ? CountThroughCopies(numbering, *copy) : 1;
  }
  return readers;
}

int64_t ReaderCount(const FunctionContext& context, const Value* x) {
  if (context.numbering == nullptr) return CountReaders(*x);
  while (const Value* const source = CopiedBy(*context.numbering, *x)) x = source;
  return CountThroughCopies(*context.numbering, *x);
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

constexpr std::array kRows = {
    Function<"reader_count (x)", ReaderCount>("How many inputs of nodes, and outputs of the graph, read x or a copy of it."),
    Function<"unused (x)", Unused>("Holds for an output x that is not there or that nothing reads."),
    Function<"single_reader (x)", SingleReader>("Holds where one node reads x, which is not an output of the graph."),
    Function<"in_place_safe (x)", InPlaceSafe>("Holds where one node reads the elements of x, which is not an input or output of "
                                               "the graph: a kernel may write over it."),
    Function<"no_gate (x)", NoGate>("Holds unless x is multiplied by a value that is computed."),
};

}  // namespace

absl::Span<const FunctionRow> ReaderFunctions() { return kRows; }

}  // namespace ascend_fuse
