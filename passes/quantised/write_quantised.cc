// Write quantised operators in standard ones: ATC has a parser for none of them, so that a model with one of them is refused.
// What each of them computes stays: codes are whole numbers in floating point, rounded half to even and saturated as ONNX
// Runtime does it. Weights are dequantised when the model is saved.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/module_path.h"
#include "passes/legalise/whole_model.h"
#include "passes/quantised/deployed.h"
#include "passes/quantised/int8_codes.h"
#include "passes/quantised/int8_kernel.h"
#include "passes/quantised/operators.h"
#include "passes/quantised/passes.h"
#include "passes/quantised/rounded_between.h"

namespace ascend_fuse {
namespace {

constexpr std::string_view kSource = "docs/sources/ascend-contract.md 5.3";

// Operators with quantised operands that nothing is written for.
constexpr std::string_view kNotWritten[] = {"com.microsoft.MatMulFpQ4",
                                            "com.microsoft.QLinearReduceMean",
                                            "com.microsoft.MatMulInteger16",
                                            "com.microsoft.QuantizeWithOrder",
                                            "com.microsoft.DequantizeWithOrder",
                                            "com.microsoft.MulInteger",
                                            "com.microsoft.QOrderedMatMul",
                                            "com.microsoft.QOrderedAttention",
                                            "com.microsoft.QOrderedGelu",
                                            "com.microsoft.QOrderedLayerNormalization",
                                            "com.microsoft.QOrderedLongformerAttention",
                                            "com.microsoft.QLinearConvTranspose",
                                            "com.microsoft.QuantizeBFP",
                                            "com.microsoft.DequantizeBFP"};

bool IsProduct(const Node& node) {
  return IsOp(node, "MatMul") || IsOp(node, "Gemm") || IsOp(node, "Conv") || IsOp(node, "ConvTranspose");
}

class QuantisedPass {
 public:
  explicit QuantisedPass(Workspace& workspace) : workspace_(workspace), writer_(workspace) {
    for (const auto* list : {&QuantisedElementwise(), &QuantisedProducts(), &QuantisedInBlocks(), &QuantisedWhole()}) {
      for (const QuantisedOperator& one : *list) {
        operators_[one.domain.empty() ? std::string(one.op) : fmt::format("{}.{}", one.domain, one.op)] = &one;
      }
    }
  }

  absl::Status Run() {
    if (!HasQuantised()) return absl::OkStatus();
    const Rewriter::Mark before = workspace_.rewriter().Now();
    const auto adapted = workspace_.result.adapted;
    const size_t sites = workspace_.sites.size();
    RETURN_IF_ERROR(WriteAll());
    if (writer_.highest_opset > 0) {
      ASSIGN_OR_RETURN(std::string why, WriteAtOpsetOfKernels());
      if (!why.empty()) {
        // Once more, without these kernels.
        workspace_.emitter().TakeBackAll(before);
        workspace_.InferModelAgain();
        workspace_.NumberValues();
        workspace_.result.adapted = adapted;
        workspace_.sites.erase(workspace_.sites.begin() + static_cast<std::ptrdiff_t>(sites), workspace_.sites.end());
        writer_ = CodeWriter(workspace_);
        writer_.why_no_int8_kernel = std::move(why);
        RETURN_IF_ERROR(WriteAll());
      }
    }
    if (!wrote_) return absl::OkStatus();
    // What reads the values knows now what it could not be told before: the elements of small weights.
    workspace_.InferModelAgain();
    workspace_.NumberValues();
    return absl::OkStatus();
  }

 private:
  absl::Status WriteAll() {
    FindProducts();
    if (writer_.rounds()) FindRoundedBetween(workspace_);
    for (const auto& graph : workspace_.model().graphs()) {
      const std::vector<const Node*> nodes(graph->nodes().begin(), graph->nodes().end());  // grows while nodes are made
      for (const Node* node : nodes) {
        if (node->dead || node->output(0) == nullptr) continue;
        RETURN_IF_ERROR(workspace_.GoOn());
        RETURN_IF_ERROR(Visit(node));
      }
    }
    ReadNumbersOfInt8(writer_);
    TellOfKernels();
    return absl::OkStatus();
  }

  // The model at the opset up to which kernels that were taken have a name; why not, else.
  absl::StatusOr<std::string> WriteAtOpsetOfKernels() {
    const int64_t from = workspace_.model().OpsetVersion();
    const auto begin = [&] {
      return fmt::format("{} has a name up to opset {}, and the model stays at opset {}: ", writer_.highest_named,
                         writer_.highest_opset, from);
    };
    if (!workspace_.model().functions().empty()) return begin() + "it calls local functions";
    if (!workspace_.target()->FusedByGe("layer_norm_decomposed").has_value()) {
      for (const auto& graph : workspace_.model().graphs()) {
        for (const Node* node : graph->nodes()) {
          if (node->dead || !IsOp(*node, "LayerNormalization")) continue;
          return begin() + fmt::format("LayerNormalization {} would be taken apart there, and GE of {} does not join its parts",
                                       Label(*node), workspace_.target()->chip());
        }
      }
    }
    workspace_.InferModelAgain();
    workspace_.NumberValues();
    ASSIGN_OR_RETURN(std::string why, WriteAtOpset(workspace_, writer_.highest_opset));
    if (!why.empty()) return begin() + why;
    workspace_.result.opset_because = fmt::format("where {} has a name", writer_.highest_named);
    return why;
  }

  // Most models have no such operator, and their nodes are not looked at one by one.
  bool HasQuantised() const {
    absl::flat_hash_set<NameId> names;
    StringPool& pool = workspace_.model().names();
    for (const auto& [key, one] : operators_) names.insert(pool.Intern(one->op));
    for (const std::string_view key : kNotWritten) names.insert(pool.Intern(key.substr(key.rfind('.') + 1)));
    const auto& graphs = workspace_.model().graphs();
    return std::any_of(graphs.begin(), graphs.end(), [&](const auto& graph) {
      return std::any_of(graph->nodes().begin(), graph->nodes().end(),
                         [&](const Node* node) { return !node->dead && names.contains(node->op_type); });
    });
  }

  absl::Status Visit(const Node* node) {
    const std::string key = OperatorKey(*node);
    const auto found = operators_.find(key);
    if (found == operators_.end()) {
      const bool known = std::find(std::begin(kNotWritten), std::end(kNotWritten), key) != std::end(kNotWritten);
      if (known) Leave(node, key, "quantised_operator", "no rule writes it in standard operators");
      if (known) return absl::OkStatus();
      ASSIGN_OR_RETURN(bool on_kernel, WriteInt8Linear(writer_, node));
      if (!on_kernel) {
        ASSIGN_OR_RETURN(on_kernel, WriteDeployedConv(writer_, node));
      }
      wrote_ = wrote_ || on_kernel;
      return on_kernel ? absl::OkStatus() : writer_.Carry(node).status();
    }
    const QuantisedOperator& op = *found->second;
    const std::string label(Label(*node));
    const std::string module = ModulePath(*node);
    const Rewriter::Mark before = workspace_.rewriter().Now();
    const size_t noted = writer_.Noted();
    const size_t with_int8 = writer_.with_int8.size();
    const Value* const value = node->output(0);
    const absl::Status status = op.write(writer_, node);
    if (!status.ok()) {
      workspace_.rewriter().RollBack(before);
      ForgetInt8(writer_, with_int8);
      writer_.Forget(noted);
      Leave(node, key, op.kind.empty() ? "quantised_operator" : std::string(op.kind), std::string(status.message()));
      return absl::OkStatus();
    }
    wrote_ = true;
    const auto told = writer_.told.find(value);
    if (told == writer_.told.end() || !told->second.taken) workspace_.result.adapted[{"quantised-written", key}].push_back(label);
    if (!op.kind.empty()) AddSite(value, node, op.kind, label, module);
    return absl::OkStatus();
  }

  // Products of numbers that were dequantised, before these nodes are gone.
  void FindProducts() {
    for (const auto& graph : workspace_.model().graphs()) {
      for (const Node* node : graph->nodes()) {
        if (node->dead || node->output(0) == nullptr || !IsProduct(*node)) continue;
        const auto dequantized = [&](size_t i) {
          const Value* x = node->input(i);
          while (x != nullptr && x->producer != nullptr && IsOp(*x->producer, "Transpose")) x = x->producer->input(0);
          return x != nullptr && x->producer != nullptr && OpType(*x->producer) == "DequantizeLinear";
        };
        if (!dequantized(1)) continue;
        const bool linear = IsOp(*node, "MatMul") || IsOp(*node, "Gemm");
        AddSite(node->output(0), node, linear ? "quantised_linear" : "quantised_conv", std::string(Label(*node)),
                ModulePath(*node));
      }
    }
  }

  Site NewSite(const Value* value, const Node* node, std::string_view kind) {
    Site site;
    site.value = value;
    site.order = node->order;
    site.record.kind = std::string(kind);
    site.record.state = "left";
    site.record.rule = "native";
    site.record.covers = {std::string(Label(*node))};
    return site;
  }

  void AddSite(const Value* value, const Node* node, std::string_view kind, const std::string& label, const std::string& module) {
    Site site = NewSite(value, node, kind);
    site.record.node = label;
    site.record.module = module;
    site.Say("quantised-written",
             writer_.rounds() ? "it is written in standard operators, which compute what ONNX Runtime does; constant weights are "
                                "dequantised when the model is saved"
                              : "its activations are not rounded, as --quantised float asks; constant weights are dequantised "
                                "when the model is saved",
             std::string(kSource));
    workspace_.sites.push_back(std::move(site));
  }

  // Products that a kernel computes, or why none does.
  void TellOfKernels() {
    for (Site& site : workspace_.sites) {
      const auto told = writer_.told.find(site.value);
      if (told == writer_.told.end() || site.record.code == "quantised-left") continue;
      const KernelTry& answer = told->second;
      if (!answer.taken) {
        site.Say(answer.code, answer.because + "; its weight is dequantised when the model is saved", answer.source);
        continue;
      }
      site.record.state = answer.by_ge.empty() ? "fused" : "by_ge";
      site.record.emitted_op = answer.by_ge.empty() ? answer.op : "";
      site.record.precision = answer.precision;
      site.record.assumptions = answer.assumptions;
      site.Say(answer.by_ge.empty() ? "" : "by-ge", answer.by_ge, answer.by_ge.empty() ? "" : answer.source);
    }
  }

  // It stays as it is, which ATC refuses.
  void Leave(const Node* node, const std::string& key, std::string_view kind, const std::string& because) {
    Site site = NewSite(node->output(0), node, kind);
    site.record.node = std::string(Label(*node));
    site.record.module = ModulePath(*node);
    site.Say("quantised-left", fmt::format("{} stays, and ATC has no parser for it: {}", key, because), std::string(kSource));
    workspace_.sites.push_back(std::move(site));
  }

  Workspace& workspace_;
  CodeWriter writer_;
  bool wrote_ = false;
  absl::flat_hash_map<std::string, const QuantisedOperator*> operators_;
};

}  // namespace

absl::Status WriteQuantised(Workspace& workspace) {
  FindDeployed(workspace);
  if (workspace.ChangesNothing()) return absl::OkStatus();
  return QuantisedPass(workspace).Run();
}

}  // namespace ascend_fuse
