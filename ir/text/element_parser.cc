#include "ir/text/element_parser.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "ir/status_macros.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

template <typename T>
void AppendLittleEndian(T value, size_t bytes, std::string* to) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  for (size_t i = 0; i < bytes; ++i) to->push_back(static_cast<char>(bits >> (8 * i)));
}

absl::Status DoesNotFit(const Token& at, DataType element) {
  return ErrorAt(at, fmt::format("this element does not fit {}", DataTypeName(element)));
}

}  // namespace

absl::Status ElementParser::Parse(DataType element, int64_t count, onnx::TensorProto* tensor) {
  const Token first = in_->Peek();
  if (in_->Accept("...")) {  // elements not given, perhaps with their hash
    if (in_->Peek().kind == TokenKind::kString) in_->Next();
    return in_->Expect("}", "after '...'");
  }
  const bool complex = element == DataType::kComplex64 || element == DataType::kComplex128;
  const int bits = BitWidth(element);
  // Elements as written: complex numbers are two floats, sub-byte integers come packed, as in int32_data.
  if (complex && __builtin_mul_overflow(count, 2, &count)) return ErrorAt(first, "this constant is too large");
  if (bits > 0 && bits < 8) {
    const int64_t per_byte = 8 / bits;
    count = count / per_byte + (count % per_byte != 0);
  }
  std::string raw;
  int64_t written = 0;
  size_t last = 0;  // where the last element starts in raw
  if (!in_->Accept("}")) {
    do {
      if (written > 0 && in_->Accept("...")) {
        RETURN_IF_ERROR(RepeatLast(first, element, count - written, last, &raw, tensor));
        written = std::max(written, count);
        break;
      }
      last = raw.size();
      RETURN_IF_ERROR(Element(element, &raw, tensor));
      ++written;
    } while (in_->Accept(","));
    RETURN_IF_ERROR(in_->Expect("}", "after the elements"));
  }
  if (written != count) {
    return ErrorAt(first, fmt::format("expected {} elements for these dims, found {}", count, written));
  }
  if (element != DataType::kString) tensor->set_raw_data(std::move(raw));
  return absl::OkStatus();
}

absl::Status ElementParser::RepeatLast(const Token& at, DataType element, int64_t times, size_t last, std::string* raw,
                                       onnx::TensorProto* tensor) {
  if (times <= 0) return absl::OkStatus();
  const bool string = element == DataType::kString;
  const std::string unit = string ? tensor->string_data(tensor->string_data_size() - 1) : raw->substr(last);
  // 32 bytes: about what an element of string_data takes in memory at least.
  const auto bytes = static_cast<int64_t>(unit.size() + (string ? 32 : 0));
  if (times > repeat_budget_ / bytes) {
    return ErrorAt(at, fmt::format("repeated elements may fill {} bytes of a model at most", kMaxRepeatedBytes));
  }
  repeat_budget_ -= times * bytes;
  raw->reserve(raw->size() + (string ? 0 : times * unit.size()));
  for (int64_t i = 0; i < times; ++i) {
    if (string) {
      tensor->add_string_data(unit);
    } else {
      raw->append(unit);
    }
  }
  return absl::OkStatus();
}

absl::Status ElementParser::Element(DataType element, std::string* raw, onnx::TensorProto* tensor) {
  const Token at = in_->Peek();
  switch (element) {
    case DataType::kString: {
      ASSIGN_OR_RETURN(*tensor->add_string_data(), in_->String("a string"));
      return absl::OkStatus();
    }
    case DataType::kFloat:
    case DataType::kComplex64: {
      ASSIGN_OR_RETURN(const float value, in_->Float("a number"));
      AppendLittleEndian(value, 4, raw);
      return absl::OkStatus();
    }
    case DataType::kDouble:
    case DataType::kComplex128: {
      ASSIGN_OR_RETURN(const double value, in_->Double("a number"));
      AppendLittleEndian(value, 8, raw);
      return absl::OkStatus();
    }
    case DataType::kUint32:
    case DataType::kUint64: {
      ASSIGN_OR_RETURN(const uint64_t value, in_->Unsigned("an integer of 0 or more"));
      const bool narrow = element == DataType::kUint32;
      if (narrow && value > std::numeric_limits<uint32_t>::max()) return DoesNotFit(at, element);
      AppendLittleEndian(value, narrow ? 4 : 8, raw);
      return absl::OkStatus();
    }
    case DataType::kFloat16:
    case DataType::kBfloat16: {
      const Token& digits = in_->Peek(at.Is("-") ? 1 : 0);
      if (digits.kind == TokenKind::kInteger) break;  // a bit pattern
      ASSIGN_OR_RETURN(const double value, in_->Double("a number"));
      raw->append(EncodeNumber(element, value));
      return absl::OkStatus();
    }
    default:
      break;
  }
  ASSIGN_OR_RETURN(const int64_t value, in_->Integer("an integer"));
  const int bits = std::max(BitWidth(element), 8);
  const bool is_signed =
      element == DataType::kInt8 || element == DataType::kInt16 || element == DataType::kInt32 || element == DataType::kInt64;
  if (bits < 64) {
    const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
    const int64_t high = element == DataType::kBool ? 1 : (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
    if (value < low || value > high) return DoesNotFit(at, element);
  }
  AppendLittleEndian(value, bits / 8, raw);
  return absl::OkStatus();
}

}  // namespace ascend_fuse
