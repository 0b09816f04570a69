#include "passes/analyze/measure.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fmt/format.h"
#include "ir/add_once.h"
#include "passes/analyze/amounts.h"
#include "passes/analyze/host_work.h"
#include "passes/analyze/memory.h"
#include "passes/core/linear_channels.h"
#include "passes/core/module_path.h"

namespace ascend_fuse {
namespace {

// Whether the precision mode lets float32 be computed in float16.
bool LowersFloats(const Target& target) {
  const std::string& mode = target.options().precision_mode;
  return mode.find("fp16") != std::string::npos && mode != "allow_fp32_to_fp16_no";
}

std::string EngineOf(const UnsupportedForm& form) {
  switch (form.effect) {
    case UnsupportedForm::Effect::kAiCpu:
      return "ai_cpu";
    case UnsupportedForm::Effect::kHost:
      return "host";
    case UnsupportedForm::Effect::kMisread:
    case UnsupportedForm::Effect::kLosesType:
      return "misread";
    default:
      return "refused";
  }
}

class Measurer {
 public:
  Measurer(Workspace& workspace, Measuring* measuring)
      : workspace_(workspace),
        measuring_(*measuring),
        facts_(workspace.facts()),
        dims_(workspace.facts().dims()),
        reach_(workspace.model(), workspace.facts()),
        lowers_(LowersFloats(measuring->target)) {
    measuring_.binding.OfOtherDims();
  }

  MeasuredGraph Run() {
    graph_.unknown_loops = reach_.unknown_loops();
    graph_.opset = workspace_.model().OpsetVersion();
    for (const Node* node : reach_.nodes()) place_[node] = static_cast<int>(place_.size());
    graph_.nodes.reserve(reach_.nodes().size());
    for (const Node* node : reach_.nodes()) graph_.nodes.push_back(Measure(*node));
    SetModules();
    SetSide();
    SumAmounts(&measuring_.binding, &dims_, &graph_);
    graph_.activations = MeasureActivations(workspace_.model(), reach_, facts_, &measuring_.binding);
    graph_.host = FindHostWork(graph_, reach_, facts_, &graph_.host_symbols);
    graph_.uncounted.assign(uncounted_.begin(), uncounted_.end());
    return std::move(graph_);
  }

 private:
  MeasuredNode Measure(const Node& node) {
    MeasuredNode measured;
    measured.op = WorkName(node);
    measured.name = std::string(Label(node));
    measured.is_new = node.is_new;
    measured.times = reach_.Times(node);
    SetEdges(node, &measured);
    SetEngine(node, &measured);
    const OperatorWork* row = FindOperatorWork(measured.op);
    measured.kind = row != nullptr ? row->kind : WorkKind::kVector;
    if (measured.engine == "folded" || measured.engine == "none" || measured.engine == "host") {
      measured.flops = measured.bytes = Dim::Of(0);
      return measured;
    }
    if (row == nullptr) uncounted_.insert(measured.op);
    const Work work = WorkOf(node, &facts_);
    measured.flops = work.flops;
    measured.bytes = work.bytes;
    measured.known = work.known();
    measured.launches = 1;
    SetWork(work, &measured);
    for (const Value* output : node.outputs()) graph_.is_static = graph_.is_static && (output == nullptr || IsStatic(*output));
    return measured;
  }

  bool IsStatic(const Value& value) const {
    const Fact& fact = facts_.Of(&value);
    return fact.has_rank && std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is_number(); });
  }

  void SetEdges(const Node& node, MeasuredNode* measured) {
    for (const Value* output : node.outputs()) {
      if (output != nullptr) measured->outputs.emplace_back(ValueName(*output));
    }
    for (const Use& use : node.inputs()) {
      if (use.value == nullptr || use.value->producer == nullptr) continue;
      const auto place = place_.find(use.value->producer);
      if (place == place_.end()) continue;
      AddOnce(place->second, &measured->inputs);
    }
    if (const Value* output = node.output(0); output != nullptr) {
      for (const Use& use : LiveUses(*output)) measured->readers += reach_.Needs(*use.user) ? 1 : 0;
      measured->readers += output->is_graph_output ? 1 : 0;
    }
    const Value* weight = node.input(1);
    if (IsOp(node, "MatMul") && weight != nullptr && reach_.IsFolded(*weight) && node.input(0) != nullptr) {
      measured->reads_weight_of = std::string(ValueName(*node.input(0)));
    }
    if (const Node* linear = LinearThatTakes(facts_, node); linear != nullptr) measured->goes_into = OpType(*linear);
  }

  // Shapes, views and what is folded need no kernel; of the rest the target's data says where it runs.
  void SetEngine(const Node& node, MeasuredNode* measured) {
    const OperatorWork* row = FindOperatorWork(measured->op);
    if (reach_.IsFolded(node)) {
      measured->engine = "folded";
      return;
    }
    if (node.domain == NameId::kEmpty) {
      for (const UnsupportedForm* form : measuring_.target.UnsupportedForms(node, workspace_.model().OpsetVersion(), &facts_)) {
        if (form->effect == UnsupportedForm::Effect::kSlow || (!form->certain && measured->form != nullptr)) continue;
        if (measured->form != nullptr && measured->form->certain && EngineOf(*measured->form) == "refused") continue;
        measured->form = form;
      }
    }
    if (measured->form != nullptr && (measured->form->certain || EngineOf(*measured->form) == "ai_cpu")) {
      measured->engine = EngineOf(*measured->form);
    }
    if (reach_.IsShapeArithmetic(node) && measured->engine != "refused") {
      measured->engine = "host";
    } else if (row != nullptr && row->kind == WorkKind::kView && measured->engine != "refused") {
      measured->engine = "none";
    } else if (row != nullptr && row->kind == WorkKind::kControl && measured->engine.empty()) {
      measured->engine = "host";
    } else if (node.domain != NameId::kEmpty && Domain(node) != "npu") {
      measured->engine = "refused";
    } else if (measured->engine.empty()) {
      measured->engine = "ai_core";
    }
  }

  void SetWork(const Work& work, MeasuredNode* measured) {
    measured->work = InNumbers(work, lowers_, [this](Dim dim) { return measuring_.binding.Evaluate(dim, dims_); });
    measured->work.on_ai_cpu = measured->engine == "ai_cpu";
  }

  // A node that was made belongs to the module of what it computes, or to that of the first node that reads it.
  void SetModules() {
    const auto& nodes = reach_.nodes();
    for (size_t i = nodes.size(); i-- > 0;) {
      const Node& node = *nodes[i];
      MeasuredNode& measured = graph_.nodes[i];
      for (const Value* output : node.outputs()) {
        const auto known = output != nullptr ? measuring_.modules.find(output) : measuring_.modules.end();
        if (known != measuring_.modules.end()) measured.module = known->second;
      }
      if (measured.module.empty()) measured.module = ModulePath(node);
      if (!measured.module.empty() || node.output(0) == nullptr) continue;
      for (const Use& use : LiveUses(*node.output(0))) {
        const auto place = place_.find(use.user);
        if (place != place_.end()) measured.module = graph_.nodes[static_cast<size_t>(place->second)].module;
        if (!measured.module.empty()) break;
      }
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const Value* output : nodes[i]->outputs()) {
        if (output != nullptr) measuring_.modules.try_emplace(output, graph_.nodes[i].module);
      }
    }
  }

  void SetSide() {
    SideRecord& side = graph_.side;
    side.nodes = static_cast<int64_t>(graph_.nodes.size());
    for (const MeasuredNode& node : graph_.nodes) {
      side.ai_cpu += node.engine == "ai_cpu" ? 1 : 0;
      side.host += node.engine == "host" ? 1 : 0;
      side.folded += node.engine == "folded" ? 1 : 0;
      side.unknown += node.known ? 0 : 1;
    }
  }

  Workspace& workspace_;
  Measuring& measuring_;
  Facts& facts_;
  DimTable& dims_;
  Reach reach_;
  const bool lowers_;
  absl::flat_hash_map<const Node*, int> place_;
  std::set<std::string> uncounted_;
  MeasuredGraph graph_;
};

}  // namespace

MeasuredGraph MeasureGraph(Workspace& workspace, Measuring* measuring) { return Measurer(workspace, measuring).Run(); }

KernelWork Joined(const MeasuredGraph& graph, const std::vector<int>& members, WorkKind kind) {
  KernelWork joined;
  double most_bytes = 0;
  for (const int member : members) {
    const MeasuredNode& node = graph.nodes[static_cast<size_t>(member)];
    if (node.launches == 0) continue;
    most_bytes = std::max(most_bytes, node.work.bytes);
    joined += node.work;
    if (joined.kind == WorkKind::kNone || node.work.kind < joined.kind) joined.kind = node.work.kind;
    if (kind == WorkKind::kAttention && node.op == "Softmax") joined.scores += node.work.elements;
  }
  joined.bytes = most_bytes;
  joined.instructions = 0;
  if (kind == WorkKind::kAttention) {
    joined.kind = kind;
    joined.bytes = 0;
  }
  return joined;
}

void SetTimes(const CostModel& model, const std::vector<std::vector<int>>& groups, MeasuredGraph* graph) {
  for (const std::vector<int>& group : groups) {
    const KernelWork joined = Joined(*graph, group, WorkKind::kNone);
    bool first = true;
    for (const int member : group) {
      MeasuredNode& node = graph->nodes[static_cast<size_t>(member)];
      if (node.launches == 0) continue;
      node.launches = first ? 1 : 0;
      node.work = first ? joined : KernelWork();
      first = false;
    }
  }
  for (MeasuredNode& node : graph->nodes) {
    if (node.launches > 0) node.time = model.TimeOf(node.work, node.launches) * node.times;
    graph->side.kernels += node.launches > 0 && node.engine != "ai_cpu" ? 1 : 0;
  }
}

}  // namespace ascend_fuse
