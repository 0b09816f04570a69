// What must hold of a model between passes and before it is written: links, one definition of every value, scopes,
// order, names, and the inputs and outputs of the graph. Linear in nodes and edges, so that it can run after every pass.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ir/model.h"

namespace ascend_fuse {

// The inputs and outputs of the main graph as they were loaded: values, their names, and what is declared of them.
class Signature {
 public:
  explicit Signature(const Model& model);

  // INTERNAL with a sentence if an input or output is not there any more, was added, or has another name, type or shape.
  absl::Status Check(const Model& model) const;

 private:
  struct Port {
    const Value* value;
    NameId name;
    std::string_view declared_type;
  };
  static std::vector<Port> PortsOf(const std::vector<const Value*>& values);

  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
};

// Proves of all that is alive:
// - a use belongs to its node and stands in the list of its value, and an output knows its place;
// - every value that is read is an input or initializer of the reader's graph or of one around it, or is computed there by
//   a node that is alive and stands earlier (StandsBefore): so nothing is read before it is defined, nothing across
//   scopes, and the graph has no cycle;
// - no body between a value and its reader has a value of the same name, which the reader would take;
// - every value is defined once;
// - names of values are unique in their graph, and no node that was made has the name of another node.
// INTERNAL with a sentence naming node and value.
absl::Status Verify(const Model& model);

}  // namespace ascend_fuse
