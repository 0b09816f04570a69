#include "patterns/analysis/island.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "patterns/analysis/data_movement.h"
#include "patterns/analysis/rebuild.h"

namespace ascend_fuse {
namespace {

constexpr int kMaximumSteps = 12;  // moves of data between the Cast and the value

bool IsHalf(DataType type) { return type == DataType::kFloat16 || type == DataType::kBfloat16; }

// What moves in this node is one value.
bool MovesOneValue(const Node& node) {
  const Movement movement = MovementOf(node);
  return movement != Movement::kNone && movement != Movement::kJoins && node.input(0) != nullptr;
}

// The half-precision value that a Cast widens to become `value`, and the nodes that move it after that, the last one
// first. nullptr where there is none.
Value* BeforeWidening(const FunctionContext& context, Value* value, std::vector<const Node*>* moves) {
  if (context.facts->Of(value).type != DataType::kFloat) return nullptr;
  for (int step = 0; step < kMaximumSteps; ++step) {
    if (Value* source = context.numbering->Source(value); source != nullptr) {
      value = source;
      continue;
    }
    const Node* node = value->producer;
    if (node == nullptr) return nullptr;
    Value* input = node->input(0);
    if (IsOp(*node, "Cast")) return input != nullptr && IsHalf(context.facts->Of(input).type) ? input : nullptr;
    if (!MovesOneValue(*node)) return nullptr;
    moves->push_back(node);
    value = input;
  }
  return nullptr;
}

// The output of a node that the next move, or the reader, takes.
uint32_t OutputRead(const Node& node, const Value* read) {
  const auto outputs = node.outputs();
  return static_cast<uint32_t>(std::find(outputs.begin(), outputs.end(), read) - outputs.begin());
}

}  // namespace

Term InOneType(const FunctionContext& context, Value* value, absl::Span<Value* const> operands) {
  DataType shared = DataType::kUndefined;
  bool any_float = false;
  bool all_half = true;
  for (Value* operand : operands) {
    DataType type = context.facts->Of(operand).type;
    any_float = any_float || type == DataType::kFloat;
    if (type != DataType::kFloat && !IsHalf(type)) return Term::Of(value);
    std::vector<const Node*> moves;
    if (const Value* half = BeforeWidening(context, operand, &moves); half != nullptr) {
      type = context.facts->Of(half).type;
    }
    if (shared == DataType::kUndefined) shared = type;
    all_half = all_half && IsHalf(type) && type == shared;
  }
  const bool is_half = IsHalf(context.facts->Of(value).type);
  if (all_half) {
    if (is_half) return Term::Of(value);
    std::vector<const Node*> moves;
    std::optional<Term> term = Term::Of(BeforeWidening(context, value, &moves));
    for (size_t i = moves.size(); i-- > 0 && term.has_value();) {
      const Node& move = *moves[i];
      std::vector<Term> inputs = {*std::move(term)};
      for (size_t input = 1; input < move.input_count; ++input) inputs.push_back(Term::Of(move.input(input)));
      // Noise may lie between a move and what reads it: then it is the copied output that is read.
      const Value* read = i == 0 ? value : moves[i - 1]->input(0);
      while (read->producer != &move && context.numbering->Source(read) != nullptr) read = context.numbering->Source(read);
      term = Rebuilt(move, std::move(inputs), OutputRead(move, read));
    }
    return term.has_value() ? *std::move(term) : Term::Of(value);
  }
  if (!any_float || !is_half) return Term::Of(value);
  return Term::Node({"", "Cast", {{"to", Term::Of(DataType::kFloat)}}, {Term::Of(value)}, 1});
}

}  // namespace ascend_fuse
