// Operators that a recogniser makes: where a lowering wants one, the recogniser's own pattern stands.
#include <algorithm>

#include "fmt/format.h"
#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {
namespace {

bool MovesData(const Pattern& pattern) {
  return pattern.domain.empty() && (pattern.name == "Reshape" || pattern.name == "Concat" || pattern.name == "Transpose");
}

}  // namespace

bool Builder::Makes(const Rule& rule, const Pattern& pattern, const Expression** emission) {
  if (rule.emit.empty()) return false;
  if (MovesData(pattern)) return false;  // after another operator: the pattern means the movement
  for (const Condition& condition : rule.where) {
    if (Calls(condition.left, "never")) return false;
  }
  const EmitStatement& last = rule.emit.back();
  const Expression& value = last.value;
  if (value.kind != Expression::Kind::kOperator || value.text != pattern.name || value.domain != pattern.domain ||
      last.names[0] != rule.outputs[0]) {
    return false;
  }
  for (const AttributePattern& mention : pattern.attributes) {
    for (const auto& attribute : value.attributes) {
      if (attribute.name != mention.name) continue;
      const Expression& a = mention.value;
      const Expression& b = attribute.value;
      if (a.kind == Expression::Kind::kString && b.kind == Expression::Kind::kString && a.text != b.text) return false;
      if (a.kind == Expression::Kind::kNumber && b.kind == Expression::Kind::kNumber && a.number != b.number) return false;
    }
  }
  for (size_t i = 0; i < std::max(pattern.arguments.size(), value.arguments.size()); ++i) {
    const Pattern* wanted = i < pattern.arguments.size() ? pattern.arguments[i].get() : nullptr;
    const Expression* given = i < value.arguments.size() ? &value.arguments[i] : nullptr;
    const bool is_name = given != nullptr && given->kind == Expression::Kind::kName && given->slot >= 0;
    const Expression* call = is_name ? LetCall(rule, given->slot) : nullptr;
    const bool is_input =
        is_name && (static_cast<size_t>(given->slot) < rule.inputs.size() || GivesOperand(call) || GivesWhole(call));
    if (wanted == nullptr || wanted->kind == Pattern::Kind::kAbsent) {
      if (given != nullptr && (call != nullptr || !is_input || !rule.inputs[static_cast<size_t>(given->slot)].optional))
        return false;
    } else if (given == nullptr) {
      return false;
    } else if (!is_input && wanted->kind != Pattern::Kind::kVariable && wanted->kind != Pattern::Kind::kWildcard) {
      return false;
    }
  }
  *emission = &value;
  return true;
}

const Expression* Builder::Emitted(const Rule& rule, const Expression& name) {
  for (size_t i = 0; i + 1 < rule.emit.size(); ++i) {
    const EmitStatement& line = rule.emit[i];
    if (line.names.size() == 1 && line.names[0] == name.text && line.value.kind == Expression::Kind::kOperator)
      return &line.value;
  }
  return nullptr;
}

bool Builder::DeliverNode(const Pattern& pattern, Frame* frame, const Slot& value, const Expression& node, Frame* inner) {
  if (pattern.kind == Pattern::Kind::kVariable) {
    const size_t slot = static_cast<size_t>(pattern.slot);
    const int statement = frame->scope->statement[slot];
    if (frame->slots[slot].kind != Slot::Kind::kUnbound || statement < 0) return DeliverTo(pattern, frame, value);
    frame->slots[slot] = value;
    return DeliverNode(*frame->rule->match[static_cast<size_t>(statement)].pattern, frame, value, node, inner);
  }
  if (pattern.kind != Pattern::Kind::kOperator || pattern.name != node.text ||
      pattern.arguments.size() != node.arguments.size()) {
    return Fail("another operator than the emission writes");
  }
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    Slot operand;
    if (!BuildGhost(node.arguments[i], inner, &operand) || !DeliverTo(*pattern.arguments[i], frame, operand)) return false;
  }
  return true;
}

bool Builder::GivesOperand(const Expression* call) {
  return call != nullptr && (call->text == "rotation_source" || call->text == "turned_part" ||
                             (call->text == "norm_weight" && call->arguments[0].kind == Expression::Kind::kName));
}

bool Builder::GivesWhole(const Expression* call) {
  return call != nullptr && (call->text == "joined_source" || call->text == "part_whole");
}

const Expression* Builder::LetCall(const Rule& rule, int slot) {
  for (const Condition& condition : rule.where) {
    if (condition.relation == Condition::Relation::kLet && condition.left.slot == slot &&
        condition.right.kind == Expression::Kind::kCall) {
      return &condition.right;
    }
  }
  return nullptr;
}

bool Builder::BuildMade(const Pattern& pattern, Frame* frame, const Rule& rule, const Expression& emission,
                        const std::string& path, Slot* result) {
  if (stack_.size() > 3) return Fail("recognisers of bounded depth");
  stack_.push_back(&rule);
  Frame* inner = NewFrame(&library_, &rule, &rule.scope, path + kMade + rule.name);
  std::vector<std::pair<const Pattern*, const Expression*>> later;
  for (size_t i = 0; i < emission.arguments.size(); ++i) {
    const Pattern* wanted = i < pattern.arguments.size() ? pattern.arguments[i].get() : nullptr;
    const Expression& given = emission.arguments[i];
    int slot = given.kind == Expression::Kind::kName ? given.slot : kUnknown;
    if (const Expression* call = slot >= 0 ? LetCall(rule, slot) : nullptr; call != nullptr && wanted != nullptr) {
      if (GivesOperand(call)) {
        // The weight that the norm has, or the one of ones where it has none.
        if (call->text != "norm_weight" || random_.Chance(70)) slot = call->arguments[0].slot;
      } else if (GivesWhole(call)) {
        Slot whole;
        if (!Build(*wanted, frame, &whole)) return false;
        if (whole.kind != Slot::Kind::kValue) return Fail("a whole that is not a value");
        called_[{call, inner}] = Result::Value(whole.value);
        continue;
      }
    }
    const bool is_input = slot >= 0 && static_cast<size_t>(slot) < rule.inputs.size();
    if (!is_input) {
      if (wanted != nullptr && wanted->kind != Pattern::Kind::kAbsent) later.emplace_back(wanted, &given);
      continue;
    }
    Closure& closure = inner->closures[static_cast<size_t>(slot)];
    if (wanted == nullptr || wanted->kind == Pattern::Kind::kAbsent) {
      closure.absent = true;
    } else {
      closure.pattern = wanted;
      closure.frame = frame;
    }
  }
  const bool built = BuildRule(inner);
  stack_.pop_back();
  if (!built) return false;
  *result = inner->slots[static_cast<size_t>(rule.scope.Find(rule.outputs[0]))];
  for (const auto& [wanted, given] : later) {
    Slot value;
    if (given->kind == Expression::Kind::kName && given->slot >= 0) {
      value = inner->slots[static_cast<size_t>(given->slot)];
      if (const Expression* sum = Emitted(rule, *given); sum != nullptr && value.kind == Slot::Kind::kValue) {
        if (!DeliverNode(*wanted, frame, value, *sum, inner)) return false;
        continue;
      }
    } else if (!BuildGhost(*given, inner, &value)) {
      return false;
    }
    if (!DeliverTo(*wanted, frame, value)) return false;
  }
  for (const AttributePattern& mention : pattern.attributes) {
    for (const auto& attribute : emission.attributes) {
      if (attribute.name != mention.name || mention.value.kind == Expression::Kind::kWildcard) continue;
      const Slot given = OfExpression(attribute.value, inner);
      if (mention.value.kind == Expression::Kind::kName && mention.value.slot >= 0 &&
          frame->slots[static_cast<size_t>(mention.value.slot)].kind == Slot::Kind::kUnbound) {
        frame->slots[static_cast<size_t>(mention.value.slot)] = given;
      } else {
        equal_.emplace_back(OfExpression(mention.value, frame), given);
      }
    }
  }
  return true;
}

}  // namespace ascend_fuse::backwards
