#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/verify.h"
#include "passes/module_path.h"

namespace ascend_fuse {
std::string OperatorKey(const Node& node) {
  const std::string_view domain = Domain(node);
  return domain.empty() ? std::string(OpType(node)) : fmt::format("{}.{}", domain, OpType(node));
}

double Pipeline::Now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Pipeline::Pipeline(Model* model, const PipelineOptions& options)
    : model_(model),
      options_(options),
      rewriter_(std::make_unique<Rewriter>(model)),
      inliner_(rewriter_.get()) {}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(Model* model, const PipelineOptions& options) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(model, options));
  auto library = RuleSet::Shared(RuleFolder::kLibrary, options.rule_files);
  if (!library.ok()) return library.status();
  pipeline->library_ = *std::move(library);
  auto npu = RuleSet::Shared(RuleFolder::kNpu, options.rule_files);
  if (!npu.ok()) return npu.status();
  pipeline->npu_ = *std::move(npu);
  auto runtime = RuleSet::Shared(RuleFolder::kContrib);
  if (!runtime.ok()) return runtime.status();
  pipeline->runtime_ = *std::move(runtime);
  auto rest = RuleSet::Shared(RuleFolder::kLeftovers);
  if (!rest.ok()) return rest.status();
  pipeline->rest_ = *std::move(rest);
  for (const std::string& name : options.skip) {
    if (absl::Status status = pipeline->CheckSkip(name); !status.ok()) return status;
  }
  double started = Now();
  if (!model->functions().empty()) {
    const ModuleNames names(*model);
    pipeline->inliner_.Run(
        [&names](const Node& call, const CallScope& outer) { return names.ScopeOf(call, outer); });
    pipeline->FinishRun("inline", started, 0);
    pipeline->runs_.back().changes = static_cast<uint64_t>(pipeline->inliner_.inlined());
    if (absl::Status status = pipeline->Verify("inline"); !status.ok()) return status;
  }
  started = Now();
  pipeline->facts_ = Infer(*model, options.infer);
  pipeline->FinishRun("infer", started, 0);
  started = Now();
  pipeline->numbering_ = std::make_unique<ValueNumbering>(*model, pipeline->facts_);
  pipeline->FinishRun("number", started, 0);
  pipeline->emitter_ = std::make_unique<Emitter>(pipeline->rewriter_.get(), &pipeline->facts_);
  pipeline->nodes_before_ = pipeline->CountNodes();
  return pipeline;
}

// A name that skips nothing is most likely misspelt.
absl::Status Pipeline::CheckSkip(const std::string& name) const {
  std::vector<std::string> kinds;
  for (const RuleSet* rules : {library_.get(), npu_.get(), runtime_.get(), rest_.get()}) {
    for (const Rule& rule : rules->rules()) {
      if (rule.name == name || rule.kind == name) return absl::OkStatus();
      if (std::find(kinds.begin(), kinds.end(), rule.kind) == kinds.end()) kinds.push_back(rule.kind);
    }
  }
  std::sort(kinds.begin(), kinds.end());
  return absl::InvalidArgumentError(fmt::format(
      "--skip {}: no kind or rule is called that; the kinds are {}, and `ascend-fuse rules` lists the rules",
      name, fmt::join(kinds, ", ")));
}

FunctionContext Pipeline::Context(std::vector<std::string>* assumptions) {
  FunctionContext context;
  context.model = model_;
  context.facts = &facts_;
  context.dims = &facts_.dims();
  context.numbering = numbering_.get();
  context.assumptions = assumptions;
  return context;
}

bool Pipeline::Skipped(const Rule& rule) const {
  return std::find(options_.skip.begin(), options_.skip.end(), rule.name) != options_.skip.end() ||
         std::find(options_.skip.begin(), options_.skip.end(), rule.kind) != options_.skip.end();
}

int64_t Pipeline::CountNodes() const {
  int64_t count = 0;
  for (const auto& graph : model_->graphs()) {
    for (const Node* node : graph->nodes()) count += node->dead ? 0 : 1;
  }
  return count;
}

void Pipeline::FinishRun(const char* name, double started, uint64_t changes_before) {
  runs_.push_back({name, Now() - started, rewriter_->change_count() - changes_before});
}

absl::Status Pipeline::Verify(const std::string& pass) const {
  absl::Status status = ascend_fuse::Verify(*model_);
  if (status.ok()) return status;
  return absl::InternalError(fmt::format("after the pass {}: {}", pass, std::string(status.message())));
}

void Pipeline::Restore() {
  const double started = Now();
  const uint64_t before = rewriter_->change_count();
  // The latest replacement first: one may stand on another.
  for (auto site = sites_.rbegin(); site != sites_.rend(); ++site) {
    if (site->state == SiteState::kFused || site->made.empty() || site->made.back()->dead) continue;
    for (auto made = site->made.rbegin(); made != site->made.rend(); ++made) {
      if (!(*made)->dead) rewriter_->Restore(*made);
    }
  }
  FinishRun("restore", started, before);
}

void Pipeline::KeepCalls() {
  if (inliner_.inlined() == 0) return;
  for (const auto& graph : model_->graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->is_new && !node->dead) return;
    }
  }
  calls_kept_ = inliner_.inlined();
  UndoAll();
  nodes_before_ = CountNodes();
}

void Pipeline::UndoAll() {
  for (auto emission = emissions_.rbegin(); emission != emissions_.rend(); ++emission)
    emitter_->Undo(*emission);
  emissions_.clear();
  Sweep();
  inliner_.Undo();
}

void Pipeline::Sweep() {
  const double started = Now();
  const uint64_t before = rewriter_->change_count();
  rewriter_->Sweep();
  FinishRun("sweep", started, before);
}

}  // namespace ascend_fuse
