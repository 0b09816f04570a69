// Element types of tensors, with the numbers that TensorProto.DataType gives them.
#pragma once

#include <cstdint>
#include <string_view>

namespace ascend_fuse {

// Values equal onnx.TensorProto.DataType (proto/onnx.proto, release 1.22); a unit test compares
// them with the generated header.
enum class DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

// The name ONNX text uses: "float", "float16", "int64", "bool" ...; "undefined" for anything else.
std::string_view DataTypeName(DataType type);

// The type of that name, or kUndefined.
DataType DataTypeFromName(std::string_view name);

// Bits of one element: 32 for float, 4 for int4 ...; 0 for string and undefined.
int BitWidth(DataType type);

// float16, bfloat16, float and double (the types that activations and norms are computed in).
bool IsFloat(DataType type);

// Signed and unsigned integers of any width, not bool.
bool IsInteger(DataType type);

// Those of them that hold negative numbers.
bool IsSigned(DataType type);

}  // namespace ascend_fuse
