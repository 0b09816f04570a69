// One graph, measured: what every node of it computes and moves, where it runs and how long by the cost model. What is kept needs
// no graph, so that the same model is measured before and after a rewriting.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "passes/analyze/analysis.h"
#include "passes/analyze/binding.h"
#include "passes/analyze/reach.h"
#include "passes/core/workspace.h"
#include "patterns/cost/cost_model.h"
#include "patterns/cost/work.h"

namespace ascend_fuse {

struct MeasuredNode {
  std::string op;
  std::string name;  // Label
  std::string module;
  std::vector<std::string> outputs;
  std::vector<int> inputs;      // indices of the nodes that compute its inputs; each once
  int readers = 0;              // of its first output; one more where it is an output of the graph
  std::string reads_weight_of;  // of a product with a constant weight: the value that is multiplied
  std::string goes_into;        // of a Mul or an Add that a linear can take along (passes/core/linear_channels.h): its operator
  bool is_new = false;
  bool known = true;
  std::string engine;  // as SupportRecord
  const UnsupportedForm* form = nullptr;
  WorkKind kind = WorkKind::kNone;
  Dim flops, bytes;
  KernelWork work;
  double times = 1;     // turns of loops
  double launches = 0;  // kernels: 1, or 0 where it is a part of another one
  KernelTime time;      // of all turns

  bool runs_on_chip() const { return engine == "ai_core"; }
};

// What nodes compute and move together, as functions of the dims and in numbers.
struct AmountsOf {
  Amount flops, bytes;
};

struct MeasuredGraph {
  std::vector<MeasuredNode> nodes;
  bool is_static = true;  // no shape of a kernel has a symbol
  int64_t unknown_loops = 0;
  int64_t opset = 0;
  AmountsOf whole;
  std::map<std::string, AmountsOf> operators, modules;  // a module has what lies below it
  SideRecord side;
  ActivationRecord activations;
  std::vector<HostRecord> host;
  std::vector<std::string> uncounted;
  std::vector<std::string> host_symbols;  // what shape arithmetic is computed of
};

// What a whole analysis shares.
struct Measuring {
  Measuring(const Model& model, const Target& target, const InferOptions& infer) : target(target), binding(model, infer.dims) {}
  const Target& target;
  Binding binding;
  absl::flat_hash_map<const Value*, std::string> modules;  // of what nodes of the model as it is compute
};

// The paths of a module and of those that it is in, "a.b.c", "a.b", "a".
std::vector<std::string_view> PathsOf(std::string_view module);

// Measures the graph of the workspace as it is now; times are not set yet.
MeasuredGraph MeasureGraph(Workspace& workspace, Measuring* measuring);

// Sets the times. A group is a set of nodes that one kernel does: its first member has all of the time.
void SetTimes(const CostModel& model, const std::vector<std::vector<int>>& groups, MeasuredGraph* graph);

// The work of nodes as that of one kernel: intermediate results are not moved.
KernelWork Joined(const MeasuredGraph& graph, const std::vector<int>& members, WorkKind kind);

}  // namespace ascend_fuse
