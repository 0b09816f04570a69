#include "ir/data_type.h"

#include <array>

namespace ascend_fuse {
namespace {

struct Row {
  DataType type;
  std::string_view name;
  int bits;
};

// Names as in the official ONNX text syntax (onnx/onnx:onnx/defs/parser.h, PrimitiveTypeNameMap).
constexpr std::array<Row, 27> kRows = {{
    {DataType::kUndefined, "undefined", 0},
    {DataType::kFloat, "float", 32},
    {DataType::kUint8, "uint8", 8},
    {DataType::kInt8, "int8", 8},
    {DataType::kUint16, "uint16", 16},
    {DataType::kInt16, "int16", 16},
    {DataType::kInt32, "int32", 32},
    {DataType::kInt64, "int64", 64},
    {DataType::kString, "string", 0},
    {DataType::kBool, "bool", 8},
    {DataType::kFloat16, "float16", 16},
    {DataType::kDouble, "double", 64},
    {DataType::kUint32, "uint32", 32},
    {DataType::kUint64, "uint64", 64},
    {DataType::kComplex64, "complex64", 64},
    {DataType::kComplex128, "complex128", 128},
    {DataType::kBfloat16, "bfloat16", 16},
    {DataType::kFloat8E4M3FN, "float8e4m3fn", 8},
    {DataType::kFloat8E4M3FNUZ, "float8e4m3fnuz", 8},
    {DataType::kFloat8E5M2, "float8e5m2", 8},
    {DataType::kFloat8E5M2FNUZ, "float8e5m2fnuz", 8},
    {DataType::kUint4, "uint4", 4},
    {DataType::kInt4, "int4", 4},
    {DataType::kFloat4E2M1, "float4e2m1", 4},
    {DataType::kFloat8E8M0, "float8e8m0", 8},
    {DataType::kUint2, "uint2", 2},
    {DataType::kInt2, "int2", 2},
}};

const Row& RowOf(DataType type) {
  const auto index = static_cast<size_t>(type);
  return index < kRows.size() ? kRows[index] : kRows[0];
}

}  // namespace

std::string_view DataTypeName(DataType type) { return RowOf(type).name; }

DataType DataTypeFromName(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.type;
  }
  return DataType::kUndefined;
}

int BitWidth(DataType type) { return RowOf(type).bits; }

bool IsFloat(DataType type) {
  return type == DataType::kFloat || type == DataType::kFloat16 || type == DataType::kBfloat16 || type == DataType::kDouble;
}

bool IsInteger(DataType type) {
  switch (type) {
    case DataType::kUint8:
    case DataType::kInt8:
    case DataType::kUint16:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
    case DataType::kUint32:
    case DataType::kUint64:
    case DataType::kUint4:
    case DataType::kInt4:
    case DataType::kUint2:
    case DataType::kInt2:
      return true;
    default:
      return false;
  }
}

bool IsSigned(DataType type) {
  switch (type) {
    case DataType::kInt2:
    case DataType::kInt4:
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
      return true;
    default:
      return false;
  }
}

}  // namespace ascend_fuse
