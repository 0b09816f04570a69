#include "ir/infer/carried.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

// A dim of a carried value of which inference found that a turn may change it.
struct OpenDim {
  Dim first;   // what the first turn gets
  Dim input;   // what a turn gets
  Dim output;  // what it gives
  Dim result;  // what the node gives; unknown where nobody reads it
};

Dim DimAt(const Fact& fact, size_t axis) { return axis < fact.shape.size() ? fact.shape[axis] : Dim(); }

std::vector<OpenDim> OpenDims(const Node& loop, const Facts& facts) {
  std::vector<OpenDim> open;
  for (const CarriedValue& carried : CarriedValues(loop)) {
    const Fact& first = facts.Of(carried.initial);
    const Fact& input = facts.Of(carried.input);
    const Fact& output = facts.Of(carried.output);
    const Fact& result = facts.Of(carried.result);
    if (!first.has_rank || input.rank() != first.rank() || output.rank() != first.rank()) continue;
    for (size_t axis = 0; axis < first.shape.size(); ++axis) {
      const OpenDim dim = {first.shape[axis], input.shape[axis], output.shape[axis], DimAt(result, axis)};
      if (!dim.first.known() || !dim.input.known() || !dim.output.known()) continue;
      if (facts.dims().MentionsFresh(dim.input) && !facts.dims().Equal(dim.input, dim.first)) open.push_back(dim);
    }
  }
  return open;
}

// Leaves those of `open` that a turn gives as it got them, where it gets what the first turn gets. What it gives of one may rest
// on another: where one falls, the others are asked again.
void LeaveKept(const Graph& body, Facts* facts, std::vector<OpenDim>* open) {
  const InPlace place(body, facts);
  DimTable& dims = facts->dims();
  const uint64_t scope = dims.scope();
  for (size_t before = 0; before != open->size() && !open->empty();) {
    before = open->size();
    // Of no body (ScopeOf), and of no earlier trial that made a dim of its own: what was open then may be known now.
    const uint64_t trial = (uint64_t{1} << 63) | dims.Mark();
    dims.SetScope(trial, scope);
    for (const OpenDim& dim : *open) dims.Unify(dim.input, dim.first);
    const auto changes = [&](const OpenDim& dim) {
      return !dims.Equal(dim.input, dim.first) || !dims.Equal(dim.output, dim.first);
    };
    open->erase(std::remove_if(open->begin(), open->end(), changes), open->end());
    dims.SetScope(scope);
    dims.ForgetScoped(trial);
  }
}

}  // namespace

std::vector<CarriedValue> CarriedValues(const Node& node) {
  const bool is_loop = IsOp(node, "Loop");
  const bool is_scan = IsOp(node, "Scan") && node.graph->model().OpsetVersion() >= 9;
  if ((!is_loop && !is_scan) || node.subgraph_count == 0 || node.subgraphs()[0] == nullptr) return {};
  const Graph& body = *node.subgraphs()[0];
  // A Loop has the number of turns and the condition before them, its body the number of the turn and the condition; of these it
  // gives the condition.
  const size_t first_input = is_loop ? 2 : 0;
  const size_t first_output = is_loop ? 1 : 0;
  const int64_t scanned = is_scan ? IntAttribute(node, "num_scan_inputs").value_or(0) : 0;
  if (is_scan && scanned <= 0) return {};
  std::vector<CarriedValue> carried;
  for (size_t i = 0; first_input + i + static_cast<size_t>(scanned) < node.input_count; ++i) {
    if (first_input + i >= body.inputs().size() || first_output + i >= body.outputs().size()) break;
    carried.push_back(
        {node.input(first_input + i), body.inputs()[first_input + i], body.outputs()[first_output + i], node.output(i)});
  }
  return carried;
}

bool LearnOfTurns(const Node& loop, Facts* facts) {
  std::vector<OpenDim> open = OpenDims(loop, *facts);
  if (open.empty()) return false;
  const Graph& body = *loop.subgraphs()[0];
  LeaveKept(body, facts, &open);
  {
    const InPlace place(body, facts);
    for (const OpenDim& dim : open) facts->dims().Unify(dim.input, dim.first);
  }
  const InPlace place(*loop.graph, facts);
  for (const OpenDim& dim : open) facts->dims().Unify(dim.result, dim.first);
  return !open.empty();
}

}  // namespace ascend_fuse::infer
