#include "passes/check.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace ascend_fuse {
namespace {

std::string SentenceOf(int64_t count, std::string_view op, const UnreadForm& form) {
  std::string sentence = fmt::format("{} {}", count, op);
  if (!form.form.empty()) sentence += fmt::format(" {}", form.form);
  sentence += fmt::format(": {}", form.because);
  // That there is no parser is a fact about all sources at once.
  if (form.effect != UnreadForm::Effect::kNoParser) sentence += fmt::format(" ({})", form.source);
  if (!form.instead.empty()) sentence += fmt::format("; {}", form.instead);
  if (!form.certain) sentence += fmt::format(" (possible: {})", form.open);
  return sentence;
}

}  // namespace

std::vector<WarningRecord> CheckOpset(const Model& model, const Target& target) {
  if (model.OpsetVersion() <= target.MaxOpset()) return {};
  return {{"opset-too-high",
           fmt::format("the model imports opset {}; ATC of CANN {} reads standard operators up to opset {}",
                       model.OpsetVersion(), target.cann(), target.MaxOpset())}};
}

std::vector<WarningRecord> CheckForms(const Model& model, const Target& target, const Facts* facts) {
  struct Found {
    const UnreadForm* form = nullptr;
    int64_t count = 0;
  };
  // By code and operator; and by operator those that have no parser.
  std::map<std::pair<std::string_view, std::string>, Found> forms;
  std::map<std::string, Found> unparsed;
  static const UnreadForm* const kOtherDomain = [] {
    auto* form = new UnreadForm();
    form->code = "no-parser";
    form->because = "stock ATC has no parser for it and will refuse the model";
    return form;
  }();
  absl::flat_hash_set<std::pair<NameId, NameId>> functions;
  for (const LocalFunction& function : model.functions()) functions.insert({function.domain, function.name});
  const int64_t opset = model.OpsetVersion();
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || functions.contains({node->domain, node->op_type})) continue;
      if (node->domain != NameId::kEmpty) {
        if (Domain(*node) == "npu") continue;
        Found& found = unparsed[fmt::format("{}.{}", Domain(*node), OpType(*node))];
        found.form = kOtherDomain;
        ++found.count;
        continue;
      }
      for (const UnreadForm* form : target.UnreadForms(*node, opset, facts)) {
        if (form->effect == UnreadForm::Effect::kAiCpu || form->effect == UnreadForm::Effect::kHost) continue;
        std::string op(OpType(*node));
        Found& found = form->effect == UnreadForm::Effect::kNoParser ? unparsed[std::move(op)]
                                                                     : forms[{form->code, std::move(op)}];
        if (found.form == nullptr || (form->certain && !found.form->certain)) found.form = form;
        ++found.count;
      }
    }
  }
  std::vector<WarningRecord> warnings;
  for (const auto& [key, found] : forms) {
    warnings.push_back({found.form->code, SentenceOf(found.count, key.second, *found.form)});
  }
  for (const auto& [op, found] : unparsed) {
    warnings.push_back({found.form->code, SentenceOf(found.count, op, *found.form)});
  }
  return warnings;
}

std::vector<WarningRecord> CheckPlugin(const Model& model, const Target& target) {
  if (!target.options().plugin) return {};
  std::map<std::string, int64_t> nodes;
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || (Domain(*node) != "npu" && node->domain != NameId::kEmpty)) continue;
      if (target.NeedsPlugin(fmt::format("npu.{}", OpType(*node)))) ++nodes[std::string(OpType(*node))];
    }
  }
  if (nodes.empty()) return {};
  std::vector<std::string> words;
  for (const auto& [op, count] : nodes) words.push_back(fmt::format("{} {}", count, op));
  return {{"plugin-needed",
           fmt::format("ATC reads these nodes only with our op plugin installed, and refuses the model without it: {} "
                       "(docs/targets.md says what the plugin registers)",
                       fmt::join(words, ", "))}};
}

// ATC has no local functions: its ModelProto has no field for them, so a call is an operator that nobody
// knows (ge_onnx.proto of hicann/ge).
std::vector<WarningRecord> CheckCalls(const Model& model, int64_t calls_kept, absl::Span<const CallsLeft> left) {
  constexpr std::string_view kCode = "function-call-left";
  constexpr size_t kMost = 10;
  std::vector<WarningRecord> warnings;
  if (model.functions().empty()) return warnings;
  const auto add = [&](std::string sentence) { warnings.push_back({std::string(kCode), std::move(sentence)}); };
  if (calls_kept > 0) {
    add(fmt::format("nothing was fused, so the model keeps its calls of {} local function(s). ATC knows no functions "
                    "and will refuse them: inline them first (onnx.inliner.inline_local_functions)",
                    model.functions().size()));
  }
  for (const CallsLeft& calls : left.subspan(0, kMost)) {
    add(fmt::format(
        "{} call(s) of the local function {} were not looked into, and ATC knows no functions and will refuse them: {}",
        calls.count, calls.function, calls.because));
  }
  if (left.size() > kMost) {
    add(fmt::format("calls of {} more local functions were not looked into", left.size() - kMost));
  }
  return warnings;
}

std::vector<WarningRecord> CheckDims(const Model& model, const InferOptions& options) {
  if (options.dims.empty()) return {};
  std::set<std::string> names;
  for (const Value* value : model.graph().inputs()) {
    for (std::string& name : DeclaredSymbols(*value)) names.insert(std::move(name));
  }
  std::vector<WarningRecord> warnings;
  for (const auto& [name, range] : options.dims) {
    if (names.count(name) > 0) continue;
    warnings.push_back(
        {"dim-unknown", names.empty()
                            ? fmt::format("--dim {}: no input of the model has a symbolic dim", name)
                            : fmt::format("--dim {}: no input of the model has a dim of that name; there are {}", name,
                                          fmt::join(names, ", "))});
  }
  return warnings;
}

}  // namespace ascend_fuse
