// The whole model at another opset: which nodes are written in another form there, and writing them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/core/workspace.h"
#include "passes/legalise/convert_node.h"

namespace ascend_fuse {

// The newest opset at which reductions have their axes in an attribute, which every release reads, and at which
// LayerNormalization has a parser (docs/sources/atc-op-audit.md, section 5).
inline constexpr int64_t kBestReadOpset = 17;

// Nodes of the default domain, nested ones too.
template <typename Visit>
void EachStandardNode(const Model& model, Visit visit) {
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!node->dead && node->domain == NameId::kEmpty) visit(node);
    }
  }
}

// An Ascend node whose only name, in the default domain, is not there at this opset; nullptr where there is none.
const Node* NodeWithoutName(const Workspace& workspace, int64_t opset);

using PlannedNodes = std::vector<std::pair<const Node*, NodeConversion>>;

// The nodes that are written in another form at `to`; a sentence where one has none there.
std::string PlanOpset(const Workspace& workspace, int64_t to, PlannedNodes* planned);

// A node in its new form, and the forms that it had before.
using WrittenNodes = std::vector<std::pair<const Node*, std::vector<const UnsupportedForm*>>>;

WrittenNodes WriteOpset(Workspace& workspace, const PlannedNodes& planned, int64_t to);

// The model at opset `to`, with adapters for what has no form there or is read worse: in convert_opset.cc. A sentence where some
// node has none; the model stays at its opset then.
absl::StatusOr<std::string> WriteAtOpset(Workspace& workspace, int64_t to);

}  // namespace ascend_fuse
