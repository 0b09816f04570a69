// The inference pass: constants and declarations first, then every node once in order, with the functions of
// the operator families; again only if something learned on the way can help what stayed unknown.
#include "ir/infer/facts.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/infer/call.h"
#include "ir/infer/context.h"
#include "ir/rounding.h"

namespace ascend_fuse {

Facts::Facts() = default;
Facts::~Facts() = default;
Facts::Facts(Facts&&) noexcept = default;
Facts& Facts::operator=(Facts&&) noexcept = default;

const Fact& Facts::Of(const Value* value) const {
  static const Fact kNothing;
  return value != nullptr && value->id < values_.facts.size() ? values_.facts[value->id] : kNothing;
}

void Facts::Set(const Value* value, const Fact& fact) {
  auto& facts = values_.facts;
  if (value->id >= facts.size()) {
    facts.resize(std::max<size_t>({value->id + size_t{1}, value->graph->model().value_count(), facts.size() + facts.size() / 8}));
  }
  facts[value->id] = fact;
}

const Movement* Facts::MovementOf(const Value* value) const {
  const Node* node = value != nullptr ? value->producer : nullptr;
  if (node == nullptr || node->id >= values_.movements.size() || values_.movements[node->id] == nullptr) return nullptr;
  return values_.movements[node->id][value->output_index];
}

void Facts::SetMovements(const Node& node, absl::Span<const Movement* const> of_outputs) {
  auto& movements = values_.movements;
  if (node.id >= movements.size()) {
    if (of_outputs.empty()) return;
    movements.resize(
        std::max<size_t>({node.id + size_t{1}, node.graph->model().node_count(), movements.size() + movements.size() / 8}));
  }
  movements[node.id] = of_outputs.empty() ? nullptr : arena_.Copy(of_outputs).data();
}

template <typename Resolve>
void Facts::Rewrite(Fact* fact, Resolve resolve) {
  const auto is_resolved = [&](Dim dim) { return dim.is_number() || !dim.known() || resolve(dim) == dim; };
  const auto resolved = [&](absl::Span<const Dim> dims) {
    absl::InlinedVector<Dim, 16> now;
    for (const Dim dim : dims) now.push_back(resolve(dim));
    return arena_.Copy(absl::Span<const Dim>(now));
  };
  if (fact->has_rank && !std::all_of(fact->shape.begin(), fact->shape.end(), is_resolved)) {
    fact->shape = resolved(fact->shape);
    if (fact->origin == Origin::kOperator) fact->origin = Origin::kUnified;
  }
  if (fact->elements == nullptr) return;
  const absl::Span<const Dim> integers = fact->elements->integers;
  if (std::all_of(integers.begin(), integers.end(), is_resolved)) return;
  Elements* elements = arena_.New<Elements>();
  elements->integers = resolved(integers);
  fact->elements = elements;
}

bool Facts::ResolveDims(const Model& model) {
  bool numbers = false;
  for (Fact& fact : values_.facts) {
    Rewrite(&fact, [&](Dim dim) {
      const Dim now = dims_.Resolve(dim);
      numbers = numbers || (now.is_number() && !dim.is_number());
      return now;
    });
  }
  for (const auto& graph : model.graphs()) {
    if (graph->owner() == nullptr || graph->owner()->dead || dims_.Scoped(infer::ScopeOf(*graph, this)).empty()) continue;
    const InPlace place(*graph, this);
    for (const Value* value : graph->inputs()) ResolveHere(value);
    for (const Node* node : graph->nodes()) {
      for (const Value* value : node->outputs()) ResolveHere(value);
    }
  }
  return numbers;
}

void Facts::ResolveDims(const Node& node) {
  if (node.graph->owner() == nullptr || dims_.Scoped(infer::ScopeOf(*node.graph, this)).empty()) return;
  const InPlace place(*node.graph, this);
  for (const Value* value : node.outputs()) ResolveHere(value);
}

void Facts::ResolveHere(const Value* value) {
  if (value == nullptr || value->id >= values_.facts.size()) return;
  // Names are left as they are: what a body reads from outside has them too.
  Rewrite(&values_.facts[value->id], [this](Dim dim) {
    const Dim now = dims_.Resolve(dim);
    return dims_.NamesFewer(now, dim) ? now : dim;
  });
}

InPlace::InPlace(const Graph& graph, Facts* facts) : dims_(facts->dims()), outer_(dims_.scope()) {
  const Graph* const around = graph.owner() == nullptr ? nullptr : graph.owner()->graph;
  dims_.SetScope(infer::ScopeOf(graph, facts), around == nullptr ? 0 : infer::ScopeOf(*around, facts));
}

InPlace::~InPlace() { dims_.SetScope(outer_); }

std::vector<bool> Facts::UnifiedFacts() const {
  std::vector<bool> unified;
  for (const Fact& fact : values_.facts) unified.push_back(fact.origin == Origin::kUnified);
  return unified;
}

void Facts::MarkUnified(const std::vector<bool>& unified) {
  for (size_t i = 0; i < unified.size(); ++i) {
    if (unified[i] && values_.facts[i].origin == Origin::kOperator) values_.facts[i].origin = Origin::kUnified;
  }
}

bool Facts::AllKnown() const {
  const auto& facts = values_.facts;
  return !dims_.HasFresh() && std::all_of(facts.begin(), facts.end(), [](const Fact& fact) { return fact.has_rank; });
}

namespace {

std::string DescribeFact(const Fact& fact, const DimTable& dims) {
  std::string text(fact.type == DataType::kUndefined ? std::string_view("?") : DataTypeName(fact.type));
  if (!fact.has_rank) return text + "[...]";
  text += "[";
  for (size_t i = 0; i < fact.shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += dims.ToString(fact.shape[i]);
  }
  return text + "]";
}

}  // namespace

std::string Facts::Describe(const Value* value) const { return DescribeFact(Of(value), dims_); }

Origin Facts::OriginOf(const Value* value) const {
  const Fact& fact = Of(value);
  if (fact.origin != Origin::kOperator) return fact.origin;
  for (const Dim& dim : fact.shape) {
    if (dims_.Resolve(dim) != dim) return Origin::kUnified;
  }
  return fact.origin;
}

std::string Facts::ExplainOrigin(const Value* value) const {
  const auto producer = [value] {
    if (value == nullptr || value->producer == nullptr) return std::string("from outside");
    return fmt::format("computed by {} '{}'", OpType(*value->producer), NodeName(*value->producer));
  };
  switch (OriginOf(value)) {
    case Origin::kInput:
      return "declared for a graph input";
    case Origin::kConstant:
      return "a constant";
    case Origin::kOperator:
      return producer();
    case Origin::kUnified:
      return producer() + " with dims found equal to others";
    case Origin::kDeclared:
      return producer() + " and declared";
    case Origin::kNothing:
      break;
  }
  return "not known";
}

namespace {

// "'a' is float[n, 4] (declared for a graph input), ..."
std::string DescribeInputs(const Node& node, const Facts& facts) {
  constexpr size_t kMaxInputs = 4;
  std::string text;
  for (size_t i = 0; i < node.input_count && i < kMaxInputs; ++i) {
    const Value* value = node.input(i);
    if (value == nullptr) continue;
    text += fmt::format("{}'{}' is {} ({})", text.empty() ? "" : ", ", ValueName(*value), facts.Describe(value),
                        facts.ExplainOrigin(value));
  }
  return text.empty() ? "it has no inputs" : text;
}

}  // namespace

namespace infer {

Dim FreshDim(const Value& value, size_t axis, Facts* facts) {
  const Dim told = facts->ToldDim(value, axis);
  if (told.known()) return told;
  const bool is_input = value.is_graph_input && value.graph->owner() == nullptr;  // and not of a body
  return facts->dims().FreshSymbol(NameOfUnnamed(value, axis), is_input);
}

namespace {

// Sets is_splat where all elements are one number.
void FindSplat(Fact* fact) {
  if (fact->elements == nullptr || fact->is_splat) return;
  const Elements& elements = *fact->elements;
  if (!elements.integers.empty()) {
    const Dim first = elements.integers[0];
    if (!first.is_number()) return;
    for (const Dim& dim : elements.integers) {
      if (dim != first) return;
    }
    fact->is_splat = true;
    fact->splat = static_cast<double>(first.number());
  } else if (!elements.floats.empty()) {
    const double first = elements.floats[0];
    for (double element : elements.floats) {
      if (!(element == first) && !(std::isnan(element) && std::isnan(first))) return;
    }
    fact->is_splat = true;
    fact->splat = first;
  }
}

Fact TypeAndShapeOf(const Tensor& tensor, Facts* facts) {
  Fact fact;
  fact.type = tensor.type;
  fact.has_rank = true;
  fact.origin = Origin::kConstant;
  Shape shape;
  for (int64_t dim : tensor.dims) shape.push_back(DimOfSize(dim));
  fact.shape = facts->arena().Copy(absl::Span<const Dim>(shape));
  return fact;
}

}  // namespace

Fact ConstantFact(const Model& model, const Tensor& tensor, Facts* facts) {
  Fact fact = TypeAndShapeOf(tensor, facts);
  const int64_t count = tensor.ElementCount();
  if (count < 0 || count > Facts::kMaxElements || !facts->ReserveElements(static_cast<size_t>(count))) return fact;
  if (IsFloat(tensor.type)) {
    absl::StatusOr<std::vector<double>> floats = ReadFloats(model, tensor, Facts::kMaxElements);
    if (!floats.ok() || static_cast<int64_t>(floats->size()) != count) return fact;
    Elements* elements = facts->arena().New<Elements>();
    elements->floats = facts->arena().Copy(absl::Span<const double>(*floats));
    fact.elements = elements;
  } else if (IsInteger(tensor.type) || tensor.type == DataType::kBool) {
    absl::StatusOr<std::vector<int64_t>> integers = ReadIntegers(model, tensor, Facts::kMaxElements);
    if (!integers.ok() || static_cast<int64_t>(integers->size()) != count) return fact;
    absl::InlinedVector<Dim, 64> dims;
    dims.reserve(integers->size());
    for (int64_t integer : *integers) dims.push_back(Dim::Of(integer));
    Elements* elements = facts->arena().New<Elements>();
    elements->integers = facts->arena().Copy(absl::Span<const Dim>(dims));
    fact.elements = elements;
  }
  FindSplat(&fact);
  return fact;
}

namespace {

// What is declared along an axis of a value of this rank. No runtime checks the names of dims that a body declares of what goes
// in and out of it, and of what a loop carries they are those of the first turn: there they say nothing. Where a turn keeps a
// dim, LoopBody knows.
Dim DeclaredDim(const Value& value, const Fact& declared, size_t axis, size_t rank, const Node* by) {
  if (!declared.has_rank || declared.shape.size() != rank) return Dim();
  const bool is_of_body = value.graph->owner() != nullptr && (by == nullptr || value.is_graph_output);
  return is_of_body && !declared.shape[axis].is_number() ? Dim() : declared.shape[axis];
}

}  // namespace

void Store(const Value& value, Fact computed, const Node* by, Facts* facts) {
  DimTable& dims = facts->dims();
  const Fact declared = DeclaredFact(value, facts);
  const Fact& earlier = facts->Of(&value);
  const auto contradiction = [&] {
    if (by == nullptr || facts->contradictions().size() >= Facts::kMaxContradictions) return;
    facts->AddContradiction(
        {std::string(ValueName(value)), DescribeFact(declared, dims), DescribeFact(computed, dims), std::string(NodeName(*by)),
         fmt::format("'{}' is declared {} in {}, but {} '{}' computes {}: {}", ValueName(value), DescribeFact(declared, dims),
                     value.is_graph_output ? "the graph's outputs" : "value_info", OpType(*by), NodeName(*by),
                     DescribeFact(computed, dims), DescribeInputs(*by, *facts))});
  };
  bool contradicts = false;
  bool from_declaration = false;
  if (computed.type == DataType::kUndefined) {
    computed.type = declared.type != DataType::kUndefined ? declared.type : earlier.type;
    from_declaration = declared.type != DataType::kUndefined;
  } else if (declared.type != DataType::kUndefined && declared.type != computed.type) {
    contradicts = true;
  }
  if (computed.has_rank && declared.has_rank && computed.shape.size() != declared.shape.size()) {
    contradicts = true;
  } else if (!computed.has_rank && declared.has_rank) {
    computed.has_rank = true;
    computed.shape = declared.shape;
    from_declaration = true;
  } else if (!computed.has_rank && earlier.has_rank) {
    computed.has_rank = true;
    computed.shape = earlier.shape;
  }
  if (computed.has_rank) {
    Shape shape(computed.shape.begin(), computed.shape.end());
    bool changed = false;
    for (size_t i = 0; i < shape.size(); ++i) {
      Dim of_declaration = DeclaredDim(value, declared, i, shape.size(), by);
      if (shape[i].is_number()) shape[i] = DimOfSize(shape[i].number());
      if (!shape[i].known()) {
        changed = true;
        // Exporters write 0 for "not known" into value_info.
        if (of_declaration.is(0) && !value.is_graph_input && !value.is_graph_output) of_declaration = Dim();
        if (of_declaration.known()) {
          shape[i] = of_declaration;
          from_declaration = true;
        } else if (earlier.has_rank && earlier.shape.size() == shape.size() && earlier.shape[i].known()) {
          shape[i] = earlier.shape[i];
        } else {
          shape[i] = FreshDim(value, i, facts);
        }
        continue;
      }
      if (!of_declaration.known() || dims.Equal(shape[i], of_declaration)) continue;
      // A number declared where a graph input's symbol was computed is a trace with one example: not
      // believed.
      const Dim resolved = dims.Resolve(shape[i]);
      if (dims.Resolve(of_declaration).is_number() && !resolved.is_number() && !dims.MentionsFresh(resolved)) {
        contradicts = contradicts || dims.NotEqual(resolved, of_declaration);
        continue;
      }
      // Names of a graph output are labels that no runtime checks, and exporters get them wrong (TorchScript
      // writes the batch's name on a height). They name what is not known, and prove nothing between symbols
      // that are.
      if (value.is_graph_output && by != nullptr && !dims.MentionsFresh(resolved) && !dims.MentionsFresh(of_declaration)) {
        contradicts = contradicts || dims.NotEqual(resolved, of_declaration);
        continue;
      }
      contradicts = !dims.Unify(shape[i], of_declaration) || contradicts;
    }
    if (changed) computed.shape = facts->arena().Copy(absl::Span<const Dim>(shape));
  }
  if (contradicts) contradiction();
  FindSplat(&computed);
  if (by == nullptr) {
    computed.origin = value.graph->owner() == nullptr ? Origin::kInput : Origin::kOperator;
  } else {
    computed.origin = from_declaration ? Origin::kDeclared : Origin::kOperator;
  }
  if (computed.type == DataType::kUndefined && !computed.has_rank) computed.origin = Origin::kNothing;
  facts->Set(&value, computed);
}

NodeContext::NodeContext(const Node& node, Facts* facts)
    : node_(node), facts_(facts), outputs_(std::max<size_t>(node.output_count, 1)) {}

const Fact& NodeContext::in(size_t i) const { return facts_->Of(node_.input(i)); }

bool NodeContext::Integers(size_t i, absl::Span<const Dim>* elements) const {
  const Fact& fact = in(i);
  if (fact.elements == nullptr || IsFloat(fact.type) || !has(i)) return false;
  *elements = fact.elements->integers;
  return true;
}

std::optional<std::vector<int64_t>> NodeContext::Numbers(size_t i) const {
  absl::Span<const Dim> elements;
  if (!Integers(i, &elements)) return std::nullopt;
  std::vector<int64_t> numbers;
  numbers.reserve(elements.size());
  for (Dim element : elements) {
    const Dim resolved = facts_->dims().Resolve(element);
    if (!resolved.is_number()) return std::nullopt;
    numbers.push_back(resolved.number());
  }
  return numbers;
}

Dim NodeContext::Scalar(size_t i) const {
  absl::Span<const Dim> elements;
  return Integers(i, &elements) && elements.size() == 1 ? facts_->dims().Resolve(elements[0]) : Dim();
}

std::optional<double> NodeContext::FloatScalar(size_t i) const {
  const Fact& fact = in(i);
  if (!IsFloat(fact.type) || fact.elements == nullptr || fact.elements->floats.size() != 1) return std::nullopt;
  return fact.elements->floats[0];
}

int64_t NodeContext::Int(std::string_view name, int64_t otherwise) const { return IntAttribute(node_, name).value_or(otherwise); }
double NodeContext::Float(std::string_view name, double otherwise) const {
  const std::optional<float> value = FloatAttribute(node_, name);
  return value.has_value() ? static_cast<double>(*value) : otherwise;
}
std::string_view NodeContext::String(std::string_view name, std::string_view otherwise) const {
  return StringAttribute(node_, name).value_or(otherwise);
}
std::optional<std::vector<int64_t>> NodeContext::Ints(std::string_view name) const { return IntsAttribute(node_, name); }

std::optional<std::vector<int64_t>> NodeContext::IntsOrInput(std::string_view name, size_t i, bool* given) const {
  std::optional<std::vector<int64_t>> result = Ints(name);
  *given = result.has_value() || has(i);
  if (!result.has_value() && has(i)) result = Numbers(i);
  return result;
}

void NodeContext::Set(size_t i, DataType type, absl::Span<const Dim> shape) {
  SetType(i, type);
  SetShape(i, shape);
}

void NodeContext::SetShape(size_t i, absl::Span<const Dim> shape) {
  if (i >= outputs_.size()) return;
  Fact& fact = out(i);
  fact.has_rank = true;
  if (fact.shape.data() != shape.data() || fact.shape.size() != shape.size()) {
    fact.shape = facts_->arena().Copy(shape);
  }
}

void NodeContext::SetRank(size_t i, size_t rank) {
  if (rank > 1024) return;
  SetShape(i, Shape(rank));
}

std::optional<int64_t> NodeContext::SmallCountOf(const Fact& fact) {
  if (!fact.has_rank) return std::nullopt;
  int64_t count = 1;
  for (Dim dim : fact.shape) {
    if (!dim.is_number() || dim.number() < 0) return std::nullopt;
    if (__builtin_mul_overflow(count, dim.number(), &count)) return std::nullopt;
  }
  return count <= Facts::kMaxElements ? std::optional<int64_t>(count) : std::nullopt;
}

void NodeContext::SetIntegers(size_t i, absl::Span<const Dim> elements) {
  if (i >= outputs_.size() || elements.size() > static_cast<size_t>(Facts::kMaxElements)) return;
  if (SmallCount(i) != static_cast<int64_t>(elements.size()) || IsFloat(out(i).type)) return;
  if (!elements.empty() && std::all_of(elements.begin(), elements.end(), [](Dim d) { return !d.known(); })) return;
  if (!facts_->ReserveElements(elements.size())) return;
  Elements* copy = facts_->arena().New<Elements>();
  copy->integers = facts_->arena().Copy(elements);
  out(i).elements = copy;
}

void NodeContext::SetFloats(size_t i, absl::Span<const double> elements) {
  if (i >= outputs_.size() || elements.size() > static_cast<size_t>(Facts::kMaxElements)) return;
  if (SmallCount(i) != static_cast<int64_t>(elements.size()) || !IsFloat(out(i).type)) return;
  if (!facts_->ReserveElements(elements.size())) return;
  Elements* copy = facts_->arena().New<Elements>();
  copy->floats = facts_->arena().Copy(elements);
  out(i).elements = copy;
}

void NodeContext::SetSplat(size_t i, double value) {
  if (i >= outputs_.size()) return;
  out(i).is_splat = true;
  out(i).splat = value;
  const std::optional<int64_t> count = SmallCount(i);
  if (!count.has_value() || out(i).elements != nullptr) return;
  if (IsFloat(out(i).type)) {
    SetFloats(i, absl::InlinedVector<double, 16>(static_cast<size_t>(*count), value));
  } else if (std::abs(value) < 9e15) {
    SetIntegers(i, Dims(static_cast<size_t>(*count), Dim::Of(static_cast<int64_t>(value))));
  }
}

void NodeContext::CopyElements(size_t i, const Fact& from) {
  if (i >= outputs_.size()) return;
  if (from.elements != nullptr) {
    SetIntegers(i, from.elements->integers);
    SetFloats(i, from.elements->floats);
  }
  if (from.is_splat) SetSplat(i, from.splat);
}

Dim NodeContext::Fresh(size_t i, size_t axis) {
  const Value* value = node_.output(i);
  if (value == nullptr) return Dim();
  const Fact& earlier = facts_->Of(value);
  if (earlier.has_rank && axis < earlier.shape.size() && earlier.shape[axis].known()) return earlier.shape[axis];
  return FreshDim(*value, axis, facts_);
}

void NodeContext::Require(Dim a, Dim b) {
  if (!a.known() || !b.known() || a == b) return;
  if (dims().Unify(a, b)) return;
  if (facts_->contradictions().size() >= Facts::kMaxContradictions) return;
  const Value* value = node_.output(0);
  const std::string first = dims().ToString(a);
  const std::string second = dims().ToString(b);
  facts_->AddContradiction({value != nullptr ? std::string(ValueName(*value)) : std::string(), first, second,
                            std::string(NodeName(node_)),
                            fmt::format("{} '{}' needs {} and {} to be equal: {}", op_type(), NodeName(node_), first, second,
                                        DescribeInputs(node_, *facts_))});
}

Shape NodeContext::Broadcast(absl::Span<const Dim> a, absl::Span<const Dim> b) {
  if (a.size() < b.size()) std::swap(a, b);
  Shape result(a.begin(), a.end());
  const size_t skip = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) result[skip + i] = dims().Meet(a[skip + i], b[i]);
  return result;
}

Dim NodeContext::Product(absl::Span<const Dim> shape) {
  Dim product = Dim::Of(1);
  for (Dim dim : shape) product = dims().Mul(product, dim);
  return product;
}

void NodeContext::Commit() {
  for (size_t i = 0; i < node_.output_count; ++i) {
    const Value* value = node_.output(i);
    if (value != nullptr) Store(*value, outputs_[i], &node_, facts_);
  }
  facts_->SetMovements(node_, movements_);
}

void NodeContext::Move(size_t i, Movement movement) {
  if (i >= node_.output_count) return;
  movement.node = &node_;
  movements_.resize(node_.output_count, nullptr);
  movements_[i] = facts_->arena().New<Movement>(movement);
}

namespace {

struct OpKey {
  std::string_view domain;
  std::string_view op_type;
  bool operator==(const OpKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H state, const OpKey& key) {
    return H::combine(std::move(state), absl::string_view(key.domain.data(), key.domain.size()),
                      absl::string_view(key.op_type.data(), key.op_type.size()));
  }
};

const absl::flat_hash_map<OpKey, Handler>& Handlers() {
  static const auto* const handlers = [] {
    auto* map = new absl::flat_hash_map<OpKey, Handler>();
    for (const auto& entries : {ElementwiseOps(), ReductionOps(), ShapeOps(), MoveOps(), MatMulOps(), NnOps(), ControlFlowOps(),
                                VisionOps(), SignalOps(), TextOps(), SequenceOps(), ContribOps()}) {
      for (const Entry& entry : entries) map->emplace(OpKey{entry.domain, entry.op_type}, entry.handler);
    }
    return map;
  }();
  return *handlers;
}

}  // namespace

uint64_t ScopeOf(const Graph& graph, const Facts* facts) {
  const Calls* calls = facts->calls();
  if (graph.owner() == nullptr) return calls == nullptr ? 0 : calls->scope();
  uint64_t index = 0;
  for (const Graph* body : graph.owner()->subgraphs()) {
    if (body == &graph) break;
    ++index;
  }
  const uint64_t frame = calls == nullptr ? 0 : calls->frame();
  return (frame << 40) + ((static_cast<uint64_t>(graph.owner()->id) + 1) << 8) + std::min<uint64_t>(index, 0xff);
}

namespace {

// Attributes lie in the file's bytes, which a large model has pushed out of the caches since they were read.
constexpr size_t kNodesAhead = 4;
void Prefetch(const Node& node) {
  const uint64_t begin = node.attributes_begin;
  const uint64_t end = std::min<uint64_t>(node.attributes_end, begin + 256);
  for (uint64_t at = begin; at < end && node.attributes_end != Node::kToTheEnd; at += 64)
    __builtin_prefetch(node.encoded.data + at);
}

}  // namespace

void InferGraph(const Graph& graph, Facts* facts) {
  int depth = 0;
  for (const Node* owner = graph.owner(); owner != nullptr && depth <= 64; owner = owner->graph->owner()) ++depth;
  if (depth > 64) return;
  // What an earlier visit to a body found may rest on what its loop was then thought to keep.
  if (graph.owner() != nullptr) facts->dims().ForgetScoped(ScopeOf(graph, facts));
  const InPlace place(graph, facts);
  for (const Value* value : graph.initializers()) {
    if (value->initializer == nullptr || facts->Of(value).has_rank) continue;
    Fact fact = value->is_graph_input ? TypeAndShapeOf(*value->initializer, facts)
                                      : ConstantFact(graph.model(), *value->initializer, facts);
    facts->Set(value, fact);
  }
  for (const Value* value : graph.inputs()) {
    if (value->initializer == nullptr) Store(*value, facts->Of(value), nullptr, facts);
  }
  for (const Value* value : graph.outputs()) DeclaredFact(*value, facts);  // their symbols are older than ours
  std::vector<const Node*> sorted;
  absl::Span<const Node* const> nodes = graph.nodes();
  if (!std::is_sorted(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->order < b->order; })) {
    sorted.assign(nodes.begin(), nodes.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const Node* a, const Node* b) { return a->order < b->order; });
    for (const Node* node : sorted) {
      if (!node->dead) InferNode(*node, facts);
    }
  } else {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (i + kNodesAhead < nodes.size()) Prefetch(*nodes[i + kNodesAhead]);
      if (!nodes[i]->dead) InferNode(*nodes[i], facts);
    }
  }
}

DataType EitherType(const NodeContext& c, size_t a, size_t b) {
  return c.type(a) != DataType::kUndefined ? c.type(a) : c.type(b);
}

DataType ProductType(const NodeContext& c) {
  const DataType type = EitherType(c, 0, 1);
  return type == DataType::kInt8 ? DataType::kInt32 : type;
}

}  // namespace infer

bool CanBeOneShape(const Fact& a, const Fact& b, const DimTable& dims) {
  if (!a.has_rank || !b.has_rank) return true;
  return std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                    [&dims](Dim left, Dim right) { return !dims.NotEqual(left, right); });
}

void InferNode(const Node& node, Facts* facts) {
  infer::NodeContext context(node, facts);
  const InPlace place(*node.graph, facts);
  infer::Calls* const calls = facts->calls();
  if (calls != nullptr && calls->IsCall(node)) {
    calls->Infer(context);
  } else if (calls == nullptr || calls->CountNode()) {
    const auto& handlers = infer::Handlers();
    const auto found = handlers.find(infer::OpKey{Domain(node), OpType(node)});
    if (found != handlers.end()) {
      found->second(context);
    } else if (facts->operators() != nullptr) {
      facts->operators()->Infer(context);
    }
  }
  context.Commit();
}

std::vector<std::pair<std::string_view, std::string_view>> InferredOperators() {
  std::vector<std::pair<std::string_view, std::string_view>> operators;
  for (const auto& [key, handler] : infer::Handlers()) operators.emplace_back(key.domain, key.op_type);
  std::sort(operators.begin(), operators.end());
  return operators;
}

void InferConstant(const Value* value, Facts* facts) {
  if (value->initializer == nullptr || facts->Of(value).has_rank) return;
  facts->Set(value, infer::ConstantFact(value->graph->model(), *value->initializer, facts));
}

namespace {

void Bind(const std::string& symbol, const DimRange& range, DimTable* dims) {
  dims->SetRange(symbol, range.low, range.high);
  if (range.step <= 1 || range.low == range.high) return;
  const std::string times = fmt::format("({}/{})", symbol, range.step);
  dims->SetRange(times, range.low / range.step, range.high / range.step);
  dims->Unify(dims->Symbol(symbol), dims->Mul(Dim::Of(range.step), dims->Symbol(times)));
}

// Of dims without a name those that the options call by one, unless an input declares a dim of that name.
void TellUnnamed(const Model& model, const InferOptions& options, Facts* facts) {
  std::set<std::string> names;  // in order: the same symbols in each run
  for (const auto& [symbol, range] : options.dims) names.insert(symbol);
  for (const auto& [symbol, other] : options.equal_dims) names.insert({symbol, other});
  for (const LearnedDim& learned : options.learned_dims) names.insert({learned.name, learned.other});
  if (names.empty()) return;
  Facts unbound;
  for (const Value* input : model.graph().inputs()) {
    for (const std::string& symbol : DeclaredSymbols(*input, &unbound)) names.erase(symbol);
  }
  names.erase("");  // LearnedDim::other of a number
  if (names.empty()) return;
  for (const Value* input : model.graph().inputs()) {
    for (const std::string& name : NamesOfDims(*input, &unbound)) {
      if (names.erase(name) > 0) facts->TellDim(name, facts->dims().Symbol(name));
    }
    facts->TellDims(*input);
  }
  if (names.empty() || model.graphs().size() == 1) return;
  // Not of an input: of a name that something declares it must be another.
  for (const std::string& name : names) facts->TellDim(name, facts->dims().FreshSymbol(name));
  for (const Value* result : ResultsOfBodies(model)) facts->TellDims(*result);
}

// Whether a shape of the main graph is unknown, or names a dim that no symbol of the model is.
bool IsVague(const Model& model, const Facts& facts) {
  const auto vague = [&](const Value* value) {
    if (value == nullptr) return false;
    const Fact& fact = facts.Of(value);
    return !fact.has_rank ||
           std::any_of(fact.shape.begin(), fact.shape.end(), [&](Dim dim) { return facts.dims().MentionsFresh(dim); });
  };
  const auto& nodes = model.graph().nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
    return !node->dead && std::any_of(node->outputs().begin(), node->outputs().end(), vague);
  });
}

}  // namespace

std::vector<const Value*> ResultsOfBodies(const Model& model) {
  std::vector<const Value*> results;
  if (model.graphs().size() == 1) return results;
  for (const Node* node : model.graph().nodes()) {
    if (node->dead || node->subgraph_count == 0) continue;
    std::copy_if(node->outputs().begin(), node->outputs().end(), std::back_inserter(results),
                 [](const Value* output) { return output != nullptr; });
  }
  return results;
}

Facts Infer(const Model& model, const InferOptions& options) {
  Facts facts;
  facts.SetOperators(options.operators);
  if (model.graphs().empty()) return facts;
  TellUnnamed(model, options, &facts);
  for (const auto& [symbol, range] : options.dims) Bind(symbol, range, &facts.dims());
  for (const auto& [symbol, other] : options.equal_dims) {
    facts.dims().Unify(facts.dims().Symbol(symbol), facts.dims().Symbol(other));
  }
  const auto named = [&](const std::string& name) {
    const Dim known = facts.dims().Find(name);
    return known.known() ? known : facts.dims().Symbol(name);
  };
  for (const LearnedDim& learned : options.learned_dims) {
    facts.dims().Unify(named(learned.name), learned.number.has_value() ? Dim::Of(*learned.number) : named(learned.other));
  }
  if (!model.functions().empty()) facts.SetCalls(std::make_shared<infer::Calls>(model));
  std::vector<bool> unified;  // whose dims were found to be others, which a later pass computes as they are
  constexpr int kMaxPasses = 3;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    const uint64_t version = facts.dims().version();
    facts.ForgetContradictions(0);
    facts.StartPass();
    if (facts.calls() != nullptr) facts.calls()->StartPass();
    infer::InferGraph(model.graph(), &facts);
    const bool numbers = facts.ResolveDims(model);
    if (facts.dims().version() == version) break;  // nothing was learned that an earlier node could use
    if (facts.calls() != nullptr && facts.calls()->exhausted()) break;
    // Worth another pass only if a number was learned, or something is unknown that unification might have made known.
    if (!numbers && !facts.HaveMet() && (facts.AllKnown() || !IsVague(model, facts))) break;
    unified = facts.UnifiedFacts();
  }
  facts.MarkUnified(unified);
  return facts;
}

}  // namespace ascend_fuse
