// Check: what ATC is known to read wrongly or not at all in what was left, and what the output needs.
#include "passes/check.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "patterns/operators/inference.h"

namespace ascend_fuse {

// What ATC is known to read wrongly in what was left as it was (atc-op-audit.md W1, W2, R1). Said here until
// these forms are rewritten.
std::vector<WarningRecord> CheckForms(const Model& model, const Target&) {
  std::vector<WarningRecord> warnings;
  int64_t reduce = 0;
  int64_t shape = 0;
  int64_t split = 0;
  std::map<std::string, int64_t> unparsed;
  static constexpr std::string_view kNoParser[] = {"Gelu",
                                                   "RMSNormalization",
                                                   "SimplifiedLayerNormalization",
                                                   "RotaryEmbedding",
                                                   "Attention",
                                                   "GroupNormalization",
                                                   "Swish",
                                                   "Loop",
                                                   "Scan",
                                                   "QuantizeLinear",
                                                   "DequantizeLinear",
                                                   "ConvInteger",
                                                   "MatMulInteger",
                                                   "DFT",
                                                   "STFT",
                                                   "CenterCropPad",
                                                   "DynamicQuantizeLinear",
                                                   "QLinearMatMul",
                                                   "QLinearConv",
                                                   "RNN",
                                                   "TensorScatter"};
  absl::flat_hash_set<std::pair<NameId, NameId>> functions;
  for (const LocalFunction& function : model.functions()) functions.insert({function.domain, function.name});
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || functions.contains({node->domain, node->op_type})) continue;
      if (node->domain == NameId::kEmpty) {
        const std::string_view op = OpType(*node);
        if (op == "ReduceMean" && node->input(1) != nullptr) ++reduce;
        if (op == "Shape" &&
            (IntAttribute(*node, "end").has_value() || IntAttribute(*node, "start").value_or(0) != 0)) {
          ++shape;
        }
        if (op == "Split" && IntAttribute(*node, "num_outputs").has_value()) ++split;
        if (std::find(std::begin(kNoParser), std::end(kNoParser), op) != std::end(kNoParser)) {
          ++unparsed[std::string(op)];
        }
      } else if (Domain(*node) != "npu") {
        ++unparsed[fmt::format("{}.{}", Domain(*node), OpType(*node))];
      }
    }
  }
  if (reduce > 0) {
    warnings.push_back({"reduce-axes-input", fmt::format(
        "{} ReduceMean with axes as an input: ATC before 9.2 averages over all axes there without a word "
        "(hicann/ops-math:math/reduce_mean/framework); export at opset 17 or lower",
        reduce)});
  }
  if (shape > 0) {
    warnings.push_back({"shape-start-end", 
        fmt::format("{} Shape with start or end: every known ATC ignores both and gives the full shape "
                    "(hicann/ops-math:math/shape/framework)",
                    shape)});
  }
  if (split > 0) {
    warnings.push_back({"split-num-outputs", fmt::format(
        "{} Split with num_outputs: ATC refuses it or fails on it; explicit split sizes are read", split)});
  }
  for (const auto& [op, count] : unparsed) {
    warnings.push_back({"no-parser", 
        fmt::format("{} {}: stock ATC has no parser for it and will refuse the model", count, op)});
  }
  return warnings;
}

// What the output needs that stock ATC does not have.
std::vector<WarningRecord> CheckPlugin(const Model& model, const Target& target) {
  std::vector<WarningRecord> warnings;
  if (!target.options().plugin) return warnings;
  std::map<std::string, int64_t> nodes;
  for (const auto& graph : model.graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || (Domain(*node) != "npu" && node->domain != NameId::kEmpty)) continue;
      if (target.NeedsPlugin(fmt::format("npu.{}", OpType(*node)))) ++nodes[std::string(OpType(*node))];
    }
  }
  std::vector<std::string> words;
  for (const auto& [op, count] : nodes) words.push_back(fmt::format("{} {}", count, op));
  if (words.empty()) return warnings;
  warnings.push_back({"plugin-needed", fmt::format(
      "ATC reads these nodes only with our op plugin installed, and refuses the model without it: {} "
      "(docs/targets.md says what the plugin registers)",
      fmt::join(words, ", "))});
  return warnings;
}

// ATC has no local functions: its ModelProto has no field for them, so a call is an operator that nobody knows
// (ascend-contract.md 5.3).
std::vector<WarningRecord> CheckCalls(const Model& model, int64_t calls_kept, absl::Span<const CallsLeft> left) {
  std::vector<WarningRecord> warnings;
  if (model.functions().empty()) return warnings;
  if (calls_kept > 0) {
    warnings.push_back({"function-call-left", 
        fmt::format("nothing was fused, so the model keeps its calls of {} local function(s). ATC knows no functions "
                    "and will refuse them: inline them first (onnx.inliner.inline_local_functions)",
                    model.functions().size())});
  }
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < std::min(left.size(), kMost); ++i) {
    warnings.push_back({"function-call-left", fmt::format(
        "{} call(s) of the local function {} were not looked into, and ATC knows no functions and will refuse them: {}",
        left[i].count, left[i].function, left[i].because)});
  }
  if (left.size() > kMost) {
    warnings.push_back({"function-call-left", fmt::format("calls of {} more local functions were not looked into", left.size() - kMost)});
  }
  return warnings;
}

// --dim for a dim that no input has is most likely misspelt.
std::vector<WarningRecord> CheckDims(const Model& model, const InferOptions& options) {
  std::vector<WarningRecord> warnings;
  if (options.dims.empty()) return warnings;
  const Facts facts = Infer(model, WithDeclaredOperators());  // without the bindings, which replace symbols by numbers
  std::set<std::string> names;
  for (const Value* value : model.graphs()[0]->inputs()) {
    for (const Dim dim : facts.Of(value).shape) {
      const std::string text = facts.dims().ToString(dim);
      std::string word;
      for (const char c : text + " ") {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
          word += c;
        } else if (!word.empty()) {
          if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) names.insert(word);
          word.clear();
        }
      }
      if (!dim.is_number()) names.insert(text);
    }
  }
  for (const auto& [name, range] : options.dims) {
    if (names.count(name) > 0) continue;
    warnings.push_back({"dim-unknown", 
        names.empty() ? fmt::format("--dim {}: no input of the model has a symbolic dim", name)
                      : fmt::format("--dim {}: no input of the model has a dim of that name; there are {}",
                                    name, fmt::join(names, ", "))});
  }
  return warnings;
}

std::vector<WarningRecord> CheckOpset(const Model& model, const Target& target) {
  if (model.OpsetVersion() <= target.MaxOpset()) return {};
  return {{"opset-too-high", fmt::format("the model imports opset {}; ATC of CANN {} reads standard operators up to opset {}",
                                         model.OpsetVersion(), target.cann(), target.MaxOpset())}};
}

}  // namespace ascend_fuse
