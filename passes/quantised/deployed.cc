#include "passes/quantised/deployed.h"

#include <algorithm>
#include <string>
#include <utility>

#include "passes/core/module_path.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

// The fusion engine as it was open until 2022, and what is listed of its passes since.
constexpr char kPasses[] =
    "hicann/ge:docs/zh/user_guides/atc_tools/references/fusion_rules_list.md (Conv2DQuantProcess, MatmulV2QuantProcess, "
    "BatchMatmulV2QuantProcess)";
constexpr int64_t kLeastChannels = 16;  // up to so many, the engine computes in floating point

bool IsOfAscend(const Node* node, std::string_view op) {
  return node != nullptr && !node->dead && OpType(*node) == op && (node->domain == NameId::kEmpty || Domain(*node) == "npu");
}

// The product whose sums are scaled: with a bias that is added after it.
const Node* ProductOf(const Node& dequant) {
  const Node* node = dequant.input(0) == nullptr ? nullptr : dequant.input(0)->producer;
  if (node != nullptr && IsOp(*node, "Add")) node = node->input(0)->producer;
  const bool product =
      node != nullptr && (IsOp(*node, "Conv") || IsOp(*node, "ConvTranspose") || IsOp(*node, "MatMul") || IsOp(*node, "Gemm"));
  return product && node->input(0) != nullptr && IsOfAscend(node->input(0)->producer, "AscendQuant") ? node : nullptr;
}

bool IsStatic(const Fact& fact) {
  return fact.has_rank && std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is_number(); });
}

// Why GE computes something else of it than products of integers; "" where it does not.
std::string WhyNot(const Workspace& workspace, const Node& product) {
  const Fact& x = workspace.facts().Of(product.input(0));
  const bool conv = OpType(product).starts_with("Conv");
  const bool has_zero = FloatAttribute(*product.input(0)->producer, "offset").value_or(0) != 0;
  if (conv && x.rank() > 1 && x.shape[1].is_number() && x.shape[1].number() <= kLeastChannels) {
    return "GE computes a convolution of 16 channels or fewer in floating point, and takes the nodes of quantising away";
  }
  const bool skipped = IsOp(product, "MatMul") ? workspace.facts().Of(product.input(1)).rank() != 2 : !IsStatic(x);
  if (has_zero && skipped) {
    return "the pass of GE that takes the zero point off the sums skips what has a shape that is not known: ATC would compute "
           "wrong numbers";
  }
  return "";
}

}  // namespace

void FindDeployed(Workspace& workspace) {
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (!IsOfAscend(node, "AscendDequant") || node->output(0) == nullptr) continue;
      const Node* const product = ProductOf(*node);
      if (product == nullptr) continue;
      Site site;
      site.value = node->output();
      site.order = node->order;
      site.record.kind = OpType(*product).starts_with("Conv") ? "quantised_conv" : "quantised_linear";
      site.record.rule = "native";
      site.record.node = std::string(Label(*product));
      site.record.module = ModulePath(*product);
      site.record.covers = {std::string(Label(*product->input(0)->producer)), std::string(Label(*product)),
                            std::string(Label(*node))};
      std::string why = WhyNot(workspace, *product);
      site.record.state = why.empty() ? "by_ge" : "left";
      if (why.empty()) {
        site.Say("by-ge", "GE makes one product of integers of AscendQuant, the product and AscendDequant", kPasses);
      } else {
        site.Say("deployed-not-taken", std::move(why), kPasses);
      }
      workspace.sites.push_back(std::move(site));
    }
  }
}

}  // namespace ascend_fuse
