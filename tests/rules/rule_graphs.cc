#include "tests/rules/rule_graphs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "fmt/format.h"
#include "ir/infer/facts.h"
#include "ir/onnx/encode.h"
#include "ir/onnx/load.h"
#include "ir/schema.h"

namespace ascend_fuse::testing {
namespace {

using Proto = onnx::TensorProto;

bool Floating(int type) { return type == Proto::FLOAT || type == Proto::FLOAT16; }

// The most negative finite number.
double Lowest(int type) { return type == Proto::FLOAT16 ? -65504.0 : -3.4028234663852886e38; }

onnx::AttributeProto IntAttributeOf(const std::string& name, int64_t value) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}

onnx::AttributeProto IntsAttributeOf(const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute.add_ints(value);
  return attribute;
}

}  // namespace

RuleGraph RuleGraphs::Make(std::mt19937_64* random) {
  random_ = random;
  std::string why;
  // Choices that do not go together are made anew.
  for (int attempt = 0; attempt < 400; ++attempt) {
    graph_ = RuleGraph();
    frames_.clear();
    shapes_.clear();
    names_ = 0;
    depth_ = 0;
    opset_ = Any({17, 17, 17, 18, 20, 23, 24});
    type_ = Chance(0.7) ? Proto::FLOAT : Proto::FLOAT16;
    frames_.push_back(std::make_unique<Frame>());
    top_ = frames_.back().get();
    top_->scope = &rule_.scope;
    top_->conditions = &rule_.where;
    top_->bound.resize(rule_.scope.names.size());
    try {
      ChooseSizes();
      std::vector<Value> outputs;
      for (const std::string& name : rule_.outputs) {
        Pattern variable;
        variable.kind = Pattern::Kind::kVariable;
        variable.name = name;
        variable.slot = rule_.scope.Find(name);
        outputs.push_back(Build(variable, top_, type_));
      }
      for (const Value& value : outputs) {
        auto* output = graph_.model.mutable_graph()->add_output();
        output->set_name(value.name);
        output->mutable_type()->mutable_tensor_type()->set_elem_type(value.type);
        for (int64_t dim : value.shape) {
          output->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(dim);
        }
      }
      graph_.model.set_ir_version(opset_ > 22 ? 11 : 8);
      graph_.model.mutable_graph()->set_name(rule_.name);
      auto* import = graph_.model.add_opset_import();
      import->set_version(opset_);
      for (const std::string& choice : graph_.choices) ++taken_[choice];
      return graph_;
    } catch (const NoGraph& error) {
      why = error.what();
    }
  }
  throw NoGraph(why);
}

// --- choices ---------------------------------------------------------------------------------------------

size_t RuleGraphs::Choose(const std::string& what, size_t count) {
  if (count < 2) return 0;
  size_t best = std::uniform_int_distribution<size_t>(0, count - 1)(*random_);
  if (Chance(0.5)) {  // rather what was seldom taken
    for (size_t i = 0; i < count; ++i) {
      if (taken_[fmt::format("{}:{}", what, i + 1)] < taken_[fmt::format("{}:{}", what, best + 1)]) best = i;
    }
  }
  Note(fmt::format("{}:{}", what, best + 1));
  return best;
}

void RuleGraphs::Note(const std::string& choice) { graph_.choices.insert(choice); }

int64_t RuleGraphs::Any(std::initializer_list<int64_t> numbers) {
  return *(numbers.begin() + std::uniform_int_distribution<size_t>(0, numbers.size() - 1)(*random_));
}

void RuleGraphs::Collect(const Pattern& pattern, std::set<int>* seen, std::set<std::string>* choices) const {
  if (pattern.kind == Pattern::Kind::kAlternatives) {
    for (size_t i = 0; i < pattern.arguments.size(); ++i)
      choices->insert(fmt::format("{}:{}", pattern.position.ToString(), i + 1));
  }
  if (pattern.kind == Pattern::Kind::kDefinition) {
    const Definition& definition = rules_.definitions()[pattern.definition];
    if (pattern.optional) {
      choices->insert(fmt::format("{}? {}:1", definition.name, pattern.position.ToString()));
      choices->insert(fmt::format("{}? {}:2", definition.name, pattern.position.ToString()));
    }
    if (seen->insert(pattern.definition).second) {
      for (size_t i = 0; i < definition.alternatives.size(); ++i) {
        if (definition.alternatives.size() > 1) choices->insert(fmt::format("{}:{}", definition.name, i + 1));
        Collect(*definition.alternatives[i].pattern, seen, choices);
      }
    }
  }
  for (const PatternPointer& argument : pattern.arguments) Collect(*argument, seen, choices);
}

std::set<std::string> RuleGraphs::Choices() const {
  std::set<int> seen;
  std::set<std::string> choices;
  for (const MatchStatement& statement : rule_.match) Collect(*statement.pattern, &seen, &choices);
  return choices;
}

// --- conditions ------------------------------------------------------------------------------------------

bool RuleGraphs::Evaluate(const Expression& expression, Frame* frame, double* number) {
  double left = 0;
  double right = 0;
  switch (expression.kind) {
    case Expression::Kind::kNumber:
      *number = expression.number;
      return true;
    case Expression::Kind::kName:
      if (expression.slot < 0 || frame->bound[expression.slot].kind != Bound::Kind::kNumber) return false;
      *number = frame->bound[expression.slot].number;
      return true;
    case Expression::Kind::kUnary:
      if (!Evaluate(expression.arguments[0], frame, number)) return false;
      *number = -*number;
      return true;
    case Expression::Kind::kBinary:
      if (!Evaluate(expression.arguments[0], frame, &left) || !Evaluate(expression.arguments[1], frame, &right))
        return false;
      *number = expression.text == "+"   ? left + right
                : expression.text == "-" ? left - right
                : expression.text == "*" ? left * right
                                         : left / right;
      return true;
    default:
      return false;
  }
}

void RuleGraphs::Bind(Frame* frame, int slot, double number) {
  frame->bound[slot].kind = Bound::Kind::kNumber;
  frame->bound[slot].number = number;
}

bool RuleGraphs::Unify(const Expression& list, Frame* frame, const std::vector<int64_t>& shape) {
  const bool open = !list.arguments.empty() && list.arguments[0].kind == Expression::Kind::kEllipsis;
  const size_t skip = open ? 1 : 0;
  // [_, _, ..., T, D]: the open part may stand behind the first elements.
  size_t ellipsis = list.arguments.size();
  for (size_t i = 0; i < list.arguments.size(); ++i) {
    if (list.arguments[i].kind == Expression::Kind::kEllipsis) ellipsis = i;
  }
  (void)skip;
  const bool any = ellipsis < list.arguments.size();
  if (any ? shape.size() + 1 < list.arguments.size() : shape.size() != list.arguments.size()) return false;
  for (size_t i = 0; i < list.arguments.size(); ++i) {
    if (i == ellipsis) continue;
    const size_t place = i < ellipsis ? i : shape.size() - (list.arguments.size() - i);
    const Expression& item = list.arguments[i];
    if (item.kind == Expression::Kind::kWildcard) continue;
    double number = 0;
    if (Evaluate(item, frame, &number)) {
      if (number != static_cast<double>(shape[place])) return false;
    } else if (item.kind == Expression::Kind::kName && item.slot >= 0) {
      Bind(frame, item.slot, static_cast<double>(shape[place]));
    } else {
      return false;
    }
  }
  return true;
}

// elements: of the value, for the one dim that may be open; 0 if not known.
bool RuleGraphs::ListOf(const Expression& list, Frame* frame, std::vector<int64_t>* shape, int64_t elements) {
  shape->clear();
  int open = -1;
  for (const Expression& item : list.arguments) {
    double number = 0;
    if (item.kind == Expression::Kind::kEllipsis) {
      shape->insert(shape->end(), prefix_.begin(), prefix_.end());
    } else if (item.kind == Expression::Kind::kWildcard) {
      if (open >= 0) return false;
      open = static_cast<int>(shape->size());
      shape->push_back(1);
    } else if (Evaluate(item, frame, &number)) {
      shape->push_back(static_cast<int64_t>(number));
    } else {
      return false;
    }
  }
  if (open >= 0) {
    if (elements == 0) {
      (*shape)[open] = Any({1, 2, 3});
    } else {
      const int64_t others = std::accumulate(shape->begin(), shape->end(), int64_t{1}, std::multiplies<>());
      if (others == 0 || elements % others != 0) return false;
      (*shape)[open] = elements / others;
    }
  }
  return true;
}

// Binds what the conditions say of numbers and of shapes that are known by now. Throws if they contradict each
// other.
void RuleGraphs::Solve(Frame* frame) {
  if (frame->conditions == nullptr) return;
  auto is_name = [](const Expression& e) { return e.kind == Expression::Kind::kName && e.slot >= 0; };
  for (int round = 0; round < 3; ++round) {
    for (const Condition& condition : *frame->conditions) {
      const bool equal = condition.relation == Condition::Relation::kEqual;
      if (equal && condition.left.kind == Expression::Kind::kCall && condition.left.text == "shape" &&
          condition.right.kind == Expression::Kind::kList && is_name(condition.left.arguments[0])) {
        const Bound& bound = frame->bound[condition.left.arguments[0].slot];
        const bool known = bound.kind == Bound::Kind::kValue || bound.kind == Bound::Kind::kBehind;
        if (known && !Unify(condition.right, frame, bound.value.shape)) throw NoGraph(condition.source);
        continue;
      }
      if (!equal && condition.relation != Condition::Relation::kLet) continue;
      double left = 0;
      double right = 0;
      const bool has_left = Evaluate(condition.left, frame, &left);
      const bool has_right = Evaluate(condition.right, frame, &right);
      if (has_left && has_right) {
        if (std::fabs(left - right) > 1e-9 * std::fabs(left)) throw NoGraph(condition.source);
      } else if (has_right && is_name(condition.left)) {
        Bind(frame, condition.left.slot, right);
      } else if (has_left && is_name(condition.right)) {
        Bind(frame, condition.right.slot, left);
      } else if (has_left && condition.right.kind == Expression::Kind::kBinary && condition.right.text == "*") {
        for (int i = 0; i < 2; ++i) {  // H = G * N, where H and one factor are known
          double factor = 0;
          const Expression& other = condition.right.arguments[1 - i];
          if (Evaluate(condition.right.arguments[i], frame, &factor) && is_name(other) && factor != 0)
            Bind(frame, other.slot, left / factor);
        }
      }
    }
  }
}

bool RuleGraphs::Mentions(const Expression& expression, std::string_view function, int slot) const {
  if (expression.kind == Expression::Kind::kCall && expression.text == function &&
      expression.arguments[0].kind == Expression::Kind::kName && expression.arguments[0].slot == slot)
    return true;
  return std::any_of(expression.arguments.begin(), expression.arguments.end(),
                     [&](const Expression& argument) { return Mentions(argument, function, slot); });
}

// Numbers for the letters of the rule's `where`, so that its arithmetic holds, and shapes of its inputs.
void RuleGraphs::ChooseSizes() {
  std::set<int> letters;
  std::set<int> wide;
  std::vector<const Condition*> arithmetic;
  std::function<void(const Expression&)> names = [&](const Expression& expression) {
    if (expression.kind == Expression::Kind::kName && expression.slot >= 0) letters.insert(expression.slot);
    for (const Expression& argument : expression.arguments) names(argument);
  };
  for (const Condition& condition : rule_.where) {
    if (condition.relation != Condition::Relation::kEqual) continue;
    if (condition.left.kind == Expression::Kind::kCall) {
      if (condition.left.text != "shape") continue;
      names(condition.right);
      if (!condition.right.arguments.empty() && condition.right.arguments.back().slot >= 0)
        wide.insert(condition.right.arguments.back().slot);
    } else {
      names(condition.left);
      names(condition.right);
      arithmetic.push_back(&condition);
    }
  }
  for (int attempt = 0;; ++attempt) {
    if (attempt == 3000) throw NoGraph("no sizes satisfy the conditions");
    for (int letter : letters) {
      Bind(top_, letter, static_cast<double>(wide.count(letter) > 0 ? Any({16, 16, 32, 64, 8, 6}) : Any({1, 2, 3, 4})));
    }
    const bool holds = std::all_of(arithmetic.begin(), arithmetic.end(), [&](const Condition* condition) {
      double left = 0;
      double right = 0;
      return Evaluate(condition->left, top_, &left) && Evaluate(condition->right, top_, &right) && left == right;
    });
    if (holds) break;
  }
  prefix_.clear();
  for (int64_t i = Any({1, 2, 3}); i-- > 0;) prefix_.push_back(Any({1, 2, 3, 5}));
  for (const Condition& condition : rule_.where) {
    if (condition.relation != Condition::Relation::kEqual || condition.left.kind != Expression::Kind::kCall ||
        condition.left.text != "shape")
      continue;
    std::vector<int64_t> shape;
    if (!ListOf(condition.right, top_, &shape, 0)) throw NoGraph(condition.source);
    shapes_[condition.left.arguments[0].slot] = shape;
  }
  for (const Condition& condition : rule_.where) {
    const Expression& call = condition.left;
    if (condition.relation != Condition::Relation::kHolds || call.kind != Expression::Kind::kCall) continue;
    if (call.text == "broadcasts_to") {
      std::vector<int64_t> shape = shapes_[call.arguments[1].slot];
      for (size_t i = 0; i + 1 < shape.size(); ++i) {
        if (Chance(0.5)) shape[i] = 1;
      }
      while (shape.size() > 1 && Chance(0.2)) shape.erase(shape.begin());
      shapes_[call.arguments[0].slot] = shape;
    } else if (call.text == "same_shape") {
      const int a = call.arguments[0].slot;
      const int b = call.arguments[1].slot;
      if (shapes_.count(a) == 0 && shapes_.count(b) > 0) std::swap(shapes_[a], shapes_[b]);
      if (shapes_.count(a) == 0 || shapes_[a].empty()) {
        shapes_[a] = prefix_;
        shapes_[a].push_back(Any({6, 16, 32}));
      }
      shapes_[b] = shapes_[a];
    }
  }
}

// --- values ----------------------------------------------------------------------------------------------

std::string RuleGraphs::Fresh(const std::string& stem) { return fmt::format("{}_{}", stem, ++names_); }

RuleGraphs::Value RuleGraphs::Input(int type, const std::vector<int64_t>& shape) {
  Value value{Fresh("x"), shape, type};
  auto* input = graph_.model.mutable_graph()->add_input();
  input->set_name(value.name);
  input->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  auto* dims = input->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int64_t dim : shape) dims->add_dim()->set_dim_value(dim);
  return value;
}

RuleGraphs::Value RuleGraphs::Numbers(int type, const std::vector<int64_t>& shape,
                                      const std::vector<double>& numbers) {
  Value value{Fresh("c"), shape, type};
  auto* tensor = graph_.model.mutable_graph()->add_initializer();
  tensor->set_name(value.name);
  tensor->set_data_type(type);
  for (int64_t dim : shape) tensor->add_dims(dim);
  std::string* raw = tensor->mutable_raw_data();
  for (double number : numbers) {
    if (type == Proto::INT64) {
      const int64_t integer = static_cast<int64_t>(number);
      raw->append(reinterpret_cast<const char*>(&integer), sizeof integer);
    } else if (type == Proto::BOOL) {
      raw->push_back(number != 0 ? 1 : 0);
    } else {
      raw->append(EncodeFloat(static_cast<DataType>(type), number));
    }
  }
  return value;
}

RuleGraphs::Value RuleGraphs::Scalar(int type, double number) {
  return Numbers(type, Chance(0.15) ? std::vector<int64_t>{1} : std::vector<int64_t>{}, {number});
}

// Adds a node and asks inference what it gives.
RuleGraphs::Value RuleGraphs::Add(const std::string& domain, const std::string& op, const std::vector<Value>& inputs,
                                  const std::vector<onnx::AttributeProto>& attributes,
                                  const std::vector<std::string>& outputs, size_t wanted) {
  // One type for all operands, as the standard has it.
  static const std::set<std::string> kOneType = {"Add", "Sub", "Mul", "Div", "MatMul", "Concat", "LayerNormalization"};
  if (kOneType.count(op) > 0) {
    for (const Value& input : inputs) {
      if (input.type != inputs[0].type) throw NoGraph(fmt::format("types of {}", op));
    }
  }
  if (op == "Where" && inputs[1].type != inputs[2].type) throw NoGraph("types of Where");
  const Schema* schema = FindSchema(domain, op, opset_);
  auto* node = graph_.model.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_domain(domain);
  node->set_name(Fresh(op));
  for (const Value& input : inputs) node->add_input(input.name);
  if (schema != nullptr && schema->commutative && inputs.size() == 2 && Chance(0.5)) {
    node->mutable_input()->SwapElements(0, 1);
  }
  for (const std::string& output : outputs) node->add_output(output.empty() ? Fresh("v") : output);
  for (const auto& attribute : attributes) *node->add_attribute() = attribute;

  onnx::ModelProto partial = graph_.model;
  partial.set_ir_version(8);
  partial.add_opset_import()->set_version(opset_);
  auto* output = partial.mutable_graph()->add_output();
  output->set_name(node->output(0));
  output->mutable_type()->mutable_tensor_type();
  auto model = LoadModelFromBytes(partial.SerializeAsString());
  if (!model.ok()) throw NoGraph(std::string(model.status().message()));
  const Facts facts = Infer(**model);
  const Node* made = (*model)->graph().nodes().back();
  const Fact& fact = facts.Of(made->output(wanted));
  Value value;
  value.name = node->output(static_cast<int>(wanted));
  value.type = static_cast<int>(fact.type);
  if (!fact.has_rank) throw NoGraph(fmt::format("the shape of {} is not known", op));
  for (Dim dim : fact.shape) {
    if (!dim.is_number()) throw NoGraph(fmt::format("a dim of {} is not known", op));
    value.shape.push_back(dim.number());
  }
  // Now and then a copy, which the matcher looks through.
  if (wanted == 0 && outputs.size() == 1 && Chance(0.04)) return Add("", "Identity", {value}, {}, {""});
  return value;
}

// --- free variables --------------------------------------------------------------------------------------

RuleGraphs::Value RuleGraphs::BooleanMask() {
  // "attend": a row without any allowed key is left to the tests of the attention rules.
  auto dim = [&](const char* letter) {
    const int slot = rule_.scope.Find(letter);
    return slot >= 0 && top_->bound[slot].kind == Bound::Kind::kNumber ? static_cast<int64_t>(top_->bound[slot].number)
                                                                       : int64_t{1};
  };
  const int64_t b = Chance(0.5) ? dim("B") : 1;
  const int64_t s = dim("S");
  const int64_t t = dim("T");
  if (Chance(0.5)) return Input(Proto::BOOL, {b, 1, Chance(0.5) ? s : 1, t});
  std::vector<double> keep;
  for (int64_t i = 0; i < s; ++i) {
    for (int64_t j = 0; j < t; ++j) keep.push_back(j <= i + std::max<int64_t>(t - s, 0) ? 1 : 0);
  }
  return Numbers(Proto::BOOL, {1, 1, s, t}, keep);
}

RuleGraphs::Value RuleGraphs::AdditiveMask(int like) {
  if (!Floating(like)) throw NoGraph("a mask is added to what is no float");
  const Value keep = BooleanMask();
  const double fill = Any({0, 1}) == 0 ? -std::numeric_limits<double>::infinity() : Lowest(like);
  switch (Choose("mask", 3)) {
    case 0:
      return Add("", "Where", {keep, Scalar(like, 0), Scalar(like, fill)}, {}, {""});
    case 1: {  // (1 - keep) * low
      const Value number = Add("", "Cast", {keep}, {IntAttributeOf("to", like)}, {""});
      const Value drop = Add("", "Sub", {Scalar(like, 1), number}, {}, {""});
      return Add("", "Mul", {drop, Scalar(like, Lowest(like))}, {}, {""});
    }
    default:  // a real bias: found, and left
      return Input(like, keep.shape);
  }
}

RuleGraphs::Value RuleGraphs::RuleInput(int slot, int like) {
  const std::string& name = rule_.inputs[slot].name;
  if (rule_.kind == "attention" && shapes_.count(slot) == 0) {  // the table of masks
    if (name == "keep") return BooleanMask();
    if (name == "mask" || name == "bias") return AdditiveMask(like);
  }
  if (shapes_.count(slot) == 0) {
    shapes_[slot] = prefix_;
    shapes_[slot].push_back(Any({6, 16, 32}));
  }
  const std::vector<int64_t>& shape = shapes_[slot];
  const int type = Floating(like) ? like : type_;
  if (shape.size() == 1 && slot > 0 && Chance(0.7)) {  // a weight
    std::vector<double> numbers;
    for (int64_t i = 0; i < shape[0]; ++i) numbers.push_back(std::normal_distribution<>(1, 0.3)(*random_));
    return Numbers(type, shape, numbers);
  }
  return Input(type, shape);
}

RuleGraphs::Value RuleGraphs::FreeVariable(int slot, Frame* frame, int like) {
  const std::string& name = frame->scope->names[slot];
  if (frame == top_ && slot < static_cast<int>(rule_.inputs.size())) {
    const Value value = RuleInput(slot, rule_.kind == "attention" ? like : type_);
    frame->bound[slot].kind = Bound::Kind::kValue;
    return frame->bound[slot].value = value;
  }
  Value value;
  for (const Condition& condition : *frame->conditions) {
    for (const Expression* side : {&condition.left, &condition.right}) {
      if (Mentions(*side, "mask_fill", slot)) {
        value = Scalar(like, Chance(0.5) ? -std::numeric_limits<double>::infinity() : Lowest(like));
      } else if (Mentions(*side, "value", slot)) {
        // let f = value (u), let f = 1 / value (u): what the caller asks for, or any.
        double number = 0;
        const bool reciprocal = side->kind == Expression::Kind::kBinary && side->text == "/";
        const bool wanted = condition.relation == Condition::Relation::kLet &&
                            Evaluate(condition.left, frame, &number);
        if (wanted && reciprocal) number = 1 / number;
        if (!wanted) {
          static constexpr double kNumbers[] = {1e-6, 1e-5, 0.125, 0.25, 2, 1.5};
          const bool small = name == "e";
          number = kNumbers[small ? std::uniform_int_distribution<int>(0, 1)(*random_)
                                  : std::uniform_int_distribution<int>(2, 5)(*random_)];
          if (condition.relation == Condition::Relation::kLet)
            Bind(frame, condition.left.slot, reciprocal ? 1 / number : number);
        }
        value = Scalar(like, number);
      } else if (condition.relation == Condition::Relation::kLet && condition.right.kind == Expression::Kind::kOperator &&
                 condition.right.arguments.size() == 1 && condition.right.arguments[0].slot == slot) {
        // let k = Transpose (r): the caller's value is another form of this one.
        const int parameter = condition.left.slot;
        if (parameter < 0 || parameter >= static_cast<int>(frame->closures.size())) continue;
        const Value other = SkipTo(*frame->closures[parameter], frame->closure_frame, like);
        frame->bound[parameter].kind = Bound::Kind::kBehind;
        frame->bound[parameter].value = other;
        value = other;
        if (condition.right.text == "Transpose") {
          std::vector<int64_t> shape(other.shape.size());
          const auto& perm = condition.right.attributes[0].value.arguments;
          for (size_t i = 0; i < perm.size(); ++i) shape[static_cast<size_t>(perm[i].number)] = other.shape[i];
          value = Input(other.type, shape);
        } else if (condition.right.text != "Not") {
          throw NoGraph(fmt::format("no generator for let {} = {}", frame->scope->names[parameter], condition.right.text));
        }
      }
    }
  }
  if (value.name.empty()) throw NoGraph(fmt::format("no generator for the free name {}", name));
  frame->bound[slot].kind = Bound::Kind::kValue;
  return frame->bound[slot].value = value;
}

// What stands behind optional wrappers, all left out: a name of the rule that the graph has in another form.
RuleGraphs::Value RuleGraphs::SkipTo(const Pattern& pattern, Frame* frame, int like) {
  if (pattern.kind == Pattern::Kind::kDefinition && pattern.optional) {
    LeaveOut(rules_.definitions()[pattern.definition], pattern, frame);
    return SkipTo(*pattern.arguments[0], frame, like);
  }
  if (pattern.kind != Pattern::Kind::kVariable) throw NoGraph("another form of what is computed");
  Bound& bound = frame->bound[pattern.slot];
  if (bound.kind != Bound::Kind::kNone) throw NoGraph("another form of what is there");
  if (static_cast<size_t>(pattern.slot) < frame->closures.size()) {
    const Value value = SkipTo(*frame->closures[pattern.slot], frame->closure_frame, like);
    bound.kind = Bound::Kind::kBehind;
    return bound.value = value;
  }
  if (frame != top_) throw NoGraph("another form of a name of a definition");
  Value value;
  if (shapes_.count(pattern.slot) > 0) {
    value.shape = shapes_[pattern.slot];
    value.type = type_;
  } else {
    value = RuleInput(pattern.slot, like);
  }
  bound.kind = Bound::Kind::kBehind;
  return bound.value = value;
}

// --- patterns --------------------------------------------------------------------------------------------

RuleGraphs::Value RuleGraphs::Build(const Pattern& pattern, Frame* frame, int like) {
  if (++depth_ > 4000) throw NoGraph("too deep");
  switch (pattern.kind) {
    case Pattern::Kind::kVariable:
      return BuildVariable(pattern, frame, like);
    case Pattern::Kind::kLiteral:
      return Scalar(like, pattern.number);
    case Pattern::Kind::kAlternatives:
      return Build(*pattern.arguments[Choose(pattern.position.ToString(), pattern.arguments.size())], frame, like);
    case Pattern::Kind::kDefinition:
      return BuildDefinition(pattern, frame, like);
    case Pattern::Kind::kOperator:
      return BuildOperator(pattern, frame, {""});
    case Pattern::Kind::kAbsent:
      return Value();
    default:
      throw NoGraph("a wildcard that no generator is written for");
  }
}

RuleGraphs::Value RuleGraphs::BuildVariable(const Pattern& pattern, Frame* frame, int like) {
  Bound& bound = frame->bound[pattern.slot];
  if (bound.kind == Bound::Kind::kValue) return bound.value;
  if (bound.kind == Bound::Kind::kNumber) return Scalar(like, bound.number);
  if (bound.kind == Bound::Kind::kBehind) throw NoGraph("a value that the graph has in another form only");
  if (static_cast<size_t>(pattern.slot) < frame->closures.size()) {
    const Value value = Build(*frame->closures[pattern.slot], frame->closure_frame, like);
    bound.kind = Bound::Kind::kValue;
    bound.value = value;
    Solve(frame);
    return value;
  }
  const int statement = frame->scope->statement[pattern.slot];
  if (statement < 0) return FreeVariable(pattern.slot, frame, like);
  const MatchStatement& line = rule_.match[statement];
  if (line.names.size() == 1) {
    const Value value = Build(*line.pattern, frame, like);
    bound.kind = Bound::Kind::kValue;
    return bound.value = value;
  }
  throw NoGraph("a line with several outputs");
}

void RuleGraphs::LeaveOut(const Definition& definition, const Pattern& pattern, Frame* frame) {
  Note(fmt::format("{}? {}:2", definition.name, pattern.position.ToString()));
  for (size_t i = 1; i < definition.parameters.size(); ++i) {
    const Parameter& parameter = definition.parameters[i];
    if (!parameter.has_default || i >= pattern.arguments.size()) continue;
    double number = 0;
    if (!Evaluate(parameter.default_value, frame, &number)) throw NoGraph("a default");
    const Pattern& outer = *pattern.arguments[i];
    if (outer.kind != Pattern::Kind::kVariable) throw NoGraph("a default for no name");
    Bound& bound = frame->bound[outer.slot];
    if (bound.kind == Bound::Kind::kNumber && bound.number != number)
      throw NoGraph(fmt::format("{} must be there", definition.name));
    Bind(frame, outer.slot, number);
  }
}

RuleGraphs::Value RuleGraphs::BuildDefinition(const Pattern& pattern, Frame* frame, int like) {
  const Definition& definition = rules_.definitions()[pattern.definition];
  if (pattern.optional) {
    const std::string what = fmt::format("{}? {}", definition.name, pattern.position.ToString());
    if (Choose(what, 2) == 1) {
      LeaveOut(definition, pattern, frame);
      return Build(*pattern.arguments[0], frame, like);
    }
  }
  const auto& alternative = definition.alternatives[Choose(definition.name, definition.alternatives.size())];
  frames_.push_back(std::make_unique<Frame>());
  Frame* inner = frames_.back().get();
  inner->scope = &definition.scope;
  inner->conditions = &alternative.conditions;
  inner->bound.resize(definition.scope.names.size());
  inner->closure_frame = frame;
  for (size_t i = 0; i < pattern.arguments.size(); ++i) {
    const Pattern* argument = pattern.arguments[i].get();
    inner->closures.push_back(argument);
    // A number that the caller knows already.
    if (argument->kind == Pattern::Kind::kVariable && frame->bound[argument->slot].kind == Bound::Kind::kNumber)
      Bind(inner, static_cast<int>(i), frame->bound[argument->slot].number);
  }
  Solve(inner);
  const Value value = Build(*alternative.pattern, inner, like);
  if (definition.result_slot >= 0) {
    inner->bound[definition.result_slot].kind = Bound::Kind::kValue;
    inner->bound[definition.result_slot].value = value;
  }
  Solve(inner);
  // What the definition found out is the caller's.
  for (size_t i = 0; i < inner->closures.size(); ++i) {
    const Pattern& outer = *inner->closures[i];
    Bound& mine = inner->bound[i];
    if (mine.kind == Bound::Kind::kNone && definition.parameters[i].has_default) {
      double number = 0;
      if (Evaluate(definition.parameters[i].default_value, inner, &number)) Bind(inner, static_cast<int>(i), number);
    }
    if (outer.kind != Pattern::Kind::kVariable || mine.kind != Bound::Kind::kNumber) continue;
    Bound& theirs = frame->bound[outer.slot];
    if (theirs.kind == Bound::Kind::kNumber && std::fabs(theirs.number - mine.number) > 1e-6 * std::fabs(mine.number))
      throw NoGraph(fmt::format("{} is {} here and {} there", outer.name, mine.number, theirs.number));
    if (theirs.kind == Bound::Kind::kNone) Bind(frame, outer.slot, mine.number);
  }
  return value;
}

// The shape that the frame's conditions give the definition's result; letters that nothing fixes are chosen.
std::vector<int64_t> RuleGraphs::ResultShape(Frame* frame, int64_t elements) {
  for (const Condition& condition : *frame->conditions) {
    if (condition.relation != Condition::Relation::kEqual || condition.left.kind != Expression::Kind::kCall ||
        condition.left.text != "shape" || condition.left.arguments[0].text != "result")
      continue;
    std::vector<int64_t> shape;
    for (const Expression& item : condition.right.arguments) {
      double number = 0;
      if (item.kind != Expression::Kind::kName || item.slot < 0 || Evaluate(item, frame, &number)) continue;
      Solve(frame);
      if (!Evaluate(item, frame, &number)) Bind(frame, item.slot, static_cast<double>(Any({1, 2, 3})));
    }
    Solve(frame);
    if (!ListOf(condition.right, frame, &shape, elements)) throw NoGraph(condition.source);
    const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    if (elements != 0 && count != elements) throw NoGraph("the shape has another number of elements");
    return shape;
  }
  throw NoGraph("no condition says what the shape is");
}

RuleGraphs::Value RuleGraphs::BuildOperator(const Pattern& pattern, Frame* frame, const std::vector<std::string>& outputs) {
  const std::string& op = pattern.name;
  const Schema* schema = FindSchema(pattern.domain, op, opset_);
  if (schema == nullptr) throw NoGraph(fmt::format("{} needs another opset", op));
  // Operands that give a type first: a literal has that of its sibling.
  std::vector<Value> inputs(pattern.arguments.size());
  std::vector<size_t> order(inputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto weight = [&](size_t i) {
    const Pattern& argument = *pattern.arguments[i];
    if (argument.kind == Pattern::Kind::kWildcard) return 3;
    if (argument.kind == Pattern::Kind::kLiteral) return 2;
    const bool free = argument.kind == Pattern::Kind::kVariable && frame->scope->statement[argument.slot] < 0 &&
                      static_cast<size_t>(argument.slot) >= frame->closures.size() &&
                      (frame != top_ || argument.slot >= static_cast<int>(rule_.inputs.size()) ||
                       shapes_.count(argument.slot) == 0);
    return free ? 1 : 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weight(a) < weight(b); });
  int like = type_;
  bool typed = false;
  std::vector<int> open;
  for (size_t i : order) {
    if (pattern.arguments[i]->kind == Pattern::Kind::kWildcard) {
      open.push_back(static_cast<int>(i));
      continue;
    }
    const bool condition = op == "Where" && i == 0;
    inputs[i] = Build(*pattern.arguments[i], frame, condition ? static_cast<int>(Proto::BOOL) : like);
    if (!typed && !condition && !inputs[i].name.empty()) {
      like = inputs[i].type;
      typed = true;
    }
  }
  for (int i : open) {
    const int64_t elements = std::accumulate(inputs[0].shape.begin(), inputs[0].shape.end(), int64_t{1}, std::multiplies<>());
    if (op == "Reshape" || op == "Expand") {
      const std::vector<int64_t> shape = ResultShape(frame, op == "Reshape" ? elements : 0);
      inputs[i] = Numbers(Proto::INT64, {static_cast<int64_t>(shape.size())}, {shape.begin(), shape.end()});
    } else if (op == "LayerNormalization") {
      inputs[i] = Input(like, {inputs[0].shape.back()});
    } else {
      throw NoGraph(fmt::format("no generator for an operand _ of {}", op));
    }
  }
  // The halves of the last axis.
  if (op == "Slice" || op == "Split") {
    double half = -1;
    for (const Condition& condition : *frame->conditions) {
      if (condition.left.kind == Expression::Kind::kCall && condition.left.text == "half") half = condition.right.number;
    }
    if (half < 0 || inputs.size() != 1 || inputs[0].shape.empty() || inputs[0].shape.back() % 2 != 0)
      throw NoGraph("no halves");
    const int64_t width = inputs[0].shape.back();
    const int64_t axis = Chance(0.5) ? -1 : static_cast<int64_t>(inputs[0].shape.size()) - 1;
    if (op == "Split") {
      const Value sizes = Numbers(Proto::INT64, {2}, {width / 2.0, width / 2.0});
      return Add("", "Split", {inputs[0], sizes}, {IntAttributeOf("axis", axis)}, {"", ""}, half == 0 ? 0 : 1);
    }
    const double start = half == 0 ? 0 : Chance(0.5) ? width / 2.0 : -width / 2.0;
    const double end = half == 0 ? width / 2.0 : Chance(0.5) ? static_cast<double>(width) : 9223372036854774784.0;
    std::vector<Value> all = {inputs[0], Numbers(Proto::INT64, {1}, {start}), Numbers(Proto::INT64, {1}, {end}),
                              Numbers(Proto::INT64, {1}, {static_cast<double>(axis)})};
    if (Chance(0.5)) all.push_back(Numbers(Proto::INT64, {1}, {1}));
    return Add("", "Slice", all, {}, {""});
  }
  std::vector<onnx::AttributeProto> attributes;
  for (const AttributePattern& mention : pattern.attributes) {
    const Expression& value = mention.value;
    const SchemaAttribute* row = schema->FindAttribute(mention.name);
    if (value.kind == Expression::Kind::kWildcard) {
      // `narrow`: back to the type of the network.
      if (op == "Cast") attributes.push_back(IntAttributeOf("to", type_));
      continue;
    }
    if (row == nullptr) {  // this opset keeps it in an input
      const int input = schema->FindInput(mention.name);
      if (input < 0 || value.kind != Expression::Kind::kList) throw NoGraph(fmt::format("{} of {}", mention.name, op));
      std::vector<double> numbers;
      for (const Expression& item : value.arguments) {
        double number = 0;
        if (!Evaluate(item, frame, &number)) throw NoGraph("a list that is not known");
        numbers.push_back(number);
      }
      while (inputs.size() <= static_cast<size_t>(input)) inputs.emplace_back();
      inputs[input] = Numbers(Proto::INT64, {static_cast<int64_t>(numbers.size())}, numbers);
      continue;
    }
    onnx::AttributeProto attribute;
    attribute.set_name(mention.name);
    double number = 0;
    if (value.kind == Expression::Kind::kList) {
      attribute = IntsAttributeOf(mention.name, {});
      for (const Expression& item : value.arguments) {
        if (!Evaluate(item, frame, &number)) throw NoGraph("a list that is not known");
        attribute.add_ints(static_cast<int64_t>(number));
      }
    } else if (value.kind == Expression::Kind::kString) {
      attribute.set_type(onnx::AttributeProto::STRING);
      attribute.set_s(value.text);
    } else if (value.kind == Expression::Kind::kName && value.slot < 0) {  // a data type
      attribute = IntAttributeOf(mention.name, static_cast<int64_t>(DataTypeFromName(value.text)));
    } else {
      if (!Evaluate(value, frame, &number)) {  // <scale = s>: left out, or chosen
        if (value.kind != Expression::Kind::kName || row->type != AttributeType::kFloat) throw NoGraph("an attribute");
        if (Chance(0.3)) continue;
        number = 0.25;
        Bind(frame, value.slot, number);
      }
      if (row->type == AttributeType::kFloat) {
        attribute.set_type(onnx::AttributeProto::FLOAT);
        attribute.set_f(static_cast<float>(number));
      } else if (row->type == AttributeType::kInts) {
        attribute = IntsAttributeOf(mention.name, {static_cast<int64_t>(number)});
      } else {
        attribute = IntAttributeOf(mention.name, static_cast<int64_t>(number));
      }
    }
    attributes.push_back(attribute);
  }
  while (!inputs.empty() && inputs.back().name.empty()) inputs.pop_back();
  return Add(pattern.domain, op, inputs, attributes, outputs);
}

}  // namespace ascend_fuse::testing
