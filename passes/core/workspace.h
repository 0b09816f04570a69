// What the passes work on: the model, what is known about it, the rules and the target, and what was decided so far. A pass
// (passes/core/pass.h) is a function over it. One workspace serves one model and one run; there is no other state.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/infer/value_numbering.h"
#include "ir/onnx/inline.h"
#include "ir/verify.h"
#include "passes/core/emit.h"
#include "passes/core/given.h"
#include "passes/core/learned_dims.h"
#include "passes/core/progress.h"
#include "passes/core/quantised.h"
#include "passes/core/run_result.h"
#include "passes/core/site.h"
#include "patterns/analysis/mask_form.h"
#include "patterns/functions/attention_masks.h"
#include "patterns/language/rule_set.h"
#include "patterns/operators/declarations.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

// What a run is told; OptimizeOptions (passes/optimize.h) says more of each.
struct WorkspaceOptions {
  std::vector<std::pair<std::string, std::string>> rule_files;  // path and text
  std::vector<std::string> skip;                                // kinds and rules not to use
  std::vector<std::string> prefer;                              // nodes that are emitted although they were measured slower
  bool keep_rest = false;                                       // what is not fused stays byte for byte
  std::vector<std::string> tidy;                                // kinds of tidying, by word; none: all
  Quantised quantised = Quantised::kExact;                      // --quantised
  int64_t limit = -1;                                           // only the first N replacements; negative: no limit
  bool strict = false;                                          // refuse what rests on an assumption
  InferOptions infer;
  std::vector<InputAssumption> assumptions;  // what the user says of inputs
  std::vector<std::string> fix;              // --fix: dims that `infer` binds to a number, to be written into the model
};

// One Concat as several: `whole` joins what `parts` and others give.
struct GroupedHalves {
  const Node* whole = nullptr;
  std::vector<const Node*> parts;
};

// A norm whose axes stand in one order: `root` is what it ends in, and each node that was made is one of the model.
struct StraightenedNorm {
  const Node* root = nullptr;
  absl::flat_hash_map<const Node*, const Node*> originals;
};

// The model of one run and all that is known of it.
class Workspace {
 public:
  // The model must outlive the workspace, and `target` too; without a target nothing can be lowered. Errors are those
  // of RuleSet::Load, and INVALID_ARGUMENT for a name in `skip` that no kind or rule has.
  static absl::StatusOr<std::unique_ptr<Workspace>> Create(Model* model, const Target* target, const WorkspaceOptions& options);

  Model& model() { return *model_; }
  const Model& model() const { return *model_; }
  const Target* target() const { return target_; }
  const WorkspaceOptions& options() const { return options_; }
  Rewriter& rewriter() { return rewriter_; }
  Inliner& inliner() { return inliner_; }
  const Inliner& inliner() const { return inliner_; }

  // What is known. Follows the rewriting: what an emission makes is inferred and numbered. A pass that changes the graph
  // by the rewriter says so of its nodes by Refresh; before `infer` that is nothing to do.
  Facts& facts() { return facts_; }
  const Facts& facts() const { return facts_; }
  const ValueNumbering& numbering() const { return *numbering_; }
  void InferModel();  // all facts anew
  // The same of a graph that was rewritten, or of what is told of its dims: contradictions stay those of the model as it was
  // read, and names of input dims stand for what they stood for, as `kept` has it, also where the node that said so is gone.
  void InferModelAgain();
  void InferModelAgain(const InferOptions& told, KeptDims* kept);
  // What would be inferred of the graph as it is now.
  Facts FactsOfNow() const;
  void NumberValues();  // all numbers anew; needs facts
  void Refresh(const Node* node);
  // Proves of every value that was given a new producer since `first` (a size of Rewriter::replaced ()) that what computes it
  // now has the type and the shape that were known of it. INTERNAL with a sentence that names node and value.
  absl::Status CheckReplaced(size_t first);

  // Rules of a folder with those of the user. Built-in ones are read when they are first asked for.
  const RuleSet& rules(RuleFolder folder) const;
  bool Skipped(const Rule& rule) const;
  // The node of a lowering that was measured slower than what it takes the place of, where --prefer does not name it; or
  // nullptr.
  const DeclaredOperator* SlowerNode(const Rule& rule) const;
  // --limit 0: nothing at all is to be changed, not even the forms of what is not fused.
  bool ChangesNothing() const { return options_.limit == 0; }
  // --limit: whether one more replacement may be made.
  bool MayReplace() const { return options_.limit < 0 || replacements_ < options_.limit; }
  void CountReplacement() { ++replacements_; }

  // Who is told of progress, and where the run is: RunPasses says so.
  void ReportTo(ProgressCallback callback) { progress_ = std::move(callback); }
  // A pass has begun: CANCELLED when the run is not wanted any more.
  absl::Status Begin(const Progress& progress);
  // Passes that take long ask this in their loops: CANCELLED when the run is not wanted any more.
  absl::Status GoOn() { return !progress_ || ++asked_ % kAsks != 0 ? absl::OkStatus() : Tell(); }

  // What functions of rules see. Assumptions are appended to the list where one is given.
  FunctionContext Context(std::vector<std::string>* assumptions = nullptr);
  Emitter& emitter() { return *emitter_; }
  // What masks mean; from `number` on.
  MaskForms& masks() { return *masks_; }

  // What is done from here on can be taken back; what was done before is the inliner's to undo.
  void StartRewriting() {
    start_ = rewriter_.Now();
    made_from_ = model_->value_count();
  }
  // The id of the first value that was made after that.
  uint32_t made_from() const { return made_from_; }
  // The calls of local functions stand again and everything else is as it was loaded. Not after Sweep.
  void TakeEverythingBack();
  // The same but for what was inlined.
  void TakeRewritesBack();

  // Inputs and outputs are declared anew, and this is what they have to be from here on.
  void KnowSignature() { signature_ = Signature(*model_); }

  // Concats that `group_halves` wrote for one.
  std::vector<GroupedHalves> grouped_halves;
  // Norms that `straighten_norms` wrote with their axes in one order.
  std::vector<StraightenedNorm> straightened_norms;

  // Nodes of the model that stand elsewhere now, out of a branch that was decided: copies for the rewriter, and the model's own
  // for whoever looks for constructs.
  absl::flat_hash_set<const Node*> moved;
  // Nodes with this id and later ones are those of recognised operators, which never come back.
  uint32_t first_id_of_sites = 0;
  absl::flat_hash_set<const Node*> decided_ifs;  // which never come back
  KeptDims kept_without_promises;                // of inferences in WithoutPromises
  // Whether a pass made the node: it is not one of the model.
  bool IsMade(const Node& node) const { return node.is_new && !moved.contains(&node); }

  int64_t CountNodes() const;
  // ir/verify.h, with the signature of the graph; the sentence of an INTERNAL names the pass.
  absl::Status Verify(std::string_view pass) const;

  std::set<Given> given;  // by the passes that have run

  std::vector<Site> sites;   // from `recognise` on; passes decide in turn what becomes of each
  KnownDims known_of_sites;  // when `recognise` had found them
  RunResult result;          // what the report tells of the run besides; each pass says which of it it writes

 private:
  Workspace(Model* model, const Target* target, const WorkspaceOptions& options);
  absl::Status CheckSkip(const std::string& name) const;
  absl::Status Tell() const;

  Model* model_;
  const Target* target_;
  WorkspaceOptions options_;
  Signature signature_;
  Rewriter rewriter_;
  Inliner inliner_;
  Rewriter::Mark loaded_;
  Rewriter::Mark start_;
  uint32_t made_from_ = UINT32_MAX;
  Facts facts_;
  bool inferred_ = false;
  KeptDims kept_dims_;
  std::unique_ptr<ValueNumbering> numbering_;
  std::unique_ptr<MaskForms> masks_;
  std::unique_ptr<AttentionMemo> attention_;
  // Nodes that Refresh was told of since the last CheckReplaced, and what it found: a value that has another type or shape now.
  struct Difference {
    const Value* value;
    const Node* producer;
    std::string sentence;
  };
  absl::flat_hash_set<const Node*> known_;
  std::vector<Difference> differences_;
  std::unique_ptr<Emitter> emitter_;
  MatchCache match_cache_;
  mutable std::array<std::shared_ptr<const RuleSet>, kRuleFolders> rules_;
  int64_t replacements_ = 0;
  static constexpr uint32_t kAsks = 256;  // the callback may be an interpreter: not asked at every node
  ProgressCallback progress_;
  Progress at_;
  uint32_t asked_ = 0;
};

// "domain.op_type", without "." for the default domain.
std::string OperatorKey(const Node& node);
// A node's name, or that of what it computes: exporters need not name nodes.
std::string_view Label(const Node& node);

}  // namespace ascend_fuse
