// Tensors that are padded: along some axes they have zeros between their elements. Which operands of a node have to be padded
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

// Along one axis: element i is what stood at places[i], or 0 where that is -1; empty: the axis is as it was. Zeros stand after
// what they widen.
using Places = std::vector<int64_t>;
// By axis.
using ZeroPadding = std::vector<Places>;

// What is padded of one axis of an operand: the elements [start, start + length) have these places, counted from start. A
// length of -1 is the whole axis.
struct PaddedPart {
  int64_t start = 0;
  int64_t length = -1;
  Places places;
};

// What an operand of a node has to be.
struct PaddedOperand {
  size_t index = 0;
  std::vector<PaddedPart> parts;  // by axis
};

// More places than this are not listed.
constexpr int64_t kMostPlaces = int64_t{1} << 18;

// The next multiple; 0 for a size of which the places are not listed.
constexpr int64_t PaddedSize(int64_t size, int64_t multiple_of) {
  if (size < 0 || size > kMostPlaces) return 0;
  return (size + multiple_of - 1) / multiple_of * multiple_of;
}

bool IsPadded(const ZeroPadding& padding);
// Those of `size` elements as they were.
Places AllPlaces(int64_t size);
// `size` elements in heads of `head`, each with zeros up to `width` after it.
Places PlacesOfHeads(int64_t size, int64_t head, int64_t width);

// What the operands of `node` have to be for its outputs to be padded so (by number; empty: it is as it was). Operands that
// are not named stay. FAILED_PRECONDITION with a clause where there are no such operands.
absl::StatusOr<std::vector<PaddedOperand>> OperandsOf(Facts& facts, const Node& node, absl::Span<const ZeroPadding> outputs);

// The padding of the output of a node that reads `operand` padded, where it moves it or computes each element by itself;
// nullopt for any other node.
std::optional<ZeroPadding> ResultOf(Facts& facts, const Node& node, size_t operand, const ZeroPadding& padding);

// What a product with a weight has to read in the place of operand `other` if `operand` is padded along axes that it sums over;
// its result stays. nullopt for any other node.
std::optional<PaddedOperand> OtherFactorOf(const Facts& facts, const Node& node, size_t operand, const ZeroPadding& padding);

}  // namespace ascend_fuse
