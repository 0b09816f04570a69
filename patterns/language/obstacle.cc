#include "patterns/language/obstacle.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/replaced_nodes.h"
#include "ir/schema.h"

namespace ascend_fuse {
namespace {

bool Covers(const std::vector<const Node*>& covered, const Node* node) {
  return std::find(covered.begin(), covered.end(), node) != covered.end();
}

// Who reads a value that is needed: through copies, what is really read.
std::string ReaderOf(const ReplacedNodes& replaced, const std::vector<const Node*>& covered, const Value* value,
                     const Node* reader) {
  while (!value->is_graph_output && reader != nullptr && Covers(covered, reader) && reader->output(0) != nullptr) {
    value = reader->output(0);
    if (!replaced.IsNeeded(value, &reader)) break;
  }
  if (value->is_graph_output) return fmt::format("{} is an output of the graph", ValueName(*value));
  if (reader == nullptr) return fmt::format("more nodes depend on {} than are looked at", ValueName(*value));
  return fmt::format("{} is also read by {}{}{}", ValueName(*value), OpType(*reader), NodeName(*reader).empty() ? "" : " ",
                     NodeName(*reader));
}

// Interior values with other users stay computed. That is free for a Reshape, not for a ReduceMean that
// something else reads, and least of all for a MatMul or Softmax of which even a copy is read.
std::optional<Obstacle> SharedCostly(const Rule& rule, const std::vector<Term>& terms, const std::vector<const Node*>& covered,
                                     MatchCache& cache, bool explain) {
  Replacement replacement{{}, {}, covered};
  for (const std::string& name : rule.outputs) {
    const Term& term = terms[rule.scope.Find(name)];
    if (term.kind == Term::Kind::kValue) replacement.outputs.push_back(term.value);
  }
  for (size_t i = 0; i < rule.inputs.size(); ++i) {
    if (terms[i].kind == Term::Kind::kValue) replacement.inputs.push_back(terms[i].value);
  }
  const ReplacedNodes replaced(replacement);
  for (const Node* node : covered) {
    const Schema* schema = cache.SchemaOf(*node);
    if (schema == nullptr || !schema->costly || replaced.Dies(node)) continue;
    for (const Value* value : node->outputs()) {
      const Node* reader = nullptr;
      if (value == nullptr || !replaced.IsNeeded(value, &reader)) continue;
      if (!schema->heavy && !value->is_graph_output && Covers(covered, reader)) continue;
      if (!explain) return Obstacle{node, "", ""};
      return Obstacle{node, fmt::format("nothing else reads the result of {}", OpType(*node)),
                      ReaderOf(replaced, covered, value, reader)};
    }
  }
  return std::nullopt;
}

// One node takes over all outputs and reads all inputs: an input that is computed from an output (a weight from the
// residual sum) would make it read what it computes.
std::optional<Obstacle> ReadsItself(const Rule& rule, const std::vector<Term>& terms, bool explain) {
  if (rule.outputs.size() < 2) return std::nullopt;
  uint64_t first = std::numeric_limits<uint64_t>::max();  // no node before this place reads an output
  std::vector<const Node*> producers;
  for (const std::string& name : rule.outputs) {
    const Term& term = terms[rule.scope.Find(name)];
    if (term.kind != Term::Kind::kValue || term.value->producer == nullptr) continue;
    producers.push_back(term.value->producer);
    first = std::min<uint64_t>(first, term.value->producer->order);
  }
  constexpr size_t kMost = 10000;  // nodes between an output and an input; more of them count as a cycle
  std::vector<const Node*> work;
  absl::flat_hash_set<const Node*> seen;
  auto visit = [&](const Value* value) {
    if (value == nullptr || value->producer == nullptr) return;
    if (value->producer->order >= first && seen.insert(value->producer).second) work.push_back(value->producer);
  };
  for (size_t i = 0; i < rule.inputs.size(); ++i) {
    if (terms[i].kind == Term::Kind::kValue) visit(terms[i].value);
  }
  while (!work.empty()) {
    const Node* node = work.back();
    work.pop_back();
    if (seen.size() > kMost || std::find(producers.begin(), producers.end(), node) != producers.end()) {
      if (!explain) return Obstacle{node, "", ""};
      return Obstacle{node, "inputs that are not computed from outputs", fmt::format("an input that {} computes", OpType(*node))};
    }
    for (const Use& use : node->inputs()) visit(use.value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Obstacle> FindObstacle(const Rule& rule, const std::vector<Term>& terms, const std::vector<const Node*>& covered,
                                     MatchCache& cache, bool explain) {
  if (rule.emit.empty()) return std::nullopt;
  std::optional<Obstacle> obstacle = SharedCostly(rule, terms, covered, cache, explain);
  return obstacle.has_value() ? obstacle : ReadsItself(rule, terms, explain);
}

}  // namespace ascend_fuse
