// Makes nodes once more, reading other values.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

class NodeCopier {
 public:
  explicit NodeCopier(Workspace& workspace) : workspace_(workspace) {}

  void Map(const Value* old, const Value* value) { copies_[old] = value; }
  void MayCopy(const Node* node) { nodes_.insert(node); }
  bool Copies(const Node* node) const { return nodes_.contains(node); }
  const std::vector<const Value*>& copied() const { return copied_; }  // values of nodes that were copied
  const Value* Of(const Value* old) const { return copies_.at(old); }

  // The value, or what a copy of its node computes.
  const Value* Copy(const Value* value);

 private:
  Workspace& workspace_;
  absl::flat_hash_set<const Node*> nodes_;
  absl::flat_hash_map<const Value*, const Value*> copies_;
  std::vector<const Value*> copied_;
};

}  // namespace ascend_fuse
