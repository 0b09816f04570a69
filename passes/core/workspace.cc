#include "passes/core/workspace.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/add_once.h"
#include "ir/status_macros.h"
#include "patterns/cost/evidence.h"
#include "patterns/operators/inference.h"

namespace ascend_fuse {

std::string OperatorKey(const Node& node) {
  const std::string_view domain = Domain(node);
  return domain.empty() ? std::string(OpType(node)) : fmt::format("{}.{}", domain, OpType(node));
}

std::string_view Label(const Node& node) {
  const std::string_view name = NodeName(node);
  if (!name.empty() || node.output_count == 0 || node.output(0) == nullptr) return name;
  return ValueName(*node.output(0));
}

Workspace::Workspace(Model* model, const Target* target, const WorkspaceOptions& options)
    : model_(model),
      target_(target),
      options_(options),
      signature_(*model),
      rewriter_(model),
      inliner_(&rewriter_),
      loaded_(rewriter_.Now()),
      start_(loaded_),
      match_cache_(*model) {}

namespace {

using RuleFiles = std::vector<std::pair<std::string, std::string>>;
using RuleSets = std::array<std::shared_ptr<const RuleSet>, kRuleFolders>;

// The built-in rules with those of a user's files. A process loads them once for all models that it runs with the same files, in
// whatever threads.
absl::StatusOr<RuleSets> RulesWith(const RuleFiles& files) {
  struct Loaded {
    std::mutex loading;
    RuleFiles files;
    RuleSets sets;
  };
  static auto* const kLast = new Loaded;  // never destroyed, as threads may outlive main's statics
  const std::lock_guard<std::mutex> lock(kLast->loading);
  if (kLast->files == files) return kLast->sets;
  ASSIGN_OR_RETURN(const UserRules user, UserRules::Parse(files));
  RuleSets sets;
  for (size_t folder = 0; folder < kRuleFolders; ++folder) {
    ASSIGN_OR_RETURN(sets[folder], RuleSet::Load(static_cast<RuleFolder>(folder), user));
  }
  kLast->files = files;
  kLast->sets = sets;
  return sets;
}

// --prefer turns on what is off: a name of another node is a mistake.
absl::Status CheckPrefer(const std::string& name) {
  std::vector<std::string> slower;
  for (const DeclaredOperator& op : DeclaredOperators()) {
    if (!SlowerSitesOf(op.op_type).empty()) slower.push_back(op.op_type);
  }
  if (std::find(slower.begin(), slower.end(), name) != slower.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("--prefer {}: valid names are {}", name, fmt::join(slower, ", ")));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workspace>> Workspace::Create(Model* model, const Target* target,
                                                             const WorkspaceOptions& options) {
  std::unique_ptr<Workspace> workspace(new Workspace(model, target, options));
  if (!options.rule_files.empty()) {
    ASSIGN_OR_RETURN(workspace->rules_, RulesWith(options.rule_files));
  }
  for (const InputAssumption& assumption : options.assumptions) {
    const auto& inputs = model->graph().inputs();
    if (std::any_of(inputs.begin(), inputs.end(), [&](const Value* input) { return ValueName(*input) == assumption.input; }))
      continue;
    return absl::InvalidArgumentError(fmt::format("--assume: the model has no input {}", assumption.input));
  }
  for (const std::string& name : options.skip) {
    RETURN_IF_ERROR(workspace->CheckSkip(name));
  }
  for (const std::string& name : options.prefer) {
    RETURN_IF_ERROR(CheckPrefer(name));
  }
  return workspace;
}

// A name that skips nothing is most likely misspelt.
namespace {

// Whether --skip names the rule: by its name, its kind, or a node that it emits ("NPUPromptFlashAttention").
bool IsNamed(const Rule& rule, const std::string& name) {
  return rule.name == name || rule.kind == name ||
         std::find(rule.nodes.begin(), rule.nodes.end(), "npu." + name) != rule.nodes.end();
}

}  // namespace

absl::Status Workspace::CheckSkip(const std::string& name) const {
  std::vector<std::string> kinds;
  for (size_t folder = 0; folder < kRuleFolders; ++folder) {
    for (const Rule& rule : rules(static_cast<RuleFolder>(folder)).rules()) {
      if (IsNamed(rule, name)) return absl::OkStatus();
      AddOnce(rule.kind, &kinds);
    }
  }
  std::sort(kinds.begin(), kinds.end());
  return absl::InvalidArgumentError(
      fmt::format("--skip {}: no kind, rule or node is called that; the kinds are {}, and `ascend-fuse rules` lists the rules",
                  name, fmt::join(kinds, ", ")));
}

absl::Status Workspace::Begin(const Progress& progress) {
  at_ = progress;
  return Tell();
}

absl::Status Workspace::Tell() const {
  if (!progress_ || progress_(at_)) return absl::OkStatus();
  return absl::CancelledError(fmt::format("cancelled in the pass {}", at_.pass));
}

const RuleSet& Workspace::rules(RuleFolder folder) const {
  auto& rules = rules_[static_cast<size_t>(folder)];
  if (rules == nullptr) rules = RuleSet::Shared(folder);
  return *rules;
}

bool Workspace::Skipped(const Rule& rule) const {
  return std::any_of(options_.skip.begin(), options_.skip.end(), [&](const std::string& name) { return IsNamed(rule, name); });
}

const DeclaredOperator* Workspace::SlowerNode(const Rule& rule) const {
  for (const std::string& name : rule.nodes) {
    const std::string_view op_type = std::string_view(name).substr(name.rfind('.') + 1);
    const DeclaredOperator* op = FindDeclaredOperator("npu", op_type);
    if (op == nullptr || SlowerSitesOf(op->op_type).empty()) continue;
    if (std::find(options_.prefer.begin(), options_.prefer.end(), op_type) == options_.prefer.end()) return op;
  }
  return nullptr;
}

void Workspace::InferModel() {
  facts_ = FactsOfNow();
  inferred_ = true;
}

void Workspace::InferModelAgain() {
  kept_dims_.known = KnownDimsOf(*model_, facts_);
  InferModelAgain(options_.infer, &kept_dims_);
}

void Workspace::InferModelAgain(const InferOptions& told, KeptDims* kept) {
  const std::vector<Contradiction> of_the_model = facts_.contradictions();
  facts_ = InferKeeping(*model_, WithDeclaredOperators(told), kept);
  inferred_ = true;
  facts_.ForgetContradictions(0);
  for (const Contradiction& contradiction : of_the_model) facts_.AddContradiction(contradiction);
}

Facts Workspace::FactsOfNow() const { return Infer(*model_, WithDeclaredOperators(options_.infer)); }

void Workspace::NumberValues() {
  numbering_ = ascend_fuse::NumberValues(*model_, &facts_);
  masks_ = std::make_unique<MaskForms>(*model_, facts_, &facts_.dims(), *numbering_, options_.assumptions);
  attention_ = std::make_unique<AttentionMemo>();
  emitter_ = std::make_unique<Emitter>(&rewriter_, &facts_, numbering_.get());
}

void Workspace::Refresh(const Node* node) {
  if (inferred_) {
    known_.insert(node);
    std::vector<Fact> before;
    for (const Value* output : node->outputs()) before.push_back(output != nullptr ? facts_.Of(output) : Fact());
    InferNode(*node, &facts_);
    facts_.ResolveDims(*node);
    for (size_t i = 0; i < node->output_count; ++i) {
      const Value* output = node->output(i);
      if (output == nullptr) continue;
      const Fact& now = facts_.Of(output);
      const bool typed = before[i].type == now.type || before[i].type == DataType::kUndefined || now.type == DataType::kUndefined;
      if (typed && CanBeOneShape(before[i], now, facts_.dims())) continue;
      const std::string computed = facts_.Describe(output);
      facts_.Set(output, before[i]);
      differences_.push_back({output, node,
                              fmt::format("{} '{}' computes {} as '{}', which is {}", OpType(*node), NodeName(*node), computed,
                                          ValueName(*output), facts_.Describe(output))});
    }
  }
  if (numbering_ != nullptr) numbering_->Add(*node, facts_);
}

absl::Status Workspace::CheckReplaced(size_t first) {
  if (inferred_) {
    const absl::Span<const Value* const> replaced = rewriter_.replaced();
    for (size_t i = first; i < replaced.size(); ++i) {
      const Node* producer = replaced[i]->producer;
      if (producer != nullptr && !producer->dead && producer->is_new && !known_.contains(producer)) Refresh(producer);
    }
  }
  known_.clear();
  std::vector<Difference> differences;
  std::swap(differences, differences_);
  for (const Difference& difference : differences) {
    const bool stands = difference.value->producer == difference.producer && !difference.producer->dead;
    if (stands) return absl::InternalError(difference.sentence);
  }
  return absl::OkStatus();
}

FunctionContext Workspace::Context(std::vector<std::string>* assumptions) {
  FunctionContext context;
  context.model = model_;
  context.target = target_;
  context.facts = &facts_;
  context.dims = &facts_.dims();
  context.numbering = numbering_.get();
  context.assumptions = assumptions;
  context.cache = &match_cache_;
  context.masks = masks_.get();
  context.attention = attention_.get();
  return context;
}

void Workspace::TakeRewritesBack() {
  if (emitter_ != nullptr) {
    emitter_->TakeBackAll(start_);
  } else {
    rewriter_.RollBack(start_);
  }
}

void Workspace::TakeEverythingBack() {
  TakeRewritesBack();
  inliner_.Undo();
  rewriter_.RollBack(loaded_);  // what a pass of the user's did before `inline`
}

int64_t Workspace::CountNodes() const {
  int64_t count = 0;
  for (const auto& graph : model_->graphs()) {
    for (const Node* node : graph->nodes()) count += node->dead ? 0 : 1;
  }
  return count;
}

absl::Status Workspace::Verify(std::string_view pass) const {
  absl::Status status = ascend_fuse::Verify(*model_);
  if (status.ok()) status = signature_.Check(*model_);
  if (status.ok()) return status;
  return absl::InternalError(fmt::format("after the pass {}: {}", pass, std::string(status.message())));
}

}  // namespace ascend_fuse
