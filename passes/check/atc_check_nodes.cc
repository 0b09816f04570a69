// What ATC makes of single nodes: rows of standard operators, and the contract of npu nodes.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "passes/check/atc_check.h"
#include "passes/core/call_of.h"
#include "passes/core/module_path.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

constexpr const char* kNoParserError = "E13010";

FindingRecord FindingOfForm(const Node& node, const UnsupportedForm& form) {
  std::string text(OpType(node));
  if (!form.form.empty()) text += " " + form.form;
  text += ": " + form.because;
  if (!form.certain) text += fmt::format(" (possible: {})", form.open);
  FindingRecord finding = FindingOf(node, form.code, EffectWord(form.effect), std::move(text));
  finding.certain = form.certain;
  finding.source = form.source;
  finding.error = form.error;
  finding.way_out = form.instead;
  return finding;
}

// The contract of the chip, for an npu node under its name in the contract.
void CheckNpuNode(const Node& node, const std::string& op, Facts& facts, const Target& target,
                  std::vector<FindingRecord>* findings) {
  const Answer answer = target.Check(CallOf(node, facts, op), &facts.dims());
  if (answer.legal) {
    if (answer.assumptions.empty()) return;
    std::string text = fmt::format("{}: its kernel takes it only if", op);
    for (size_t i = 0; i < answer.assumptions.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? " " : " and ", answer.assumptions[i]);
    }
    FindingRecord finding = FindingOf(node, "undecided-dim", "refused", std::move(text));
    finding.certain = false;
    finding.op = op;
    finding.way_out = "bind the dims with --dim";
    findings->push_back(std::move(finding));
    return;
  }
  const std::optional<LeftReason> in_branch = target.EmptyInputInBranch();
  if (in_branch.has_value() && answer.code == in_branch->code) return;  // said of all nodes (atc_check_structure.cc)
  FindingRecord finding = FindingOf(node, answer.code, "refused", fmt::format("{}: {}", op, answer.because));
  finding.op = op;
  finding.source = answer.source;
  finding.certain = answer.certain && answer.code != "no-node";
  findings->push_back(std::move(finding));
}

}  // namespace

FindingRecord FindingOf(const Node& node, const std::string& code, const std::string& effect, std::string text) {
  FindingRecord finding;
  finding.code = code;
  finding.effect = effect;
  finding.op = node.domain == NameId::kEmpty ? std::string(OpType(node)) : OperatorKey(node);
  finding.node = std::string(Label(node));
  finding.module = ModulePath(node);
  finding.because = std::move(text);
  return finding;
}

std::string EffectWord(UnsupportedForm::Effect effect) {
  switch (effect) {
    case UnsupportedForm::Effect::kNoParser:
      return "no_parser";
    case UnsupportedForm::Effect::kRefused:
      return "refused";
    case UnsupportedForm::Effect::kMisread:
      return "misread";
    case UnsupportedForm::Effect::kLosesType:
      return "loses_type";
    case UnsupportedForm::Effect::kNoKernel:
      return "no_kernel";
    case UnsupportedForm::Effect::kAiCpu:
      return "ai_cpu";
    case UnsupportedForm::Effect::kHost:
      return "host";
    case UnsupportedForm::Effect::kSlow:
      return "slow";
  }
  return "";
}

bool RunsElsewhere(const FindingRecord& finding) {
  return finding.effect == "ai_cpu" || finding.effect == "host" || finding.effect == "slow";
}

bool IsFatal(const FindingRecord& finding) { return finding.certain && !RunsElsewhere(finding) && finding.effect != "precision"; }

std::vector<FindingRecord> FindInNodes(const Model& model, Facts& facts, const Target& target) {
  std::vector<FindingRecord> findings;
  absl::flat_hash_set<std::pair<NameId, NameId>> functions;
  for (const LocalFunction& function : model.functions()) functions.insert({function.domain, function.name});
  const int64_t opset = model.OpsetVersion();
  const auto refuse = [&](const Node& node, const std::string& code, const std::string& because) {
    FindingRecord finding = FindingOf(node, code, "no_parser", fmt::format("{}: {}", OperatorKey(node), because));
    finding.error = kNoParserError;
    findings.push_back(std::move(finding));
  };
  for (const auto& graph : model.graphs()) {
    const InPlace place(*graph, &facts);
    for (const Node* node : graph->nodes()) {
      if (node->dead) continue;
      if (functions.contains({node->domain, node->op_type})) {
        refuse(*node, "function-call-left", "ATC knows no local functions");
      } else if (Domain(*node) == "npu") {
        CheckNpuNode(*node, OperatorKey(*node), facts, target, &findings);
      } else if (node->domain != NameId::kEmpty) {
        // What it holds in blocks of channels has another order on each host, which the file does not name.
        const bool blocked = Domain(*node) == "com.microsoft.nchwc";
        refuse(*node, "no-parser",
               fmt::format("stock ATC has no parser for it and will refuse the model{}",
                           blocked ? "; ONNX Runtime wrote it for the CPU of one host at the level ORT_ENABLE_ALL: write the "
                                     "file at ORT_ENABLE_EXTENDED or below"
                                   : ""));
      } else if (const std::string npu = fmt::format("npu.{}", OpType(*node));
                 !target.IsParsed(OpType(*node)) && target.HasAlias(npu, opset)) {
        CheckNpuNode(*node, npu, facts, target, &findings);
      } else {
        for (const UnsupportedForm* form : target.UnsupportedForms(*node, opset, &facts)) {
          findings.push_back(FindingOfForm(*node, *form));
        }
      }
    }
  }
  return findings;
}

}  // namespace ascend_fuse
