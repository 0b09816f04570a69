// Copies: a node that gives what it reads, or what was there before. Identity, Cast to the same type, Slice of everything, Expand
// to the same shape, Transposes and Reshapes that undo each other, times 1, minus 0 and the rest of what value numbering knows to
// be noise (ir/infer/value_numbering.h), down to the bit: plus 0 makes 0 of -0 and stays. Resize by 1 besides.
#include <algorithm>
#include <cmath>

#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

// Every coordinate is its own then, in every mode but the one that cuts out a region.
bool ResizesByOne(const TidyContext& context, const Node& node) {
  if (!IsOp(node, "Resize") && !IsOp(node, "Upsample")) return false;
  if (StringAttribute(node, "coordinate_transformation_mode").value_or("") == "tf_crop_and_resize") return false;
  const Fact& x = context.facts().Of(node.input(0));
  const Fact& y = context.facts().Of(node.output());
  if (!x.has_rank || !y.has_rank || !context.dims().Equal(x.shape, y.shape)) return false;
  constexpr size_t kSizes = 3;
  const Value* const scales = node.input(IsOp(node, "Upsample") || context.workspace.model().OpsetVersion() < 11 ? 1 : 2);
  if (IsOp(node, "Resize") && node.input(kSizes) != nullptr) return true;
  if (scales == nullptr) return false;
  const Fact& factors = context.facts().Of(scales);
  if (factors.elements == nullptr || factors.elements->floats.empty()) return false;
  return std::all_of(factors.elements->floats.begin(), factors.elements->floats.end(), [](double factor) { return factor == 1; });
}

// Plus 0 makes 0 of -0, and so does minus -0.
bool KeepsSigns(const TidyContext& context, const Node& node) {
  const bool plus = IsOp(node, "Add");
  if ((!plus && !IsOp(node, "Sub")) || !IsFloat(context.facts().Of(node.output()).type)) return true;
  for (size_t i = plus ? 0 : 1; i < node.input_count; ++i) {
    const Fact& fact = context.facts().Of(node.input(i));
    const auto neutral = [plus](double element) { return element == 0 && std::signbit(element) == plus; };
    if (fact.elements == nullptr ? fact.is_splat && neutral(fact.splat)
                                 : !fact.elements->floats.empty() &&
                                       std::all_of(fact.elements->floats.begin(), fact.elements->floats.end(), neutral)) {
      return true;
    }
  }
  return false;
}

// Whether the node gives `source` to the bit: nothing that stands between only moves elements where it keeps no signs.
bool IsExact(const TidyContext& context, const Node& node, const Value& source) {
  constexpr int kMostSteps = 64;
  const Node* at = &node;
  for (int i = 0; i < kMostSteps && at != nullptr; ++i) {
    if (!KeepsSigns(context, *at)) return false;
    const auto reads = at->inputs();
    if (std::any_of(reads.begin(), reads.end(), [&](const Use& use) { return use.value == &source; })) return true;
    at = at->input(0) != nullptr ? at->input(0)->producer : nullptr;
  }
  return false;
}

}  // namespace

std::optional<Tidied> AskCopies(TidyContext& context, const Node& node) {
  if (node.domain != NameId::kEmpty || node.subgraph_count > 0 || !OnlyFirstIsUsed(node)) return std::nullopt;
  const Value* source = context.numbering.Source(node.output());
  if (source == nullptr && ResizesByOne(context, node)) source = node.input(0);
  if (source == nullptr || source->graph != node.graph || !IsExact(context, node, *source)) return std::nullopt;
  return Tidied::Of(Term::Of(source));
}

}  // namespace ascend_fuse
