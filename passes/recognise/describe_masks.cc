// Read masks: what the mask of each recognised attention means (for the report), whether the attention is fused or not.
#include <algorithm>

#include "fmt/format.h"
#include "passes/core/workspace.h"
#include "passes/recognise/passes.h"
#include "patterns/analysis/mask.h"

namespace ascend_fuse {
namespace {

// The inputs of ascend_fuse.Attention that are masks.
constexpr size_t kFirstMask = 3;

std::string Window(const MaskForm& form, DimTable& dims) {
  const MaskClause* left = form.Find(MaskClause::Kind::kFrom);
  const MaskClause* right = form.Find(MaskClause::Kind::kUpTo);
  if (left == nullptr || right == nullptr) return "";
  return fmt::format("{}, 0", dims.ToString(dims.Sub(right->offset, left->offset)));
}

void Read(Workspace& workspace, const Node& attention, SiteRecord* record) {
  std::vector<const Value*> masks;
  for (size_t i = kFirstMask; i < attention.input_count; ++i) {
    if (attention.input(i) != nullptr) masks.push_back(attention.input(i));
  }
  if (masks.empty()) {
    record->mask = "none";
    return;
  }
  const MaskForms::Scores scores = ScoresOf(workspace.facts(), attention.input(0), attention.input(1));
  MaskForm form = workspace.masks().Described(masks, scores);
  // Numbers that are not followed to tests, but are 0 and minus infinity.
  if (form.bias) {
    const FunctionContext context = workspace.Context();
    form.bias = !std::all_of(masks.begin(), masks.end(), [&](const Value* mask) { return OnlyMasks(context, mask); });
    if (!form.bias) form.clauses.emplace_back();
  }
  DimTable& dims = workspace.facts().dims();
  record->mask = MaskWord(form, scores[2], scores[3], dims);
  record->mask_padding = form.padding_inputs;
  record->mask_assumptions = form.assumptions;
  const MaskClause* causal = form.Find(MaskClause::Kind::kUpTo);
  if (causal != nullptr) record->mask_offset = dims.ToString(causal->offset);
  record->mask_window = Window(form, dims);
}

}  // namespace

absl::Status DescribeMasks(Workspace& workspace) {
  for (Site& site : workspace.sites) {
    if (site.node != nullptr && OperatorKey(*site.node) == "ascend_fuse.Attention") Read(workspace, *site.node, &site.record);
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
