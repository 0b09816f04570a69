// Heads: an attention whose operands are rows of all heads that a Reshape takes apart, and whose result a Reshape puts together,
// reads and gives the rows themselves: input_layout BSH in place of BSND, which cost the same (docs/costs.md).
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/movement/movement.h"
#include "passes/core/call_of.h"
#include "passes/layout/attention_layout.h"
#include "passes/layout/taken_orders.h"
#include "passes/tidy/kinds.h"
#include "patterns/operators/layout_choice.h"

namespace ascend_fuse {
namespace {

// Whether `rows` [B, S, N * D] has the elements of `heads` [B, S, N, D] in their order.
bool AreRowsOf(const TidyContext& context, const Fact& rows, const Fact& heads) {
  constexpr int kRows = 3, kHeads = 4;
  if (rows.rank() != kRows || heads.rank() != kHeads) return false;
  const DimTable& dims = context.dims();
  const Dim count = dims.Resolve(heads.shape[2]), width = dims.Resolve(heads.shape[3]), row = dims.Resolve(rows.shape[2]);
  return dims.Equal(rows.shape[0], heads.shape[0]) && dims.Equal(rows.shape[1], heads.shape[1]) && count.is_number() &&
         width.is_number() && row.is(count.number() * width.number());
}

// What a Reshape takes apart to the value; nullptr where nothing does.
const Value* RowsBefore(const TidyContext& context, const Value& heads) {
  const Movement* const movement = context.facts().MovementOf(&heads);
  const Node* const node = heads.producer;
  if (movement == nullptr || movement->kind != MovementKind::kKeepsOrder || node == nullptr || node->graph != heads.graph)
    return nullptr;
  const Value* const rows = node->input(0);
  return rows != nullptr && AreRowsOf(context, context.facts().Of(rows), context.facts().Of(&heads)) ? rows : nullptr;
}

// What the only reader of the value puts together of it; nullptr where it does another thing.
const Value* RowsAfter(const TidyContext& context, const Value& heads) {
  if (!ReadOnce(heads)) return nullptr;
  for (const Use& use : LiveUses(heads)) {
    const Value* const rows = use.user->graph == heads.graph ? use.user->output() : nullptr;
    const Movement* const movement = rows != nullptr ? context.facts().MovementOf(rows) : nullptr;
    if (movement == nullptr || movement->kind != MovementKind::kKeepsOrder || use.index != 0) return nullptr;
    return AreRowsOf(context, context.facts().Of(rows), context.facts().Of(&heads)) ? rows : nullptr;
  }
  return nullptr;
}

}  // namespace

std::optional<Tidied> AskHeads(TidyContext& context, const Node& node) {
  if (!ChoosesLayout(OpType(node)) || StringAttribute(node, "input_layout") != "BSND" || node.output_count != 1)
    return std::nullopt;
  const Target* const target = context.workspace.target();
  const Value* const after = node.output() != nullptr && target != nullptr ? RowsAfter(context, *node.output()) : nullptr;
  if (after == nullptr) return std::nullopt;
  NewNode plan = PlanOf(node);
  const Call before = CallOf(node, context.facts(), fmt::format("npu.{}", OpType(node)));
  Call call = before;
  for (size_t i = 0; i < kAttentionOperands; ++i) {
    const Value* const rows = node.input(i) != nullptr ? RowsBefore(context, *node.input(i)) : nullptr;
    if (rows == nullptr) return std::nullopt;
    plan.inputs[i] = rows;
    const auto& shape = context.facts().Of(rows).shape;
    call.inputs[i].shape.assign(shape.begin(), shape.end());
  }
  for (auto* attributes : {&plan.attributes, &call.attributes}) {
    for (Attribute& attribute : *attributes) {
      if (attribute.name == "input_layout") attribute = Attribute::String("input_layout", "BSH");
    }
  }
  TakenOrders taken(context.workspace.facts(), *target);
  if (!taken.TakesAs(before, call)) return std::nullopt;
  Tidied tidied = Tidied::As(std::move(plan));
  tidied.parts = {after};
  return tidied;
}

}  // namespace ascend_fuse
