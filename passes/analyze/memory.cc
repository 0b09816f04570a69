#include "passes/analyze/memory.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "passes/core/weights.h"
#include "patterns/cost/work.h"

namespace ascend_fuse {
namespace {

// So many points of a curve are kept: enough for a picture.
constexpr size_t kMostPoints = 240;

// Buffers of values: a view shares that of what it looks at. Bodies are not laid out: what they compute lies in memory while
// their owner runs, as its results do.
class Buffers {
 public:
  Buffers(const Model& model, const Reach& reach, Facts& facts, Binding* binding)
      : model_(model),
        reach_(reach),
        facts_(facts),
        dims_(facts.dims()),
        binding_(*binding),
        last_use_(model.value_count(), -1) {}

  ActivationRecord Run() {
    for (const Node* node : reach_.nodes()) {
      if (node->graph == &model_.graph()) nodes_.push_back(node);
    }
    const int64_t end = static_cast<int64_t>(nodes_.size());
    for (int64_t step = 0; step < end; ++step) UseInputs(*nodes_[static_cast<size_t>(step)], step);
    for (const Value* value : model_.graph().outputs()) UseUntil(*value, end);
    for (const Value* input : model_.graph().inputs()) {
      if (input->initializer != nullptr) continue;
      UseUntil(*input, end);
      Allocate(*input);
    }
    std::vector<CurvePoint> curve;
    for (int64_t step = 0; step < end; ++step) Step(step, &curve);
    Finish(std::move(curve));
    return std::move(record_);
  }

 private:
  const Value& BufferOf(const Value& value) const {
    const Value* at = &value;
    while (at->producer != nullptr && at->producer->graph == &model_.graph()) {
      const OperatorWork* row = FindOperatorWork(WorkName(*at->producer));
      const Value* source = at->producer->input(0);
      if (row == nullptr || row->kind != WorkKind::kView || source == nullptr || IsOp(*at->producer, "Shape") ||
          IsOp(*at->producer, "Size")) {
        break;
      }
      at = source;
    }
    return *at;
  }

  void UseUntil(const Value& value, int64_t step) {
    int64_t& last = last_use_[BufferOf(value).id];
    last = std::max(last, step);
  }

  // A body reads what it reads of the graph around it while its owner runs.
  void UseInputs(const Node& node, int64_t step) {
    for (const Use& use : node.inputs()) {
      if (use.value != nullptr && use.value->graph == &model_.graph()) UseUntil(*use.value, step);
    }
    for (const Graph* body : node.subgraphs()) {
      for (const Node* inner : body->nodes()) {
        if (!inner->dead && reach_.Needs(*inner)) UseInputs(*inner, step);
      }
      for (const Value* output : body->outputs()) {
        if (output->graph == &model_.graph()) UseUntil(*output, step);
      }
    }
  }

  void Allocate(const Value& value) {
    if (&BufferOf(value) != &value || reach_.IsFolded(value)) return;
    const Dim bytes = BytesOf(facts_.Of(&value), &dims_);
    const double number = binding_.Evaluate(bytes, dims_);
    live_ += number;
    ++live_of_[bytes];
    ends_[std::max<int64_t>(last_use_[value.id], static_cast<int64_t>(step_))].emplace_back(bytes, number);
  }

  void Step(int64_t step, std::vector<CurvePoint>* curve) {
    step_ = step;
    const Node& node = *nodes_[static_cast<size_t>(step)];
    for (const Value* output : node.outputs()) {
      if (output != nullptr) Allocate(*output);
    }
    if (live_ > record_.peak.value || step == 0) {
      record_.peak.value = live_;
      record_.at = std::string(NodeName(node).empty() && node.output(0) != nullptr ? ValueName(*node.output(0)) : NodeName(node));
      peak_of_ = live_of_;
    }
    curve->push_back({step, "", live_});
    const auto ended = ends_.find(step);
    if (ended == ends_.end()) return;
    for (const auto& [bytes, number] : ended->second) {
      live_ -= number;
      if (--live_of_[bytes] == 0) live_of_.erase(bytes);
    }
    ends_.erase(ended);
  }

  // The points that stand out of their neighbourhood.
  void Finish(std::vector<CurvePoint> curve) {
    Dim sum = Dim::Of(0);
    for (const auto& [bytes, count] : peak_of_) sum = dims_.Add(sum, dims_.Mul(Dim::Of(count), bytes));
    record_.peak.formula = binding_.Of(sum, dims_).formula;
    const size_t width = curve.size() / kMostPoints + 1;
    for (size_t i = 0; i < curve.size(); i += width) {
      const auto last = curve.begin() + static_cast<int64_t>(std::min(i + width, curve.size()));
      CurvePoint point = *std::max_element(curve.begin() + static_cast<int64_t>(i), last,
                                           [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
      const Node& node = *nodes_[static_cast<size_t>(point.step)];
      point.node = NodeName(node).empty() && node.output(0) != nullptr ? ValueName(*node.output(0)) : NodeName(node);
      record_.curve.push_back(std::move(point));
    }
  }

  struct ById {
    bool operator()(Dim a, Dim b) const {
      return std::pair(a.known() + a.is_number(), a.id()) < std::pair(b.known() + b.is_number(), b.id());
    }
  };

  const Model& model_;
  const Reach& reach_;
  Facts& facts_;
  DimTable& dims_;
  Binding& binding_;
  std::vector<const Node*> nodes_;
  std::vector<int64_t> last_use_;  // by Value::id of a buffer
  std::map<int64_t, std::vector<std::pair<Dim, double>>> ends_;
  std::map<Dim, int64_t, ById> live_of_;
  std::map<Dim, int64_t, ById> peak_of_;
  double live_ = 0;
  int64_t step_ = 0;
  ActivationRecord record_;
};

void Add(const std::string& name, double bytes, std::map<std::string, WeightRecord>* records) {
  WeightRecord& record = (*records)[name];
  record.name = name;
  ++record.tensors;
  record.bytes += bytes;
}

std::vector<WeightRecord> Sorted(const std::map<std::string, WeightRecord>& records) {
  std::vector<WeightRecord> sorted;
  for (const auto& [name, record] : records) sorted.push_back(record);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return sorted;
}

// The first node that is needed and reads it; nullptr where none is.
const Node* ReaderOf(const Value& value, const Reach& reach) {
  for (const Use& use : LiveUses(value)) {
    if (reach.Needs(*use.user)) return use.user;
  }
  return nullptr;
}

bool IsOfProduct(const Node& reader) {
  const OperatorWork* row = FindOperatorWork(WorkName(reader));
  return row != nullptr && row->kind == WorkKind::kMatrix;
}

// Nodes between an input and the one that makes it longer: copies.
constexpr int kMostCopies = 8;

bool IsCopy(const Node& node) { return IsOp(node, "Identity") || (IsOp(node, "Concat") && node.input_count == 1); }

// The output of the model that is a value with more elements, or with some written into; nullptr where there is none.
const Value* ComesBackAs(const Value& input, const Reach& reach, const Facts& facts) {
  const Value* value = &input;
  for (int i = 0; i < kMostCopies; ++i) {
    const Value* copy = nullptr;
    for (const Use& use : LiveUses(*value)) {
      const Node& node = *use.user;
      if (!reach.Needs(node)) continue;
      if (IsCopy(node)) copy = node.output(0);
      const OperatorWork* row = FindOperatorWork(WorkName(node));
      const bool grows = IsOp(node, "Concat") || (row != nullptr && row->kind == WorkKind::kAttention);
      const bool written = row != nullptr && row->scatters && use.index == 0;
      if (!grows && !written) continue;
      for (const Value* output : node.outputs()) {
        if (output == nullptr || !output->is_graph_output) continue;
        const Fact& fact = facts.Of(output);
        if (fact.type == facts.Of(value).type && fact.rank() == facts.Of(value).rank()) return output;
      }
    }
    if (copy == nullptr) return nullptr;
    value = copy;
  }
  return nullptr;
}

}  // namespace

ActivationRecord MeasureActivations(const Model& model, const Reach& reach, Facts& facts, Binding* binding) {
  return Buffers(model, reach, facts, binding).Run();
}

void MeasureWeights(const Model& model, const Reach& reach, const absl::flat_hash_map<const Value*, std::string>& modules,
                    MemoryRecord* memory) {
  std::map<std::string, WeightRecord> types, of_modules;
  absl::flat_hash_set<TensorPlace> places;
  ForEachWeight(model, [&](const Value& value, const Tensor& tensor) {
    const Node* reader = ReaderOf(value, reach);
    if (reader == nullptr && !value.is_graph_output) return;
    const double bytes = BytesOf(tensor);
    if (!places.insert(PlaceOf(value, tensor)).second) {
      memory->weights_shared += bytes;
      return;
    }
    memory->weights += bytes;
    const double elements = static_cast<double>(std::max<int64_t>(tensor.ElementCount(), 0));
    const double half = IsFloat(tensor.type) ? std::min(bytes, elements * 2) : bytes;
    memory->weights_half += half;
    const bool quantized = IsFloat(tensor.type) && tensor.dims.size() >= 2 && reader != nullptr && IsOfProduct(*reader);
    memory->weights_int8 += quantized ? elements : half;
    Add(std::string(DataTypeName(tensor.type)), bytes, &types);
    const auto known = reader != nullptr && reader->output(0) != nullptr ? modules.find(reader->output(0)) : modules.end();
    Add(known != modules.end() ? known->second : "", bytes, &of_modules);
  });
  memory->by_type = Sorted(types);
  memory->by_module = Sorted(of_modules);
}

void MeasureCaches(const Model& model, const Reach& reach, Facts& facts, Binding* binding, MemoryRecord* memory) {
  Dim sum = Dim::Of(0);
  for (const Value* input : model.graph().inputs()) {
    if (input->initializer != nullptr || facts.Of(input).rank() < 3) continue;
    const Value* back = ComesBackAs(*input, reach, facts);
    if (back == nullptr) continue;
    const Dim bytes = BytesOf(facts.Of(back), &facts.dims());
    sum = facts.dims().Add(sum, bytes);
    memory->caches.push_back({std::string(ValueName(*input)), std::string(ValueName(*back)), binding->Of(bytes, facts.dims())});
  }
  memory->cache = binding->Of(sum, facts.dims());
}

void MeasureFit(const ChipCost& chip, bool lowers, MemoryRecord* memory) {
  // Inputs and outputs lie in the activations, caches among them.
  memory->needed = (lowers ? memory->weights_half : memory->weights) + memory->after.peak.value;
  for (const CostFigure& size : chip.memory) {
    memory->fits.push_back({size.value * 1e9, memory->needed <= size.value * 1e9, size.source});
  }
}

}  // namespace ascend_fuse
