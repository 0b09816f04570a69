#include "passes/layout/channel_orders.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/layout/node_copier.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

// What taking channels apart, or joining them, costs when the model runs. Nothing is to be weighed against it: where the weights
// can have that order they have it.
constexpr int64_t kReorderCost = 1;

bool IsRotaryOfHalves(const Node& node) {
  if (node.dead || Domain(node) != "npu") return false;
  const DeclaredOperator* declared = FindDeclaredOperator(Domain(node), OpType(node));
  if (declared == nullptr || !declared->rotated_halves.has_value()) return false;
  const RotatedHalves& halves = *declared->rotated_halves;
  return halves.attribute.empty() || IntAttribute(node, halves.attribute) == halves.is;
}

// Why a product reads channels in the order of the model; empty where it may read them apart.
std::string WhyJoined(const std::vector<ChannelBack>& ends) {
  if (ends.size() != 2 || ends[0].operand == ends[1].operand) return "the other of query and key has those of the model";
  const bool same =
      ends[0].joined.order == ends[1].joined.order && ends[0].offset == ends[1].offset && ends[0].width == ends[1].width;
  return same ? "" : "those of query and key differ";
}

// The channels of a projection as its rotations read them.
ChannelOrder OrderOfColumns(const std::vector<ChannelFront>& fronts, const Facts& facts) {
  ChannelOrder order(static_cast<size_t>(facts.Of(fronts[0].base).shape.back().number()));
  std::iota(order.begin(), order.end(), 0);
  for (const ChannelFront& front : fronts) {
    const size_t width = front.apart.order.size();
    for (size_t i = 0; i < front.channels.size(); ++i) {
      const size_t from = i / width * width + static_cast<size_t>(front.apart.order[i % width]);
      order[static_cast<size_t>(front.channels[i])] = front.channels[from];
    }
  }
  return order;
}

// Each reader with the inputs that are the value.
std::vector<std::pair<const Node*, size_t>> UsersOf(const Value& value) {
  std::vector<std::pair<const Node*, size_t>> users;
  absl::flat_hash_set<const Node*> seen;
  for (const Use& use : LiveUses(value)) {
    if (!seen.insert(use.user).second) continue;
    for (size_t i = 0; i < use.user->input_count; ++i) {
      if (use.user->input(i) == &value) users.emplace_back(use.user, i);
    }
  }
  return users;
}

}  // namespace

absl::Status ChannelOrders::Find() {
  for (Site& site : workspace_.sites) {
    if (site.fused()) site_of_[site.value] = &site;
  }
  for (const auto& graph : workspace_.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!IsRotaryOfHalves(*node)) continue;
      RETURN_IF_ERROR(workspace_.GoOn());
      Look(node);
    }
  }
  return absl::OkStatus();
}

void ChannelOrders::Look(const Node* kernel) {
  ChannelFront front;
  front.kernel = kernel;
  if (const std::string why = fronts_.Find(&front); !why.empty()) {
    Say(kernel, fmt::format("its channels are taken apart when the model runs: {}", why));
  } else if (front.base != nullptr) {
    const auto [at, is_new] = projection_of_.try_emplace(front.linear.product, projections_.size());
    if (is_new) projections_.emplace_back();
    projections_[at->second].fronts.push_back(std::move(front));
  }
  ChannelBack back;
  back.kernel = kernel;
  if (const std::string why = backs_.Find(&back); !why.empty()) {
    Say(kernel, fmt::format("its channels are joined again when the model runs: {}", why));
  } else if (back.scores != nullptr) {
    const auto [at, is_new] = scores_of_.try_emplace(back.scores, scores_.size());
    if (is_new) scores_.emplace_back();
    scores_[at->second].ends.push_back(std::move(back));
  }
}

// Of a site that was fused in the form that is not bettered.
void ChannelOrders::Say(const Node* kernel, std::string why) {
  const Value* value = kernel->output();
  for (size_t step = 0; step < kMaximumChannelSteps; ++step) {
    const auto site = site_of_.find(value);
    if (site != site_of_.end()) {
      if (site->second->record.because.empty()) site->second->Say("other-form", std::move(why), "");
      return;
    }
    const Use* use = OnlyUse(*value);
    if (use == nullptr || use->user->output_count != 1 || use->user->output() == nullptr) return;
    value = use->user->output();
  }
}

void ChannelOrders::Ask(OrderGraph* graph) {
  for (Scores& scores : scores_) {
    scores.choice = graph->AddChoice();
    graph->Charge(scores.choice, Order::kFirst, kReorderCost);
    if (const std::string why = WhyJoined(scores.ends); !why.empty()) {
      graph->Charge(scores.choice, Order::kSecond, OrderGraph::kNever);
      Say(scores.ends[0].kernel, fmt::format("its channels are joined again when the model runs: {}", why));
    }
  }
  for (Projection& projection : projections_) {
    projection.choice = graph->AddChoice();
    graph->Charge(projection.choice, Order::kFirst, kReorderCost);
  }
}

absl::Status ChannelOrders::Write(const OrderGraph& graph) {
  for (const Scores& scores : scores_) {
    if (graph.OrderOf(scores.choice) == Order::kSecond && workspace_.MayReplace()) WriteScores(scores.ends);
  }
  for (const Projection& projection : projections_) {
    if (graph.OrderOf(projection.choice) == Order::kSecond && workspace_.MayReplace()) WriteProjection(projection.fronts);
  }
  return absl::OkStatus();
}

void ChannelOrders::WriteProjection(const std::vector<ChannelFront>& fronts) {
  const LinearView& linear = fronts[0].linear;
  const ChannelOrder order = OrderOfColumns(fronts, facts_);
  NodeCopier copier(workspace_);
  for (const Value* constant : {linear.weight, linear.bias}) {
    if (constant == nullptr) continue;
    const int64_t axis = constant == linear.bias || linear.transposed ? 0 : 1;
    const absl::StatusOr<const Value*> ordered =
        workspace_.rewriter().Reorder(constant, axis, order, fmt::format("{}_ordered", ValueName(*constant)));
    if (!ordered.ok()) return Say(fronts[0].kernel, std::string(ordered.status().message()));
    InferConstant(*ordered, &facts_);
    copier.Map(constant, *ordered);
  }
  for (const Value* value : linear.chain) {
    if (value->producer != nullptr) copier.MayCopy(value->producer);
  }
  for (const ChannelFront& front : fronts) {
    for (const Value* value : front.path) {
      if (value != front.path.back()) copier.MayCopy(value->producer);
    }
  }
  for (const ChannelFront& front : fronts) {
    copier.Map(front.apart.later, copier.Copy(front.apart.earlier));
    Read(front.kernel, 0, copier.Copy(front.kernel->input(0)));
  }
  for (const Value* old : copier.copied()) {
    for (const auto& [user, index] : UsersOf(*old)) {
      if (!copier.Copies(user)) Read(user, index, copier.Of(old));
    }
  }
  workspace_.CountReplacement();
}

// Both operands of a product: their channels stay as the kernels give them.
void ChannelOrders::WriteScores(const std::vector<ChannelBack>& ends) {
  for (const ChannelBack& back : ends) {
    NodeCopier copier(workspace_);
    copier.Map(back.joined.later, back.joined.earlier);
    for (const Value* value : back.path) {
      if (value != back.joined.later) copier.MayCopy(value->producer);
    }
    Read(back.scores, back.operand, copier.Copy(back.scores->input(back.operand)));
  }
  workspace_.CountReplacement();
}

void ChannelOrders::Read(const Node* node, size_t index, const Value* value) {
  workspace_.rewriter().SetInput(node, index, value);
  workspace_.Refresh(node);
}

}  // namespace ascend_fuse
