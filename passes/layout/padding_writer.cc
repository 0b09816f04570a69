#include "passes/layout/padding_writer.h"

#include <algorithm>
#include <string_view>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "passes/core/node_inserter.h"
#include "passes/layout/moving_nodes.h"

namespace ascend_fuse {
namespace {

absl::Status No(std::string_view clause) { return absl::FailedPreconditionError(std::string(clause)); }

}  // namespace

absl::StatusOr<PaddedHeads> PaddingWriter::Write() {
  std::vector<const Node*> nodes(plan_.nodes.begin(), plan_.nodes.end());
  SortInOrder(&nodes);
  for (const Node* node : nodes) {
    RETURN_IF_ERROR(WriteNode(node));
  }
  for (const Node* shape : plan_.shapes) WriteShape(shape);
  for (const Node* node : nodes) {
    const bool of_constant = node->output_count > 0 && IsMadeOfConstant(facts_, node->output());
    if (!node->dead && !of_constant) return No(fmt::format("{} '{}' is still needed", OpType(*node), Label(*node)));
  }
  std::sort(result_.weights.begin(), result_.weights.end());
  result_.weights.erase(std::unique(result_.weights.begin(), result_.weights.end()), result_.weights.end());
  result_.sliced = plan_.sliced;
  return std::move(result_);
}

absl::Status PaddingWriter::WriteNode(const Node* node) {
  const std::vector<ZeroPadding> outputs = plan_.OutputsOf(*node, facts_);
  ASSIGN_OR_RETURN(NewNode plan, node == plan_.attention
                                     ? PlanOf(*node)
                                     : PaddedNode(*node, outputs, plan_.PaddingOfFirst(*node, facts_), workspace_));
  for (size_t i = 0; i < node->input_count; ++i) {
    const auto made = made_.find(node->input(i));
    // Other readers of a turned weight keep it.
    const bool wanted = made != made_.end() && (plan_.wants.contains({node, i}) || !IsMadeOfConstant(facts_, node->input(i)));
    if (wanted) plan.inputs[i] = made->second;
    const auto constant = plan_.constants.find({node, i});
    if (constant == plan_.constants.end()) continue;
    ASSIGN_OR_RETURN(plan.inputs[i], PaddedConstant(node->input(i), constant->second.first, constant->second.second));
  }
  const bool slices = node == plan_.attention && plan_.sliced;
  if (!slices && std::none_of(outputs.begin(), outputs.end(), IsPadded)) {
    const Node* written = workspace_.rewriter().ReplaceNode(*node, plan);
    workspace_.Refresh(written);
    if (node == plan_.attention) result_.attention = written;
    return absl::OkStatus();
  }
  plan.keep_name = plan.keep_name && !IsMadeOfConstant(facts_, node->output());  // which other layers may read
  const Node* written =
      workspace_.rewriter().Insert(plan, node->output_count, node->graph, fmt::format("{}_padded", ValueName(*node->output())));
  workspace_.Refresh(written);
  if (node == plan_.attention) result_.attention = written;
  result_.wider.emplace(node, written);
  if (slices) return WriteSlice(written->output());
  for (size_t i = 0; i < node->output_count; ++i) {
    if (node->output(i) == nullptr) continue;
    made_[node->output(i)] = written->output(i);
    if (!IsPadded(outputs[i])) Redirect(*node->output(i), written->output(i));
  }
  return absl::OkStatus();
}

// The result as it was, of the one with zeros.
absl::Status PaddingWriter::WriteSlice(const Value* padded) {
  const Value* result = plan_.attention->output();
  const int64_t size = facts_.dims().Resolve(facts_.Of(result).shape[3]).number();
  NewNode slice;
  slice.op_type = "Slice";
  slice.name = fmt::format("{}_slice", ValueName(*result));
  slice.inputs = {padded};
  if (workspace_.model().OpsetVersion() >= 10) {
    NodeInserter inserter(workspace_, result->graph, ValueName(*result));
    for (const int64_t number : {int64_t{0}, size, int64_t{3}}) slice.inputs.push_back(inserter.Numbers({number}));
  } else {
    slice.attributes = {Attribute::Ints("starts", {0}), Attribute::Ints("ends", {size}), Attribute::Ints("axes", {3})};
  }
  workspace_.Refresh(workspace_.rewriter().ReplaceValue(result, slice));
  return absl::OkStatus();
}

// What reads a part that is as it was reads the new one.
void PaddingWriter::Redirect(const Value& old, const Value* now) {
  std::vector<std::pair<const Node*, size_t>> uses;
  for (const Use& use : LiveUses(old)) {
    if (!plan_.nodes.contains(use.user)) uses.emplace_back(use.user, use.index);
  }
  for (const auto& [user, index] : uses) {
    workspace_.rewriter().SetInput(user, index, now);
    workspace_.Refresh(user);
  }
}

// The dims of a value that is padded now are those that it had.
void PaddingWriter::WriteShape(const Node* shape) {
  if (shape->dead) return;
  const Value* value = shape->input(0);
  const auto made = made_.find(value);
  if (made == made_.end()) return;
  const ZeroPadding padding = plan_.PaddingOf(value, facts_);
  const auto dims = facts_.Of(value).shape;
  const auto rank = static_cast<int64_t>(padding.size());
  const int64_t start = ClampBound(IntAttribute(*shape, "start").value_or(0), rank);
  const int64_t end = ClampBound(IntAttribute(*shape, "end").value_or(rank), rank);
  std::vector<int64_t> less;
  for (int64_t i = start; i < end; ++i) {
    const Places& places = padding[static_cast<size_t>(i)];
    const Dim dim = facts_.dims().Resolve(dims[static_cast<size_t>(i)]);
    less.push_back(places.empty() ? 0 : dim.number() - static_cast<int64_t>(places.size()));
  }
  if (std::all_of(less.begin(), less.end(), [](int64_t number) { return number == 0; }) || OtherDimsAlone(*shape, less)) {
    workspace_.rewriter().SetInput(shape, 0, made->second);
    workspace_.Refresh(shape);
    return;
  }
  NewNode now = PlanOf(*shape);
  now.inputs = {made->second};
  const Node* written = workspace_.rewriter().Insert(now, 1, shape->graph, fmt::format("{}_padded", ValueName(*shape->output())));
  workspace_.Refresh(written);
  NewNode add;
  add.op_type = "Add";
  add.name = fmt::format("{}_add", ValueName(*shape->output()));
  add.inputs = {written->output(), NodeInserter(workspace_, *shape).Numbers(less)};
  workspace_.Refresh(workspace_.rewriter().ReplaceValue(shape->output(), add));
}

// Whether all that is read of the shape is one dim each, and none that is padded.
bool PaddingWriter::OtherDimsAlone(const Node& shape, const std::vector<int64_t>& less) const {
  if (shape.output()->is_graph_output) return false;
  for (const Use& use : LiveUses(*shape.output())) {
    const Movement* movement = facts_.MovementOf(use.user->output());
    const MovedPart* part = movement != nullptr && movement->kind == MovementKind::kPicks ? movement->only() : nullptr;
    const Fact& picked = facts_.Of(use.user->output());
    const bool one = picked.rank() == 0 || (picked.rank() == 1 && picked.shape[0].is(1));
    if (part == nullptr || !part->known || part->operand != use.index || part->axes.size() != 1 || !one) return false;
    const Dim at = part->axes[0].kind != AxisSource::Kind::kRead ? part->axes[0].start : Dim();
    const auto count = static_cast<int64_t>(less.size());
    if (!at.is_number() || at.number() < 0 || at.number() >= count || less[static_cast<size_t>(at.number())] != 0) return false;
  }
  return true;
}

absl::StatusOr<const Value*> PaddingWriter::PaddedConstant(const Value* constant, size_t axis, const Places& places) {
  auto& known = padded_[{constant, axis}];
  for (const auto& [own, value] : known) {
    if (own == places) return value;
  }
  absl::StatusOr<const Value*> padded =
      workspace_.rewriter().Reorder(constant, static_cast<int64_t>(axis), places, fmt::format("{}_padded", ValueName(*constant)));
  if (!padded.ok()) return padded.status();
  InferConstant(*padded, &facts_);
  known.emplace_back(places, *padded);
  result_.weights.emplace_back(ValueName(*constant));
  return padded;
}

}  // namespace ascend_fuse
