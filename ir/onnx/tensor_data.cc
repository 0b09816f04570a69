// Elements of constants: from memory, from the model file, from typed fields or from external data, as bytes
// or numbers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "fmt/format.h"
#include "ir/model.h"
#include "ir/onnx/dequantize.h"
#include "ir/onnx/encode.h"
#include "ir/onnx/external_data.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/tensor_proto.h"
#include "ir/status_macros.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

using onnx::TensorProto;

std::string Describe(const Model& model, const Tensor& tensor) {
  return fmt::format("tensor '{}' ({})", model.Text(tensor.name), DataTypeName(tensor.type));
}

absl::Status WrongSize(const Model& model, const Tensor& tensor, int64_t found, int64_t expected) {
  return absl::DataLossError(fmt::format("{} has dims [{}], so {} bytes of data, but {} bytes are given. Export the model again",
                                         Describe(model, tensor), fmt::join(tensor.dims, ", "), expected, found));
}

// Bits of one entry of the typed field: elements narrower than a byte come packed, a byte in each int32.
int EntryBits(DataType type) { return BitWidth(type) < 8 ? 8 : BitWidth(type); }

int TypedField(DataType type) {
  switch (type) {
    case DataType::kFloat:
    case DataType::kComplex64:
      return TensorProto::kFloatDataFieldNumber;
    case DataType::kDouble:
    case DataType::kComplex128:
      return TensorProto::kDoubleDataFieldNumber;
    case DataType::kInt64:
      return TensorProto::kInt64DataFieldNumber;
    case DataType::kUint32:
    case DataType::kUint64:
      return TensorProto::kUint64DataFieldNumber;
    default:
      return TensorProto::kInt32DataFieldNumber;
  }
}

void AppendEntry(uint64_t value, int bits, std::string* out) {
  char bytes[8];
  std::memcpy(bytes, &value, sizeof(value));
  out->append(bytes, static_cast<size_t>(bits / 8));
}

absl::StatusOr<std::string> ReadTyped(const Model& model, const Tensor& tensor, int64_t expected) {
  const EncodedSpan span = {tensor.proto_bytes, tensor.proto};
  const ModelFile* model_file = model.model_file();
  wire::Cursor cursor = span.file.offset >= 0 && model_file != nullptr
                            ? model_file->Open(span)
                            : wire::Cursor(span.data, 0, span.file.size, &wire::kNoHoles);
  const auto number = static_cast<uint32_t>(TypedField(tensor.type));
  const bool varints = number != TensorProto::kFloatDataFieldNumber && number != TensorProto::kDoubleDataFieldNumber;
  const int bits = EntryBits(tensor.type);
  std::string out;
  std::string payload;
  wire::Field field;
  while (cursor.Next(&field)) {
    if (field.number != number) continue;
    if (field.type != wire::kBytes) {
      const int given = field.type == wire::kFixed32 ? 32 : field.type == wire::kFixed64 ? 64 : bits;
      AppendEntry(field.value, varints ? bits : given, &out);
    } else {
      std::string_view packed = field.text();
      if (field.is_hole()) {
        // A varint has at most ten bytes: more is more than the dims allow.
        if (field.size > (expected + 1) * 10) return WrongSize(model, tensor, field.size, expected);
        payload.resize(static_cast<size_t>(field.size));
        RETURN_IF_ERROR(model_file->ReadFile(field.position, field.size, payload.data()));
        packed = payload;
      }
      if (varints) {
        wire::Cursor list(packed);
        uint64_t value = 0;
        while (!list.AtEnd()) {
          if (!list.Varint(&value)) return WireError(list);
          AppendEntry(value, bits, &out);
        }
      } else {
        out.append(packed.data(), packed.size());
      }
    }
    if (static_cast<int64_t>(out.size()) > expected) break;
  }
  if (cursor.error() != nullptr) return WireError(cursor);
  return out;
}

double ToDouble(uint16_t bits) {  // float16
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double value;
  if (exponent == 31) {
    value = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, -24);
  } else {  // of a normal number the bits stand elsewhere; large constants are read by this
    constexpr int kOtherBias = 1023 - 15;
    value = std::bit_cast<double>(static_cast<uint64_t>(exponent + kOtherBias) << 52 | static_cast<uint64_t>(mantissa) << 42);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

// A float without infinities in at most 8 bits; NaN handled by the caller.
double SmallFloat(uint32_t bits, int exponent_bits, int mantissa_bits, int bias) {
  const auto exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const auto mantissa = static_cast<int>(bits & ((1u << mantissa_bits) - 1));
  const double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                     : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -value : value;
}

template <typename T>
T ElementAt(const std::string& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Element `index` of a tensor of elements narrower than a byte; the first one is in the lowest bits.
uint32_t NarrowAt(const std::string& bytes, size_t index, int bits) {
  const size_t per_byte = static_cast<size_t>(8 / bits);
  const auto byte = static_cast<uint8_t>(bytes[index / per_byte]);
  return byte >> (index % per_byte * static_cast<size_t>(bits)) & ((1u << bits) - 1);
}

float BfloatAt(const std::string& bytes, size_t index) {
  const uint32_t wide = static_cast<uint32_t>(ElementAt<uint16_t>(bytes, index)) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

absl::StatusOr<int64_t> CountWithin(const Model& model, const Tensor& tensor, int64_t limit) {
  const int64_t count = tensor.ElementCount();
  if (count < 0) {
    return absl::InvalidArgumentError(fmt::format("{} has impossible dims [{}]. Export the model again", Describe(model, tensor),
                                                  fmt::join(tensor.dims, ", ")));
  }
  if (count > limit) {
    return absl::ResourceExhaustedError(
        fmt::format("{} has {} elements, more than the {} asked for", Describe(model, tensor), count, limit));
  }
  return count;
}

}  // namespace

bool DecodeFloat(DataType type, const char* bytes, double* value) {
  const std::string element(bytes, static_cast<size_t>(BitWidth(type) / 8));
  switch (type) {
    case DataType::kFloat:
      *value = static_cast<double>(ElementAt<float>(element, 0));
      return true;
    case DataType::kDouble:
      *value = ElementAt<double>(element, 0);
      return true;
    case DataType::kFloat16:
      *value = ToDouble(ElementAt<uint16_t>(element, 0));
      return true;
    case DataType::kBfloat16:
      *value = static_cast<double>(BfloatAt(element, 0));
      return true;
    default:
      return false;
  }
}

absl::StatusOr<std::string> ReadBytes(const Model& model, const Tensor& tensor, int64_t limit) {
  const int bits = BitWidth(tensor.type);
  if (bits == 0) {
    return absl::InvalidArgumentError(fmt::format("{}: elements of this type are not packed bytes", Describe(model, tensor)));
  }
  ASSIGN_OR_RETURN(int64_t count, CountWithin(model, tensor, std::numeric_limits<int64_t>::max() / 128));
  const int64_t expected = (count * bits + 7) / 8;
  if (expected > limit) {
    return absl::ResourceExhaustedError(
        fmt::format("{} has {} bytes, more than the {} asked for", Describe(model, tensor), expected, limit));
  }
  std::string bytes;
  switch (tensor.storage) {
    case Storage::kNone:
      break;
    case Storage::kMemory:
      bytes = std::string(tensor.memory.substr(0, static_cast<size_t>(expected) + 1));
      if (static_cast<int64_t>(tensor.memory.size()) != expected) {
        return WrongSize(model, tensor, static_cast<int64_t>(tensor.memory.size()), expected);
      }
      break;
    case Storage::kFile:
      if (tensor.file.size != expected) return WrongSize(model, tensor, tensor.file.size, expected);
      if (model.model_file() == nullptr) return WrongSize(model, tensor, 0, expected);
      bytes.resize(static_cast<size_t>(expected));
      RETURN_IF_ERROR(model.model_file()->ReadFile(tensor.file.offset, expected, bytes.data()));
      break;
    case Storage::kTyped: {
      ASSIGN_OR_RETURN(bytes, ReadTyped(model, tensor, expected));
      break;
    }
    case Storage::kExternal: {
      if (tensor.file.size >= 0 && tensor.file.size < expected) {
        return WrongSize(model, tensor, tensor.file.size, expected);
      }
      if (model.path().empty()) {
        return absl::FailedPreconditionError(
            fmt::format("{} is external data in '{}', which cannot be found for a model in memory. Give the path of the "
                        "model's directory",
                        Describe(model, tensor), tensor.location));
      }
      bytes.resize(static_cast<size_t>(expected));
      ExternalData external(model.path());
      RETURN_IF_ERROR(external.Read(tensor, expected, bytes.data()));
      break;
    }
    case Storage::kJoined:
    case Storage::kDequantized: {
      bytes.resize(static_cast<size_t>(expected));
      ElementReader reader(model, tensor);
      RETURN_IF_ERROR(reader.Next(expected, bytes.data()));
      break;
    }
  }
  if (static_cast<int64_t>(bytes.size()) != expected) {
    return WrongSize(model, tensor, static_cast<int64_t>(bytes.size()), expected);
  }
  return bytes;
}

// A part is read in blocks of this size, whatever the size of its rows.
constexpr int64_t kJoinedBlock = int64_t{1} << 20;

struct ElementReader::Part {
  const Tensor* tensor = nullptr;
  int64_t size = 0;  // of the elements, in bytes
  int64_t row = 0;   // of one row
  int64_t at = 0;    // the next byte to be read ahead
  std::string block;
  size_t used = 0;  // of `block`
  std::unique_ptr<DequantizingReader> computed;
  std::unique_ptr<ElementReader> joined;
};

ElementReader::ElementReader(const Model& model, const Tensor& tensor) : model_(model), tensor_(tensor) {
  const Tensor* const whole = &tensor;
  const bool joined = tensor.storage == Storage::kJoined;
  const int64_t rows = joined ? tensor.rows : 1;
  for (const Tensor* part : joined ? tensor.parts : absl::MakeConstSpan(&whole, 1)) {
    Part entry;
    entry.tensor = part;
    entry.size = (part->ElementCount() * BitWidth(part->type) + 7) / 8;
    entry.row = rows > 0 ? entry.size / rows : 0;
    if (part->storage == Storage::kDequantized) entry.computed = std::make_unique<DequantizingReader>(model, *part);
    if (part->storage == Storage::kJoined) entry.joined = std::make_unique<ElementReader>(model, *part);
    row_places_ += entry.row;
    parts_.push_back(std::move(entry));
  }
  row_places_ /= std::max<int64_t>(tensor.unit * BitWidth(tensor.type) / 8, 1);
  if (!model.path().empty()) external_ = std::make_unique<ExternalData>(model.path());
}

ElementReader::~ElementReader() = default;

absl::Status ElementReader::Next(int64_t count, char* to) {
  if (tensor_.order.empty()) return NextOfParts(count, to);
  while (count > 0) {
    if (ready_used_ == ready_.size()) {
      RETURN_IF_ERROR(NextOrdered());
    }
    const auto take = std::min(count, static_cast<int64_t>(ready_.size() - ready_used_));
    std::memcpy(to, ready_.data() + ready_used_, static_cast<size_t>(take));
    ready_used_ += static_cast<size_t>(take);
    to += take;
    count -= take;
  }
  return absl::OkStatus();
}

// The next places of a row. What the parts have is read once, from the first to the last, and kept as long as a later place
// takes it: with zeros between or heads in another order that is little, whatever the size of a row.
absl::Status ElementReader::NextOrdered() {
  const absl::Span<const int64_t> order = tensor_.order;
  const auto width = static_cast<size_t>(tensor_.unit * BitWidth(tensor_.type) / 8);
  if (wanted_.empty()) {
    wanted_.assign(order.begin(), order.end());
    int64_t first = row_places_;
    for (size_t i = order.size(); i-- > 0;) {
      if (order[i] >= 0) first = std::min(first, order[i]);
      wanted_[i] = first;
    }
  }
  ready_.clear();
  ready_used_ = 0;
  for (; place_ < order.size() && ready_.size() < static_cast<size_t>(kJoinedBlock); ++place_) {
    const int64_t from = order[place_];
    if (from < 0) {
      ready_.append(width, '\0');
      continue;
    }
    if (from >= window_end_) RETURN_IF_ERROR(ReadUpTo(from, wanted_[place_], width));
    ready_.append(window_, static_cast<size_t>(from - window_begin_) * width, width);
  }
  if (place_ < order.size()) return absl::OkStatus();
  if (window_end_ < row_places_) RETURN_IF_ERROR(ReadUpTo(row_places_ - 1, row_places_, width));  // the next row follows
  window_.clear();
  place_ = 0;
  window_begin_ = window_end_ = 0;
  return absl::OkStatus();
}

// Reads the parts' row up to this place, and a little further; what stands before `wanted` is wanted no more.
absl::Status ElementReader::ReadUpTo(int64_t place, int64_t wanted, size_t width) {
  const auto ahead = std::max<int64_t>(kJoinedBlock / 16 / static_cast<int64_t>(width), 1);
  while (window_end_ <= place) {
    const int64_t old = std::min(wanted, window_end_) - window_begin_;
    if (old > (window_end_ - window_begin_) / 2) {
      window_.erase(0, static_cast<size_t>(old) * width);
      window_begin_ += old;
    }
    const int64_t count = std::min(ahead, row_places_ - window_end_);
    if (count <= 0) return absl::DataLossError("a merged constant has fewer places than its order names");
    const size_t at = window_.size();
    window_.resize(at + static_cast<size_t>(count) * width);
    RETURN_IF_ERROR(NextOfParts(count * static_cast<int64_t>(width), window_.data() + at));
    window_end_ += count;
  }
  return absl::OkStatus();
}

// The next bytes of one part.
absl::Status ElementReader::ReadPart(Part* part, int64_t size, char* to) {
  const Tensor& tensor = *part->tensor;
  const int64_t at = part->at;
  part->at += size;
  if (part->computed != nullptr) return part->computed->Next(size, to);
  if (part->joined != nullptr) return part->joined->Next(size, to);
  if (tensor.storage == Storage::kMemory) {
    std::memcpy(to, tensor.memory.data() + at, static_cast<size_t>(size));
    return absl::OkStatus();
  }
  if (tensor.storage == Storage::kFile && model_.model_file() != nullptr) {
    return model_.model_file()->Copy(tensor.file.offset + at, size, to);
  }
  if (tensor.storage == Storage::kExternal && external_ != nullptr) {
    Tensor slice = tensor;
    slice.file.offset = std::max<int64_t>(slice.file.offset, 0) + at;
    slice.file.size = size;
    return external_->Read(slice, size, to);
  }
  return absl::FailedPreconditionError(
      fmt::format("the elements of {} cannot be found for a model in memory", Describe(model_, tensor)));
}

absl::Status ElementReader::NextOfParts(int64_t count, char* to) {
  constexpr int64_t kDirect = int64_t{1} << 14;  // so many bytes are read where they are wanted
  while (count > 0) {
    if (parts_.empty()) return absl::DataLossError("a merged constant has no parts");
    Part& part = parts_[part_];
    int64_t take = 0;
    if (part.used == part.block.size()) {
      const int64_t rest = part.size - part.at;
      if (rest <= 0) return absl::DataLossError("a merged constant has fewer bytes than its dims ask for");
      const int64_t direct = std::min({count, part.row - in_row_, rest, kJoinedBlock});
      if (direct >= kDirect) {
        RETURN_IF_ERROR(ReadPart(&part, direct, to));
        take = direct;
      } else {
        part.block.resize(static_cast<size_t>(std::min(kJoinedBlock, rest)));
        part.used = 0;
        RETURN_IF_ERROR(ReadPart(&part, static_cast<int64_t>(part.block.size()), part.block.data()));
      }
    }
    if (take == 0) {
      take = std::min({count, part.row - in_row_, static_cast<int64_t>(part.block.size() - part.used)});
      std::memcpy(to, part.block.data() + part.used, static_cast<size_t>(take));
      part.used += static_cast<size_t>(take);
    }
    in_row_ += take;
    to += take;
    count -= take;
    if (in_row_ == part.row) {
      in_row_ = 0;
      if (part.at == part.size && part.used == part.block.size()) {  // there may be as many parts as a weight has rows
        std::string().swap(part.block);
        part.used = 0;
      }
      part_ = (part_ + 1) % parts_.size();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ReadIntegers(const Model& model, const Tensor& tensor, int64_t limit) {
  if (!IsInteger(tensor.type) && tensor.type != DataType::kBool) {
    return absl::InvalidArgumentError(fmt::format("{} does not hold integers", Describe(model, tensor)));
  }
  ASSIGN_OR_RETURN(int64_t count, CountWithin(model, tensor, limit));
  ASSIGN_OR_RETURN(std::string bytes, ReadBytes(model, tensor, std::numeric_limits<int64_t>::max()));
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (tensor.type) {
      case DataType::kInt64:
        values[i] = ElementAt<int64_t>(bytes, i);
        break;
      case DataType::kUint64: {
        const auto value = ElementAt<uint64_t>(bytes, i);
        if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
          return absl::OutOfRangeError(
              fmt::format("{}: element {} is {}, beyond 64-bit signed integers", Describe(model, tensor), i, value));
        }
        values[i] = static_cast<int64_t>(value);
        break;
      }
      case DataType::kInt32:
        values[i] = ElementAt<int32_t>(bytes, i);
        break;
      case DataType::kUint32:
        values[i] = ElementAt<uint32_t>(bytes, i);
        break;
      case DataType::kInt16:
        values[i] = ElementAt<int16_t>(bytes, i);
        break;
      case DataType::kUint16:
        values[i] = ElementAt<uint16_t>(bytes, i);
        break;
      case DataType::kInt8:
        values[i] = ElementAt<int8_t>(bytes, i);
        break;
      case DataType::kUint8:
        values[i] = ElementAt<uint8_t>(bytes, i);
        break;
      case DataType::kBool:
        values[i] = ElementAt<uint8_t>(bytes, i) != 0 ? 1 : 0;
        break;
      case DataType::kUint4:
      case DataType::kUint2:
        values[i] = NarrowAt(bytes, i, BitWidth(tensor.type));
        break;
      default: {  // int4, int2
        const int bits = BitWidth(tensor.type);
        const auto value = static_cast<int64_t>(NarrowAt(bytes, i, bits));
        values[i] = value >= (1 << (bits - 1)) ? value - (1 << bits) : value;
        break;
      }
    }
  }
  return values;
}

absl::StatusOr<std::vector<double>> ReadFloats(const Model& model, const Tensor& tensor, int64_t limit) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool small = tensor.type >= DataType::kFloat8E4M3FN && tensor.type <= DataType::kFloat8E5M2FNUZ;
  if (!IsFloat(tensor.type) && !small && tensor.type != DataType::kFloat4E2M1 && tensor.type != DataType::kFloat8E8M0) {
    return absl::InvalidArgumentError(fmt::format("{} does not hold floating-point numbers", Describe(model, tensor)));
  }
  ASSIGN_OR_RETURN(int64_t count, CountWithin(model, tensor, limit));
  ASSIGN_OR_RETURN(std::string bytes, ReadBytes(model, tensor, std::numeric_limits<int64_t>::max()));
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (tensor.type) {
      case DataType::kFloat:
        values[i] = ElementAt<float>(bytes, i);
        break;
      case DataType::kDouble:
        values[i] = ElementAt<double>(bytes, i);
        break;
      case DataType::kFloat16:
        values[i] = ToDouble(ElementAt<uint16_t>(bytes, i));
        break;
      case DataType::kBfloat16:
        values[i] = BfloatAt(bytes, i);
        break;
      case DataType::kFloat8E4M3FN: {
        const uint8_t byte = ElementAt<uint8_t>(bytes, i);
        values[i] = (byte & 0x7F) == 0x7F ? kNan : SmallFloat(byte, 4, 3, 7);
        break;
      }
      case DataType::kFloat8E4M3FNUZ: {
        const uint8_t byte = ElementAt<uint8_t>(bytes, i);
        values[i] = byte == 0x80 ? kNan : SmallFloat(byte, 4, 3, 8);
        break;
      }
      case DataType::kFloat8E5M2: {
        const uint8_t byte = ElementAt<uint8_t>(bytes, i);
        if ((byte & 0x7F) > 0x7C) {
          values[i] = kNan;
        } else if ((byte & 0x7F) == 0x7C) {
          values[i] = (byte & 0x80) != 0 ? -kInfinity : kInfinity;
        } else {
          values[i] = SmallFloat(byte, 5, 2, 15);
        }
        break;
      }
      case DataType::kFloat8E5M2FNUZ: {
        const uint8_t byte = ElementAt<uint8_t>(bytes, i);
        values[i] = byte == 0x80 ? kNan : SmallFloat(byte, 5, 2, 16);
        break;
      }
      case DataType::kFloat4E2M1:
        values[i] = SmallFloat(NarrowAt(bytes, i, 4), 2, 1, 1);
        break;
      default: {  // float8e8m0: a power of two
        const uint8_t byte = ElementAt<uint8_t>(bytes, i);
        values[i] = byte == 0xFF ? kNan : std::ldexp(1.0, byte - 127);
        break;
      }
    }
  }
  return values;
}

}  // namespace ascend_fuse
