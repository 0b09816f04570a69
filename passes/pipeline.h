// The journey of a model between load and save: recognise, lower, adapt, restore, sweep. Each pass is one
// function over one Pipeline, which holds what is known and what was decided.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ir/onnx/inline.h"
#include "passes/emit.h"
#include "patterns/analysis/value_numbering.h"
#include "patterns/target/target.h"
#include "patterns/language/rule_set.h"

namespace ascend_fuse {

enum class SiteState { kPending, kFused, kByGe, kLeft };

// How much a refusal to lower says: of several the one that says most is told.
enum class RefusalRank : uint8_t {
  kNothing,           // there is none
  kNoMatch,           // a rule does not match; how far it got says more
  kNotBuilt,          // the rule matched, and its nodes cannot be built here
  kNoSuchNode,        // the target has no such node, or refuses one for a pair
  kNoSuchNodeBehind,  // the same of a rule that takes what reads the construct too
  kRefusedByTarget,   // the nodes were built, and the target refuses one
  kSaidByRule,        // the rule itself says why what looks like the construct is none
};

// One place where a construct was recognised.
struct PipelineSite {
  std::string kind;
  std::string rule;  // the recogniser, or "native" for an operator that was there
  std::string precision = "exact";
  Value* value = nullptr;  // what the construct computes
  std::vector<const Value*> others;  // what it computes besides: the sum of a residual
  Node* node = nullptr;    // the recognised operator; nullptr for an observation
  std::vector<Node*> made;  // all that replaced original nodes together with it, in the order made
  int pair = -1;           // the site that turns the other of query and key with the same cos and sin
  std::string by_ge;       // the construct as which GE takes the original nodes, of the recogniser
  uint64_t order = 0;      // place of `value` in the original order
  std::string root;        // name of the original node that computed `value`
  std::string module;      // model.layers.0.self_attn
  std::vector<std::string> covers;
  SiteState state = SiteState::kPending;
  std::string lowered_by;  // rule
  std::string lowered_to;  // npu.NPURmsNorm
  std::string mask;
  std::vector<std::string> assumptions;
  std::string because;
  std::string source;
  std::pair<RefusalRank, FailureRank> refusal;  // of the lowering that `because` tells of
};

struct PipelineNearMiss {
  Failure failure;
  std::string anchor;
  std::string module;
};

struct PassRun {
  std::string name;
  double milliseconds = 0;
  uint64_t changes = 0;
};

struct PipelineOptions {
  std::vector<std::pair<std::string, std::string>> rule_files;
  std::vector<std::string> skip;  // rules not to use
  int64_t limit = -1;             // only the first N replacements
  bool strict = false;            // refuse what rests on an assumption
  InferOptions infer;
};

class Pipeline {
 public:
  // The model must outlive the pipeline.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Create(Model* model, const PipelineOptions& options);

  // Finds constructs and replaces them by one operator each; fills sites() and, for what was left, near
  // misses.
  absl::Status Recognise();
  // Replaces recognised operators by NPU nodes where the target allows it.
  absl::Status Lower(const Target& target);
  // The emission style: "D", "N", "X", or "" without NPU nodes. INVALID_ARGUMENT with a sentence for a
  // --style that the target's parser or the model rules out.
  absl::StatusOr<std::string> ChooseStyle(const Target& target) const;
  // Writes the domains that the chosen style needs, and returns the style.
  absl::StatusOr<std::string> Adapt(const Target& target);
  // Brings back the original nodes of everything that no NPU node took.
  void Restore();
  // Operators of ONNX Runtime that nothing was made of as the standard operators they are made of.
  absl::Status StandardizeRest();
  // The import of com.microsoft, where nothing of it is left.
  void DropImport();
  // Puts the calls of local functions back where nothing was fused: then there is nothing to say about the model.
  void KeepCalls();
  // Takes back everything, fused sites too: the model computes what it did with the nodes it had.
  void UndoAll();
  void Sweep();
  // NPU nodes back to standard operators. FAILED_PRECONDITION names the nodes no rule knows.
  absl::Status Expand();

  // ir/verify.h, naming the pass in the sentence.
  absl::Status Verify(const std::string& pass) const;

  std::vector<PipelineSite>& sites() { return sites_; }
  const std::vector<PipelineNearMiss>& near_misses() const { return near_misses_; }
  const std::vector<PassRun>& runs() const { return runs_; }
  const Facts& facts() const { return facts_; }
  // How many nodes Standardize rewrote, by operator.
  const std::map<std::string, int64_t>& standardized() const { return standardized_; }
  const Inliner& inliner() const { return inliner_; }
  // Calls of local functions that KeepCalls put back.
  int64_t calls_kept() const { return calls_kept_; }
  int64_t nodes_before() const { return nodes_before_; }
  int64_t CountNodes() const;

 private:
  Pipeline(Model* model, const PipelineOptions& options);
  FunctionContext Context(std::vector<std::string>* assumptions = nullptr);
  bool Skipped(const Rule& rule) const;
  std::vector<Node*> NpuNodes() const;
  // Operators of ONNX Runtime as the standard operators they are made of, before anything is looked for.
  absl::Status Standardize();
  absl::Status Rewrite(const RuleSet& rules, const char* pass);
  absl::Status CheckSkip(const std::string& name) const;
  void Absorb(const std::vector<std::pair<size_t, size_t>>& taken);
  void FindNearMisses();
  void FindPairs();
  void LowerNode(Node* node, const Target& target);
  static std::optional<Match> RunBehind(const Rule& rule, const std::vector<std::string>& roots, Value* value,
                                        Matcher* matcher, Failure* failure);
  // Why the pass of `by_ge` does not reach this site; "" if it does.
  std::string WhyGeCannot(const PipelineSite& site, const ByGe& by_ge);
  // Why a sum and the norm that reads it are not one kernel; "" where they are.
  std::string WhyNotJoined(const PipelineSite& site) const;
  static double Now();  // milliseconds
  void FinishRun(const char* name, double started, uint64_t changes_before);

  Model* model_;
  PipelineOptions options_;
  std::unique_ptr<Rewriter> rewriter_;
  Inliner inliner_;
  Facts facts_;
  std::unique_ptr<ValueNumbering> numbering_;
  std::unique_ptr<Emitter> emitter_;
  MatchCache match_cache_;
  std::shared_ptr<const RuleSet> library_;
  std::shared_ptr<const RuleSet> npu_;
  std::shared_ptr<const RuleSet> runtime_;
  std::shared_ptr<const RuleSet> rest_;
  std::vector<PipelineSite> sites_;
  absl::flat_hash_map<const Value*, std::vector<size_t>> sites_of_;  // indices into sites_, filled by Lower
  std::vector<PipelineNearMiss> near_misses_;
  std::vector<PassRun> runs_;
  std::map<std::string, int64_t> standardized_;
  bool runtime_gone_ = false;   // no operator of com.microsoft is left ...
  bool gone_at_first_ = false;  // ... and none was when constructs were looked for
  std::vector<Emission> emissions_;  // in the order made
  int64_t nodes_before_ = 0;  // with the nodes of functions in place of their calls
  int64_t calls_kept_ = 0;
  int64_t replacements_ = 0;
};

// "domain.op_type", without "." for the default domain.
std::string OperatorKey(const Node& node);

}  // namespace ascend_fuse
