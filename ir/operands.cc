#include "ir/operands.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "fmt/format.h"
#include "ir/model.h"
#include "ir/schema.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

// "MODEL: node 'add' (Add), which computes 'y',"
std::string Subject(const Node& node) {
  const std::string& path = node.graph->model().path();
  const std::string computes = node.output() != nullptr ? fmt::format(", which computes '{}',", ValueName(*node.output())) : "";
  return fmt::format("{}: node '{}' ({}){}", path.empty() ? "the model in memory" : path, NodeName(node), OpType(node), computes);
}

// Whether none of its outputs has a name. Where a later one has, the first is given one (TopK of which the places are read).
bool LacksOutput(const Node& node, const Schema& schema) {
  const bool gives =
      std::any_of(node.outputs().begin(), node.outputs().end(), [](const Value* value) { return value != nullptr; });
  if (gives || schema.outputs.empty() || schema.outputs[0].optional) return false;
  // Of any number of outputs only those that are read have a name.
  return node.output_count == 0 || !schema.outputs[0].variadic;
}

// The operator, in its first version if the one that the model imports does not have it yet: rules look for it all the same.
const Schema* OperatorOf(const Node& node) {
  if (const Schema* const schema = SchemaOf(node); schema != nullptr) return schema;
  const absl::Span<const Schema> versions = SchemaVersions(Domain(node), OpType(node));
  return versions.empty() ? nullptr : &versions.front();
}

absl::Status CheckNode(const Node& node, const Schema* schema) {
  if (schema == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < schema->inputs.size(); ++i) {
    const SchemaParameter& input = schema->inputs[i];
    if (input.optional || input.variadic || (i < node.input_count && node.input(i) != nullptr)) continue;
    return absl::InvalidArgumentError(
        fmt::format("{} has no input {}, which {} needs: no runtime takes that. Export the model again", Subject(node),
                    input.name, schema->op_type));
  }
  if (LacksOutput(node, *schema)) {
    return absl::InvalidArgumentError(
        fmt::format("{} has no output {}, which {} gives: no runtime takes that. Export the model again", Subject(node),
                    schema->outputs[0].name, schema->op_type));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsCall(const Node& node) {
  const auto& functions = node.graph->model().functions();
  return std::any_of(functions.begin(), functions.end(), [&](const LocalFunction& function) {
    return function.domain == node.domain && function.name == node.op_type;
  });
}

absl::Status CheckImports(const Model& model) {
  if (model.OpsetVersion() >= 1) return absl::OkStatus();
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || node->domain != NameId::kEmpty || IsCall(*node)) continue;
      return absl::InvalidArgumentError(fmt::format(
          "{} is an operator of ONNX, and the model says no version of those in opset_import: what it computes depends on "
          "the version. Export the model again, or add the version that it was exported with",
          Subject(*node)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOperands(const Model& model) {
  absl::flat_hash_map<std::pair<NameId, NameId>, const Schema*> schemas;  // by domain and operator
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead) continue;
      const auto [schema, is_new] = schemas.try_emplace({node->domain, node->op_type}, nullptr);
      if (is_new) schema->second = OperatorOf(*node);
      RETURN_IF_ERROR(CheckNode(*node, schema->second));
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
