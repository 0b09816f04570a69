#include "passes/layout/head_tensors.h"

#include <algorithm>

#include "ir/infer/movement_of.h"
#include "passes/layout/axis_exchange.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMostReshapes = 4;

// Whether a value between two members has one reader, besides those of its dims: any other one wants it as it is.
bool HasOneReader(const Value& value) {
  int readers = value.is_graph_output ? 2 : 0;
  for (const Use& use : LiveUses(value)) readers += ReadsDims(*use.user) ? 0 : 1;
  return readers == 1;
}

}  // namespace

Order HeadTensor::OrderOf(const Value* member) const {
  return OrderOf(static_cast<size_t>(std::find(members.begin(), members.end(), member) - members.begin()));
}

size_t HeadTensors::NumberOf(const Value* value) {
  if (const auto known = tensor_of_.find(value); known != tensor_of_.end()) return known->second;
  const Value* first = value;
  while (const Value* before = SameBefore(first)) first = before;
  std::vector<const Node*> between;
  HeadTensor tensor = From(first, &between);
  // A way back is not always one forwards, where other nodes read what lies between: then the tensor begins here.
  const bool found = std::find(tensor.members.begin(), tensor.members.end(), value) != tensor.members.end();
  if (!found || tensor_of_.contains(first)) {
    between.clear();
    tensor = From(value, &between);
  }
  for (const Node* node : between) {
    if (between_.insert(node).second) between_in_order_.push_back(node);
  }
  const size_t number = tensors_.size();
  for (const Value* member : tensor.members) tensor_of_[member] = number;
  tensors_.push_back(std::move(tensor));
  return number;
}

HeadTensor HeadTensors::From(const Value* first, std::vector<const Node*>* between) const {
  HeadTensor tensor;
  tensor.members = {first};
  tensor.exchanged = {false};
  for (size_t i = 0; i < tensor.members.size(); ++i) AddSameAfter(&tensor, i, between);
  return tensor;
}

// What `value` is an exchanged or reshaped copy of.
const Value* HeadTensors::SameBefore(const Value* value) const {
  const Node* node = value->producer;
  if (node == nullptr || node->input(0) == nullptr || node->input(0)->graph != value->graph) return nullptr;
  if (ExchangesHeadsAndTokens(facts_, *node) && facts_.Of(node->input(0)).rank() == 4) return node->input(0);
  const Value* source = node->input(0);
  for (size_t step = 0; step < kMostReshapes && KeepsOrder(facts_, *node); ++step) {
    if (facts_.Of(source).rank() == 4 && facts_.dims().Equal(facts_.Of(source).shape, facts_.Of(value).shape)) {
      return source;
    }
    node = source->producer;
    if (node == nullptr || node->input(0) == nullptr || node->input(0)->graph != value->graph) return nullptr;
    source = node->input(0);
  }
  return nullptr;
}

void HeadTensors::AddSameAfter(HeadTensor* tensor, size_t i, std::vector<const Node*>* between) const {
  const Value* of = tensor->members[i];
  std::vector<const Value*> reshaped = {of};
  for (size_t r = 0; r < reshaped.size() && r < kMostReshapes; ++r) {
    if (r > 0 && !HasOneReader(*reshaped[r])) continue;
    for (const Use& use : LiveUses(*reshaped[r])) {
      const Node* node = use.user;
      if (use.index != 0 || node->graph != of->graph) continue;
      const bool exchanges = ExchangesHeadsAndTokens(facts_, *node) && r == 0;
      if (!exchanges && !KeepsOrder(facts_, *node)) continue;
      const Value* result = node->output();
      const bool back =
          !exchanges && facts_.Of(result).rank() == 4 && facts_.dims().Equal(facts_.Of(result).shape, facts_.Of(of).shape);
      if (exchanges || back) {
        tensor->members.push_back(result);
        tensor->exchanged.push_back(tensor->exchanged[i] != exchanges);
        for (const Value* at = reshaped[r]; at != of; at = at->producer->input(0)) between->push_back(at->producer);
        between->push_back(node);
      } else {
        reshaped.push_back(result);
      }
    }
  }
}

}  // namespace ascend_fuse
