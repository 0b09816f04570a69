// If, Loop and Scan: bodies are inferred in a scope of their own, and what comes out of them is only what
// holds whichever branch runs and however often the loop turns.
#include <algorithm>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

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
    for (const Graph* body : bodies) {
      if (body == nullptr || i >= body->outputs().size()) return;
      const Fact& fact = c.facts().Of(body->outputs()[i]);
      if (first) {
        joined = fact;
        shape.assign(fact.shape.begin(), fact.shape.end());
        first = false;
        continue;
      }
      if (joined.type == DataType::kUndefined) joined.type = fact.type;
      if (!joined.has_rank || fact.rank() != joined.rank()) {
        joined.has_rank = false;
        shape.clear();
      }
      for (size_t k = 0; k < shape.size(); ++k) {
        if (!c.dims().Equal(shape[k], fact.shape[k])) shape[k] = Dim();
      }
      if (!(joined.is_splat && fact.is_splat && joined.splat == fact.splat)) joined.is_splat = false;
      joined.elements = nullptr;
    }
    if (first) continue;
    c.SetType(i, joined.type);
    if (joined.has_rank) c.SetShape(i, shape);
    if (joined.is_splat) c.SetSplat(i, joined.splat);
  }
}

// A body input of which only the type is known.
void SetBodyInput(NodeContext& c, const Value* value, DataType type) {
  const Fact& earlier = c.facts().Of(value);
  if (earlier.type != DataType::kUndefined || earlier.has_rank) return;
  Fact fact;
  fact.type = type;
  c.facts().Set(value, fact);
}

void Loop(NodeContext& c) {  // (M, cond, v...) body (i, cond, v...) -> (cond, v..., scan...)
  if (c.node().subgraph_count == 0 || c.node().subgraphs()[0] == nullptr) return;
  const Graph& body = *c.node().subgraphs()[0];
  const auto& inputs = body.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    SetBodyInput(c, inputs[i], i == 0 ? DataType::kInt64 : i == 1 ? DataType::kBool : c.type(i));
  }
  InferGraph(body, &c.facts());
  const size_t carried = c.input_count() < 2 ? 0 : c.input_count() - 2;
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (i + 1 >= body.outputs().size()) return;
    const Fact& out = c.facts().Of(body.outputs()[i + 1]);
    c.SetType(i, out.type);
    if (!out.has_rank) continue;
    if (i < carried) {
      // No turn at all gives the initial value.
      const Fact& initial = c.in(i + 2);
      if (initial.rank() != out.rank()) continue;
      Shape shape = c.shape(i + 2);
      for (size_t k = 0; k < shape.size(); ++k) {
        if (!c.dims().Equal(shape[k], out.shape[k])) shape[k] = Dim();
      }
      c.SetShape(i, shape);
    } else {
      Shape shape(1);
      // Only numbers: a symbol of the body may stand for another length in every turn.
      for (Dim dim : out.shape) shape.push_back(dim.is_number() ? dim : Dim());
      c.SetShape(i, shape);
    }
  }
}

void Scan(NodeContext& c) {
  if (c.node().subgraph_count == 0 || c.node().subgraphs()[0] == nullptr) return;
  const Graph& body = *c.node().subgraphs()[0];
  if (c.opset() < 9) {  // (lengths, states, scans) with a batch dim: types alone
    for (size_t i = 0; i < std::min(body.inputs().size(), c.input_count()); ++i) {
      SetBodyInput(c, body.inputs()[i], c.type(i + 1));
    }
    InferGraph(body, &c.facts());
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
  Dim length;
  for (size_t i = 0; i < std::min(body.inputs().size(), c.input_count()); ++i) {
    SetBodyInput(c, body.inputs()[i], c.type(i));
    if (static_cast<int64_t>(i) < states || !c.in(i).has_rank) continue;
    const size_t which = i - static_cast<size_t>(states);
    const int64_t axis = NormalizeAxis(which < input_axes.size() ? input_axes[which] : 0, c.rank(i));
    if (axis < 0) continue;
    Shape shape = c.shape(i);
    if (!length.known()) length = shape[static_cast<size_t>(axis)];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    Fact fact;
    fact.type = c.type(i);
    fact.has_rank = true;
    fact.shape = c.facts().arena().Copy(absl::Span<const Dim>(shape));
    c.facts().Set(body.inputs()[i], fact);
  }
  InferGraph(body, &c.facts());
  for (size_t i = 0; i < std::min(c.output_count(), body.outputs().size()); ++i) {
    const Fact& out = c.facts().Of(body.outputs()[i]);
    c.SetType(i, out.type);
    if (!out.has_rank) continue;
    if (static_cast<int64_t>(i) < states) {
      if (c.rank(i) != out.rank()) continue;
      Shape shape = c.shape(i);
      for (size_t k = 0; k < shape.size(); ++k) {
        if (!c.dims().Equal(shape[k], out.shape[k])) shape[k] = Dim();
      }
      c.SetShape(i, shape);
      continue;
    }
    const size_t which = i - static_cast<size_t>(states);
    const int64_t axis = NormalizeAxis(which < output_axes.size() ? output_axes[which] : 0, out.rank() + 1);
    if (axis < 0) continue;
    Shape shape;
    for (Dim dim : out.shape) shape.push_back(dim.is_number() ? dim : Dim());
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
