// Tensors that are widened: along some axes they have zeros between their elements. Which operands of a node have to be widened
// for its results to be, exactly: zeros in, zeros out, and everything else as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

// Along one axis: element i is what stood at places[i], or 0 where that is -1; empty: the axis is as it was. Zeros stand behind
// what they widen.
using Places = std::vector<int64_t>;
// By axis.
using Widening = std::vector<Places>;

// What is widened of one axis of an operand: the elements [start, start + length) have these places, counted from start. A
// length of -1 is the whole axis.
struct WidenedPart {
  int64_t start = 0;
  int64_t length = -1;
  Places places;
};

// What an operand of a node has to be.
struct WidenedOperand {
  size_t index = 0;
  std::vector<WidenedPart> parts;  // by axis
};

// More places than this are not listed.
constexpr int64_t kMostPlaces = int64_t{1} << 18;

bool IsWidened(const Widening& widening);
// `size` elements in heads of `head`, each with zeros up to `width` behind it.
Places PlacesOfHeads(int64_t size, int64_t head, int64_t width);

// The places along the axes of `to`, a shape that holds the elements of one of the shape `from` in row-major order, whose axes
// are widened so. nullopt where the zeros are not those of axes of `to`, or dims are not known enough.
std::optional<Widening> RegroupWidening(DimTable& dims, absl::Span<const Dim> from, const Widening& widening,
                                        absl::Span<const Dim> to);

// What the operands of `node` have to be for its outputs to be widened so (by number; empty: it is as it was). Operands that
// are not named stay. FAILED_PRECONDITION with a clause where there are no such operands.
absl::StatusOr<std::vector<WidenedOperand>> OperandsOf(Facts& facts, const Node& node, absl::Span<const Widening> outputs);

// The widening of the output of a node that reads `operand` widened, where it moves it or computes each element by itself;
// nullopt for any other node.
std::optional<Widening> ResultOf(Facts& facts, const Node& node, size_t operand, const Widening& widening);

// What a product with a weight has to read in the place of operand `other` if `operand` is widened along axes that it sums over;
// its result stays. nullopt for any other node.
std::optional<WidenedOperand> OtherFactorOf(const Facts& facts, const Node& node, size_t operand, const Widening& widening);

// `node` with its parameters (the dims of a Reshape, the starts of a Slice) as its widened outputs ask for; its inputs are still
// the old ones. `first` is the widening of its input 0. What it makes for those stands in front of it. FAILED_PRECONDITION with
// a clause where they cannot be written.
absl::StatusOr<NewNode> Widened(const Node& node, absl::Span<const Widening> outputs, const Widening& first,
                                Workspace& workspace);

}  // namespace ascend_fuse
