#include "ir/operands.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/model.h"
#include "ir/schema.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

absl::Status CheckNode(const Node& node, const Schema* schema) {
  const std::string& path = node.graph->model().path();
  if (schema == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < schema->inputs.size(); ++i) {
    const SchemaInput& input = schema->inputs[i];
    if (input.optional || input.variadic || (i < node.input_count && node.input(i) != nullptr)) continue;
    const std::string_view value = node.output() != nullptr ? ValueName(*node.output()) : std::string_view();
    return absl::InvalidArgumentError(fmt::format(
        "{}: node '{}' ({}), which computes '{}', has no input {}, which {} needs: no runtime takes that. Export the "
        "model again",
        path.empty() ? "the model in memory" : path, NodeName(node), OpType(node), value, input.name, schema->op_type));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOperands(const Model& model) {
  absl::flat_hash_map<std::pair<NameId, NameId>, const Schema*> schemas;  // by domain and operator
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead) continue;
      const auto [schema, is_new] = schemas.try_emplace({node->domain, node->op_type}, nullptr);
      if (is_new) schema->second = SchemaOf(*node);
      RETURN_IF_ERROR(CheckNode(*node, schema->second));
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
