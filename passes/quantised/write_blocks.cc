// Weights in blocks, each with a scale of its own, as exporters of language models write them: MatMulNBits, MatMulBnb4 and
// GatherBlockQuantized of ONNX Runtime. Two integers or more lie in a byte, which nothing of ONNX takes apart, so that the
// weights are written as floating-point numbers, or tables as whole integers, when the model is saved.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "passes/quantised/operators.h"
#include "passes/quantised/weight_kernel.h"
#include "patterns/terms/node_builder.h"

namespace ascend_fuse {
namespace {

// Of a weight by its attributes, which a file says as it likes: numbers that overflow would name a small one.
constexpr int64_t kMostElements = int64_t{1} << 40;

// The rows [N, K] of a weight of MatMulNBits. Tensors must live as long as what is returned.
struct PackedWeight {
  std::optional<Tensor> codes;
  std::optional<Tensor> scales;
  std::optional<Tensor> zeros;
  std::vector<int64_t> groups;
  Dequantization how;
};

absl::Status ReadWeight(const Node& node, const Model& model, PackedWeight* weight) {
  const int64_t rows = IntAttribute(node, "N").value_or(0);
  const int64_t length = IntAttribute(node, "K").value_or(0);
  const int64_t bits = IntAttribute(node, "bits").value_or(4);
  const int64_t block = IntAttribute(node, "block_size").value_or(0);
  if (rows <= 0 || length <= 0 || block <= 0 || (bits != 2 && bits != 4 && bits != 8))
    return NotWritten("its attributes name no weight");
  if (IntAttribute(node, "weight_prepacked").value_or(0) != 0)
    return NotWritten("its weight is in an order of ONNX Runtime's own");
  if (length > kMostElements || block > kMostElements) return NotWritten("its attributes name no weight");
  const int64_t blocks = (length - 1) / block + 1;
  if (rows > kMostElements / (blocks * block)) return NotWritten("its attributes name no weight");
  weight->codes = ConstantTensor(*node.input(1));
  weight->scales = ConstantTensor(*node.input(2));
  if (node.input(3) != nullptr) weight->zeros = ConstantTensor(*node.input(3));
  if (!weight->codes.has_value() || !weight->scales.has_value()) return NotWritten("its weight is not constant");
  if (node.input(3) != nullptr && !weight->zeros.has_value()) return NotWritten("its zero points are not constant");
  if (weight->codes->ElementCount() != rows * blocks * block * bits / 8 || weight->scales->ElementCount() != rows * blocks) {
    return NotWritten("its weight or its scales have another size than its attributes say");
  }
  Dequantization& how = weight->how;
  how = RowsInBlocks(*weight->codes, bits, rows, length, blocks * block, block, *weight->scales);
  if (weight->zeros.has_value()) {
    how.zeros = &*weight->zeros;
    how.zero_bits = how.bits;
    how.zero_steps = {IsFloat(weight->zeros->type) ? blocks : PackedRow(blocks, how.bits), 1, 0};
    const int64_t packed = IsFloat(weight->zeros->type) ? rows * blocks : rows * ((blocks * bits + 7) / 8);
    if (weight->zeros->ElementCount() != packed) return NotWritten("its zero points have another size than its attributes say");
  }
  if (node.input(4) != nullptr) {
    const std::optional<Tensor> places = ConstantTensor(*node.input(4));
    if (!places.has_value()) return NotWritten("its g_idx is not constant");
    ASSIGN_OR_RETURN(weight->groups, ReadIntegers(model, *places, int64_t{1} << 24));
    if (static_cast<int64_t>(weight->groups.size()) < length) return NotWritten("its g_idx is too short");
    weight->groups.resize(static_cast<size_t>(length));
    for (const int64_t group : weight->groups) {
      if (group < 0 || group >= blocks) return NotWritten("its g_idx names a block that it has not");
    }
    how.groups = weight->groups;
  }
  return absl::OkStatus();
}

// The weight [K, N] of a product, of whose rows [N, K] input 1 has the codes.
absl::StatusOr<const Value*> Columns(CodeWriter& writer, const Node& node, DataType type, absl::Span<const int64_t> dims,
                                     const Dequantization& how) {
  ASSIGN_OR_RETURN(const Value* rows, DequantizedConstant(writer.workspace(), node, type, dims, how,
                                                          fmt::format("{}_dequantized", ValueName(*node.input(1)))));
  return writer.Op(node, "Transpose", {rows}, {Attribute::Ints("perm", {1, 0})});
}

absl::Status WriteMatMulNBits(CodeWriter& writer, const Node* node) {
  PackedWeight weight;
  RETURN_IF_ERROR(ReadWeight(*node, writer.workspace().model(), &weight));
  const DataType type = writer.Of(node->input(0)).type;
  if (!IsFloat(type)) return NotWritten("the type of its input is not known");
  KernelTry& told = writer.told[node->output()];
  told = TryWeightKernel(writer, node, {weight.how, weight.how.length, weight.how.outer, weight.how.block}, node->input(5));
  if (told.taken) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Value* columns, Columns(writer, *node, type, {weight.how.outer, weight.how.length}, weight.how));
  if (node->input(5) == nullptr) {
    writer.Replace(node, "MatMul", {node->input(0), columns});
  } else {
    writer.Replace(node, "Add", {writer.Op(*node, "MatMul", {node->input(0), columns}), node->input(5)});
  }
  return absl::OkStatus();
}

// The numbers of the sixteen codes of FP4 and NF4, as bitsandbytes and ONNX Runtime have them
// (onnxruntime/contrib_ops/cpu/quantization/blockwise_quant_block_bnb4.h).
constexpr float kFp4[] = {0,     0.00520833333F,  0.66666667F,  1,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
                          -0.0F, -0.00520833333F, -0.66666667F, -1, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
constexpr float kNf4[] = {-1,
                          -0.6961928009986877F,
                          -0.5250730514526367F,
                          -0.39491748809814453F,
                          -0.28444138169288635F,
                          -0.18477343022823334F,
                          -0.09105003625154495F,
                          0,
                          0.07958029955625534F,
                          0.16093020141124725F,
                          0.24611230194568634F,
                          0.33791524171829224F,
                          0.44070982933044434F,
                          0.5626170039176941F,
                          0.7229568362236023F,
                          1};

// (A, B, absmax): the weight [N, K] in codes of 4 bits, whose blocks follow one another from row to row.
absl::Status WriteMatMulBnb4(CodeWriter& writer, const Node* node) {
  const int64_t rows = IntAttribute(*node, "N").value_or(0);
  const int64_t length = IntAttribute(*node, "K").value_or(0);
  const int64_t block = IntAttribute(*node, "block_size").value_or(0);
  const int64_t levels = IntAttribute(*node, "quant_type").value_or(-1);
  if (rows <= 0 || length <= 0 || block <= 0 || levels < 0 || levels > 1 || IntAttribute(*node, "transB").value_or(1) != 1) {
    return NotWritten("its attributes name no weight");
  }
  const std::optional<Tensor> codes = ConstantTensor(*node->input(1));
  const std::optional<Tensor> scales = ConstantTensor(*node->input(2));
  if (!codes.has_value() || !scales.has_value()) return NotWritten("its weight is not constant");
  if (rows > kMostElements / length) return NotWritten("its attributes name no weight");
  const int64_t count = rows * length;
  if (codes->ElementCount() != (count + 1) / 2 || scales->ElementCount() != (count - 1) / block + 1) {
    return NotWritten("its weight or its scales have another size than its attributes say");
  }
  const DataType type = writer.Of(node->input(0)).type;
  if (!IsFloat(type)) return NotWritten("the type of its input is not known");
  Dequantization how = RowsInBlocks(*codes, 4, 1, count, count, block, *scales);
  how.zero = 0;
  how.first_high = true;
  how.levels = levels == 0 ? absl::MakeConstSpan(kFp4) : absl::MakeConstSpan(kNf4);
  ASSIGN_OR_RETURN(const Value* columns, Columns(writer, *node, type, {rows, length}, how));
  writer.Replace(node, "MatMul", {node->input(0), columns});
  return absl::OkStatus();
}

// A table [...] of GatherBlockQuantized. Tensors must live as long as it.
struct PackedTable {
  std::optional<Tensor> codes;
  std::optional<Tensor> scales;
  std::optional<Tensor> zeros;
  std::vector<int64_t> dims;
  size_t axis = 0;  // that is cut into blocks
  Dequantization how;

  int64_t blocks() const { return (how.length + how.block - 1) / how.block; }
};

absl::Status ReadTable(const Node& node, PackedTable* table) {
  table->codes = ConstantTensor(*node.input(0));
  table->scales = ConstantTensor(*node.input(2));
  if (node.input(3) != nullptr) table->zeros = ConstantTensor(*node.input(3));
  const std::optional<Tensor>& codes = table->codes;
  if (!codes.has_value() || !table->scales.has_value() || table->zeros.has_value() != (node.input(3) != nullptr)) {
    return NotWritten("its table is not constant");
  }
  const bool packed = codes->type == DataType::kUint8;
  const int bits = packed ? static_cast<int>(IntAttribute(node, "bits").value_or(4)) : BitWidth(codes->type);
  const auto rank = static_cast<int>(codes->dims.size());
  const int64_t axis = NormalizeAxis(IntAttribute(node, "quantize_axis").value_or(1), rank);
  Dequantization& how = table->how;
  how.block = IntAttribute(node, "block_size").value_or(128);
  if (axis < 0 || how.block <= 0 || (packed && axis != rank - 1) || (bits != 2 && bits != 4 && bits != 8)) {
    return NotWritten("its attributes name no table");
  }
  table->dims.assign(codes->dims.begin(), codes->dims.end());
  if (packed) table->dims.back() *= 8 / bits;
  table->axis = static_cast<size_t>(axis);
  how.codes = &*codes;
  how.bits = bits;
  how.is_signed = IsSigned(codes->type);
  for (size_t i = 0; i < table->dims.size(); ++i) {
    if (i != table->axis) (i < table->axis ? how.outer : how.inner) *= table->dims[i];
  }
  how.length = how.stride = table->dims[table->axis];
  how.scales = &*table->scales;
  how.scale_steps = {table->blocks() * how.inner, how.inner, 1};
  how.zero = packed ? int64_t{1} << (bits - 1) : 0;
  if (table->scales->ElementCount() != how.outer * table->blocks() * how.inner) {
    return NotWritten("its scales have another size than its table asks for");
  }
  if (table->zeros.has_value()) {
    how.zeros = &*table->zeros;
    how.zero_bits = bits;
    how.zero_steps = how.scale_steps;
    if (packed) how.zero_steps.outer = PackedRow(table->blocks(), bits);
  }
  return absl::OkStatus();
}

absl::StatusOr<const Value*> TableOf(CodeWriter& writer, const Node& node, DataType type, absl::Span<const int64_t> dims,
                                     const Dequantization& how, std::string_view word) {
  return DequantizedConstant(writer.workspace(), node, type, dims, how, fmt::format("{}_{}", ValueName(*node.input(0)), word));
}

// Rows of [V, H] that are taken as int8, and dequantised with the rows of their scales and zero points afterwards.
absl::Status TakeRows(CodeWriter& writer, const Node* node, const PackedTable& table) {
  const int64_t middle = table.how.is_signed ? 0 : int64_t{1} << (table.how.bits - 1);
  const int64_t blocks = table.blocks();
  const auto rows_of = [&](const Value* of) {
    return writer.Cast(*node, writer.Op(*node, "Gather", {of, node->input(1)}, {Attribute::Int("axis", 0)}), DataType::kFloat);
  };
  Dequantization integers = table.how;
  integers.scales = integers.zeros = nullptr;
  integers.zero = middle;
  ASSIGN_OR_RETURN(const Value* codes, TableOf(writer, *node, DataType::kInt8, table.dims, integers, "integers"));
  std::vector<int64_t> in_blocks(static_cast<size_t>(writer.Rank(node->input(1))), 0);  // as they were
  std::vector<int64_t> whole = in_blocks;
  in_blocks.insert(in_blocks.end(), {blocks, table.how.block});
  whole.push_back(table.how.length);
  NodeInserter inserter(writer.workspace(), *node);
  const Value* numbers = inserter.Build(build::Reshape(Term::Of(rows_of(codes)), in_blocks));
  if (table.zeros.has_value()) {
    Dequantization zeros;
    zeros.codes = table.how.zeros;
    zeros.bits = table.how.bits;
    zeros.is_signed = table.how.is_signed;
    zeros.zero = middle;
    zeros.outer = table.how.outer;
    zeros.length = blocks;
    zeros.stride = table.how.zero_steps.outer;
    ASSIGN_OR_RETURN(const Value* offsets, TableOf(writer, *node, DataType::kInt8, {table.how.outer, blocks}, zeros, "zeros"));
    numbers = writer.Op(*node, "Sub", {numbers, inserter.Unsqueeze(rows_of(offsets), {-1})});
  } else if (table.how.zero != middle) {
    numbers = writer.Op(*node, "Add", {numbers, writer.Number(*node, static_cast<double>(middle - table.how.zero))});
  }
  numbers = writer.Op(*node, "Mul", {numbers, inserter.Unsqueeze(rows_of(node->input(2)), {-1})});
  numbers = inserter.Build(build::Reshape(Term::Of(numbers), whole));
  writer.Replace(node, "Identity", {writer.Cast(*node, numbers, writer.Of(node->output()).type)});
  return absl::OkStatus();
}

// (table, places, scales, zero points). Where blocks do not divide rows, the whole table becomes floating-point.
absl::Status WriteGatherBlocks(CodeWriter& writer, const Node* node) {
  PackedTable table;
  RETURN_IF_ERROR(ReadTable(*node, &table));
  const int64_t gathered = NormalizeAxis(IntAttribute(*node, "gather_axis").value_or(0), static_cast<int>(table.dims.size()));
  const bool in_rows = table.dims.size() == 2 && table.axis == 1 && gathered == 0 && table.how.length % table.how.block == 0;
  if (in_rows && writer.Rank(node->input(1)) >= 0) return TakeRows(writer, node, table);
  ASSIGN_OR_RETURN(const Value* whole,
                   TableOf(writer, *node, writer.Of(node->output()).type, table.dims, table.how, "dequantized"));
  writer.Replace(node, "Gather", {whole, node->input(1)}, {Attribute::Int("axis", gathered)});
  return absl::OkStatus();
}

}  // namespace

const std::vector<QuantisedOperator>& QuantisedInBlocks() {
  static const auto* const kOperators = new std::vector<QuantisedOperator>{
      {kRuntime, "MatMulNBits", WriteMatMulNBits, "quantised_linear"},
      {kRuntime, "MatMulBnb4", WriteMatMulBnb4, "quantised_linear"},
      {kRuntime, "GatherBlockQuantized", WriteGatherBlocks},
  };
  return *kOperators;
}

}  // namespace ascend_fuse
