// Explain unfused: every site that no rule lowered is taken by GE's own pass or parser, or it is left with a reason.
#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "passes/core/workspace.h"
#include "passes/legalise/adapt.h"
#include "passes/lower/passes.h"
#include "patterns/analysis/linear.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

// Why the pass of GE does not reach this site; "" if it does.
std::string WhyGeCannot(Workspace& workspace, const Site& site, const GeConstruct& ge) {
  const Fact& fact = workspace.facts().Of(site.value);
  // Of all kernels that these passes make, the tables of types (aic-*-ops-info.json) have float16, float and bfloat16 only.
  if (fact.type == DataType::kDouble) return "here it is double, and that kernel takes no double";
  if (ge.static_shapes) {
    const bool fixed =
        fact.has_rank && std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is_number(); });
    if (!fixed) return fmt::format("here it is {}", workspace.facts().Describe(site.value));
  }
  if (ge.last_opset > 0 && OpsetToWrite(workspace) > ge.last_opset) {
    return fmt::format("the model imports opset {}", workspace.model().OpsetVersion());
  }
  const Node* node = site.value->producer;
  if (!ge.computed_by.empty() && (node == nullptr || OperatorKey(*node) != ge.computed_by)) {
    return fmt::format("{} was not emitted here", ge.computed_by);
  }
  if (ge.plain_linear) {
    const Value* product = node != nullptr ? node->input(0) : nullptr;
    if (product != nullptr && product->IsConstant()) product = node->input(1);  // Max (0, x)
    if (product == nullptr) return "no linear feeds it";
    const absl::StatusOr<LinearView> linear = FindLinear(workspace.Context(), product);
    if (!linear.ok()) return std::string(linear.status().message());
    if (!linear->plain) return fmt::format("here {}", linear->why_not_plain);
    if (CountReaders(*product) > 1) return fmt::format("here {} has another reader", ValueName(*product));
  }
  return "";
}

class UnfusedExplainer {
 public:
  explicit UnfusedExplainer(Workspace& workspace) : workspace_(workspace), target_(*workspace.target()) {
    for (size_t i = 0; i < workspace.sites.size(); ++i) {
      const Site& site = workspace.sites[i];
      sites_of_[site.node != nullptr ? site.node->output(0) : site.value].push_back(i);
    }
  }

  void Run() {
    for (Site& site : workspace_.sites) {
      if (site.pending()) Decide(&site);
      TellWhyNotRaised(&site);
    }
  }

 private:
  // A site that waits for a later opset says why that was not chosen.
  void TellWhyNotRaised(Site* site) {
    const std::string& why = workspace_.result.opset_not_raised;
    const std::string& code = site->record.code;
    const bool waits = code == "opset-not-parsed" || (site->record.kind == "layer_norm" && code == "opset-too-low");
    if (waits && !why.empty()) site->record.because += "; " + why;
  }

  void Decide(Site* site) {
    const std::string construct(site->construct());
    const SiteKind* kind = FindSiteKind(site->record.kind);
    const std::string unjoined = kind != nullptr && !kind->sum_before.empty() ? WhyNotJoined(*site) : "";
    if (!unjoined.empty()) {
      // Both our rule and GE's pass start from the node of the norm.
      const std::optional<GeConstruct> pass = target_.FusedByGe(construct);
      site->Say("sum-not-joined", unjoined, pass.has_value() ? pass->source : "patterns/rules/npu/norm.rule");
    }
    if (TakeStandard(site)) return;
    const std::optional<GeConstruct> ge = target_.FusedByGe(construct);
    if (ge.has_value()) {
      if (std::string why = WhyGeCannot(workspace_, *site, *ge); !why.empty()) {
        site->SetState("left");
        site->Say("ge-pass-declines", fmt::format("{}; {}", ge->because, why), ge->source);
        return;
      }
      if (unjoined.empty()) {
        site->SetState("by_ge");
        site->Say("by-ge", ge->because, ge->source);
        return;
      }
    }
    site->SetState("left");
    if (const auto left = target_.WhyLeft(construct); left.has_value()) {
      site->Say(left->code, left->because, left->source);
    }
    if (site->record.because.empty()) {
      site->Say("no-node", fmt::format("no node of {} with CANN {} computes this", target_.chip(), target_.cann()),
                fmt::format("patterns/rules/npu, patterns/targets/{}.txtpb", target_.chip()));
    }
  }

  // A standard operator that the parser maps to one kernel is left as it is where it was there, and stays where it took
  // the place of a subgraph.
  bool TakeStandard(Site* site) {
    if (site->node == nullptr || site->node->domain != NameId::kEmpty) return false;
    LeftReason outside;
    const DataType type = workspace_.facts().Of(site->node->input(0)).type;
    const auto standard = target_.Standard(OpType(*site->node), type, OpsetToWrite(workspace_), &outside);
    if (!standard.has_value()) {
      if (outside.because.empty()) return false;
      site->SetState("left");
      site->Say(outside.code, outside.because, outside.source);
      return true;
    }
    if (workspace_.IsMade(*site->node)) {
      site->SetState("fused");
      site->record.emitted_op = OpType(*site->node);
      site->Say("", "", "");
    } else {
      site->SetState("by_ge");
      site->Say("by-parser", standard->because, standard->source);
    }
    return true;
  }

  // The Ascend node that computes what `node` gives, where only a Cast or a Reshape stands after it.
  static const Node& KernelOf(const Node& node) {
    const Value* input = node.input(0);
    const bool own = OpType(node).substr(0, 3) == "NPU" || input == nullptr || input->producer == nullptr;
    return own || OpType(*input->producer).substr(0, 3) != "NPU" ? node : *input->producer;
  }

  // A sum is joined with the kernel of the norm that reads it, by us or by GE. Where the norm stayed as it was there is no
  // such kernel, and where it reads something else than the sum (scaled, or in another type) GE's pass does not see them
  // together. "" where they can be joined.
  std::string WhyNotJoined(const Site& site) const {
    for (const size_t index : sites_of_.at(site.value)) {
      const Site& norm = workspace_.sites[index];
      if (!FindSiteKind(site.record.kind)->IsSumBefore(norm.record.kind)) continue;
      if (norm.record.state != "by_ge" && !norm.fused()) break;
      const Value* x = KernelOf(*site.value->producer).input(0);
      if (x != nullptr && x->graph != site.value->graph && x->producer != nullptr && IsOp(*x->producer, "Add")) {
        return fmt::format("{} is computed outside of the body that {} stands in", ValueName(*x), ValueName(*site.value));
      }
      if (norm.record.state == "by_ge") return "";
      if (x == nullptr || x->producer == nullptr) break;
      if (IsOp(*x->producer, "Add")) return "";
      if (OpType(*x->producer).substr(0, 3) == "NPU") {
        return fmt::format("{} computes the sum already, with another norm that reads it", OpType(*x->producer));
      }
      // A node that was made has no name that the user knows: such sentences are the same for all layers.
      const std::string named = workspace_.IsMade(*x->producer) ? "" : fmt::format(" ({})", ValueName(*x));
      return fmt::format("{} reads the sum after a {}{}, and only the sum itself can be joined with it", norm.record.emitted_op,
                         OpType(*x->producer), named);
    }
    return "the norm after the sum was not fused";
  }

  Workspace& workspace_;
  const Target& target_;
  absl::flat_hash_map<const Value*, std::vector<size_t>> sites_of_;  // by what they compute
};

}  // namespace

absl::Status ExplainUnfused(Workspace& workspace) {
  if (workspace.target() == nullptr) return absl::FailedPreconditionError("without a target no site can be accounted for");
  UnfusedExplainer(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
