// Which channels of which value the channels of another are: the meaning of the slices, concatenations, reshapes and
// sign changes by which exporters spell a rotation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/movement/place_map.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

// The part of a leading axis that is taken, one element after another.
struct Window {
  bool whole = true;
  Dim start;   // what follows says something where it is not whole
  Dim extent;  // how many elements that is
};

// One channel: plus or minus channel `index` of source number `source`.
using Channel = PlaceMap::Element;

// A value whose axes are the leading axes of its sources, and between or after them others that, taken together in
// row-major order, hold these channels of the last axis of the sources.
struct ChannelMap {
  static constexpr int kChannels = -1;
  int leading = 0;
  std::vector<Window> windows;  // of each leading axis of the source
  std::vector<int> axes;        // of the value: which leading axis of the source each is, or kChannels
  std::vector<int64_t> trailing;
  PlaceMap channels;
  std::vector<const Node*> nodes;  // read on the way, the last one first

  // The leading axes come first, in their order.
  bool InOrder() const;
  // No leading axis is cut.
  bool IsWhole() const;
  // One trailing axis, and the leading dims of x in front of it.
  bool IsLike(const Fact& x) const;
};

// Whether two values of one source take the same parts of its leading axes.
bool SameWindows(const ChannelMap& a, const ChannelMap& b, const DimTable& dims);

// Follows `value` back to `sources` through operators that only move, drop or negate channels, or take a part of a
// leading axis. A source of shape [..., C] has C channels; C must be a number. FAILED_PRECONDITION with a
// sentence naming the operator that does anything else; `reached` (may be null) then still gets the nodes that were read.
absl::StatusOr<ChannelMap> FollowChannels(const FunctionContext& context, const Value* value,
                                          absl::Span<const Value* const> sources, std::vector<const Node*>* reached = nullptr);

// Which of a constant's numbers are -1, where all others are 1; nullopt for other constants and what is not one.
std::optional<std::vector<bool>> SignsOf(const FunctionContext& context, const Value& constant);

// The channels one by one, for who compares them so; none where there are more than a kernel could have.
std::vector<Channel> ListOf(const ChannelMap& map);

// Values that `value` is cut from, itself first.
std::vector<const Value*> CutFrom(const FunctionContext& context, const Value* value);

// FAILED_PRECONDITION with this sentence.
absl::Status ChannelsNotProved(const std::string& sentence);
// The nodes are part of what is matched.
void NoteRead(const FunctionContext& context, const std::vector<const Node*>& nodes);

}  // namespace ascend_fuse
