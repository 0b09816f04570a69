#include "passes/quantised/per_token.h"

#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/call_of.h"
#include "passes/quantised/int8_weight.h"

namespace ascend_fuse {
namespace {

constexpr char kRows[] = "npu.NPUDynamicQuant";
constexpr char kSource[] = "hicann/ops-nn:quant/dynamic_quant/docs/aclnnDynamicQuant_en.md";

// The node computes what the target takes; the refusal else.
KernelTry Judged(Workspace& workspace, const Value* value, const std::string& op) {
  const Answer answer = workspace.target()->Check(CallOf(*value->producer, workspace.facts(), op), &workspace.facts().dims());
  if (!answer.legal) return KernelTry::Refused(answer.code, answer.because, answer.source);
  KernelTry taken;
  taken.taken = true;
  taken.op = op;
  taken.assumptions = answer.assumptions;
  return taken;
}

// The codes of rows [M, K], and their scales [M]: once for all products of one activation.
absl::StatusOr<KernelTry> QuantiseRows(CodeWriter& writer, const Node& at, KeptCodes* kept, int64_t k) {
  Workspace& workspace = writer.workspace();
  if (kept->rows != nullptr) return Judged(workspace, kept->rows, kRows);
  NodeInserter inserter(workspace, at);
  const Value* matrix = kept->source;
  if (writer.Rank(matrix) != 2) matrix = inserter.Build(build::Reshape(Term::Of(matrix), std::vector<int64_t>{-1, k}));
  NewNode plan;
  plan.domain = "npu";
  plan.op_type = "NPUDynamicQuant";
  plan.name = fmt::format("{}_rows", Label(at));
  plan.inputs = {matrix};
  const Node* const node = workspace.rewriter().Insert(plan, 2, at.graph, plan.name);
  workspace.Refresh(node);
  KernelTry taken = Judged(workspace, node->output(0), kRows);
  if (taken.taken) {
    kept->rows = node->output(0);
    kept->rows_scale = node->output(1);
  }
  return taken;
}

absl::StatusOr<KernelTry> Emit(CodeWriter& writer, const Node* node, const Int8Product& product, KeptCodes* kept) {
  Workspace& workspace = writer.workspace();
  if (writer.Rank(kept->source) < 2) return NotWritten("the kernel takes a matrix, and its activation is not known to be one");
  ASSIGN_OR_RETURN(const Int8Weight weight, Int8Weight::Read(workspace.model(), product.weight, product.by_rows));
  if (!weight.centered())
    return NotWritten("codes of its weight less their zero point are not all of int8, which the kernel reads");
  ASSIGN_OR_RETURN(KernelTry rows, QuantiseRows(writer, *node, kept, weight.k()));
  if (!rows.taken) return rows;
  ASSIGN_OR_RETURN(const Value* turned, weight.Constant(workspace, *node, true));
  std::vector<float> scales;
  for (int64_t i = 0; i < static_cast<int64_t>(weight.scale_count()); ++i)
    scales.push_back(static_cast<float>(weight.ScaleOf(i)));
  NewNode plan;
  plan.domain = "npu";
  const std::string op = Int8Op(workspace);
  plan.op_type = op.substr(op.find('.') + 1);
  plan.name = fmt::format("{}_int8", Label(*node));
  plan.inputs = {kept->rows,
                 turned,
                 RowOfNumbers(workspace, *node, DataType::kFloat,
                              {reinterpret_cast<const char*>(scales.data()), scales.size() * sizeof(float)}, "scale"),
                 nullptr,
                 nullptr,
                 kept->rows_scale};
  plan.attributes = {Attribute::Int("dtype", 1), Attribute::Int("transpose_x2", 1)};
  NodeInserter inserter(workspace, *node);
  const Value* y = inserter.Insert(plan);
  KernelTry taken = Judged(workspace, y, op);
  if (!taken.taken) return taken;
  if (writer.Rank(kept->source) != 2) {
    const int64_t rank = writer.Rank(kept->source);
    const Term leading = build::Slice(build::Shape(Term::Of(kept->source)), 0, rank - 1, 0);
    y = inserter.Build(build::Reshape(Term::Of(y), build::Concat({leading, build::Numbers({weight.n()})}, 0)));
  }
  taken.value = writer.Cast(*node, y, writer.Of(product.x.scale).type);
  return taken;
}

}  // namespace

const Value* PerToken(CodeWriter& writer, const Node* node, const Int8Product& product, const Value* told) {
  Workspace& workspace = writer.workspace();
  KeptCodes* const kept = writer.FindKept(product.x.codes);
  const bool by_range = kept != nullptr && kept->source_zero != nullptr;
  if (workspace.options().quantised != Quantised::kPerToken || !by_range || workspace.target() == nullptr) return nullptr;
  if (!writer.why_no_int8_kernel.empty()) return nullptr;
  const Rewriter::Mark before = workspace.rewriter().Now();
  const KeptCodes as_it_was = *kept;
  auto made = Emit(writer, node, product, kept);
  KernelTry answer =
      made.ok() ? *std::move(made) : KernelTry::Refused("weight-not-taken", std::string(made.status().message()), kSource);
  if (answer.taken) {
    NoteNames(writer, {answer.op, kRows});
  } else {
    workspace.rewriter().RollBack(before);
    kept->rows = as_it_was.rows;
    kept->rows_scale = as_it_was.rows_scale;
  }
  const Value* const value = answer.value;
  writer.told[told] = std::move(answer);
  return value;
}

}  // namespace ascend_fuse
