// The walk over the patterns of a rule: every operator, alternative and definition becomes nodes, or a
// choice.
#include <algorithm>
#include <iterator>

#include "fmt/format.h"
#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

bool Builder::BuildRule(Frame* frame) {
  Slot slot;
  Pattern output;
  output.kind = Pattern::Kind::kVariable;
  output.name = frame->rule->outputs[0];
  output.slot = frame->scope->Find(output.name);
  output.position = frame->rule->position;
  if (!Build(output, frame, &slot)) return false;
  for (const MatchStatement& statement : frame->rule->match) {
    for (const std::string& name : statement.names) {
      if (name == "_") continue;
      Pattern line;
      line.kind = Pattern::Kind::kVariable;
      line.name = name;
      line.slot = frame->scope->Find(name);
      line.position = statement.position;
      if (!Build(line, frame, &slot)) return false;
    }
  }
  for (const Condition& condition : frame->rule->where) conditions_.push_back({frame, &condition, false});
  // What a lowering writes as an argument must have been used, or the recognised operator does not have it.
  for (size_t i = 0; i < frame->rule->inputs.size(); ++i) {
    const Closure& closure = frame->closures[i];
    if (frame->slots[i].kind != Slot::Kind::kUnbound) continue;
    if (closure.pattern != nullptr && !closure.absent)
      return Fail(fmt::format("the operand {} is not used", frame->rule->inputs[i].name));
    if (!frame->rule->inputs[i].optional) return Fail(fmt::format("the input {} is not used", frame->rule->inputs[i].name));
    frame->slots[i] = Slot::Of(Slot::Kind::kAbsent);
  }
  for (const Condition& condition : frame->rule->where) {
    if (condition.relation == Condition::Relation::kLet && condition.left.slot >= 0) {
      if (!Let(condition, frame)) return false;
    }
  }
  return true;
}

bool Builder::Build(const Pattern& pattern, Frame* frame, Slot* result) {
  if (++depth_ > 200) return Fail("a graph of bounded depth");
  struct Guard {
    int* depth;
    ~Guard() { --*depth; }
  } guard{&depth_};
  switch (pattern.kind) {
    case Pattern::Kind::kVariable:
      return BuildVariable(pattern, frame, result);
    case Pattern::Kind::kWildcard:
      *result = Slot::Value(NewValue("any"));
      return true;
    case Pattern::Kind::kAbsent:
      *result = Slot::Of(Slot::Kind::kAbsent);
      return true;
    case Pattern::Kind::kLiteral: {
      const int value = NewValue("constant");
      GraphValue& made = values_[static_cast<size_t>(value)];
      made.scalar = true;
      made.number = pattern.number;
      made.number_fixed = true;
      *result = Slot::Value(value);
      return true;
    }
    case Pattern::Kind::kAlternatives: {
      std::vector<std::string> names;
      for (size_t i = 0; i < pattern.arguments.size(); ++i) {
        const Pattern& argument = *pattern.arguments[i];
        names.push_back(fmt::format("{} {}", i + 1, argument.name));
      }
      const int option = Choose(Place(frame->path, pattern.position, "|"), names);
      return Build(*pattern.arguments[static_cast<size_t>(option)], frame, result);
    }
    case Pattern::Kind::kDefinition:
      return BuildDefinition(pattern, frame, result);
    case Pattern::Kind::kOperator:
      return BuildOperator(pattern, frame, nullptr, result);
  }
  return false;
}

bool Builder::BuildVariable(const Pattern& pattern, Frame* frame, Slot* result) {
  const size_t slot = static_cast<size_t>(pattern.slot);
  if (frame->slots[slot].kind != Slot::Kind::kUnbound) {
    *result = frame->slots[slot];
    return true;
  }
  const Closure closure = frame->closures[slot];
  if (closure.absent) return Fail("an operand that must be absent");
  if (closure.pattern != nullptr) {
    if (!Build(*closure.pattern, closure.frame, result)) return false;
    frame->slots[slot] = *result;
    return true;
  }
  const int statement = frame->scope->statement[slot];
  if (statement >= 0 && frame->rule != nullptr) {
    const MatchStatement& line = frame->rule->match[static_cast<size_t>(statement)];
    if (line.names.size() > 1) {
      if (line.pattern->kind != Pattern::Kind::kOperator) return Fail("several outputs of no operator");
      Slot first;
      if (!BuildOperator(*line.pattern, frame, &line, &first)) return false;
      *result = frame->slots[slot];
      return true;
    }
    if (!Build(*line.pattern, frame, result)) return false;
    frame->slots[slot] = *result;
    return true;
  }
  *result = Slot::Value(NewValue(pattern.name));
  frame->slots[slot] = *result;
  return true;
}

bool Builder::BuildDefinition(const Pattern& pattern, Frame* frame, Slot* result) {
  const Definition& definition = frame->rules->definitions()[static_cast<size_t>(pattern.definition)];
  std::vector<std::string> names;
  for (size_t i = 0; i < definition.alternatives.size(); ++i) {
    const SourcePosition& position = definition.alternatives[i].pattern->position;
    names.push_back(fmt::format("{} (line {})", i + 1, position.line));
  }
  if (pattern.optional) names.emplace_back("left out");
  const std::string key = Place(frame->path, pattern.position, pattern.name + (pattern.optional ? "?" : ""));
  std::vector<bool> possible(names.size(), true);
  for (size_t i = 1; pattern.optional && i < pattern.arguments.size(); ++i) {
    // An operand that a lowering wants must be taken, one that it forbids cannot be.
    const Pattern& argument = *pattern.arguments[i];
    if (argument.kind != Pattern::Kind::kVariable) continue;
    const Closure& closure = frame->closures[static_cast<size_t>(argument.slot)];
    const bool unbound = frame->slots[static_cast<size_t>(argument.slot)].kind == Slot::Kind::kUnbound;
    if (closure.absent) {
      possible.assign(names.size(), false);
      possible.back() = true;
    } else if (closure.pattern != nullptr && unbound && !definition.parameters[i].has_default) {
      possible.back() = false;
    }
  }
  // The ends of an island have to meet: where every operand decides by itself, hardly a graph has one type. Most graphs
  // have no island.
  if (pattern.optional && pattern.name == "widen" && !islands_) {
    possible.assign(names.size(), false);
    possible.back() = true;
  }
  const int choice = Choose(key, names, possible);
  if (choice < 0) return Fail("no option fits");
  const size_t option = static_cast<size_t>(choice);
  const bool bare = option == definition.alternatives.size();
  Frame* inner = NewFrame(frame->rules, nullptr, &definition.scope, frame->path);
  for (size_t i = 0; i < pattern.arguments.size(); ++i) {
    inner->closures[i].pattern = pattern.arguments[i].get();
    inner->closures[i].frame = frame;
  }
  if (bare) {
    if (!Build(*pattern.arguments[0], frame, result)) return false;
    inner->slots[0] = *result;
  } else {
    const Definition::Alternative& alternative = definition.alternatives[option];
    if (!Build(*alternative.pattern, inner, result)) return false;
    if (definition.result_slot >= 0) inner->slots[static_cast<size_t>(definition.result_slot)] = *result;
    for (const Condition& condition : alternative.conditions) {
      conditions_.push_back({inner, &condition, false});
      if (condition.relation == Condition::Relation::kLet && !Let(condition, inner)) return false;
    }
  }
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    if (inner->slots[i].kind != Slot::Kind::kUnbound || !definition.parameters[i].has_default) continue;
    if (!Deliver(inner, i, OfExpression(definition.parameters[i].default_value, inner))) return false;
  }
  return true;
}

bool Builder::Let(const Condition& condition, Frame* frame) {
  const size_t slot = static_cast<size_t>(condition.left.slot);
  if (frame->slots[slot].kind != Slot::Kind::kUnbound) {
    if (condition.right.kind != Expression::Kind::kOperator) {
      equal_.emplace_back(frame->slots[slot], OfExpression(condition.right, frame));
    }
    return true;
  }
  Slot value;
  if (condition.right.kind == Expression::Kind::kOperator) {
    if (!BuildGhost(condition.right, frame, &value)) return false;
  } else {
    NoteScalars(condition.right, frame);
    value = OfExpression(condition.right, frame);
  }
  return Deliver(frame, slot, value);
}

bool Builder::BuildGhost(const Expression& expression, Frame* frame, Slot* result) {
  if (expression.kind == Expression::Kind::kName && expression.slot >= 0) {
    *result = frame->slots[static_cast<size_t>(expression.slot)];
    return result->kind != Slot::Kind::kUnbound || Fail("a name without a value");
  }
  if (expression.kind != Expression::Kind::kOperator) {
    *result = Slot::Of(Slot::Kind::kOpaque);
    return true;
  }
  GraphNode node;
  node.domain = expression.domain;
  node.op = expression.text;
  node.schema = FindSchema(node.domain, node.op, opset_);
  node.ghost = true;
  for (const auto& attribute : expression.attributes) {
    const std::optional<Result> value = Evaluate(attribute.value, frame);
    Parameter parameter;
    parameter.name = attribute.name;
    if (value.has_value()) FillParameter(*value, &parameter);
    node.parameters.push_back(parameter);
  }
  for (const Expression& argument : expression.arguments) {
    Slot input;
    if (!BuildGhost(argument, frame, &input)) return false;
    node.inputs.push_back(input.kind == Slot::Kind::kValue ? input.value : kUnknown);
  }
  *result = Slot::Value(AddNode(std::move(node), 1));
  return true;
}

bool Builder::Deliver(Frame* frame, size_t slot, const Slot& value) {
  if (frame->slots[slot].kind != Slot::Kind::kUnbound) {
    equal_.emplace_back(frame->slots[slot], value);
    return true;
  }
  frame->slots[slot] = value;
  const Closure closure = frame->closures[slot];
  return closure.pattern == nullptr || DeliverTo(*closure.pattern, closure.frame, value);
}

bool Builder::DeliverTo(const Pattern& pattern, Frame* frame, const Slot& value) {
  switch (pattern.kind) {
    case Pattern::Kind::kVariable: {
      const size_t slot = static_cast<size_t>(pattern.slot);
      if (frame->slots[slot].kind == Slot::Kind::kUnbound && frame->closures[slot].absent)
        return Fail("an operand that must be absent");
      if (frame->slots[slot].kind == Slot::Kind::kUnbound && frame->scope->statement[slot] >= 0)
        return Fail("a value that a line of the rule computes");
      return Deliver(frame, slot, value);
    }
    case Pattern::Kind::kWildcard:
      return true;
    case Pattern::Kind::kLiteral: {
      Slot number = Slot::Of(Slot::Kind::kNumber);
      number.number = pattern.number;
      equal_.emplace_back(number, value);
      return true;
    }
    case Pattern::Kind::kDefinition: {
      if (!pattern.optional) return Fail("a definition where a thought-of value stands");
      const Definition& definition = frame->rules->definitions()[static_cast<size_t>(pattern.definition)];
      Frame* inner = NewFrame(frame->rules, nullptr, &definition.scope, frame->path);
      for (size_t i = 0; i < pattern.arguments.size(); ++i) {
        inner->closures[i].pattern = pattern.arguments[i].get();
        inner->closures[i].frame = frame;
      }
      inner->slots[0] = value;
      if (!DeliverTo(*pattern.arguments[0], frame, value)) return false;
      for (size_t i = 1; i < definition.parameters.size(); ++i) {
        if (!definition.parameters[i].has_default) continue;
        if (!Deliver(inner, i, OfExpression(definition.parameters[i].default_value, inner))) return false;
      }
      return true;
    }
    default:
      return Fail("a thought-of value where the pattern wants a node");
  }
}

void Builder::FillParameter(const Result& value, Parameter* parameter) {
  switch (value.kind) {
    case Result::Kind::kNumber:
      parameter->kind = Parameter::Kind::kNumber;
      parameter->number = value.number;
      break;
    case Result::Kind::kText:
      parameter->kind = Parameter::Kind::kText;
      parameter->text = value.text;
      break;
    case Result::Kind::kType:
      parameter->kind = Parameter::Kind::kType;
      parameter->type = value.type;
      break;
    case Result::Kind::kList:
      parameter->kind = Parameter::Kind::kInts;
      for (const Result& item : value.list) parameter->ints.push_back(static_cast<int64_t>(item.number));
      break;
    default:
      break;
  }
}

bool Builder::BuildAttributes(const Pattern& pattern, Frame* frame, GraphNode* node) {
  for (const AttributePattern& mention : pattern.attributes) {
    Parameter parameter;
    parameter.name = mention.name;
    const Expression& value = mention.value;
    if (value.kind == Expression::Kind::kName && value.slot >= 0 &&
        Named(frame, static_cast<size_t>(value.slot)).kind == Slot::Kind::kUnbound) {
      Slot bound;
      Sample(*node->schema, &parameter, &bound);
      if (!Deliver(frame, static_cast<size_t>(value.slot), bound)) return false;
    } else if (value.kind != Expression::Kind::kWildcard) {
      const std::optional<Result> known = Evaluate(value, frame);
      if (!known.has_value()) return Fail(fmt::format("the attribute {} is not known yet", mention.name));
      FillParameter(*known, &parameter);
    } else if (const SchemaAttribute* row = node->schema->FindAttribute(mention.name);
               row != nullptr && ((row->required && row->name != "to" && row->name != "axis") || row->name == "activation")) {
      Slot any;
      Sample(*node->schema, &parameter, &any);
    }
    node->parameters.push_back(parameter);
  }
  return true;
}

bool Builder::BuildOperator(const Pattern& pattern, Frame* frame, const MatchStatement* line, Slot* result) {
  const Schema* schema = FindSchema(pattern.domain, pattern.name, opset_);
  if (schema != nullptr && schema->deprecated) schema = nullptr;
  if (pattern.name == "Celu" && type_ != DataType::kFloat) return Fail("the type of Celu");  // ONNX has no other for it
  for (const OperandShapes& row : OperandTable()) {
    if (row.domain == pattern.domain && row.op == pattern.name && opset_ < row.opset) schema = nullptr;
  }
  std::vector<std::string> names;
  std::vector<const Rule*> makers;
  std::vector<const Expression*> emissions;
  if (line == nullptr) {
    for (const Rule& rule : library_.rules()) {
      const Expression* emission = nullptr;
      if (!Makes(rule, pattern, &emission)) continue;
      if (std::find(stack_.begin(), stack_.end(), &rule) != stack_.end()) continue;
      makers.push_back(&rule);
      emissions.push_back(emission);
      names.push_back("as " + rule.name);
    }
  }
  // At every opset the same list, or the choices could not be counted: what is not there fails.
  const bool exists = std::any_of(std::begin(kOpsets), std::end(kOpsets), [&](int opset) {
    const Schema* at = FindSchema(pattern.domain, pattern.name, opset);
    return at != nullptr && !at->deprecated;
  });
  if (exists) names.emplace_back("as the operator itself");
  if (names.empty()) return Fail(fmt::format("nothing makes {}", pattern.name));
  const std::string key = Place(frame->path, pattern.position, pattern.name);
  std::vector<bool> possible(names.size(), true);
  if (exists) possible.back() = schema != nullptr;
  const int choice = Choose(key, names, possible);
  if (choice < 0) return Fail(fmt::format("{} does not exist at opset {}", pattern.name, opset_));
  const size_t option = static_cast<size_t>(choice);
  if (option < makers.size()) {
    return BuildMade(pattern, frame, *makers[option], *emissions[option], key, result);
  }
  if (schema == nullptr) {
    return Fail(fmt::format("{} does not exist at opset {}", pattern.name, opset_));
  }
  GraphNode node;
  node.domain = pattern.domain;
  node.op = pattern.name;
  node.schema = schema;
  if (!BuildAttributes(pattern, frame, &node)) return false;
  if (node.op == "Split") node.half = 0;
  for (size_t i = 0; i < pattern.arguments.size(); ++i) {
    const Pattern& argument = *pattern.arguments[i];
    // An optional operand that a lowering forbids.
    if (argument.kind == Pattern::Kind::kVariable && i < schema->inputs.size() && schema->inputs[i].optional &&
        frame->closures[static_cast<size_t>(argument.slot)].absent) {
      frame->slots[static_cast<size_t>(argument.slot)] = Slot::Of(Slot::Kind::kAbsent);
      node.inputs.push_back(kUnknown);
      continue;
    }
    Slot input;
    if (!Build(argument, frame, &input)) return false;
    if (input.kind == Slot::Kind::kValue) {
      node.inputs.push_back(input.value);
    } else if (input.kind == Slot::Kind::kAbsent) {
      node.inputs.push_back(kUnknown);
    } else {
      return Fail("an operand that is not a value");
    }
  }
  const size_t outputs = line != nullptr ? line->names.size() : node.op == "Split" ? 2 : 1;
  const int first = AddNode(std::move(node), outputs);
  *result = Slot::Value(first);
  if (line != nullptr) {
    for (size_t i = 0; i < line->names.size(); ++i) {
      if (line->names[i] == "_") continue;
      frame->slots[static_cast<size_t>(frame->scope->Find(line->names[i]))] = Slot::Value(first + static_cast<int>(i));
    }
  }
  return true;
}

void Builder::Sample(const Schema& schema, Parameter* parameter, Slot* bound) {
  const SchemaAttribute* row = schema.FindAttribute(parameter->name);
  if (parameter->name == "axes") {
    // Of a norm: the last ones mostly, or one alone.
    static const std::vector<std::vector<int64_t>> kAxes = {{-1}, {-1}, {-1}, {-1}, {-2, -1}, {-3, -2, -1}, {-2}, {-3}};
    parameter->kind = Parameter::Kind::kInts;
    parameter->ints = random_.Pick(kAxes);
  } else if (parameter->name == "perm") {
    // Of one that is undone by itself: the first axis and the last exchanged.
    static const std::vector<std::vector<int64_t>> kPerms = {{3, 1, 2, 0}, {3, 1, 2, 0}, {2, 1, 0}};
    parameter->kind = Parameter::Kind::kInts;
    parameter->ints = random_.Pick(kPerms);
  } else if (parameter->name == "epsilon") {
    parameter->kind = Parameter::Kind::kNumber;
    parameter->number = random_.Chance(60) ? 1e-6 : 1e-5;
  } else if (parameter->name == "min") {
    // What keeps a length from zero.
    parameter->kind = Parameter::Kind::kNumber;
    parameter->number = 1e-12;
  } else if (parameter->name == "approximate") {
    parameter->kind = Parameter::Kind::kText;
    parameter->text = random_.Chance(50) ? "none" : "tanh";
  } else if (parameter->name == "scale") {
    if (random_.Chance(50)) {
      parameter->kind = Parameter::Kind::kNumber;
      parameter->number = 0.25;
    }
  } else if (parameter->name == "alpha" || parameter->name == "beta") {
    parameter->kind = Parameter::Kind::kNumber;
    static const std::vector<double> kSlopes = {1, 0.5, 2, 1.5};
    parameter->number = row != nullptr && row->has_default && random_.Chance(40) ? static_cast<double>(row->default_value.f)
                                                                                 : random_.Pick(kSlopes);
  } else if (parameter->name == "interleaved" || (row != nullptr && row->required && row->type == AttributeType::kInt)) {
    static const std::vector<double> kCounts = {1, 2, 2, 4};
    parameter->kind = Parameter::Kind::kNumber;
    parameter->number = parameter->name == "interleaved" ? random_.Below(2) : random_.Pick(kCounts);
  } else if (parameter->name == "activation") {
    parameter->kind = Parameter::Kind::kText;
    parameter->text = "Relu";
  } else if (row != nullptr && row->has_default) {
    if (row->type == AttributeType::kInt) {
      parameter->kind = Parameter::Kind::kNumber;
      parameter->number = static_cast<double>(row->default_value.i);
    } else if (row->type == AttributeType::kFloat) {
      parameter->kind = Parameter::Kind::kNumber;
      parameter->number = row->default_value.f;
    } else if (row->type == AttributeType::kString) {
      parameter->kind = Parameter::Kind::kText;
      parameter->text = std::string(row->default_value.s);
    }
  }
  if (parameter->kind == Parameter::Kind::kText) {
    *bound = Slot::Of(Slot::Kind::kText);
    bound->text = parameter->text;
  } else if (parameter->kind == Parameter::Kind::kNumber) {
    *bound = Slot::Of(Slot::Kind::kNumber);
    bound->number = parameter->number;
  } else if (parameter->kind == Parameter::Kind::kInts) {
    *bound = Slot::Of(Slot::Kind::kList);
    bound->list = parameter->ints;
  } else {
    *bound = Slot::Of(Slot::Kind::kOpaque);
  }
}

}  // namespace ascend_fuse::backwards
