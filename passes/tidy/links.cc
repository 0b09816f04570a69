#include "passes/tidy/links.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "ir/movement/movement.h"

namespace ascend_fuse {
namespace {

std::vector<int64_t> Inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return inverse;
}

std::optional<Link> OfTranspose(const TidyContext& context, const Node& node) {
  std::vector<int64_t> perm = PermOf(context, node);
  if (perm.empty() || std::is_sorted(perm.begin(), perm.end())) return std::nullopt;
  std::vector<int64_t> back = Inverse(perm);
  Link link = {{false, std::min(perm, back), static_cast<int>(perm.size())}, perm <= back, perm == back};
  return link;
}

std::optional<Link> OfOnes(const TidyContext& context, const Node& node) {
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& y = context.facts().Of(node.output());
  if (!x.has_rank || !y.has_rank || x.rank() == y.rank()) return std::nullopt;
  const bool adds = x.rank() < y.rank();
  auto ones = adds ? OnesBesides(context, x, y) : OnesBesides(context, y, x);
  if (!ones.has_value()) return std::nullopt;
  return Link{{true, *std::move(ones), std::max(x.rank(), y.rank())}, adds, false};
}

}  // namespace

std::vector<int64_t> PermOf(const TidyContext& context, const Node& node) {
  const Movement* const movement = node.output() != nullptr ? context.facts().MovementOf(node.output()) : nullptr;
  const Fact& x = context.facts().Of(node.input(0));
  if (movement == nullptr || movement->kind != MovementKind::kPermutes || movement->only() == nullptr) return {};
  const MovedPart& part = *movement->only();
  if (!part.known || part.viewed() || !movement->places.empty() || part.axes.size() != x.shape.size()) return {};
  std::vector<int64_t> perm(part.axes.size(), -1);
  for (size_t i = 0; i < part.axes.size(); ++i) {
    const int to = part.axes[i].axis;
    if (!part.axes[i].IsPlace(to) || to < 0 || static_cast<size_t>(to) >= perm.size()) return {};
    perm[static_cast<size_t>(to)] = static_cast<int64_t>(i);
  }
  return std::find(perm.begin(), perm.end(), -1) == perm.end() ? perm : std::vector<int64_t>();
}

std::optional<Link> LinkOf(const TidyContext& context, const Node& node) {
  if (node.dead || node.domain != NameId::kEmpty || node.output_count != 1 || node.input(0) == nullptr) return std::nullopt;
  const Movement* const movement = context.facts().MovementOf(node.output());
  if (movement == nullptr) return std::nullopt;
  if (movement->kind == MovementKind::kPermutes) return OfTranspose(context, node);
  return movement->kind == MovementKind::kKeepsOrder ? OfOnes(context, node) : std::nullopt;
}

Term InOtherOrder(const LinkKind& kind, const Term& x, bool to_first) {
  if (kind.ones) return to_first ? build::Unsqueeze(x, kind.axes) : build::Squeeze(x, kind.axes);
  return build::Transpose(x, to_first ? kind.axes : Inverse(kind.axes));
}

}  // namespace ascend_fuse
