#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/verify.h"

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
    : model_(model), options_(options), rewriter_(std::make_unique<Rewriter>(model)) {}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(Model* model, const PipelineOptions& options) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(model, options));
  auto library = RuleSet::Load(RuleFolder::kLibrary, options.rule_files);
  if (!library.ok()) return library.status();
  pipeline->library_ = *std::move(library);
  auto npu = RuleSet::Load(RuleFolder::kNpu, options.rule_files);
  if (!npu.ok()) return npu.status();
  pipeline->npu_ = *std::move(npu);
  auto runtime = RuleSet::Load(RuleFolder::kRuntime);
  if (!runtime.ok()) return runtime.status();
  pipeline->runtime_ = *std::move(runtime);
  auto rest = RuleSet::Load(RuleFolder::kRest);
  if (!rest.ok()) return rest.status();
  pipeline->rest_ = *std::move(rest);
  for (const std::string& name : options.skip) {
    if (absl::Status status = pipeline->CheckSkip(name); !status.ok()) return status;
  }
  double started = Now();
  pipeline->facts_ = Infer(*model, options.infer);
  pipeline->FinishRun("infer", started, 0);
  started = Now();
  pipeline->canonical_ = std::make_unique<Canonical>(*model, pipeline->facts_);
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
  context.canonical = canonical_.get();
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

void Pipeline::UndoAll() {
  for (auto emission = emissions_.rbegin(); emission != emissions_.rend(); ++emission)
    emitter_->Undo(*emission);
  emissions_.clear();
  Sweep();
}

void Pipeline::Sweep() {
  const double started = Now();
  const uint64_t before = rewriter_->change_count();
  rewriter_->Sweep();
  FinishRun("sweep", started, before);
}

namespace {

// "/model/layers.0/self_attn/MatMul_1", "bert/encoder/MatMul" -> all but the last part, the operator; "" without a slash.
std::string PathOfName(std::string_view name) {
  if (!name.empty() && name[0] == '/') name.remove_prefix(1);
  const size_t last = name.rfind('/');
  if (last == std::string_view::npos) return "";
  std::string path(name.substr(0, last));
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

// pkg.torch.onnx.name_scopes: "['', 'model', 'model.layers.0', 'pow_1']": the last entry is the operation.
std::string PathOfScopes(std::string_view scopes) {
  std::vector<std::string_view> names;
  size_t at = 0;
  while ((at = scopes.find('\'', at)) != std::string_view::npos) {
    const size_t end = scopes.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    names.push_back(scopes.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return names.size() >= 2 ? std::string(names[names.size() - 2]) : "";
}

// namespace: ": llama.Model/model: llama.Inner/model.layers.0: llama.Layer/pow_1: aten.pow": names with their classes, the
// last one of the operation. What dynamo wrote before it wrote name_scopes.
std::string PathOfNamespace(std::string_view scopes) {
  std::string_view before;
  std::string_view last;
  while (!scopes.empty()) {
    const size_t slash = std::min(scopes.find('/'), scopes.size());
    const std::string_view part = scopes.substr(0, slash);
    before = last;
    last = part.substr(0, std::min(part.find(':'), part.size()));
    scopes.remove_prefix(std::min(slash + 1, scopes.size()));
  }
  return std::string(before);
}

// "model.layers.0.mlp.gate_proj.weight" -> the module that has the weight.
std::string PathOfWeight(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.find_first_of("/: ") != std::string_view::npos) return "";
  const std::string_view last = name.substr(dot + 1);
  return last == "weight" || last == "bias" ? std::string(name.substr(0, dot)) : "";
}

}  // namespace

std::string ModulePath(const Node& node) {
  if (std::string path = PathOfScopes(NodeMetadata(node, "pkg.torch.onnx.name_scopes")); !path.empty()) return path;
  if (std::string path = PathOfNamespace(NodeMetadata(node, "namespace")); !path.empty()) return path;
  if (std::string path = PathOfName(NodeName(node)); !path.empty()) return path;
  // Optimizers name the nodes they make after themselves; what these compute and read keeps its names.
  for (const Value* value : node.outputs()) {
    if (value == nullptr) continue;
    if (std::string path = PathOfName(ValueName(*value)); !path.empty()) return path;
  }
  for (const Use& use : node.inputs()) {
    if (use.value == nullptr || !use.value->IsConstant()) continue;
    if (std::string path = PathOfWeight(ValueName(*use.value)); !path.empty()) return path;
  }
  return "";
}

}  // namespace ascend_fuse
