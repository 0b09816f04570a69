#include "passes/core/emit.h"

#include <algorithm>
#include <optional>

#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "ir/whole_number.h"
#include "passes/core/float_attribute.h"
#include "passes/core/reshape_target.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

bool AllIntegers(const std::vector<Term>& items) {
  return std::all_of(items.begin(), items.end(), [](const Term& item) {
    return (item.kind == Term::Kind::kNumber && item.is_integer) || (item.kind == Term::Kind::kDim && item.dim.is_number());
  });
}

// The attribute a term stands for; the schema says whether a number is an int or a float.
absl::StatusOr<Attribute> AttributeOf(const std::string& name, const Term& term, AttributeType wanted) {
  switch (term.kind) {
    case Term::Kind::kNumber:
      if (wanted == AttributeType::kFloat || (wanted == AttributeType::kUndefined && !term.is_integer)) {
        return Attribute::Float(name, static_cast<float>(term.number));
      }
      if (wanted == AttributeType::kInts) {
        return Attribute::Ints(name, {WholeNumber(term.number)});
      }
      return Attribute::Int(name, WholeNumber(term.number));
    case Term::Kind::kDim:
      if (term.dim.is_number()) return Attribute::Int(name, term.dim.number());
      break;
    case Term::Kind::kType:
      return Attribute::Int(name, static_cast<int64_t>(term.type));
    case Term::Kind::kText:
      return Attribute::String(name, term.text);
    case Term::Kind::kList: {
      if (AllIntegers(*term.list)) return Attribute::Ints(name, build::IntegersOf(*term.list));
      std::vector<float> floats;
      for (const Term& item : *term.list) floats.push_back(static_cast<float>(item.number));
      return Attribute::Floats(name, floats);
    }
    default:
      break;
  }
  return absl::InvalidArgumentError(fmt::format("the attribute {} has no plain value", name));
}

// What recognised operators and Ascend nodes need of their operands says nothing about the model; what an operator of the
// model needs does, written in other standard ones too.
bool MakesOwnNodes(const Rule& rule) {
  return !rule.nodes.empty() || std::any_of(rule.emit.begin(), rule.emit.end(), [](const EmitStatement& statement) {
    return Mentions(statement.value, "ascend_fuse");
  });
}

// While it lives, inference proves nothing about the dims of the model: what it looks at may be taken back.
class SpeculativeInference {
 public:
  explicit SpeculativeInference(DimTable* dims) : dims_(dims), before_(dims->SetUnification(false)) {}
  SpeculativeInference(const SpeculativeInference&) = delete;
  SpeculativeInference& operator=(const SpeculativeInference&) = delete;
  ~SpeculativeInference() { dims_->SetUnification(before_); }

 private:
  DimTable* dims_;
  bool before_;
};

bool IsOutput(const Rule& rule, const std::string& name) {
  return std::find(rule.outputs.begin(), rule.outputs.end(), name) != rule.outputs.end();
}

// The value of the graph that `name` stands for where it is an output that the match found; else nullptr.
const Value* OldOutput(const Match& matched, const std::string& name) {
  if (!IsOutput(*matched.rule, name)) return nullptr;
  const Term& term = matched.terms[matched.rule->scope.Find(name)];
  return term.kind == Term::Kind::kValue ? term.value : nullptr;
}

}  // namespace

absl::StatusOr<NewNode> Emitter::Plan(const DeferredNode& deferred, const std::string& name, Emission* emission) {
  NewNode plan;
  plan.op_type = deferred.op_type;
  plan.domain = deferred.domain;
  plan.name = name;
  // Numbers among the inputs take the type of the first value beside them.
  DataType like = DataType::kUndefined;
  plan.inputs.resize(deferred.inputs.size(), nullptr);
  for (size_t i = 0; i < deferred.inputs.size(); ++i) {
    const Term& input = deferred.inputs[i];
    if (input.kind == Term::Kind::kNumber || input.kind == Term::Kind::kList || input.kind == Term::Kind::kAbsent) {
      continue;
    }
    ASSIGN_OR_RETURN(const Value* const value, Build(input, DataType::kUndefined, name, emission));
    plan.inputs[i] = value;
    // The condition of Where is not of the type of its branches.
    const bool condition = i == 0 && deferred.op_type == "Where";
    if (like == DataType::kUndefined && !condition) like = facts_->Of(value).type;
  }
  for (size_t i = 0; i < deferred.inputs.size(); ++i) {
    const Term& input = deferred.inputs[i];
    if (input.kind != Term::Kind::kNumber && input.kind != Term::Kind::kList) continue;
    const bool target = i == 1 && deferred.op_type == "Reshape" && input.kind == Term::Kind::kList && AllIntegers(*input.list);
    ASSIGN_OR_RETURN(plan.inputs[i], Build(target ? ReshapeTarget(*facts_, plan.inputs[0], input) : input, like, name, emission));
  }
  const DeclaredOperator* const node = deferred.domain == "npu" ? FindDeclaredOperator("npu", deferred.op_type) : nullptr;
  Model& model = rewriter_->model();
  const NameId domain = model.names().InternCopy(deferred.domain);
  const int64_t opset = model.OpsetVersion(domain);
  const Schema* schema = FindSchema(deferred.domain, deferred.op_type, opset);
  for (const auto& [key, term] : deferred.attributes) {
    if (term.kind == Term::Kind::kAbsent) continue;
    const SchemaAttribute* row = schema != nullptr ? schema->FindAttribute(key) : nullptr;
    if (schema != nullptr && row == nullptr) {
      // This opset keeps the parameter in an input.
      const int input = schema->FindInput(key);
      // Before opset 18 the outputs alone say into how many equal parts Split cuts.
      if (input < 0 && deferred.op_type == "Split" && key == "num_outputs") continue;
      if (input < 0) {
        return absl::InvalidArgumentError(fmt::format("{} has no parameter {} at opset {}", deferred.op_type, key, opset));
      }
      if (plan.inputs.size() <= static_cast<size_t>(input)) plan.inputs.resize(input + 1, nullptr);
      Term list = term.kind == Term::Kind::kList ? term : Term::List({term});
      ASSIGN_OR_RETURN(plan.inputs[input], Build(list, DataType::kInt64, name, emission));
      continue;
    }
    ASSIGN_OR_RETURN(Attribute attribute, AttributeOf(key, term, row != nullptr ? row->type : AttributeType::kUndefined));
    plan.attributes.push_back(AsWritten(node, std::move(attribute)));
  }
  AllowZeroDims(model, *facts_, &plan);
  while (!plan.inputs.empty() && plan.inputs.back() == nullptr) plan.inputs.pop_back();
  return plan;
}

absl::StatusOr<const Value*> Emitter::Build(const Term& term, DataType like, const std::string& name, Emission* emission) {
  switch (term.kind) {
    case Term::Kind::kValue:
      return term.value;
    case Term::Kind::kAbsent:
      return nullptr;
    case Term::Kind::kDim:
      if (term.dim.is_number()) return Build(Term::Integer(term.dim.number()), like, name, emission);
      return absl::InvalidArgumentError("a symbolic dim cannot be a constant");
    case Term::Kind::kNumber: {
      DataType type = like;
      if (type == DataType::kUndefined) type = term.is_integer ? DataType::kInt64 : DataType::kFloat;
      const Value* value = rewriter_->NumberConstant(graph_, type, term.number, name + "_constant");
      if (value == nullptr) return absl::InvalidArgumentError("a constant of this type cannot be made");
      InferConstant(value, facts_);
      numbering_->AddConstant(*value, *facts_);
      return value;
    }
    case Term::Kind::kList: {
      if (!AllIntegers(*term.list)) return absl::InvalidArgumentError("only lists of integers can be inputs");
      const Value* value = rewriter_->Int64Constant(graph_, build::IntegersOf(*term.list), name + "_constant");
      InferConstant(value, facts_);
      numbering_->AddConstant(*value, *facts_);
      return value;
    }
    case Term::Kind::kNode:
      break;
    default:
      return absl::InvalidArgumentError("this cannot be an input of a node");
  }
  if (term.node->op_type[0] == '@') {
    absl::StatusOr<const Value*> value = BuildConstant(*term.node, name);
    if (!value.ok()) return value;
    InferConstant(*value, facts_);
    numbering_->AddConstant(**value, *facts_);
    return value;
  }
  return BuildNode(term, name, emission);
}

namespace {

// Booleans [rows, columns], true above the diagonal.
std::string AboveDiagonal(int64_t rows, int64_t columns) {
  std::string bytes(static_cast<size_t>(rows * columns), '\0');
  for (int64_t row = 0; row < std::min(rows, columns); ++row) {
    std::fill(bytes.begin() + row * columns + row + 1, bytes.begin() + (row + 1) * columns, '\1');
  }
  return bytes;
}

}  // namespace

absl::StatusOr<const Value*> Emitter::BuildConstant(const DeferredNode& constant, const std::string& name) {
  if (constant.op_type == "@Join") {
    // Merged weights: a new constant that refers to the elements of others.
    std::vector<const Value*> parts;
    for (const Term& input : constant.inputs) parts.push_back(input.value);
    return rewriter_->Join(parts, static_cast<int64_t>(constant.attributes[0].second.number), name + "_merged");
  }
  DataType type = DataType::kUndefined;
  std::vector<int64_t> dims;
  double fill = 0;
  const std::vector<Term>* elements = nullptr;
  bool above_diagonal = false;
  for (const auto& [key, value] : constant.attributes) {
    if (key == "elements") elements = value.list;
    if (key == "type") type = value.type;
    if (key == "dims") dims = build::IntegersOf(*value.list);
    if (key == "fill") fill = value.number;
    if (key == "above_diagonal") above_diagonal = true;  // of booleans [rows, columns]
  }
  if (above_diagonal) {
    return rewriter_->Constant(
        graph_, type, dims, "above diagonal", [&] { return AboveDiagonal(dims[0], dims[1]); }, name + "_constant");
  }
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  const std::string element = EncodeNumber(type, fill);
  if (element.empty()) return absl::InvalidArgumentError("a constant of this type cannot be made");
  std::string bytes;
  if (elements != nullptr) {
    for (const Term& item : *elements) {
      bytes += EncodeNumber(type, item.kind == Term::Kind::kDim ? static_cast<double>(item.dim.number()) : item.number);
    }
    return rewriter_->Constant(graph_, type, dims, bytes, name + "_constant");
  }
  if (element.size() == 1) {
    bytes.assign(static_cast<size_t>(count), element[0]);
  } else {
    bytes.reserve(element.size() * static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) bytes += element;
  }
  return rewriter_->Constant(graph_, type, dims, bytes, name + "_constant");
}

absl::StatusOr<const Value*> Emitter::BuildNode(const Term& term, const std::string& name, Emission* emission) {
  const DeferredNode& deferred = *term.node;
  const std::string own_name = name + "_" + deferred.op_type;
  const Rewriter::Mark before = rewriter_->Now();
  const size_t helpers_before = emission->helpers.size();
  const size_t inserted_before = emission->inserted.size();
  ASSIGN_OR_RETURN(NewNode plan, Plan(deferred, own_name, emission));
  for (const Value*& input : plan.inputs) input = Earliest(input);
  // Inputs that are one computation, or copies, count as one. A node of another opset may be written in another form.
  std::string key = fmt::format("{}{}:{}:{}.{}:", alone_ ? "alone " : "", static_cast<const void*>(graph_),
                                rewriter_->model().OpsetVersion(), plan.domain, plan.op_type);
  for (const Value* input : plan.inputs) {
    key += input == nullptr ? std::string("-,") : fmt::format("{},", numbering_->Number(input));
  }
  key += EncodeAttributes(rewriter_->model(), plan.attributes);
  const auto known = helpers_.find(key);
  if (known != helpers_.end()) {
    const Node* helper = known->second;
    // One that is dead can be made alive again with all it reads. One that stands after what is replaced may need its
    // result, unless this emission made it: equal inputs may be computed at different places.
    const auto& own = emission->inserted;
    if ((!alone_ && StandsBefore(*helper, *first_)) || std::find(own.begin(), own.end(), helper) != own.end()) {
      if (helper->dead) emission->inserted.push_back(helper);
      return helper->output(term.output);
    }
  }
  const Node* helper = rewriter_->Insert(plan, deferred.output_count, graph_, own_name);
  if (alone_) {
    InferNode(*helper, facts_);
  } else {
    Refresh(helper);
  }
  // Who reads it would read an equal value that was there before instead: nothing would read the helper, nor what was
  // built for it. Not what is replaced: a triangle of ones is equal to the comparison that it is made of.
  const Value* const equal = Earliest(helper->output());
  const bool there = equal->producer != nullptr && StandsBefore(*equal->producer, *first_);
  if (deferred.output_count == 1 && equal != helper->output() && there) {
    const auto built = emission->inserted.begin() + static_cast<std::ptrdiff_t>(inserted_before);
    if (std::find(built, emission->inserted.end(), equal->producer) == emission->inserted.end()) {
      rewriter_->RollBack(before);
      emission->inserted.resize(inserted_before);
      ForgetHelpers(helpers_before, &emission->helpers);
      return equal;
    }
  }
  emission->inserted.push_back(helper);
  const Node*& known_helper = helpers_[key];
  emission->helpers.emplace_back(std::move(key), known_helper);
  known_helper = helper;
  return helper->output(term.output);
}

// The value that is equal to `value` and computed first, where that is alive and surely computed before: what is made of it
// can stand before all that reads one of them, and is made once.
const Value* Emitter::Earliest(const Value* value) const {
  if (value == nullptr || value->producer == nullptr || for_ge_.contains(value->producer)) return value;
  const Value* first = numbering_->First(value);
  const Node* producer = first->producer;
  if (first == value || producer == nullptr || producer->dead || first->graph != value->graph ||
      !StandsBefore(*producer, *value->producer)) {
    return value;
  }
  return producer->output(first->output_index);
}

void Emitter::Refresh(const Node* node) {
  InferNode(*node, facts_);
  numbering_->Add(*node, *facts_);
}

absl::StatusOr<Emission> Emitter::Emit(const Match& matched, const FunctionContext& context) {
  Emission emission;
  emission.mark = rewriter_->Now();
  emission.contradictions = facts_->contradictions().size();
  absl::Status status;
  {
    const SpeculativeInference speculative(&facts_->dims());
    status = EmitStatements(matched, context, &emission);
  }
  if (!status.ok()) {
    TakeBack(emission);
    return status;
  }
  if (!MakesOwnNodes(*matched.rule)) {
    for (const Node* node : emission.inserted) InferNode(*node, facts_);
    for (const Node* node : emission.replacements) InferNode(*node, facts_);
    for (const auto& [value, fact] : emission.facts) {
      if (fact.has_rank) facts_->Set(value, fact);
    }
  }
  // What is declared of a value was compared with what is computed when the model was read.
  facts_->ForgetContradictions(emission.contradictions);
  // Who was to read a copy of another helper reads that one: a sum with a mask of zeros would be one more reader of the scores.
  for (auto helper = emission.inserted.rbegin(); helper != emission.inserted.rend(); ++helper) rewriter_->DropIfUnread(*helper);
  return emission;
}

absl::Status Emitter::EmitStatements(const Match& matched, const FunctionContext& context, Emission* emission) {
  Match match = matched;
  const Rule& rule = *match.rule;
  match.terms.resize(rule.scope.names.size());
  const Term& first = match.terms[rule.scope.Find(rule.outputs[0])];
  graph_ = first.value->graph;
  const Node* root = first.value->producer;
  first_ = root;
  alone_ = !rule.joined_by_ge.empty();
  for (const std::string& name : rule.outputs) {
    const Value* value = OldOutput(matched, name);
    if (value == nullptr) continue;
    // What a body reads from the graph around it cannot be an output of a node inside.
    if (value->graph != graph_) {
      return Refuse(
          fmt::format("{} is computed outside of the body that {} stands in", ValueName(*value), ValueName(*first.value)),
          "value-shared");
    }
    if (value->producer != nullptr && StandsBefore(*value->producer, *first_)) first_ = value->producer;
  }
  std::string base(root != nullptr ? NodeName(*root) : std::string_view());
  if (base.empty()) base = std::string(ValueName(*first.value));
  const std::string root_name(root != nullptr ? NodeName(*root) : std::string_view());

  for (const EmitStatement& statement : rule.emit) {
    ASSIGN_OR_RETURN(Term term, EvaluateInMatch(statement.value, match, context));
    std::vector<const Value*> outputs;
    for (const std::string& name : statement.names) outputs.push_back(OldOutput(matched, name));
    // An output that nothing asked for is a value like any other.
    if (std::all_of(outputs.begin(), outputs.end(), [](const Value* value) { return value == nullptr; })) {
      if (term.kind == Term::Kind::kNode && statement.names.size() > 1) {
        DeferredNode node = *term.node;
        node.output_count = static_cast<int>(statement.names.size());
        term = Term::Node(std::move(node));
      }
      for (size_t i = 0; i < statement.names.size(); ++i) {
        Term named = term;
        named.output = static_cast<int>(i);
        if (statement.names[i] != "_") match.terms[rule.scope.Find(statement.names[i])] = named;
      }
      continue;
    }
    if (term.kind != Term::Kind::kNode) {
      // The output is a value that is there already.
      term = Term::Node({"", "Identity", {}, {term}, 1});
    }
    ASSIGN_OR_RETURN(NewNode plan, Plan(*term.node, base, emission));
    // The new node takes the name of the node it stands for; a second one of the same emission a name near it.
    plan.name = base;
    plan.keep_name = !root_name.empty() && emission->replacements.empty();
    if (root_name.empty()) plan.name.clear();
    std::vector<TakenOutput> taken;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != nullptr) taken.push_back({i, outputs[i]});
    }
    const Node* node = rewriter_->Replace(taken, outputs.size(), plan);
    emission->replacements.push_back(node);
    const size_t first_fact = emission->facts.size();
    for (const Value* value : outputs) {
      if (value == nullptr) continue;
      emission->facts.emplace_back(value, facts_->Of(value));
      facts_->Set(value, Fact());
    }
    for (size_t i = 0; i < statement.names.size(); ++i) {
      if (statement.names[i] != "_") match.terms[rule.scope.Find(statement.names[i])] = Term::Of(node->output(i));
    }
    InferNode(*node, facts_);
    RETURN_IF_ERROR(CheckOutputs(rule, *node, first_fact, *emission));
  }
  return absl::OkStatus();
}

// The values that stay keep the facts they have. Whatever the conditions of a rule say: what gives another shape is not the
// same. A recognised operator has the type of its operands, whatever the steps in between were computed in: what is lowered
// from it brings the type back.
absl::Status Emitter::CheckOutputs(const Rule& rule, const Node& node, size_t first, const Emission& emission) {
  for (size_t i = first; i < emission.facts.size(); ++i) {
    const auto& [value, fact] = emission.facts[i];
    if (rule.differs) {
      facts_->Set(value, fact);
      continue;
    }
    const Fact& made = facts_->Of(value);
    const bool typed =
        rule.nodes.empty() || fact.type == made.type || fact.type == DataType::kUndefined || made.type == DataType::kUndefined;
    if (!typed || !CanBeOneShape(fact, made, facts_->dims())) {
      const std::string given = facts_->Describe(value);
      facts_->Set(value, fact);
      return Refuse(fmt::format("{} of these operands gives {}, and {} is {}", OpType(node), given, ValueName(*value),
                                facts_->Describe(value)),
                    "result-differs");
    }
    if (SaysMore(made, fact, facts_->dims())) learned_.push_back(value);
    if (fact.has_rank) facts_->Set(value, fact);
  }
  return absl::OkStatus();
}

bool SaysMore(Dim made, Dim known, const DimTable& dims) {
  if (!made.known() || dims.MentionsFresh(made)) return false;
  if (!known.known() || dims.MentionsFresh(known)) return true;
  if (made == known) return false;
  // What is broadcast with a number is that number only where the dim is not 1, which the one who replaced it had to assume: as
  // long as the dim is the result whatever it is.
  if (known.is_number()) return !made.is_number() && dims.Symbols(made).size() == 1;
  return dims.NamesFewer(made, known);
}

bool SaysMore(const Fact& made, const Fact& known, const DimTable& dims) {
  if (!made.has_rank || !known.has_rank || made.shape.size() != known.shape.size()) return made.has_rank && !known.has_rank;
  for (size_t axis = 0; axis < made.shape.size(); ++axis) {
    if (SaysMore(made.shape[axis], known.shape[axis], dims)) return true;
  }
  if (made.elements == nullptr || known.elements == nullptr) return made.elements != nullptr;
  const absl::Span<const Dim> elements = made.elements->integers;
  for (size_t i = 0; i < elements.size() && i < known.elements->integers.size(); ++i) {
    if (SaysMore(elements[i], known.elements->integers[i], dims)) return true;
  }
  return false;
}

void Emitter::TakeBack(const Emission& emission) {
  rewriter_->RollBack(emission.mark);
  for (const auto& [value, fact] : emission.facts) facts_->Set(value, fact);
  facts_->ForgetContradictions(emission.contradictions);
  auto helpers = emission.helpers;
  ForgetHelpers(0, &helpers);
}

void Emitter::ForgetHelpers(size_t kept, std::vector<std::pair<std::string, const Node*>>* helpers) {
  for (; helpers->size() > kept; helpers->pop_back()) {
    const auto& [key, earlier] = helpers->back();
    if (earlier == nullptr) {
      helpers_.erase(key);
    } else {
      helpers_[key] = earlier;
    }
  }
}

void Emitter::TakeBackAll(const Rewriter::Mark& mark) {
  rewriter_->RollBack(mark);
  helpers_.clear();
}

}  // namespace ascend_fuse
