#include "passes/recognise/downstream.h"

#include <cstddef>

#include "absl/container/flat_hash_set.h"

namespace ascend_fuse {

std::vector<const Node*> Downstream(const Node* node) {
  constexpr size_t kMost = 48;
  constexpr int kMostReaders = 8;
  std::vector<const Node*> reached = {node};
  absl::flat_hash_set<const Node*> seen = {node};
  for (size_t i = 0; i < reached.size() && reached.size() < kMost; ++i) {
    for (const Value* value : reached[i]->outputs()) {
      if (value == nullptr) continue;
      int fan_out = 0;
      for (const Use& use : LiveUses(*value)) {
        if (++fan_out > kMostReaders) break;
        if (seen.insert(use.user).second) reached.push_back(use.user);
      }
    }
  }
  return reached;
}

}  // namespace ascend_fuse
