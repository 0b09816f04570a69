#include "ir/onnx/dequantize.h"

#include <algorithm>
#include <cstring>

#include "ir/onnx/encode.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kCodesAtOnce = int64_t{1} << 16;

// Integer `index` of packed ones of `bits` each.
int64_t PackedAt(const char* bytes, int64_t index, int bits, bool is_signed) {
  uint64_t value = 0;
  if (bits < 8) {
    const int64_t per_byte = 8 / bits;
    value = static_cast<uint8_t>(bytes[index / per_byte]) >> (index % per_byte * bits) & ((1u << bits) - 1);
  } else {
    std::memcpy(&value, bytes + index * (bits / 8), static_cast<size_t>(bits / 8));
  }
  if (is_signed && (value >> (bits - 1) & 1) != 0) return static_cast<int64_t>(value) - (int64_t{1} << bits);
  return static_cast<int64_t>(value);
}

bool IsSigned(DataType type) {
  return type == DataType::kInt2 || type == DataType::kInt4 || type == DataType::kInt8 || type == DataType::kInt16 ||
         type == DataType::kInt32;
}

}  // namespace

FactorWindow::FactorWindow(const Model& model, const Tensor* tensor, int bits, const FactorSteps& steps, int64_t outer,
                           double otherwise)
    : tensor_(tensor), bits_(bits), steps_(steps), otherwise_(otherwise) {
  if (tensor_ == nullptr) return;
  if (IsFloat(tensor_->type)) bits_ = BitWidth(tensor_->type);
  whole_ = steps_.outer == 0 || steps_.outer * bits_ % 8 != 0 || outer <= 1;
  reader_ = std::make_unique<ElementReader>(model, *tensor_);
}

absl::Status FactorWindow::MoveTo(int64_t outer) {
  if (tensor_ == nullptr) return absl::OkStatus();
  if (whole_) {
    base_ = outer * steps_.outer;
    return values_.empty() ? Read(tensor_->ElementCount() * BitWidth(tensor_->type) / bits_) : absl::OkStatus();
  }
  return Read(steps_.outer);
}

absl::Status FactorWindow::Read(int64_t count) {
  std::string bytes(static_cast<size_t>((count * bits_ + 7) / 8), '\0');
  RETURN_IF_ERROR(reader_->Next(static_cast<int64_t>(bytes.size()), bytes.data()));
  values_.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    double& value = values_[static_cast<size_t>(i)];
    if (!IsFloat(tensor_->type)) {
      value = static_cast<double>(PackedAt(bytes.data(), i, bits_, IsSigned(tensor_->type)));
    } else if (!DecodeFloat(tensor_->type, bytes.data() + i * (bits_ / 8), &value)) {
      return absl::InvalidArgumentError("scales of a type that has no numbers");
    }
  }
  return absl::OkStatus();
}

DequantizingReader::DequantizingReader(const Model& model, const Tensor& tensor)
    : how_(*tensor.dequantization),
      type_(tensor.type),
      codes_(std::make_unique<ElementReader>(model, *how_.codes)),
      scales_(model, how_.scales, 32, how_.scale_steps, how_.outer, 1),
      zeros_(model, how_.zeros, how_.zero_bits, how_.zero_steps, how_.outer, static_cast<double>(how_.zero)),
      left_(how_.outer * how_.stride * how_.inner) {}

DequantizingReader::~DequantizingReader() = default;

absl::Status DequantizingReader::Next(int64_t count, char* to) {
  while (count > 0) {
    if (used_ == block_.size()) {
      if (left_ == 0) return absl::DataLossError("a dequantized constant has fewer elements than its dims ask for");
      RETURN_IF_ERROR(FillBlock());
      continue;
    }
    const int64_t take = std::min(count, static_cast<int64_t>(block_.size() - used_));
    std::memcpy(to, block_.data() + used_, static_cast<size_t>(take));
    used_ += static_cast<size_t>(take);
    to += take;
    count -= take;
  }
  return absl::OkStatus();
}

absl::Status DequantizingReader::FillBlock() {
  const int64_t codes = std::min(left_, kCodesAtOnce);  // a multiple of 8, but for the last ones
  std::string packed(static_cast<size_t>((codes * how_.bits + 7) / 8), '\0');
  RETURN_IF_ERROR(codes_->Next(static_cast<int64_t>(packed.size()), packed.data()));
  left_ -= codes;
  block_.clear();
  used_ = 0;
  block_.reserve(static_cast<size_t>(codes * BitWidth(type_) / 8));
  for (int64_t i = 0; i < codes; ++i) {
    if (place_ == 0 && inner_ == 0) {
      ++outer_;
      RETURN_IF_ERROR(scales_.MoveTo(outer_));
      RETURN_IF_ERROR(zeros_.MoveTo(outer_));
    }
    if (place_ < how_.length) {
      const int64_t code = PackedAt(packed.data(), i, how_.bits, how_.is_signed);
      const int64_t group = how_.groups.empty() ? place_ / how_.block : how_.groups[static_cast<size_t>(place_)];
      if (!IsFloat(type_)) {
        block_.append(reinterpret_cast<const char*>(&code), static_cast<size_t>(BitWidth(type_) / 8));  // little-endian
      } else if (type_ == DataType::kDouble) {
        block_.append(EncodeNumber(type_, (static_cast<double>(code) - zeros_.At(group, inner_)) * scales_.At(group, inner_)));
      } else {
        const auto offset = static_cast<float>(static_cast<double>(code) - zeros_.At(group, inner_));
        const float value = offset * static_cast<float>(scales_.At(group, inner_));
        if (type_ == DataType::kFloat) {
          block_.append(reinterpret_cast<const char*>(&value), sizeof(value));
        } else {
          block_.append(EncodeNumber(type_, value));
        }
      }
    }
    if (++inner_ == how_.inner) {
      inner_ = 0;
      if (++place_ == how_.stride) place_ = 0;
    }
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
