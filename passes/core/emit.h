// Builds what a rule's emit block says, through the Rewriter. An emission is a trial until it is kept: one that is taken
// back leaves nothing, neither in the graph nor in what is known about it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "ir/rewriter.h"
#include "patterns/language/matcher.h"

namespace ascend_fuse {

// What one emission did.
struct Emission {
  std::vector<const Node*> replacements;  // nodes that took over the rule's outputs
  std::vector<const Node*> inserted;      // helper nodes, shared ones that were there before not included

  // Where to go back to.
  Rewriter::Mark mark;
  size_t contradictions = 0;
  std::vector<std::pair<const Value*, Fact>> facts;          // of the rule's outputs, before
  std::vector<std::pair<std::string, const Node*>> helpers;  // keys of helper nodes, and the node that had the key before
};

class Emitter {
 public:
  Emitter(Rewriter* rewriter, Facts* facts, ValueNumbering* numbering)
      : rewriter_(rewriter), facts_(facts), numbering_(numbering) {}

  // Replaces the match by the rule's emission, and infers and numbers all new values. INVALID_ARGUMENT with a
  // sentence if an expression of the emit block has no value, FAILED_PRECONDITION if what it makes cannot have the shape
  // of what it stands for, or an Ascend node not its type; then nothing has changed.
  absl::StatusOr<Emission> Emit(const Match& match, const FunctionContext& context);

  // Takes the latest emission back: the matched nodes compute their values again, and everything else is as it was.
  void TakeBack(const Emission& emission);

  // A pass of GE finds the node as part of what it joins: who reads its result does not read an equal one instead, without which
  // that pass would find less.
  void KeepForGe(const Node* node) { for_ge_.insert(node); }

  // The results that an emission gave dims that were not known of them: facts of their readers can be better than they are.
  absl::Span<const Value* const> learned() const { return learned_; }

  // Takes back everything since `mark`, whose emissions nobody needs any more.
  void TakeBackAll(const Rewriter::Mark& mark);

 private:
  absl::Status EmitStatements(const Match& matched, const FunctionContext& context, Emission* emission);
  absl::Status CheckOutputs(const Rule& rule, const Node& node, size_t first, const Emission& emission);
  absl::StatusOr<const Value*> Build(const Term& term, DataType like, const std::string& name, Emission* emission);
  absl::StatusOr<const Value*> BuildConstant(const DeferredNode& constant, const std::string& name);
  absl::StatusOr<const Value*> BuildNode(const Term& term, const std::string& name, Emission* emission);
  absl::StatusOr<NewNode> Plan(const DeferredNode& node, const std::string& name, Emission* emission);
  // Helpers of the emission beyond the first `kept` are known no more.
  void ForgetHelpers(size_t kept, std::vector<std::pair<std::string, const Node*>>* helpers);
  const Value* Earliest(const Value* value) const;
  void Refresh(const Node* node);

  Rewriter* rewriter_;
  Facts* facts_;
  ValueNumbering* numbering_;
  std::vector<const Value*> learned_;
  absl::flat_hash_set<const Node*> for_ge_;
  // Of the running emission:
  const Graph* graph_ = nullptr;
  const Node* first_ = nullptr;  // of the nodes that it replaces, the one that stands first
  bool alone_ = false;  // nothing else may read its helpers, as GE joins them; others neither find them nor know what they equal
  // Helper nodes by what they compute: all layers share one mask. Of several equal ones the one that stands first.
  absl::flat_hash_map<std::string, const Node*> helpers_;
};

// Whether `made` is a dim, and no mere name for one, where `known` is not; or names fewer of the dims that `known` does.
bool SaysMore(Dim made, Dim known, const DimTable& dims);
// The same of some dim or some element.
bool SaysMore(const Fact& made, const Fact& known, const DimTable& dims);

}  // namespace ascend_fuse
