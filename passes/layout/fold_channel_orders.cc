// Fold channel orders: where a rotary kernel of halves stands for a rotation by pairs, the channels of every head are taken
// apart in front of it and joined behind it. In front that is an order of the columns of the projection's weight; behind it
// is none where query and key have the same one and only their product reads them, for (P q) . (P k) = q . k.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "passes/core/workspace.h"
#include "passes/layout/passes.h"
#include "patterns/analysis/channels.h"
#include "patterns/analysis/linear.h"
#include "patterns/operators/declarations.h"
#include "patterns/operators/layout_cost.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMaximumSteps = 12;  // from a kernel to the projection, and from it to the scores

using Order = std::vector<int64_t>;  // channel i is what channel order[i] was

bool IsRotaryOfHalves(const Node& node) {
  if (node.dead || Domain(node) != "npu") return false;
  const DeclaredOperator* declared = FindDeclaredOperator(Domain(node), OpType(node));
  if (declared == nullptr || !declared->rotated_halves.has_value()) return false;
  const RotatedHalves& halves = *declared->rotated_halves;
  return halves.attribute.empty() || IntAttribute(node, halves.attribute) == halves.is;
}

// Whether the node only moves elements of its first input.
bool Moves(const Facts& facts, const Node& node) {
  const MovementKind movement = KindOf(facts, node);
  return movement == MovementKind::kKeepsOrder || movement == MovementKind::kPermutes || movement == MovementKind::kPicks;
}

// The one node that reads the value; nullptr where there are more, or the value is an output of the graph.
const Use* OnlyUse(const Value& value) {
  if (CountReaders(value) != 1 || value.is_graph_output) return nullptr;
  return &*LiveUses(value).begin();
}

// The order of the last axis in which `later` has the channels of `earlier`, where it is a value of the same shape that
// differs in that alone.
std::optional<Order> OrderBetween(const FunctionContext& context, Value* earlier, Value* later) {
  const Fact& fact = context.facts->Of(earlier);
  if (!fact.has_rank || !context.facts->Of(later).has_rank) return std::nullopt;
  if (!context.dims->Equal(fact.shape, context.facts->Of(later).shape)) return std::nullopt;
  const absl::StatusOr<ChannelMap> map = FollowChannels(context, later, {earlier});
  if (!map.ok() || map->trailing.size() != 1 || map->axes.back() != ChannelMap::kChannels) return std::nullopt;
  if (!std::is_sorted(map->axes.begin(), map->axes.end() - 1)) return std::nullopt;
  Order order;
  const std::vector<Channel> channels = ListOf(*map);
  std::vector<bool> seen(channels.size(), false);
  for (const Channel& channel : channels) {
    const auto at = static_cast<size_t>(channel.index);
    if (channel.negative || at >= seen.size() || seen[at]) return std::nullopt;
    seen[at] = true;
    order.push_back(channel.index);
  }
  if (std::is_sorted(order.begin(), order.end())) return std::nullopt;
  return map->IsWhole() ? std::optional(order) : std::nullopt;
}

// Two values of a path that differ by an order.
struct Reordered {
  Value* earlier = nullptr;
  Value* later = nullptr;
  Order order;
};

// `path` from its last value to its first one.
std::optional<Reordered> FindOrder(const FunctionContext& context, const std::vector<Value*>& path) {
  for (size_t later = 0; later < path.size(); ++later) {
    for (size_t earlier = later + 1; earlier < path.size(); ++earlier) {
      std::optional<Order> order = OrderBetween(context, path[earlier], path[later]);
      if (order.has_value()) return Reordered{path[earlier], path[later], *std::move(order)};
    }
  }
  return std::nullopt;
}

// What a rotation reads, from the kernel back to its projection.
struct Front {
  Node* kernel = nullptr;
  std::vector<Value*> path;  // the kernel's operand first, what the projection gives last
  Reordered apart;
  Value* base = nullptr;  // of the path: the value by whose last axis channels are counted
  LinearView linear;
  Order channels;  // of base, that `apart.earlier` is made of
};

// How the product of query and key reads what a rotation gives.
struct Back {
  Node* kernel = nullptr;
  Reordered joined;
  std::vector<Value*> path;  // from `joined.later` to the operand
  Node* scores = nullptr;
  size_t operand = 0;
  int64_t offset = 0;  // of the channels in the operand's
  int64_t width = 0;   // of the operand
};

// Makes nodes once more, reading other values.
class Copier {
 public:
  explicit Copier(Workspace& workspace) : workspace_(workspace) {}

  void Map(Value* old, Value* value) { copies_[old] = value; }
  void MayCopy(const Node* node) { nodes_.insert(node); }
  bool Copies(const Node* node) const { return nodes_.contains(node); }
  const std::vector<Value*>& copied() const { return copied_; }  // values of nodes that were copied
  Value* Of(Value* old) const { return copies_.at(old); }

  Value* Copy(Value* value) {
    const auto known = copies_.find(value);
    if (known != copies_.end()) return known->second;
    Node* node = value->producer;
    if (node == nullptr || !nodes_.contains(node)) return value;
    NewNode plan = PlanOf(*node);
    for (Value*& input : plan.inputs) input = input != nullptr ? Copy(input) : nullptr;
    Node* copy = workspace_.rewriter().Insert(plan, node->output_count, node->graph,
                                              fmt::format("{}_ordered", ValueName(*node->output())));
    workspace_.Know(copy);
    for (size_t i = 0; i < node->output_count; ++i) {
      if (node->output(i) == nullptr) continue;
      copies_[node->output(i)] = copy->output(i);
      copied_.push_back(node->output(i));
    }
    return copies_.at(value);
  }

 private:
  Workspace& workspace_;
  absl::flat_hash_set<const Node*> nodes_;
  absl::flat_hash_map<const Value*, Value*> copies_;
  std::vector<Value*> copied_;
};

class Folder {
 public:
  explicit Folder(Workspace& workspace) : workspace_(workspace), context_(workspace.Context()) {}

  absl::Status Run() {
    for (Site& site : workspace_.sites) {
      if (site.fused()) site_of_[site.value] = &site;
    }
    for (const auto& graph : workspace_.model().graphs()) {
      for (Node* node : graph->nodes()) {
        if (!IsRotaryOfHalves(*node)) continue;
        RETURN_IF_ERROR(workspace_.GoOn());
        Look(node);
      }
    }
    for (const auto& [scores, ends] : backs_) LeaveApart(ends);
    for (const std::vector<Front>& fronts : by_projection_) Write(fronts);
    return absl::OkStatus();
  }

 private:
  void Look(Node* kernel) {
    Front front;
    front.kernel = kernel;
    if (const std::string why = FindFront(&front); !why.empty()) {
      Say(kernel, fmt::format("its channels are taken apart when the model runs: {}", why));
    } else if (front.base != nullptr) {
      const auto [at, is_new] = projection_of_.try_emplace(front.linear.product, by_projection_.size());
      if (is_new) by_projection_.emplace_back();
      by_projection_[at->second].push_back(std::move(front));
    }
    Back back;
    back.kernel = kernel;
    if (const std::string why = FindBack(&back); !why.empty()) {
      Say(kernel, fmt::format("its channels are joined again when the model runs: {}", why));
    } else if (back.scores != nullptr) {
      const auto [at, is_new] = scores_of_.try_emplace(back.scores, backs_.size());
      if (is_new) backs_.emplace_back(back.scores, std::vector<Back>());
      backs_[at->second].second.push_back(std::move(back));
    }
  }

  // Of a site that was fused in the form that this pass does not better.
  void Say(const Node* kernel, std::string why) {
    Value* value = kernel->output();
    for (size_t step = 0; step < kMaximumSteps; ++step) {
      const auto site = site_of_.find(value);
      if (site != site_of_.end()) {
        if (site->second->record.because.empty()) site->second->Say("other-form", std::move(why), "");
        return;
      }
      const Use* use = OnlyUse(*value);
      if (use == nullptr || use->user->output_count != 1) return;
      value = use->user->output();
    }
  }

  // --- in front of a kernel ---

  // Empty where there is nothing to fold (base stays nullptr) or everything is as it has to be; else what is in the way.
  std::string FindFront(Front* front) {
    front->path = {front->kernel->input(0)};
    while (front->path.size() <= kMaximumSteps) {
      const Node* node = front->path.back()->producer;
      if (node == nullptr || !Moves(*context_.facts, *node) || node->graph != front->kernel->graph) break;
      front->path.push_back(node->input(0));
    }
    std::optional<Reordered> apart = FindOrder(context_, front->path);
    if (!apart.has_value()) return "";
    front->apart = *std::move(apart);
    absl::StatusOr<LinearView> linear = FindLinear(context_, front->path.back());
    if (!linear.ok()) return std::string(linear.status().message());
    front->linear = *std::move(linear);
    if (std::string why = WhyNotOrdered(front->linear); !why.empty()) return why;
    if (std::string why = FindChannels(front); !why.empty()) return why;
    if (std::string why = WhyReadElsewhere(*front); !why.empty()) return why;
    if (front->linear.product->graph != front->kernel->graph) return "the projection stands in another graph";
    front->base = base_;
    return "";
  }

  // Why the columns of the weight cannot be put in another order.
  std::string WhyNotOrdered(const LinearView& linear) const {
    if (!linear.plain) return linear.why_not_plain;
    for (const Value* constant : {linear.weight, linear.bias}) {
      if (constant == nullptr) continue;
      if (!constant->IsConstant()) return fmt::format("{} is not an initializer", ValueName(*constant));
      if (std::string why = OtherReader(constant); !why.empty()) return why;
      const Storage storage = constant->initializer->storage;
      if (storage == Storage::kNone || storage == Storage::kJoined || BitWidth(constant->initializer->type) % 8 != 0) {
        return fmt::format("the elements of {} are not given as whole bytes of the input", ValueName(*constant));
      }
    }
    if (linear.bias != nullptr && context_.facts->Of(linear.bias).rank() != 1) {
      return fmt::format("the bias {} has not one dim", ValueName(*linear.bias));
    }
    for (const Value* value : linear.chain) {
      if (value == linear.chain.front()) continue;
      if (std::string why = OtherReader(value); !why.empty()) return why;
    }
    return "";
  }

  // The channels of the projection that are taken apart. They are counted in the last value of the path that has them all
  // along its last axis: a Reshape may stand between that takes the rows of a Gemm apart.
  std::string FindChannels(Front* front) {
    const std::vector<Value*>& path = front->path;
    size_t at = path.size() - 1;
    while (at > 0 && path[at] != front->apart.earlier && IsOp(*path[at - 1]->producer, "Reshape") &&
           SameWidth(path[at], path[at - 1])) {
      --at;
    }
    base_ = path[at];
    const absl::StatusOr<ChannelMap> map = FollowChannels(context_, front->apart.earlier, {base_});
    if (!map.ok()) return std::string(map.status().message());
    const auto width = static_cast<int64_t>(front->apart.order.size());
    if (map->axes.back() != ChannelMap::kChannels || map->trailing.back() != width) {
      return fmt::format("the channels of {} do not lie along its last axis", ValueName(*front->apart.earlier));
    }
    absl::flat_hash_set<int64_t> seen;
    for (const Channel& channel : ListOf(*map)) {
      if (channel.negative || !seen.insert(channel.index).second) {
        return fmt::format("{} is more than channels of {} in some order", ValueName(*front->apart.earlier), ValueName(*base_));
      }
      front->channels.push_back(channel.index);
    }
    return "";
  }

  bool SameWidth(const Value* a, const Value* b) const {
    const Fact& first = context_.facts->Of(a);
    const Fact& second = context_.facts->Of(b);
    return first.rank() > 0 && second.rank() > 0 && first.shape.back().is_number() &&
           context_.dims->Equal(first.shape.back(), second.shape.back());
  }

  // What reads the channels besides the kernel. What reads others of the projection (query, key and value of one product,
  // the part of a head that is not turned) is made to read the new one.
  std::string WhyReadElsewhere(const Front& front) {
    const absl::flat_hash_set<int64_t> turned(front.channels.begin(), front.channels.end());
    bool before_base = true;
    bool apart = false;
    for (size_t i = front.path.size(); i-- > 0;) {
      Value* value = front.path[i];
      if (value == base_) before_base = false;
      if (value->is_graph_output) return fmt::format("{} is an output of the graph", ValueName(*value));
      const Node* next = i > 0 ? front.path[i - 1]->producer : front.kernel;
      for (const Use& use : LiveUses(*value)) {
        if (use.user == next && use.user == front.kernel) continue;
        const bool elsewhere = use.user != next && (before_base || apart);
        if (elsewhere || !ReadsOthers(*use.user, use.user == next ? front.path[i - 1] : nullptr, turned)) {
          return fmt::format("{} reads {} too", OpType(*use.user), ValueName(*value));
        }
      }
      if (value == front.apart.earlier) apart = true;
    }
    return "";
  }

  // Whether all that the node gives, but for `besides`, are other channels than these, or no elements at all.
  bool ReadsOthers(const Node& node, const Value* besides, const absl::flat_hash_set<int64_t>& turned) {
    if (IsOp(node, "Shape")) return true;
    if (!Moves(*context_.facts, node) || node.graph != base_->graph) return false;
    for (Value* output : node.outputs()) {
      if (output == nullptr || output == besides) continue;
      if (output->is_graph_output) return false;
      if (LiveUses(*output).empty()) continue;
      const absl::StatusOr<ChannelMap> map = FollowChannels(context_, output, {base_});
      if (!map.ok()) return false;
      const std::vector<Channel> channels = ListOf(*map);
      if (channels.empty()) return false;
      for (const Channel& channel : channels) {
        if (turned.contains(channel.index)) return false;
      }
    }
    return true;
  }

  // All rotations that read one projection.
  void Write(const std::vector<Front>& fronts) {
    if (!workspace_.MayReplace()) return;
    const LinearView& linear = fronts[0].linear;
    const Fact& fact = context_.facts->Of(fronts[0].base);
    Order order(static_cast<size_t>(fact.shape.back().number()));
    std::iota(order.begin(), order.end(), 0);
    for (const Front& front : fronts) {
      const size_t width = front.apart.order.size();
      for (size_t i = 0; i < front.channels.size(); ++i) {
        const size_t from = i / width * width + static_cast<size_t>(front.apart.order[i % width]);
        order[static_cast<size_t>(front.channels[i])] = front.channels[from];
      }
    }
    Copier copier(workspace_);
    for (Value* constant : {linear.weight, linear.bias}) {
      if (constant == nullptr) continue;
      const int64_t axis = constant == linear.bias || linear.transposed ? 0 : 1;
      const absl::StatusOr<Value*> ordered =
          workspace_.rewriter().Reorder(constant, axis, order, fmt::format("{}_ordered", ValueName(*constant)));
      if (!ordered.ok()) return Say(fronts[0].kernel, std::string(ordered.status().message()));
      InferConstant(*ordered, &workspace_.facts());
      copier.Map(constant, *ordered);
    }
    for (const Value* value : linear.chain) {
      if (value->producer != nullptr) copier.MayCopy(value->producer);
    }
    for (const Front& front : fronts) {
      for (const Value* value : front.path) {
        if (value != front.path.back()) copier.MayCopy(value->producer);
      }
    }
    for (const Front& front : fronts) {
      copier.Map(front.apart.later, copier.Copy(front.apart.earlier));
      Read(front.kernel, 0, copier.Copy(front.kernel->input(0)));
    }
    for (Value* old : copier.copied()) {
      for (const auto& [user, index] : UsersOf(*old)) {
        if (!copier.Copies(user)) Read(user, index, copier.Of(old));
      }
    }
    workspace_.CountReplacement();
  }

  static std::vector<std::pair<Node*, size_t>> UsersOf(const Value& value) {
    std::vector<std::pair<Node*, size_t>> users;
    absl::flat_hash_set<const Node*> seen;
    for (const Use& use : LiveUses(value)) {
      if (!seen.insert(use.user).second) continue;
      for (size_t i = 0; i < use.user->input_count; ++i) {
        if (use.user->input(i) == &value) users.emplace_back(use.user, i);
      }
    }
    return users;
  }

  void Read(Node* node, size_t index, Value* value) {
    workspace_.rewriter().SetInput(node, index, value);
    workspace_.Know(node);
  }

  // --- behind a kernel ---

  std::string FindBack(Back* back) {
    std::vector<Value*> path = {back->kernel->output()};
    while (path.size() <= kMaximumSteps) {
      const Use* use = OnlyUse(*path.back());
      if (use == nullptr || !Moves(*context_.facts, *use->user) || use->user->output_count != 1 ||
          use->user->input(0) != path.back() || use->user->graph != back->kernel->graph) {
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
  std::string FindScores(Back* back) {
    Value* value = back->joined.later;
    back->width = static_cast<int64_t>(back->joined.order.size());
    int from_end = 1;  // of the channels' axis
    for (size_t step = 0; step < kMaximumSteps; ++step) {
      back->path.push_back(value);
      const int rank = context_.facts->Of(value).rank();
      const Use* use = OnlyUse(*value);
      if (use == nullptr) return OtherReader(value);
      Node* node = use->user;
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

  static bool IsScores(const Node& node, size_t operand, int from_end) {
    if (operand > 1) return false;
    if (IsOp(node, "MatMul")) return from_end == (operand == 0 ? 1 : 2);
    return Domain(node) == "npu" && FindLayoutCost(OpType(node)) != nullptr && from_end == 1 &&
           StringAttribute(node, "input_layout") == "BNSD";
  }

  // Over one node; empty where it is one of those.
  std::string Pass(const Node& node, size_t operand, int rank, int* from_end, Back* back) const {
    const Value* value = node.input(operand);
    const std::string refused = fmt::format("{} reads {}", OpType(node), ValueName(*value));
    if (node.output_count != 1 || rank < 1) return refused;
    if (IsOp(node, "Transpose")) {
      const auto perm = IntsAttribute(node, "perm");
      if (!perm.has_value()) return refused;
      const auto at = std::find(perm->begin(), perm->end(), rank - *from_end);
      *from_end = static_cast<int>(perm->end() - at);
      return at == perm->end() ? refused : "";
    }
    if (IsOp(node, "Concat")) {
      const int64_t axis = NormalizeAxis(IntAttribute(node, "axis").value_or(0), rank);
      if (axis != rank - *from_end)
        return fmt::format("{} joins {} with others, as a cache does", OpType(node), ValueName(*value));
      back->width = 0;
      for (size_t i = 0; i < node.input_count; ++i) {
        const Fact& part = context_.facts->Of(node.input(i));
        if (part.rank() != rank || !part.shape[static_cast<size_t>(axis)].is_number()) return refused;
        const int64_t width = part.shape[static_cast<size_t>(axis)].number();
        back->width += width;
        if (i < operand) back->offset += width;
        if (i != operand && node.input(i) == value) return refused;
      }
      return "";
    }
    if (IsOp(node, "Mul") || IsOp(node, "Div")) {
      const Value* factor = node.input(1 - operand);
      if (factor == nullptr || (IsOp(node, "Div") && operand != 0)) return refused;
      const Fact& fact = context_.facts->Of(factor);
      if (!fact.has_rank || context_.facts->Of(node.output()).rank() != rank) return refused;
      const int axis = fact.rank() - *from_end;
      return axis < 0 || fact.shape[static_cast<size_t>(axis)].is(1) ? "" : refused;
    }
    if (IsOp(node, "Cast")) return "";
    const bool keeps = KeepsOrder(*context_.facts, node) || IsOp(node, "Expand");
    if (keeps && operand == 0 && *from_end == 1 && SameWidth(value, node.output())) return "";
    return refused;
  }

  // Both operands of a product: their channels stay as the kernels give them.
  void LeaveApart(const std::vector<Back>& ends) {
    if (ends.size() != 2 || ends[0].operand == ends[1].operand) {
      return Say(ends[0].kernel,
                 "its channels are joined again when the model runs: the other of query and key has those of the model");
    }
    if (ends[0].joined.order != ends[1].joined.order || ends[0].offset != ends[1].offset || ends[0].width != ends[1].width) {
      return Say(ends[0].kernel, "its channels are joined again when the model runs: those of query and key differ");
    }
    if (!workspace_.MayReplace()) return;
    for (const Back& back : ends) {
      Copier copier(workspace_);
      copier.Map(back.joined.later, back.joined.earlier);
      for (const Value* value : back.path) {
        if (value != back.joined.later) copier.MayCopy(value->producer);
      }
      Read(back.scores, back.operand, copier.Copy(back.scores->input(back.operand)));
    }
    workspace_.CountReplacement();
  }

  Workspace& workspace_;
  const FunctionContext context_;
  Value* base_ = nullptr;  // of the rotation that is looked at
  absl::flat_hash_map<const Value*, Site*> site_of_;
  absl::flat_hash_map<const Node*, size_t> projection_of_;
  std::vector<std::vector<Front>> by_projection_;
  absl::flat_hash_map<const Node*, size_t> scores_of_;
  std::vector<std::pair<Node*, std::vector<Back>>> backs_;
};

}  // namespace

absl::Status FoldChannelOrders(Workspace& workspace) {
  if (workspace.ChangesNothing() || workspace.target() == nullptr) return absl::OkStatus();
  return Folder(workspace).Run();
}

}  // namespace ascend_fuse
