#include "ir/graph.h"

#include <algorithm>

#include "ir/model.h"

namespace ascend_fuse {

int64_t CountReaders(const Value& value) {
  int64_t count = value.is_graph_output ? 1 : 0;
  for ([[maybe_unused]] const Use& use : LiveUses(value)) ++count;
  return count;
}

std::string_view OpType(const Node& node) { return node.graph->model().Text(node.op_type); }
std::string_view Domain(const Node& node) { return node.graph->model().Text(node.domain); }
std::string_view NodeName(const Node& node) { return node.graph->model().Text(node.name); }
std::string_view ValueName(const Value& value) { return value.graph->model().Text(value.name); }

bool IsOp(const Node& node, std::string_view op_type) { return node.domain == NameId::kEmpty && OpType(node) == op_type; }

void SortInOrder(std::vector<const Node*>* nodes) {
  const auto before = [](const Node* a, const Node* b) { return StandsBefore(*a, *b); };
  if (!std::is_sorted(nodes->begin(), nodes->end(), before)) std::sort(nodes->begin(), nodes->end(), before);
}

int64_t Tensor::ElementCount() const {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return -1;
  }
  return count;
}

}  // namespace ascend_fuse
