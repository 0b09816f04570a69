// Reshapes: what keeps the order of the elements twice, the first time for the second alone, keeps it once. Reshape, Squeeze,
// Unsqueeze and Flatten in any order; and a Gather of one index whose axis is put back or taken away.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/movement/axis.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

constexpr std::string_view kKeepers[] = {"Reshape", "Squeeze", "Unsqueeze", "Flatten"};

const Node* KeeperBefore(const Node& node) {
  for (const std::string_view op : kKeepers) {
    if (const Node* const before = Before(node, 0, op); before != nullptr) return before;
  }
  return nullptr;
}

// The axes of a Squeeze or an Unsqueeze from the front, of its operand or its result; empty where they are not known.
std::vector<int64_t> AxesOf(const TidyContext& context, const Node& node, int rank) {
  const auto axes = IntsParameter(context.facts(), node, "axes", 1);
  std::vector<int64_t> normal;
  for (const int64_t axis : axes.value_or(std::vector<int64_t>())) normal.push_back(NormalizeAxis(axis, rank));
  std::sort(normal.begin(), normal.end());
  return normal;
}

// Unsqueeze of Unsqueeze: the axes of the result that are new.
std::vector<int64_t> BothUnsqueezed(const TidyContext& context, const Node& first, const Node& second) {
  const int between = context.facts().Of(first.output()).rank();
  const int rank = context.facts().Of(second.output()).rank();
  std::vector<int64_t> of_first = AxesOf(context, first, between);
  std::vector<int64_t> of_second = AxesOf(context, second, rank);
  if (between < 0 || rank < 0 || of_first.empty() || of_second.empty()) return {};
  std::vector<int64_t> both = of_second;
  int64_t place = 0;  // in what the first one gives
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (std::find(of_second.begin(), of_second.end(), axis) != of_second.end()) continue;
    if (std::find(of_first.begin(), of_first.end(), place++) != of_first.end()) both.push_back(axis);
  }
  std::sort(both.begin(), both.end());
  return both;
}

// The dims of `y` as a Reshape of x says them; empty where it cannot. A dim that is neither a number nor that of x at its place
// is -1, which takes that no other one can be 0.
std::vector<int64_t> TargetOf(const TidyContext& context, const Fact& x, const Fact& y) {
  if (!x.has_rank || !y.has_rank || y.shape.empty()) return {};
  std::vector<int64_t> target;
  int open = 0;
  bool positive = true;
  for (size_t i = 0; i < y.shape.size(); ++i) {
    const Dim dim = context.dims().Resolve(y.shape[i]);
    const bool same = dim.known() && i < x.shape.size() && context.dims().Equal(dim, x.shape[i]);
    if (dim.is(0) && !same) return {};
    target.push_back(dim.is_number() ? dim.number() : same ? 0 : -1);
    open += target.back() == -1 ? 1 : 0;
    positive = positive && (target.back() == -1 || context.dims().AtLeast(dim, Dim::Of(1)));
  }
  if (open > 1 || (open == 1 && !positive)) return {};
  return target;
}

// A target that says the same of any operand with these elements: no 0 is among them.
bool SaysItself(const TidyContext& context, const Node& node) {
  if (!IsOp(node, "Reshape")) return false;
  const Fact& to = context.facts().Of(node.input(1));
  return to.elements != nullptr && std::none_of(to.elements->integers.begin(), to.elements->integers.end(),
                                                [&](Dim dim) { return !dim.is_number() || dim.is(0); });
}

// Gather (x, i) with its axis put back is Gather (x, [i]).
std::optional<Tidied> WithItsAxis(TidyContext& context, const Node& node) {
  constexpr int kAny = -1;
  const Node* const gather = Before(node, 0, "Gather");
  if (gather == nullptr || !ReadOnce(*gather->output()) || !IsOp(node, "Unsqueeze")) return std::nullopt;
  const Fact& x = context.facts().Of(gather->input(0));
  const Fact& index = context.facts().Of(gather->input(1));
  const int rank = context.facts().Of(node.output()).rank();
  const int64_t axis = NormalizeAxis(IntAttribute(*gather, "axis").value_or(0), x.rank());
  if (!x.has_rank || index.rank() != 0 || index.elements == nullptr || rank == kAny || index.elements->integers.size() != 1) {
    return std::nullopt;
  }
  const Dim place = index.elements->integers[0];
  if (!place.is_number() || AxesOf(context, node, rank) != std::vector<int64_t>{axis}) return std::nullopt;
  return Tidied::Of(build::Gather(Term::Of(gather->input(0)), build::Numbers({place.number()}), axis));
}

// Whether only Reshapes and their like read the value: then it is not needed where each reads what it was made of.
bool GoesIntoKeepers(const Value& value) {
  if (value.is_graph_output) return false;
  for (const Use& use : LiveUses(value)) {
    const bool keeper =
        std::any_of(std::begin(kKeepers), std::end(kKeepers), [&](std::string_view op) { return IsOp(*use.user, op); });
    if (!keeper || use.index != 0 || use.user->graph != value.graph) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<int64_t>> OnesBesides(const TidyContext& context, const Fact& fewer, const Fact& more) {
  std::vector<int64_t> ones;
  size_t at = 0;
  for (size_t axis = 0; axis < more.shape.size(); ++axis) {
    if (at < fewer.shape.size() && context.dims().Equal(fewer.shape[at], more.shape[axis])) {
      ++at;
    } else if (context.dims().Resolve(more.shape[axis]).is(1)) {
      ones.push_back(static_cast<int64_t>(axis));
    } else {
      return std::nullopt;
    }
  }
  return at == fewer.shape.size() && !ones.empty() ? std::optional(std::move(ones)) : std::nullopt;
}

std::optional<Term> WithOnes(const TidyContext& context, const Term& x, const Fact& from, const Fact& to) {
  if (!from.has_rank || !to.has_rank) return std::nullopt;
  const bool adds = from.shape.size() < to.shape.size();
  const auto ones = adds ? OnesBesides(context, from, to) : OnesBesides(context, to, from);
  if (!ones.has_value()) return std::nullopt;
  return adds ? build::Unsqueeze(x, *ones) : build::Squeeze(x, *ones);
}

std::optional<Tidied> AskReshapes(TidyContext& context, const Node& node) {
  if (auto answer = WithItsAxis(context, node); answer.has_value()) return answer;
  const Node* const before = KeeperBefore(node);
  if (before == nullptr || before->input(0) == nullptr || !GoesIntoKeepers(*before->output())) return std::nullopt;
  const Term x = Term::Of(before->input(0));
  if (SaysItself(context, node)) return Tidied::Reads(0, x);
  if (IsOp(node, "Unsqueeze") && IsOp(*before, "Unsqueeze")) {
    const std::vector<int64_t> axes = BothUnsqueezed(context, *before, node);
    return axes.empty() ? std::nullopt : std::optional(Tidied::Of(build::Unsqueeze(x, axes)));
  }
  const Fact& from = context.facts().Of(before->input(0));
  const Fact& to = context.facts().Of(node.output());
  const std::vector<int64_t> target = TargetOf(context, from, to);
  if (target.empty()) {
    auto with_ones = WithOnes(context, x, from, to);
    return with_ones.has_value() ? std::optional(Tidied::Of(*std::move(with_ones))) : std::nullopt;
  }
  return Tidied::Of(build::Reshape(x, target));
}

}  // namespace ascend_fuse
