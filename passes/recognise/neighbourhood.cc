#include "passes/recognise/neighbourhood.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace ascend_fuse {
namespace {

// Rules have fewer nodes.
constexpr size_t kMostNodes = 40;
// A value with more readers is one with many.
constexpr int kMostReaders = 4;

// The same in every run, so that a report has the same bytes: the finalizer of splitmix64.
uint64_t MixOne(uint64_t before, uint64_t part) {
  uint64_t x = before * 0x9E3779B97F4A7C15u + part + 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
uint64_t MixOne(uint64_t before, double part) { return MixOne(before, std::bit_cast<uint64_t>(part)); }
uint64_t MixOne(uint64_t before, std::string_view part) {
  uint64_t all = MixOne(before, uint64_t{part.size()});
  for (; part.size() >= sizeof(uint64_t); part.remove_prefix(sizeof(uint64_t))) {
    uint64_t word;
    memcpy(&word, part.data(), sizeof(word));
    all = MixOne(all, word);
  }
  for (const char c : part) all = MixOne(all, uint64_t{static_cast<unsigned char>(c)});
  return all;
}

template <typename... Parts>
uint64_t Mix(uint64_t before, const Parts&... parts) {
  const auto one = [&before](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_same_v<Part, double> || std::is_same_v<Part, std::string_view>) {
      before = MixOne(before, part);
    } else {
      before = MixOne(before, static_cast<uint64_t>(part));
    }
  };
  (one(parts), ...);
  return before;
}

int Readers(const Value& value) {
  int readers = value.is_graph_output ? kMostReaders + 1 : 0;
  for (const Use& use : LiveUses(value)) {
    if (use.user == nullptr || ++readers >= kMostReaders) break;
  }
  return readers;
}

// Its attributes as they are written; those of a new node are all it has.
std::string_view Attributes(const Node& node) {
  if (node.encoded.data == nullptr) return {};
  const auto size = static_cast<size_t>(std::max<int64_t>(node.encoded.file.size, 0));
  const size_t begin = std::min<size_t>(node.attributes_begin, size);
  const size_t end = std::min<size_t>(node.attributes_end, size);
  return {reinterpret_cast<const char*>(node.encoded.data) + begin, end - begin};
}

}  // namespace

uint64_t Neighbourhoods::Of(const Node* root) {
  const auto known = known_.find(root);
  if (known != known_.end()) return known->second;
  const uint64_t number = Compute(root);
  known_.emplace(root, number);
  return number;
}

uint64_t Neighbourhoods::Of(const std::vector<const Node*>& roots) {
  uint64_t all = roots.size();
  for (const Node* root : roots) all = Mix(all, Of(root));
  // Which operand of which root the first one is tells it from another one that the same roots read.
  numbers_.clear();
  for (const Node* root : roots) Number(root);
  for (const Node* root : roots) {
    for (const Use& use : root->inputs()) {
      if (use.value == nullptr || use.value->producer == nullptr) continue;
      const auto other = numbers_.find(use.value->producer);
      if (other != numbers_.end()) all = Mix(all, numbers_.find(root)->second, use.index, other->second);
    }
  }
  return all;
}

uint64_t Neighbourhoods::Compute(const Node* root) {
  numbers_.clear();
  queue_ = {root};
  Number(root);
  uint64_t all = 0;
  for (size_t i = 0; i < queue_.size() && i < kMostNodes; ++i) all = Mix(all, OfNode(*queue_[i]));
  return all;
}

uint64_t Neighbourhoods::OfNode(const Node& node) {
  uint64_t all = Mix(0, node.op_type, node.domain, node.subgraph_count, Attributes(node));
  for (const Use& use : node.inputs()) all = Mix(all, OfOperand(use.value));
  for (const Value* output : node.outputs()) {
    all = output == nullptr ? Mix(all, 0) : Mix(all, Readers(*output), OfFact(*output));
  }
  return all;
}

uint64_t Neighbourhoods::OfOperand(const Value* value) {
  if (value == nullptr) return 0;
  if (value->producer != nullptr) {
    const size_t met = numbers_.size();
    const uint32_t number = Number(value->producer);
    if (number == met) queue_.push_back(value->producer);
    return Mix(1, number, value->output_index);
  }
  return Mix(value->IsConstant() ? 2 : 3, Number(value), OfFact(*value));
}

uint64_t Neighbourhoods::OfFact(const Value& value) const {
  const Fact& fact = facts_.Of(&value);
  uint64_t all = Mix(0, fact.type, fact.rank(), fact.is_splat, fact.is_splat ? fact.splat : 0.0);
  for (int i = 0; i < fact.rank(); ++i) {
    const Dim dim = fact.shape[static_cast<size_t>(i)];
    all = dim.is_number() ? Mix(all, dim.number()) : Mix(all, dim.known());
  }
  if (fact.elements == nullptr) return all;
  for (const Dim dim : fact.elements->integers) all = dim.is_number() ? Mix(all, dim.number()) : Mix(all, -1);
  for (const double number : fact.elements->floats) all = Mix(all, number);
  return all;
}

uint32_t Neighbourhoods::Number(const void* node_or_value) {
  return numbers_.try_emplace(node_or_value, static_cast<uint32_t>(numbers_.size())).first->second;
}

}  // namespace ascend_fuse
