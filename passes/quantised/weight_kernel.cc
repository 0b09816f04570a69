#include "passes/quantised/weight_kernel.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/rounding.h"
#include "ir/status_macros.h"
#include "ir/streamed_tensor.h"
#include "passes/core/call_of.h"
#include "patterns/terms/node_builder.h"

namespace ascend_fuse {
namespace {

constexpr char kOp[] = "npu.WeightQuantBatchMatmulV2";
constexpr char kTurnedOp[] = "npu.NPUWeightQuantBatchMatmulTurned";  // of our plugin: a weight [N, K], and one scale for each row
constexpr char kSource[] = "hicann/ops-nn:matmul/weight_quant_batch_matmul_v2/docs/aclnnWeightQuantBatchMatmulV2.md";

KernelTry Refused(std::string code, std::string because, std::string source = kSource) {
  return KernelTry::Refused(std::move(code), std::move(because), std::move(source));
}

// Which of the two nodes takes the weight, by its form.
std::string OpOf(const Workspace& workspace, const IntegerWeight& weight) {
  const bool in_one = weight.how.bits == 8 && weight.block >= weight.k;
  return in_one && !workspace.target()->HasNode(kOp) && workspace.target()->HasNode(kTurnedOp) ? kTurnedOp : kOp;
}

// The operands of the kernel: everything with K in front, as it reads them.
class Operands {
 public:
  Operands(CodeWriter& writer, const Node& node, const IntegerWeight& weight, bool turned)
      : writer_(writer), node_(node), weight_(weight), turned_(turned), groups_((weight.k + weight.block - 1) / weight.block) {}

  // Codes less the middle of their range, 8 of 4 bits in an int32, or one in an int8.
  absl::StatusOr<const Value*> Weight() const {
    Dequantization how = weight_.how;
    how.scales = how.zeros = nullptr;
    how.zero = Middle();
    how.transposed = weight_.by_rows;
    how.pack = how.bits == 4 ? 8 : 1;
    if (!weight_.by_rows) InRows(&how, weight_.k);
    if (turned_) {
      how.transposed = !how.transposed;
      return Make(DataType::kInt8, {weight_.n, weight_.k}, how, "weight");
    }
    return Make(how.bits == 4 ? DataType::kInt32 : DataType::kInt8, {weight_.k, weight_.n / how.pack}, how, "weight");
  }

  absl::StatusOr<const Value*> Scale(DataType type) const {
    return Factor(type, *weight_.how.scales, 32, groups_, 0, 1, "scale");
  }

  // What is added to those codes before they are scaled: the middle of their range less the zero point.
  absl::StatusOr<const Value*> Offset(DataType type) const {
    return Factor(type, *weight_.how.zeros, weight_.how.zero_bits, weight_.how.zero_steps.outer, Middle(), -1, "offset");
  }

 private:
  int64_t Middle() const { return weight_.how.is_signed ? 0 : int64_t{1} << (weight_.how.bits - 1); }

  // So many rows as wide as the kernel's, or wider.
  void InRows(Dequantization* how, int64_t rows) const {
    how->outer = rows;
    how->length = weight_.n;
    how->stride = weight_.wide > 0 ? weight_.wide : weight_.n;
    how->first = weight_.first;
    how->inner = how->block = 1;
  }

  // (number - zero) * factor of each, [groups, N]. `stride`: how many there are in a row of [N, groups].
  absl::StatusOr<const Value*> Factor(DataType type, const Tensor& numbers, int bits, int64_t stride, int64_t zero, double factor,
                                      std::string_view word) const {
    Dequantization how;
    how.codes = &numbers;
    how.bits = IsFloat(numbers.type) ? BitWidth(numbers.type) : bits;
    how.is_signed = weight_.how.is_signed;
    how.zero = zero;
    how.factor = factor;
    how.transposed = weight_.by_rows;
    how.outer = weight_.n;
    how.length = groups_;
    how.stride = stride;
    if (!weight_.by_rows) InRows(&how, groups_);
    return Make(type, turned_ ? std::vector<int64_t>{weight_.n} : std::vector<int64_t>{groups_, weight_.n}, how, word);
  }

  absl::StatusOr<const Value*> Make(DataType type, const std::vector<int64_t>& dims, const Dequantization& how,
                                    std::string_view word) const {
    return DequantizedConstant(writer_.workspace(), node_, type, dims, how, fmt::format("{}_{}", Label(node_), word));
  }

  CodeWriter& writer_;
  const Node& node_;
  const IntegerWeight& weight_;
  bool turned_;
  int64_t groups_;
};

// Whether all numbers of a tensor of float16 are 0 or normal. Of a large model they are many: their bits are looked at.
bool AllNormal(const Model& model, const Tensor& scales) {
  constexpr int64_t kAtOnce = int64_t{1} << 16;
  constexpr uint16_t kExponent = 0x7C00;
  constexpr uint16_t kSize = 0x7FFF;
  ElementReader reader(model, scales);
  std::vector<uint16_t> numbers;
  for (int64_t left = scales.ElementCount(); left > 0; left -= static_cast<int64_t>(numbers.size())) {
    numbers.resize(static_cast<size_t>(std::min(left, kAtOnce)));
    const auto size = static_cast<int64_t>(numbers.size() * sizeof(uint16_t));
    if (!reader.Next(size, reinterpret_cast<char*>(numbers.data())).ok()) return false;
    for (const uint16_t number : numbers) {
      const auto exponent = static_cast<uint16_t>(number & kExponent);
      if (exponent == kExponent || (exponent == 0 && (number & kSize) != 0)) return false;
    }
  }
  return true;
}

// Whether float16 holds the scales, which the kernel reads in the type of its activations: normal numbers of it.
bool InHalf(const Model& model, const Tensor& scales) {
  constexpr int64_t kMost = int64_t{1} << 28;
  if (scales.type == DataType::kFloat16) return AllNormal(model, scales);
  const auto numbers = ReadFloats(model, scales, kMost);
  if (!numbers.ok()) return false;
  constexpr double kLeast = 6.103515625e-05;
  const double most = *LargestFinite(DataType::kFloat16);
  return std::all_of(numbers->begin(), numbers->end(), [&](double number) {
    const double size = std::abs(number);
    return size <= most && (size >= kLeast || size == 0);
  });
}

// [M, N] in the shape of `like`, whose last dim is N; `x` has its other ones.
absl::StatusOr<Term> InShapeOf(const CodeWriter& writer, const Term& matrix, const Value* like, const Value* x) {
  const Fact& fact = writer.Of(like);
  std::vector<int64_t> dims;
  int open = 0;
  for (const Dim dim : fact.shape) {
    dims.push_back(dim.is_number() ? dim.number() : -1);
    open += dim.is_number() ? 0 : 1;
  }
  if (open <= 1) return build::Reshape(matrix, dims);
  const Term leading = build::Slice(build::Shape(Term::Of(x)), 0, fact.rank() - 1, 0);
  return build::Reshape(matrix, build::Concat({leading, build::Numbers({dims.back()})}, 0));
}

// Columns of a weight: its rows where it is [N, K], places in every row where it is [K, N].
absl::StatusOr<IntegerWeight> Columns(Model* model, const IntegerWeight& whole, int64_t begin, int64_t end) {
  IntegerWeight part = whole;
  part.n = end - begin;
  if (!whole.by_rows) {
    part.first = begin;
    part.wide = whole.n;
    return part;
  }
  part.how.outer = part.n;
  std::vector<int64_t> rows(static_cast<size_t>(part.n));
  std::iota(rows.begin(), rows.end(), begin);
  for (const Tensor** tensor : {&part.how.codes, &part.how.scales, &part.how.zeros}) {
    if (*tensor == nullptr) continue;
    ASSIGN_OR_RETURN(const Tensor* plain, PlainTensor(model, **tensor, "its weight"));
    *tensor = RunsOf(model, *plain, plain->ElementCount() / whole.n, rows).front();
  }
  return part;
}

// The kernel of a matrix and a weight, or of some columns of one.
absl::StatusOr<KernelTry> EmitNode(CodeWriter& writer, const Node* node, const Value* matrix, const IntegerWeight& weight) {
  Workspace& workspace = writer.workspace();
  const DataType type = writer.Of(matrix).type;
  const bool turned = OpOf(workspace, weight) == kTurnedOp;
  const Operands operands(writer, *node, weight, turned);
  NewNode plan;
  plan.domain = "npu";
  plan.op_type = OpOf(workspace, weight).substr(OpOf(workspace, weight).find('.') + 1);
  plan.name = fmt::format("{}_kernel", Label(*node));
  ASSIGN_OR_RETURN(const Value* codes, operands.Weight());
  ASSIGN_OR_RETURN(const Value* scale, operands.Scale(type));
  plan.inputs = {matrix, codes, scale};
  if (weight.how.zeros != nullptr) {
    ASSIGN_OR_RETURN(const Value* offset, operands.Offset(type));
    plan.inputs.push_back(offset);
  }
  const bool one_group = weight.block >= weight.k;
  if (!turned) plan.attributes = {Attribute::Int("antiquant_group_size", one_group ? 0 : weight.block)};
  KernelTry taken;
  taken.value = NodeInserter(workspace, *node).Insert(plan);
  const Call call = CallOf(*taken.value->producer, workspace.facts(), OpOf(workspace, weight));
  const Answer answer = workspace.target()->Check(call, &workspace.facts().dims());
  if (!answer.legal) return Refused(answer.code, answer.because, answer.source);
  if (!answer.unsettled.empty() && !TakesAllKernels(workspace.options().quantised)) {
    return Refused("kernel-unsettled", fmt::format("{}; --quantised fast takes it", answer.unsettled));
  }
  if (workspace.options().strict && !answer.assumptions.empty()) {
    return Refused("assumption-refused", fmt::format("--strict: it would assume that {}", answer.assumptions[0]));
  }
  taken.taken = true;
  taken.op = OpOf(workspace, weight);
  taken.assumptions = answer.assumptions;
  return taken;
}

// The weight in so many parts, each some columns of it, whose results are joined.
absl::StatusOr<KernelTry> Emit(CodeWriter& writer, const Node* node, const IntegerWeight& whole, const Value* bias,
                               int64_t parts) {
  Workspace& workspace = writer.workspace();
  const Value* const x = node->input(0);
  const Value* const y = node->output();
  const bool is_matrix = writer.Rank(x) == 2;
  NodeInserter inserter(workspace, *node);
  const Value* const matrix = is_matrix ? x : inserter.Build(build::Reshape(Term::Of(x), std::vector<int64_t>{-1, whole.k}));
  constexpr int64_t kRound = 32;  // columns of a part, but for the last one
  const int64_t width = parts == 1 ? whole.n : (whole.n + parts * kRound - 1) / (parts * kRound) * kRound;
  std::vector<const Value*> results;
  KernelTry taken;
  for (int64_t begin = 0; begin < whole.n; begin += width) {
    IntegerWeight part = whole;
    if (parts > 1) {
      ASSIGN_OR_RETURN(part, Columns(&workspace.model(), whole, begin, std::min(whole.n, begin + width)));
    }
    ASSIGN_OR_RETURN(taken, EmitNode(writer, node, matrix, part));
    if (!taken.taken) return taken;
    results.push_back(taken.value);
  }
  const Value* product =
      results.size() == 1 ? results[0] : inserter.Op("Concat", std::move(results), {Attribute::Int("axis", 1)});
  if (!is_matrix) {
    ASSIGN_OR_RETURN(const Term shaped, InShapeOf(writer, Term::Of(product), y, x));
    product = inserter.Build(shaped);
  }
  if (bias == nullptr) {
    writer.Replace(node, "Identity", {product});
  } else {
    writer.Replace(node, "Add", {product, bias});
  }
  taken.value = nullptr;
  return taken;
}

}  // namespace

KernelTry TryWeightKernel(CodeWriter& writer, const Node* node, const IntegerWeight& whole, const Value* bias) {
  Workspace& workspace = writer.workspace();
  const Dequantization& rows = whole.how;
  const Fact& x = writer.Of(node->input(0));
  if (workspace.target() == nullptr || !workspace.target()->HasNode(OpOf(workspace, whole))) {
    Call call;
    call.op = kOp;
    const Answer answer = workspace.target() == nullptr ? Answer() : workspace.target()->Check(call, &workspace.facts().dims());
    return Refused(answer.code, answer.because, answer.source);
  }
  if (!x.has_rank || x.rank() < 2)
    return Refused("shape-not-known", "the kernel takes a matrix, and the rank of its input is not known");
  if (rows.bits != 4 && rows.bits != 8)
    return Refused("weight-not-taken", fmt::format("the kernel takes codes of 4 and 8 bits, not {}", rows.bits));
  if (!rows.groups.empty()) return Refused("weight-not-taken", "places of a group do not follow one another (g_idx)");
  if (!whole.by_rows && rows.scales->ElementCount() != (whole.k + whole.block - 1) / whole.block * whole.n) {
    return Refused("weight-not-taken", "it has one scale for all columns, and the kernel reads one for each");
  }
  if (!whole.by_rows && rows.zeros != nullptr && rows.zeros->ElementCount() != rows.scales->ElementCount()) {
    return Refused("weight-not-taken", "it has not as many zero points as scales");
  }
  if (rows.zeros == nullptr && !whole.by_rows && !rows.is_signed) {
    return Refused("weight-not-taken", "the kernel reads signed integers, and these are unsigned without zero points");
  }
  if (!InHalf(workspace.model(), *rows.scales)) {
    return Refused("weight-not-taken", "float16, in which the kernel reads them, does not hold all scales as normal numbers");
  }
  constexpr int64_t kMostColumns = 65504;  // of a part
  const Rewriter::Mark before = workspace.rewriter().Now();
  KernelTry refused;
  for (const int64_t parts : {int64_t{1}, (whole.n + kMostColumns - 1) / kMostColumns}) {
    if (parts == 1 && !refused.because.empty()) break;
    auto made = Emit(writer, node, whole, bias, parts);
    if (made.ok() && made->taken) return *std::move(made);
    workspace.rewriter().RollBack(before);
    if (!refused.because.empty()) break;  // why the whole was not taken is the reason
    refused = made.ok() ? *std::move(made) : Refused("weight-not-taken", std::string(made.status().message()));
  }
  return refused;
}

}  // namespace ascend_fuse
