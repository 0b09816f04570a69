#include "passes/check/check.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/check/atc_check.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

// The version of our plugin that reads the node: that of its node, or of an attribute that came later.
int PluginVersionOf(const Node& node) {
  const DeclaredOperator* op = FindDeclaredOperator("npu", OpType(node));
  if (op == nullptr || !op->ge.has_value()) return 0;
  int version = op->ge->since;
  for (const Attribute& attribute : ReadAttributes(node)) {
    const DeclaredAttribute* declared = op->FindAttribute(attribute.name);
    if (declared != nullptr) version = std::max(version, declared->since);
  }
  return version;
}

}  // namespace

std::vector<WarningRecord> CheckOpset(const Model& model, const Target& target) {
  if (model.OpsetVersion() <= target.MaxOpset()) return {};
  return {{"opset-too-high", fmt::format("the model imports opset {}; ATC of CANN {} reads standard operators up to opset {}",
                                         model.OpsetVersion(), target.cann(), target.MaxOpset())}};
}

std::vector<WarningRecord> WarningsOf(const std::vector<FindingRecord>& findings) {
  struct Group {
    const FindingRecord* first = nullptr;
    int64_t count = 0;
  };
  // Operators without a parser last.
  std::map<std::tuple<bool, std::string, std::string, std::string>, Group> groups;
  for (const FindingRecord& finding : findings) {
    Group& group = groups[{finding.effect == "no_parser", finding.code, finding.op, finding.because}];
    if (group.first == nullptr) group.first = &finding;
    ++group.count;
  }
  std::vector<WarningRecord> warnings;
  for (const auto& [key, group] : groups) {
    const FindingRecord& finding = *group.first;
    std::string sentence = fmt::format("{} {}", group.count, finding.because);
    // That there is no parser is a fact about all sources at once.
    if (finding.effect != "no_parser" && !finding.source.empty()) sentence += fmt::format(" ({})", finding.source);
    if (!finding.way_out.empty()) sentence += fmt::format("; {}", finding.way_out);
    warnings.push_back({finding.code, std::move(sentence)});
  }
  return warnings;
}

std::vector<WarningRecord> CheckForms(const std::vector<FindingRecord>& in_nodes) {
  std::vector<FindingRecord> findings;
  for (const FindingRecord& finding : in_nodes) {
    // CheckCalls says more of calls; nodes of ours were judged when they were made, and their assumptions are listed.
    const bool of_node = finding.op.starts_with("npu.");
    const bool elsewhere = RunsElsewhere(finding);
    if (finding.code == "function-call-left" || elsewhere || (of_node && !finding.certain)) continue;
    findings.push_back(finding);
  }
  return WarningsOf(findings);
}

std::vector<std::string> WhyNotWritten(const Report& report, size_t most) {
  struct Kind {
    const FindingRecord* first = nullptr;
    int64_t count = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Kind> kinds;
  for (const FindingRecord& finding : report.findings) {
    if (!IsFatal(finding)) continue;
    Kind& kind = kinds[{finding.code, finding.op, finding.because}];
    if (kind.first == nullptr) kind.first = &finding;
    ++kind.count;
  }
  std::vector<std::string> sentences;
  for (const auto& [key, kind] : kinds) {
    if (sentences.size() == most) {
      sentences.push_back(fmt::format("and {} more kinds of them", kinds.size() - most));
      break;
    }
    const FindingRecord& finding = *kind.first;
    std::string sentence = fmt::format("{} [{}]", finding.because, finding.code);
    if (!finding.node.empty()) sentence += fmt::format(", at {}", finding.node);
    if (kind.count > 1) sentence += fmt::format(" and {} more", kind.count - 1);
    if (!finding.way_out.empty()) sentence += fmt::format("; {}", finding.way_out);
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::vector<WarningRecord> CheckPlugin(const Model& model, const Target& target) {
  if (!target.options().plugin) return {};
  std::map<std::string, int64_t> nodes;
  int version = 0;
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || (Domain(*node) != "npu" && node->domain != NameId::kEmpty)) continue;
      if (!target.NeedsPlugin(fmt::format("npu.{}", OpType(*node)))) continue;
      ++nodes[std::string(OpType(*node))];
      version = std::max(version, PluginVersionOf(*node));
    }
  }
  if (nodes.empty()) return {};
  std::vector<std::string> words;
  for (const auto& [op, count] : nodes) words.push_back(fmt::format("{} {}", count, op));
  return {{"plugin-needed",
           fmt::format("ATC reads these nodes only with our op plugin installed, version {} or later, and refuses the model "
                       "without it: {} (`ascend-fuse plugin` writes it, docs/plugin.md)",
                       version, fmt::join(words, ", "))}};
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
    add(
        fmt::format("nothing is to be changed, so the model keeps its calls of {} local function(s). ATC knows no functions "
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

InputSymbols::InputSymbols(const Model& model) {
  Facts unbound;
  for (const Value* value : model.graph().inputs()) {
    for (std::string& name : NamesOfDims(*value, &unbound)) names_.insert(std::move(name));
  }
}

std::string InputSymbols::WhyNone(std::string_view flag, const std::string& name) const {
  if (names_.contains(name)) return "";
  if (names_.empty()) return fmt::format("{} {}: no input of the model has a symbolic dim", flag, name);
  return fmt::format("{} {}: no input of the model has a dim of that name; there are {}", flag, name, fmt::join(names_, ", "));
}

std::vector<WarningRecord> CheckDims(const Model& model, const InferOptions& options) {
  if (options.dims.empty() && options.equal_dims.empty()) return {};
  const InputSymbols symbols(model);
  std::vector<WarningRecord> warnings;
  const auto check = [&](const std::string& name) {
    if (std::string why = symbols.WhyNone("--dim", name); !why.empty()) warnings.push_back({"dim-unknown", std::move(why)});
  };
  for (const auto& [name, range] : options.dims) check(name);
  for (const auto& [name, other] : options.equal_dims) {
    check(name);
    check(other);
  }
  return warnings;
}

std::vector<WarningRecord> CheckEmptyDims(const Model& model, Facts& facts, const InferOptions& options) {
  std::set<std::string> met;  // of each name once, and not of those that --dim says
  for (const auto& [name, range] : options.dims) met.insert(name);
  std::vector<WarningRecord> warnings;
  Facts unbound;
  for (const Value* value : model.graph().inputs()) {
    for (const std::string& name : NamesOfDims(*value, &unbound)) {
      if (!met.insert(name).second || !facts.dims().Resolve(facts.dims().Find(name)).is(0)) continue;
      warnings.push_back(
          {"dim-only-zero",
           fmt::format(
               "the dim `{}` of input {} can only be 0: numbers in the model, most often those of a Reshape, fit no other "
               "size of it, and ONNX Runtime ends with an error for every other one",
               name, ValueName(*value))});
    }
  }
  return warnings;
}

}  // namespace ascend_fuse
