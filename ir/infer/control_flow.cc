// If, Loop and Scan: bodies are inferred in a scope of their own, and what comes out of them is only what
// holds whichever branch runs and however often the loop turns.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "ir/infer/carried.h"
#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

// A dim that is `a` where the first of two bodies ran, and `b` where the second one did. What equals `a` where the first one ran
// is true of both, and the other way round.
Dim InEither(NodeContext& c, absl::Span<const Graph* const> bodies, Dim a, Dim b) {
  if (c.dims().Equal(a, b)) return a;
  c.facts().NoteApart(a, b);
  if (bodies.size() != 2) return Dim();
  for (const auto& [body, dim] : {std::pair(bodies[0], b), std::pair(bodies[1], a)}) {
    const InPlace place(*body, &c.facts());
    if (c.dims().Equal(a, b)) return dim;
  }
  return Dim();
}

// One of the bodies runs: what holds in each of them holds.
void LearnFrom(NodeContext& c, absl::Span<const Graph* const> bodies) {
  for (const auto& [a, b] : c.dims().Scoped(ScopeOf(*bodies[0], &c.facts()))) {
    const bool in_all = std::all_of(bodies.begin() + 1, bodies.end(), [&, &a = a, &b = b](const Graph* body) {
      const InPlace place(*body, &c.facts());
      return c.dims().Equal(a, b);
    });
    if (in_all) c.Require(a, b);
  }
}

void If(NodeContext& c) {
  const auto bodies = c.node().subgraphs();
  for (const Graph* body : bodies) {
    if (body != nullptr) InferGraph(*body, &c.facts());
  }

  // The only branch that runs.
  const Graph* taken = nullptr;
  if (const Dim condition = c.Scalar(0); condition.is_number()) {
    const auto attributes = ReadAttributes(c.node());
    size_t index = 0;
    for (const Attribute& body : attributes) {
      if (body.type != AttributeType::kGraph) continue;
      if (index < bodies.size() && body.name == (condition.is(0) ? "else_branch" : "then_branch")) {
        taken = bodies[index];
      }
      ++index;
    }
  }
  const bool all_known = std::all_of(bodies.begin(), bodies.end(), [](const Graph* body) { return body != nullptr; });
  if (taken != nullptr) LearnFrom(c, {&taken, 1});
  if (taken == nullptr && bodies.size() == 2 && all_known) LearnFrom(c, bodies);
  for (size_t i = 0; taken != nullptr && i < c.output_count(); ++i) {
    if (i >= taken->outputs().size()) return;
    const Fact& fact = c.facts().Of(taken->outputs()[i]);
    c.SetType(i, fact.type);
    if (fact.has_rank) c.SetShape(i, fact.shape);
    if (fact.has_rank) c.CopyElements(i, fact);
  }
  if (taken != nullptr) return;

  for (size_t i = 0; i < c.output_count(); ++i) {
    bool first = true;
    Fact joined;
    Shape shape;
    std::optional<Dims> elements;  // integers that both branches give
    for (const Graph* body : bodies) {
      if (body == nullptr || i >= body->outputs().size()) return;
      const Fact& fact = c.facts().Of(body->outputs()[i]);
      if (first) {
        joined = fact;
        for (Dim dim : fact.shape) shape.push_back(c.dims().Outside(dim));
        if (fact.elements != nullptr && !IsFloat(fact.type)) {
          elements.emplace(fact.elements->integers.begin(), fact.elements->integers.end());
        }
        first = false;
        continue;
      }
      if (joined.type == DataType::kUndefined) joined.type = fact.type;
      if (!joined.has_rank || fact.rank() != joined.rank()) {
        joined.has_rank = false;
        shape.clear();
      }
      for (size_t k = 0; k < shape.size(); ++k) shape[k] = InEither(c, bodies, shape[k], c.dims().Outside(fact.shape[k]));
      if (!(joined.is_splat && fact.is_splat && joined.splat == fact.splat)) joined.is_splat = false;
      const bool comparable = elements.has_value() && joined.has_rank && fact.elements != nullptr &&
                              fact.elements->integers.size() == elements->size();
      if (!comparable) elements.reset();
      for (size_t k = 0; elements.has_value() && k < elements->size(); ++k) {
        (*elements)[k] = InEither(c, bodies, (*elements)[k], fact.elements->integers[k]);
      }
    }
    if (first) continue;
    c.SetType(i, joined.type);
    if (joined.has_rank) c.SetShape(i, shape);
    if (joined.is_splat) c.SetSplat(i, joined.splat);
    if (elements.has_value()) c.SetIntegers(i, *elements);
  }
}

// Forgets what was found in a body, and in the bodies in it.
void Forget(const Graph& body, Facts* facts, int depth = 0) {
  if (depth > 64) return;
  for (const Value* value : body.inputs()) facts->Set(value, Fact());
  for (const Node* node : body.nodes()) {
    for (const Value* value : node->outputs()) {
      if (value != nullptr) facts->Set(value, Fact());
    }
    for (const Graph* inner : node->subgraphs()) {
      if (inner != nullptr) Forget(*inner, facts, depth + 1);
    }
  }
}

// A value that each turn of a loop gets from the turn before, the first from outside.
struct Carried {
  const Value* input = nullptr;   // of the body
  const Value* output = nullptr;  // of the body
  DataType type = DataType::kUndefined;
  // What every turn gets: the dims of the first where turns keep them, else unknown.
  bool has_rank = false;
  std::vector<Dim> shape;
};

// Infers the body of Loop or Scan. What every turn gets is first taken to be what the first one gets, then whatever a
// turn does not give as it got it is taken to be unknown, until what is assumed of a turn's input holds for its
// output: then it holds in all turns, however many there are. Each attempt starts from nothing; of a symbol that one
// of them made up, nothing outside knows.
class LoopBody {
 public:
  LoopBody(const Graph& body, NodeContext& c)
      : body_(body), facts_(&c.facts()), scope_(ScopeOf(body, facts_)), mark_(facts_->MarkOf(scope_)) {}

  void Carry(const CarriedValue& value) {
    const Fact& initial = facts_->Of(value.initial);
    Carried carried;
    carried.input = value.input;
    carried.output = value.output;
    carried.type = initial.type;
    carried.has_rank = initial.has_rank;
    carried.shape.assign(initial.shape.begin(), initial.shape.end());
    carried_.push_back(std::move(carried));
  }

  // An input that has the same type and shape in all turns.
  void Give(size_t place, DataType type, const Shape* shape) {
    if (place >= body_.inputs().size()) return;
    Carried given;
    given.input = body_.inputs()[place];
    given.type = type;
    given.has_rank = shape != nullptr;
    if (shape != nullptr) given.shape.assign(shape->begin(), shape->end());
    given_.push_back(std::move(given));
  }

  void Infer() {
    constexpr int kAttempts = 4;
    const size_t contradictions = facts_->contradictions().size();
    for (int attempt = 0;; ++attempt) {
      const bool last = !facts_->CountLoop(body_.nodes().size() + 1);
      if (attempt > 0 || last) {
        Forget(body_, facts_);
        facts_->ForgetContradictions(contradictions);
      }
      for (Carried& carried : carried_) {
        if (attempt >= kAttempts) carried.shape.assign(carried.shape.size(), Dim());
        if (attempt > kAttempts || last) carried.has_rank = false;
        Set(carried);
      }
      for (const Carried& given : given_) Set(given);
      InferGraph(body_, facts_);
      bool settled = true;
      for (Carried& carried : carried_) settled = Keep(&carried) && settled;
      if (settled || last || attempt > kAttempts) return;
    }
  }

  const std::vector<Carried>& carried() const { return carried_; }
  // The dims of what a turn gives that are the same in all turns.
  Shape InAllTurns(const Fact& fact) const {
    Shape shape;
    for (Dim dim : fact.shape) {
      shape.push_back(facts_->dims().OlderThan(dim, mark_) ? facts_->dims().Outside(dim) : Dim());
    }
    return shape;
  }

 private:
  void Set(const Carried& value) {
    Fact fact;
    fact.type = value.type;
    fact.has_rank = value.has_rank;
    fact.shape = facts_->arena().Copy(absl::Span<const Dim>(value.shape));
    facts_->Set(value.input, fact);
  }

  // Weakens what a turn does not keep; true if it keeps everything.
  bool Keep(Carried* carried) {
    if (!carried->has_rank) return true;
    const Fact& out = facts_->Of(carried->output);
    if (out.rank() != static_cast<int>(carried->shape.size())) {
      carried->has_rank = false;
      return false;
    }
    const InPlace place(body_, facts_);  // that the next turn gets the same is asked where a turn has run
    bool kept = true;
    for (size_t i = 0; i < carried->shape.size(); ++i) {
      if (!carried->shape[i].known() || facts_->dims().Equal(carried->shape[i], out.shape[i])) continue;
      carried->shape[i] = Dim();
      kept = false;
    }
    return kept;
  }

  const Graph& body_;
  Facts* const facts_;
  const uint64_t scope_;
  const uint64_t mark_;
  std::vector<Carried> carried_;
  std::vector<Carried> given_;
};

// The body's input of a scalar, unless it is declared with another shape: [1] is allowed too.
void GiveScalar(size_t place, DataType type, const Graph& body, NodeContext& c, LoopBody* loop) {
  if (place >= body.inputs().size()) return;
  const Shape scalar;
  loop->Give(place, type, DeclaredFact(*body.inputs()[place], &c.facts()).has_rank ? nullptr : &scalar);
}

// Whether the condition that ends the loop is true after every turn: a constant, or what the turn got.
bool GoesOn(const Graph& body, const Facts& facts) {
  const Value* condition = body.outputs().empty() ? nullptr : body.outputs()[0];
  for (int i = 0; i < 8 && condition != nullptr; ++i) {
    const Fact& fact = facts.Of(condition);
    if (fact.is_splat) return fact.splat != 0;
    if (body.inputs().size() > 1 && condition == body.inputs()[1]) return true;
    const Node* node = condition->producer;
    if (node == nullptr || (!IsOp(*node, "Identity") && !IsOp(*node, "Cast"))) return false;
    condition = node->input(0);
  }
  return false;
}

void Loop(NodeContext& c) {  // (M, cond, v...) body (i, cond, v...) -> (cond, v..., scan...)
  if (c.node().subgraph_count == 0 || c.node().subgraphs()[0] == nullptr) return;
  const Graph& body = *c.node().subgraphs()[0];
  LoopBody loop(body, c);
  GiveScalar(0, DataType::kInt64, body, c, &loop);
  GiveScalar(1, DataType::kBool, body, c, &loop);
  for (const CarriedValue& carried : CarriedValues(c.node())) loop.Carry(carried);
  loop.Infer();

  Dim turns;
  const bool starts = !c.has(1) || c.Scalar(1).is(1);
  if (starts && c.has(0) && GoesOn(body, c.facts())) {
    turns = c.Scalar(0);
    if (turns.known() && !c.dims().AtLeast(turns, Dim::Of(0))) turns = Dim();
  }
  const size_t carried = c.input_count() < 2 ? 0 : c.input_count() - 2;
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (i + 1 >= body.outputs().size()) return;
    const Fact& out = c.facts().Of(body.outputs()[i + 1]);
    c.SetType(i, out.type);
    if (i < carried) {
      if (i >= loop.carried().size()) continue;
      const Carried& value = loop.carried()[i];
      if (out.type == DataType::kUndefined) c.SetType(i, value.type);
      if (value.has_rank) c.SetShape(i, value.shape);
    } else if (out.has_rank) {
      Shape shape = loop.InAllTurns(out);
      shape.insert(shape.begin(), turns);
      c.SetShape(i, shape);
    }
  }
}

void Scan(NodeContext& c) {
  if (c.node().subgraph_count == 0 || c.node().subgraphs()[0] == nullptr) return;
  const Graph& body = *c.node().subgraphs()[0];
  LoopBody loop(body, c);
  if (c.opset() < 9) {  // (lengths, states, scans) with a batch dim: types alone
    for (size_t i = 0; i < std::min(body.inputs().size(), c.input_count()); ++i) {
      loop.Give(i, c.type(i + 1), nullptr);
    }
    loop.Infer();
    for (size_t i = 0; i < std::min(c.output_count(), body.outputs().size()); ++i) {
      c.SetType(i, c.facts().Of(body.outputs()[i]).type);
    }
    return;
  }
  const int64_t scanned = c.Int("num_scan_inputs", 0);
  const int64_t states = static_cast<int64_t>(c.input_count()) - scanned;
  if (scanned <= 0 || states < 0) return;
  const auto input_axes = c.Ints("scan_input_axes").value_or(std::vector<int64_t>());
  const auto output_axes = c.Ints("scan_output_axes").value_or(std::vector<int64_t>());
  for (const CarriedValue& carried : CarriedValues(c.node())) loop.Carry(carried);
  Dim length;
  for (auto i = static_cast<size_t>(states); i < std::min(body.inputs().size(), c.input_count()); ++i) {
    const size_t which = i - static_cast<size_t>(states);
    const int64_t axis = NormalizeAxis(which < input_axes.size() ? input_axes[which] : 0, c.rank(i));
    if (!c.in(i).has_rank || axis < 0) {
      loop.Give(i, c.type(i), nullptr);
      continue;
    }
    Shape shape = c.shape(i);
    const Dim dim = shape[static_cast<size_t>(axis)];
    if (length.known()) c.Require(length, dim);
    if (!length.known()) length = dim;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    loop.Give(i, c.type(i), &shape);
  }
  loop.Infer();
  for (size_t i = 0; i < std::min(c.output_count(), body.outputs().size()); ++i) {
    const Fact& out = c.facts().Of(body.outputs()[i]);
    c.SetType(i, out.type);
    if (static_cast<int64_t>(i) < states) {
      if (i >= loop.carried().size()) continue;
      const Carried& value = loop.carried()[i];
      if (out.type == DataType::kUndefined) c.SetType(i, value.type);
      if (value.has_rank) c.SetShape(i, value.shape);
      continue;
    }
    if (!out.has_rank) continue;
    const size_t which = i - static_cast<size_t>(states);
    const int64_t axis = NormalizeAxis(which < output_axes.size() ? output_axes[which] : 0, out.rank() + 1);
    if (axis < 0) continue;
    Shape shape = loop.InAllTurns(out);
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), length);
    c.SetShape(i, shape);
  }
}

constexpr Entry kOps[] = {
    {"", "If", If},
    {"", "Loop", Loop},
    {"", "Scan", Scan},
};

}  // namespace

absl::Span<const Entry> ControlFlowOps() { return kOps; }

}  // namespace ascend_fuse::infer
