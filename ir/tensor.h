// A constant tensor: type, dims, and where its elements are. Elements are never copied: they are bytes of
// the loaded file in memory (small ones), a range of that file (weights), a range of an external data file,
// bytes that a pass made, rows of other tensors in turn, or those in another order and with zeros between, or numbers that
// are computed from the integers of a quantised one.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "ir/data_type.h"
#include "ir/string_pool.h"

namespace ascend_fuse {

// Bytes [offset, offset + size) of a file.
struct FileRange {
  int64_t offset = -1;
  int64_t size = 0;
  bool operator==(const FileRange&) const = default;
};

// Where a Tensor's elements are.
enum class Storage : uint8_t {
  kNone,         // no elements given (a tensor of zero elements, or a broken file)
  kMemory,       // `memory`: little-endian packed elements (TensorProto.raw_data layout)
  kFile,         // `file`: the same layout, in the model file
  kTyped,        // typed fields of TensorProto (float_data, int32_data ...); decode with ReadIntegers, ReadFloats or ReadBytes
                 // (ir/model.h)
  kExternal,     // `location` beside the model, `file` inside it
  kJoined,       // `rows` rows, each made of that row of every tensor of `parts`: a concatenation along any axis
  kDequantized,  // computed while they are read, as `dequantization` says
};

struct Dequantization;

// Trivially destructible; lives in the model's arena.
struct Tensor {
  DataType type = DataType::kUndefined;
  Storage storage = Storage::kNone;
  NameId name = NameId::kEmpty;
  absl::Span<const int64_t> dims;
  std::string_view memory;                // kMemory
  FileRange file;                         // kFile, kExternal (offset and length of the elements)
  std::string_view location;              // kExternal: as written in the model
  absl::Span<const Tensor* const> parts;  // kJoined: tensors of any storage but kTyped
  int64_t rows = 0;                       // kJoined: the product of the dims before the joined axis
  // kJoined: place i of a row, of `unit` elements, is place order[i] of the parts' row, or zeros where that is -1; empty: as the
  // parts have them.
  absl::Span<const int64_t> order;
  int64_t unit = 1;
  const Dequantization* dequantization = nullptr;  // kDequantized
  FileRange proto;                                 // the TensorProto's body in the model file; offset -1 for new tensors
  const uint8_t* proto_bytes = nullptr;            // the same in memory (payloads of 4 KB and more left out)

  // Product of dims; 1 for a scalar, -1 on a negative dim or int64 overflow.
  int64_t ElementCount() const;
};

// How far apart the factors of neighbours lie in a tensor of scales or zero points; 0 along an axis that shares one.
struct FactorSteps {
  int64_t outer = 0;
  int64_t group = 0;
  int64_t inner = 0;
  bool operator==(const FactorSteps&) const = default;
};

// A tensor [outer, length, inner] of (code - zero point) * scale, computed in float32 (float64 for that type) and rounded once to
// the tensor's type. Neighbours along the middle axis share their factors in groups. Where the tensor's own type is one of
// integers, it has the codes less their zero points. Floating-point numbers may stand in the place of codes.
struct Dequantization {
  const Tensor* codes = nullptr;  // integers, one after another, the first one in the lowest bits; not kTyped
  int bits = 8;                   // of a code, whatever type the tensor of codes has: 2, 4, 8, 16 or 32
  bool is_signed = false;
  int64_t outer = 1;
  int64_t length = 0;
  int64_t inner = 1;
  int64_t stride = 0;                // codes along the middle axis, those that only pad it included
  int64_t first = 0;                 // so many of those lie in front of the first one; 0 where inner is not 1
  int64_t block = 1;                 // a group: so many neighbours ...
  absl::Span<const int64_t> groups;  // ... or the group of each place, where they are not neighbours
  const Tensor* scales = nullptr;    // of a floating-point type, not kTyped; nullptr: the codes as they are
  FactorSteps scale_steps;
  const Tensor* zeros = nullptr;  // integers of `zero_bits`, or of a floating-point type; not kTyped; nullptr: all are `zero`
  int zero_bits = 8;
  FactorSteps zero_steps;
  int64_t zero = 0;
  double factor = 1;               // of every scale
  bool transposed = false;         // with inner 1: what is [outer, length] comes out as [length, outer]
  absl::Span<const float> levels;  // the number that each code stands for, in the place of the code; empty: itself
  bool first_high = false;         // of codes in a byte the first one is in the highest bits
  int pack = 1;                    // so many codes less their zero points, of 4 bits each, in an element of int32
};

}  // namespace ascend_fuse
