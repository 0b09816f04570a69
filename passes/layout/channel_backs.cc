#include "passes/layout/channel_backs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "patterns/analysis/linear.h"
#include "patterns/operators/layout_choice.h"

namespace ascend_fuse {
namespace {

bool IsScores(const Node& node, size_t operand, int from_end) {
  if (operand > 1) return false;
  if (IsOp(node, "MatMul")) return from_end == (operand == 0 ? 1 : 2);
  return Domain(node) == "npu" && ChoosesLayout(OpType(node)) && from_end == 1 && StringAttribute(node, "input_layout") == "BNSD";
}

}  // namespace

std::string ChannelBacks::Find(ChannelBack* back) const {
  std::vector<const Value*> path = {back->kernel->output()};
  while (path.size() <= kMaximumChannelSteps) {
    const Use* use = OnlyUse(*path.back());
    if (use == nullptr || !OnlyMoves(*context_.facts, *use->user) || use->user->output_count != 1 ||
        use->user->output() == nullptr || use->user->input(0) != path.back() || use->user->graph != back->kernel->graph) {
      break;
    }
    path.push_back(use->user->output());
  }
  std::reverse(path.begin(), path.end());
  std::optional<Reordered> joined = FindOrder(context_, path);
  if (!joined.has_value()) return "";
  back->joined = *std::move(joined);
  return FindScores(back);
}

// Goes on to the product of query and key, over what computes the same whatever the order of the channels is.
std::string ChannelBacks::FindScores(ChannelBack* back) const {
  const Value* value = back->joined.later;
  back->width = static_cast<int64_t>(back->joined.order.size());
  int from_end = 1;  // of the channels' axis
  for (size_t step = 0; step < kMaximumChannelSteps; ++step) {
    back->path.push_back(value);
    const int rank = context_.facts->Of(value).rank();
    const Use* use = OnlyUse(*value);
    if (use == nullptr) return OtherReader(value);
    const Node* node = use->user;
    const auto at = static_cast<size_t>(
        std::find_if(node->inputs().begin(), node->inputs().end(), [&](const Use& u) { return u.value == value; }) -
        node->inputs().begin());
    if (node->graph != back->kernel->graph) return fmt::format("{} is read in another graph", ValueName(*value));
    if (IsScores(*node, at, from_end)) {
      back->scores = node;
      back->operand = at;
      return "";
    }
    const std::string passed = Pass(*node, at, rank, &from_end, back);
    if (!passed.empty()) return passed;
    value = node->output();
  }
  return "the way to the scores is too long";
}

// Over one node; empty where it is one of those.
std::string ChannelBacks::Pass(const Node& node, size_t operand, int rank, int* from_end, ChannelBack* back) const {
  const Value* value = node.input(operand);
  const std::string refused = fmt::format("{} reads {}", OpType(node), ValueName(*value));
  if (node.output_count != 1 || rank < 1) return refused;
  if (const Movement* movement = context_.facts->MovementOf(node.output()); movement != nullptr) {
    return PassMove(*movement, operand, rank, from_end, back);
  }
  if (IsOp(node, "Mul") || IsOp(node, "Div")) {
    const Value* factor = node.input(1 - operand);
    if (factor == nullptr || (IsOp(node, "Div") && operand != 0)) return refused;
    const Fact& fact = context_.facts->Of(factor);
    if (!fact.has_rank || context_.facts->Of(node.output()).rank() != rank) return refused;
    const int axis = fact.rank() - *from_end;
    return axis < 0 || fact.shape[static_cast<size_t>(axis)].is(1) ? "" : refused;
  }
  return IsOp(node, "Cast") ? "" : refused;
}

// Over one that moves elements: the channels stay in their order, and perhaps are joined with others.
std::string ChannelBacks::PassMove(const Movement& movement, size_t operand, int rank, int* from_end, ChannelBack* back) const {
  const Node& node = *movement.node;
  const Value* value = node.input(operand);
  const std::string refused = fmt::format("{} reads {}", OpType(node), ValueName(*value));
  if (movement.kind == MovementKind::kKeepsOrder) {
    return operand == 0 && *from_end == 1 && SameWidth(context_, value, node.output()) ? "" : refused;
  }
  const bool all =
      movement.kind == MovementKind::kPermutes || movement.kind == MovementKind::kCopies || movement.kind == MovementKind::kJoins;
  const auto own =
      std::find_if(movement.parts.begin(), movement.parts.end(), [&](const MovedPart& part) { return part.operand == operand; });
  if (!all || own == movement.parts.end() || !own->known || own->viewed()) return refused;
  if (own->axes.size() != static_cast<size_t>(rank) || *from_end > rank) return refused;
  const AxisSource& channels = own->axes[static_cast<size_t>(rank - *from_end)];
  if (!channels.IsPlace(channels.axis)) return refused;
  *from_end = context_.facts->Of(node.output()).rank() - channels.axis;
  if (movement.kind != MovementKind::kJoins) return "";
  if (own->windows[0].axis != channels.axis) {
    return fmt::format("{} joins {} with others, as a cache does", OpType(node), ValueName(*value));
  }
  back->width = 0;
  for (const MovedPart& part : movement.parts) {
    const Dim width = part.windows[0].count;
    if (!width.is_number() || (part.operand != operand && node.input(part.operand) == value)) return refused;
    back->width += width.number();
  }
  back->offset += own->windows[0].begin.number();
  return "";
}

}  // namespace ascend_fuse
