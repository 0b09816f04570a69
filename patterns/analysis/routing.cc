#include "patterns/analysis/routing.h"

#include <string_view>
#include <vector>

#include "ir/add_once.h"
#include "ir/infer/movement_of.h"

namespace ascend_fuse {
namespace {

// Exports of experts take about ten steps from the gate to the Gather of its rows, and twenty from there to TopK.
constexpr size_t kMostRows = 48;
constexpr size_t kMostChoices = 128;

// Values to be looked at, each once, up to a number of them.
class Worklist {
 public:
  explicit Worklist(size_t most) : most_(most) {}
  void Add(const Value* value) {
    if (value == nullptr || values_.size() == most_) return;
    AddOnce(value, &values_);
  }
  const Value* Next() { return next_ < values_.size() ? values_[next_++] : nullptr; }

 private:
  size_t most_;
  size_t next_ = 0;
  std::vector<const Value*> values_;
};

// Where integers and booleans come from: ids of experts, one_hot of them, and where that holds.
const Node* WhoChose(const Facts& facts, const Value* indices) {
  Worklist work(kMostChoices);
  work.Add(indices);
  while (const Value* value = work.Next()) {
    const DataType type = facts.Of(value).type;
    const Node* producer = value->producer;
    if (producer == nullptr || !(IsInteger(type) || type == DataType::kBool)) continue;
    const std::string_view op = OpType(*producer);
    if (producer->domain == NameId::kEmpty && (op == "TopK" || op == "ArgMax")) return producer;
    for (const Use& use : producer->inputs()) work.Add(use.value);
  }
  return nullptr;
}

// The operand that says which elements are picked; nullptr where they are known, or none says it.
const Value* PickedBy(const Facts& facts, const Value* value) {
  const Movement* movement = facts.MovementOf(value);
  const MovedPart* part = movement != nullptr && movement->kind == MovementKind::kPicks ? movement->only() : nullptr;
  if (part == nullptr) return nullptr;
  for (const AxisSource& source : part->axes) {
    if (source.kind == AxisSource::Kind::kRead) return movement->node->input(source.operand);
  }
  return part->known ? nullptr : movement->node->input(1);
}

}  // namespace

const Node* FindRouter(const Facts& facts, const Value* value) {
  Worklist work(kMostRows);
  work.Add(value);
  while (const Value* next = work.Next()) {
    const Node* producer = next->producer;
    if (producer == nullptr || producer->domain != NameId::kEmpty) continue;
    const std::string_view op = OpType(*producer);
    if (const Node* router = WhoChose(facts, PickedBy(facts, next)); router != nullptr) return router;
    const bool linear = op == "MatMul" || op == "Gemm" || op == "Einsum" || op == "Add";
    if (linear || KindOf(facts, *producer) == MovementKind::kJoins) {
      for (const Use& use : producer->inputs()) work.Add(use.value);
    } else if (IsOfOneOperand(KindOf(facts, *producer)) || op == "Cast") {
      work.Add(producer->input(0));
    }
  }
  return nullptr;
}

}  // namespace ascend_fuse
