// The graph while it is tidied: what an answer of a kind (passes/tidy/kinds.h) changes in it, and values that take the places of
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/core/workspace.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {

class TidyGraph {
 public:
  explicit TidyGraph(Workspace& workspace);

  // Numbers all values anew.
  void StartRound();
  // Tells sites what their values became in the round.
  void EndRound();
  const ValueNumbering& numbering() const { return *numbering_; }

  // GE looks for its forms node by node: these nodes stay.
  bool IsOfGe(const Node& node) const {
    return !of_ge_.empty() && of_ge_.contains(absl::string_view(Label(node).data(), Label(node).size()));
  }

  // Does what a kind answered about the node. The node to be asked about next; nullptr where there is none, or nothing was done.
  const Node* Do(const Tidied& answer, const Node* node);
  // Who reads `value` reads `other`, which is equal. An output of the graph keeps its name: then it is what the other one was
  // computed as. False where that cannot be.
  bool Become(const Value* value, const Value* other);
  // The same of a value that is not an output of the graph.
  void Reroute(const Value* value, const Value* other);

 private:
  const Node* Divide(const Tidied& answer, const Node* node);
  bool LeaveOut(const Node& node, const Value* source);
  size_t LostTypes(const Node* node) const;
  void Learn(const Node* node);
  void Number(const Node& node);
  const Value* Now(const Value* value) const;

  Workspace& workspace_;
  absl::flat_hash_set<std::string> of_ge_;  // names of the nodes that GE fuses itself
  uint32_t made_from_ = 0;                  // the ids of what is made for one answer
  // Of one round:
  std::unique_ptr<ValueNumbering> numbering_;
  absl::flat_hash_map<const Value*, const Value*> became_;
};

}  // namespace ascend_fuse
