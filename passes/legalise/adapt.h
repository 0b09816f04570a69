// Adapters: forms of standard operators that the target's ATC refuses or misreads, written in forms that it reads as ONNX
// defines them. Which forms those are is data (the `unsupported` rows of patterns/targets); an adapter names the code of the rows
// that it fixes, and takes no node that none of them matches. Rules of patterns/rules/adapt are adapters, and functions of
// passes/legalise/adapters.cc where a rule cannot say it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

// The rows of the target that match the node, read at the opset of the model or at another one; none for a node of another
// domain or a call of a local function. Where a node runs does not matter here: all computes the same.
std::vector<const UnsupportedForm*> FormsOf(const Workspace& workspace, const Node& node);
std::vector<const UnsupportedForm*> FormsAt(const Workspace& workspace, const Node& node, int64_t opset);
// The first of `forms` whose code none of `others` has; nullptr where there is none.
const UnsupportedForm* NewForm(const std::vector<const UnsupportedForm*>& forms,
                               const std::vector<const UnsupportedForm*>& others);
// At the opset of the model, or at `also_at` where that is not 0.
bool HasForm(const Workspace& workspace, const Node& node, std::string_view code, int64_t also_at = 0);

// The opset that the model is written at, as far as it can be told before its nodes are final: that of the model, or where
// no ATC reads that, the one that it is converted to if every node has a form there.
int64_t OpsetToWrite(const Workspace& workspace);

// Applies every adapter to the nodes that it is for and that `may` lets through, and counts them in Workspace::adapted. `to`: the
// opset that the model is to be written at afterwards; 0 where it stays at its own.
absl::Status ApplyAdapters(Workspace& workspace, const std::function<bool(const Node&)>& may, int64_t to = 0);

// Writes the model at another opset where a node has a form that no adapter takes and that is read there, and no other node
// is read worse there.
absl::Status TryOtherOpsets(Workspace& workspace);

// Nodes of the file that share a name or have that of an input of the graph get names of their own, and outputs written as
// an empty name get one where ATC would connect them to empty inputs. Nodes with bodies stay. Imports that no node needs go.
void AdaptNames(Workspace& workspace);

// What reads sequences and optionals whose elements are known reads these (adapt_sequences.cc).
void AdaptSequences(Workspace& workspace);

// Empty inputs in branches of an If as constants that say the same (adapt_branch_inputs.cc).
void AdaptBranchInputs(Workspace& workspace);

// An adapter in C++, for nodes with any number of inputs or outputs, with bodies or with tensors as attributes.
struct Adapter {
  std::string_view code;
  std::string_view op;
  // Writes the node anew; false, and nothing changed, where that cannot be done exactly.
  bool (*write)(Workspace& workspace, const Node* node);
};
const std::vector<Adapter>& Adapters();

}  // namespace ascend_fuse
