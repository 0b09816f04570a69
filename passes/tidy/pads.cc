// Pads: a Pad by less than nothing is a Slice, and a Pad of what is left. The kernel ends with EZ9999 in te_padv3
// (docs/sources/surgery.md).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/infer/context.h"
#include "ir/movement/axis.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {

std::optional<Tidied> AskPads(TidyContext& context, const Node& node) {
  const auto pads = IntsParameter(context.facts(), node, "pads", 1);
  const Fact& x = context.facts().Of(node.input(0));
  constexpr size_t kAxes = 3;
  const bool constant = StringAttribute(node, "mode").value_or("constant") == "constant";
  if (!pads.has_value() || !x.has_rank || !constant || node.input(kAxes) != nullptr) return std::nullopt;
  const size_t rank = x.shape.size();
  if (pads->size() != 2 * rank || std::none_of(pads->begin(), pads->end(), [](int64_t pad) { return pad < 0; })) {
    return std::nullopt;
  }
  std::vector<int64_t> starts, ends, axes, left;
  for (const int64_t pad : *pads) left.push_back(std::max<int64_t>(pad, 0));
  for (size_t i = 0; i < rank; ++i) {
    const int64_t first = std::min<int64_t>((*pads)[i], 0);
    const int64_t last = std::min<int64_t>((*pads)[rank + i], 0);
    if (first == 0 && last == 0) continue;
    if (first < -infer::kLargestSize || last < -infer::kLargestSize) return std::nullopt;
    // What is cut off must be there, or the two ends meet.
    if (!context.dims().AtLeast(x.shape[i], Dim::Of(-first - last))) return std::nullopt;
    axes.push_back(static_cast<int64_t>(i));
    starts.push_back(-first);
    ends.push_back(last < 0 ? last : kEndless);
  }
  Term cut = build::Op("Slice", {Term::Of(node.input(0))},
                       {{"starts", build::Numbers(starts)}, {"ends", build::Numbers(ends)}, {"axes", build::Numbers(axes)}});
  if (std::all_of(left.begin(), left.end(), [](int64_t pad) { return pad == 0; })) return Tidied::Of(std::move(cut));
  if (context.workspace.model().OpsetVersion() < 11) return std::nullopt;  // a number as an attribute
  std::vector<Term> inputs = {std::move(cut), build::Numbers(left)};
  if (node.input(2) != nullptr) inputs.push_back(Term::Of(node.input(2)));
  return Tidied::Of(build::Op("Pad", std::move(inputs)));
}

}  // namespace ascend_fuse
