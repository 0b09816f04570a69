#include "ir/verify.h"

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"

namespace ascend_fuse {

absl::Status Verify(const Model& model) {
  for (const auto& graph : model.graphs()) {
    absl::flat_hash_set<NameId> names;
    auto unique = [&](const Value& value) -> absl::Status {
      if (names.insert(value.name).second) return absl::OkStatus();
      return absl::InternalError(fmt::format("two values are named '{}'", ValueName(value)));
    };
    for (const Value* value : graph->inputs()) {
      if (absl::Status status = unique(*value); !status.ok()) return status;
    }
    for (const Value* value : graph->initializers()) {
      if (value->is_graph_input) continue;
      if (absl::Status status = unique(*value); !status.ok()) return status;
    }
    for (const Node* node : graph->nodes()) {
      if (node->dead) continue;
      for (size_t i = 0; i < node->output_count; ++i) {
        const Value* value = node->output(i);
        if (value == nullptr) continue;
        if (value->producer != node) continue;  // a later node took this output over
        if (value->output_index != i) {
          return absl::InternalError(fmt::format("'{}' has lost its place among the outputs of {} '{}'",
                                                 ValueName(*value), OpType(*node), NodeName(*node)));
        }
        if (absl::Status status = unique(*value); !status.ok()) return status;
      }
      for (const Use& use : node->inputs()) {
        if (use.value == nullptr) continue;
        const Node* producer = use.value->producer;
        if (producer != nullptr && producer->dead) {
          return absl::InternalError(fmt::format("{} '{}' reads '{}', which nothing computes any more",
                                                 OpType(*node), NodeName(*node), ValueName(*use.value)));
        }
        if (use.user != node) return absl::InternalError("a use does not belong to its node");
      }
    }
    for (const Value* value : graph->outputs()) {
      if (value->producer != nullptr && value->producer->dead) {
        return absl::InternalError(
            fmt::format("the graph output '{}' is computed by nothing any more", ValueName(*value)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
