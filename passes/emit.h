// Builds what a rule's emit block says, through the Rewriter.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/rewriter.h"
#include "patterns/language/matcher.h"

namespace ascend_fuse {

// What one emission did.
struct Emission {
  std::vector<Node*> replacements;  // nodes that took over the rule's outputs
  std::vector<Node*> inserted;      // helper nodes, shared ones that were there before not included
};

class Emitter {
 public:
  Emitter(Rewriter* rewriter, Facts* facts) : rewriter_(rewriter), facts_(facts) {}

  // Replaces the match by the rule's emission and infers facts of all new values. INVALID_ARGUMENT with a
  // sentence if an expression of the emit block has no value, FAILED_PRECONDITION if what it makes cannot have the shape
  // of what it stands for, or an Ascend node not its type; then nothing has changed.
  absl::StatusOr<Emission> Emit(const Match& match, const FunctionContext& context);

  // Takes an emission back: the matched nodes compute their values again.
  void Undo(const Emission& emission);

 private:
  absl::StatusOr<Value*> Build(const Term& term, Graph* graph, DataType like, const std::string& name,
                               Emission* emission);
  absl::StatusOr<NewNode> Plan(const DeferredNode& node, Graph* graph, const std::string& name,
                               Emission* emission);

  Rewriter* rewriter_;
  Facts* facts_;
  const ValueNumbering* numbering_ = nullptr;           // of the context of the running Emit
  absl::flat_hash_map<std::string, Node*> built_;  // helper nodes by what they compute
};

}  // namespace ascend_fuse
