// Inserts nodes beside a node, in its graph, and tells the workspace of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/core/workspace.h"
#include "patterns/terms/node_builder.h"

namespace ascend_fuse {

class NodeInserter {
 public:
  NodeInserter(Workspace& workspace, const Node& node) : NodeInserter(workspace, node.graph, Label(node)) {}
  // Nodes of `graph` whose names begin with `name`.
  NodeInserter(Workspace& workspace, const Graph* graph, std::string_view name)
      : workspace_(workspace), graph_(graph), name_(name) {}

  // An operator of the default domain with one output.
  const Value* Op(std::string op_type, std::vector<const Value*> inputs, std::vector<Attribute> attributes = {});
  // A list of numbers, [n].
  const Value* Numbers(const std::vector<int64_t>& numbers);
  const Value* Squeeze(const Value* x, const std::vector<int64_t>& axes) { return Build(build::Squeeze(Term::Of(x), axes)); }
  const Value* Unsqueeze(const Value* x, const std::vector<int64_t>& axes) { return Build(build::Unsqueeze(Term::Of(x), axes)); }
  // The lengths of the parts of a Split that has nothing but its input yet.
  void SetLengths(NewNode* split, const std::vector<int64_t>& lengths);
  // What `Arrange` (patterns/analysis/axis_map.h) says is to be built, with all that it reads: nodes of one output whose
  // attributes are numbers and lists of them.
  const Value* Build(const Term& term);
  // The same, where what `known` has already is read instead; it gets what is built.
  using Known = absl::flat_hash_map<uint32_t, const Value*>;  // by number
  const Value* BuildOnce(const Term& term, Known* known);
  // The last node of it, which is to be inserted; what it reads stands there. Only of a term that is a node.
  NewNode Plan(const Term& term);
  const Value* Insert(const NewNode& plan);

 private:
  const Value* BuildNode(const Term& term);
  NewNode Planned(std::string op_type, std::vector<const Value*> inputs, std::vector<Attribute> attributes) const;

  Workspace& workspace_;
  const Graph* graph_;
  std::string name_;
  Known* known_ = nullptr;  // while BuildOnce runs
};

}  // namespace ascend_fuse
