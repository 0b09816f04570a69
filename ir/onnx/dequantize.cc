#include "ir/onnx/dequantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "ir/onnx/encode.h"
#include "ir/onnx/turned_codes.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kCodesAtOnce = int64_t{1} << 16;

// Integer `index` of packed ones of `bits` each.
int64_t PackedAt(const char* bytes, int64_t index, int bits, bool is_signed, bool first_high = false) {
  uint64_t value = 0;
  if (bits < 8) {
    const auto at = static_cast<uint64_t>(index) * static_cast<uint64_t>(bits);
    const uint64_t low = at % 8;
    value =
        static_cast<uint8_t>(bytes[at / 8]) >> (first_high ? 8 - static_cast<uint64_t>(bits) - low : low) & ((1u << bits) - 1);
  } else {
    std::memcpy(&value, bytes + index * (bits / 8), static_cast<size_t>(bits / 8));
  }
  if (is_signed && bits < 64 && (value >> (bits - 1) & 1) != 0) return static_cast<int64_t>(value) - (int64_t{1} << bits);
  return static_cast<int64_t>(value);
}

// The bits of a number of float16 or bfloat16.
uint16_t BitsOf(DataType type, float value) {
  if (std::isfinite(value)) return type == DataType::kFloat16 ? HalfBits(value) : BrainBits(value);
  uint16_t bits = 0;
  std::memcpy(&bits, EncodeNumber(type, static_cast<double>(value)).data(), sizeof bits);
  return bits;
}

// Codes that share a scale and a zero point.
struct CodesOfRun {
  const uint8_t* packed;
  int64_t first;
  int64_t count;
  int bits;  // 4 or 8
  bool is_signed;
  double zero;
  float scale;
};

// Their numbers. Of 4 bits there are 16 of them, of which two are looked up for each byte; of 8 bits they are looked up
// where there are more codes than numbers.
template <typename Element, typename Encode>
void WriteRun(const CodesOfRun& run, Element* to, Encode encode) {
  constexpr int kNibbles = 16;
  constexpr int kBytes = 256;
  Element all[kBytes];
  // A zero point is nearly always a whole number, which is taken off as one.
  constexpr double kWhole = 1 << 15;
  const bool is_whole = std::abs(run.zero) <= kWhole && run.zero == std::trunc(run.zero);
  const int zero = is_whole ? static_cast<int>(run.zero) : 0;
  const auto fill = [&]<int codes>(std::integral_constant<int, codes> /*how many*/) {
    const int half =
        run.is_signed ? codes / 2 : 0;  // codes from there on are negative: the number of code c is (c ^ half) - half
    if (is_whole) {
      for (int code = 0; code < codes; ++code) all[code] = encode(static_cast<float>((code ^ half) - half - zero) * run.scale);
    } else {
      for (int code = 0; code < codes; ++code)
        all[code] = encode(static_cast<float>((code ^ half) - half - run.zero) * run.scale);
    }
  };
  const int64_t end = run.first + run.count;
  int64_t i = run.first;
  if (run.bits == 4) {
    fill(std::integral_constant<int, kNibbles>());
    if (i % 2 != 0 && i < end) *to++ = all[run.packed[i++ / 2] >> 4];
    for (; i + 1 < end; i += 2) {
      const uint8_t byte = run.packed[i / 2];
      *to++ = all[byte & 15];
      *to++ = all[byte >> 4];
    }
    if (i < end) *to = all[run.packed[i / 2] & 15];
    return;
  }
  if (run.count >= kBytes) {
    fill(std::integral_constant<int, kBytes>());
    for (; i < end; ++i) *to++ = all[run.packed[i]];
    return;
  }
  for (; i < end; ++i) {
    const int code = run.is_signed ? static_cast<int8_t>(run.packed[i]) : static_cast<int>(run.packed[i]);
    *to++ = encode(static_cast<float>(code - run.zero) * run.scale);
  }
}

bool HasSixteenBits(DataType type) { return type == DataType::kFloat16 || type == DataType::kBfloat16; }

}  // namespace

FactorWindow::FactorWindow(const Model& model, const Tensor* tensor, int bits, const FactorSteps& steps, bool whole,
                           double otherwise)
    : tensor_(tensor), bits_(bits), steps_(steps), otherwise_(otherwise) {
  if (tensor_ == nullptr) return;
  if (IsFloat(tensor_->type)) bits_ = BitWidth(tensor_->type);
  whole_ = whole || steps_.outer == 0 || steps_.outer * bits_ % 8 != 0;
  reader_ = std::make_unique<ElementReader>(model, *tensor_);
}

absl::Status FactorWindow::MoveTo(int64_t outer) {
  if (tensor_ == nullptr) return absl::OkStatus();
  if (!whole_) return Read(steps_.outer);
  base_ = outer * steps_.outer;
  return values_.empty() ? Read(tensor_->ElementCount() * BitWidth(tensor_->type) / bits_) : absl::OkStatus();
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
      scales_(model, how_.scales, 32, how_.scale_steps, how_.transposed || how_.outer <= 1, 1),
      zeros_(model, how_.zeros, how_.zero_bits, how_.zero_steps, how_.transposed || how_.outer <= 1,
             static_cast<double>(how_.zero)),
      are_plain_((how_.bits == 4 || how_.bits == 8) && !how_.first_high && how_.pack == 1 && how_.levels.empty() &&
                 !IsFloat(how_.codes->type) && (type_ == DataType::kFloat || HasSixteenBits(type_))),
      left_(how_.outer * how_.stride * how_.inner) {}

DequantizingReader::~DequantizingReader() = default;

absl::Status DequantizingReader::Next(int64_t count, char* to) {
  while (count > 0) {
    if (used_ == block_.size()) {
      RETURN_IF_ERROR(how_.transposed ? FillRow() : FillBlock());
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

double DequantizingReader::CodeAt(const char* packed, int64_t index) const {
  if (!IsFloat(how_.codes->type)) {
    const int64_t code = PackedAt(packed, index, how_.bits, how_.is_signed, how_.first_high);
    return how_.levels.empty() ? static_cast<double>(code) : static_cast<double>(how_.levels[static_cast<size_t>(code)]);
  }
  double value = 0;
  DecodeFloat(how_.codes->type, packed + index * (how_.bits / 8), &value);
  return value;
}

void DequantizingReader::Append(double code, double zero, double scale) {
  if (how_.pack > 1) {
    nibbles_ |= (static_cast<uint32_t>(static_cast<int64_t>(code - zero)) & 15u) << (4 * packed_);
    if (++packed_ < how_.pack) return;
    block_.append(reinterpret_cast<const char*>(&nibbles_), sizeof(nibbles_));  // little-endian
    nibbles_ = 0;
    packed_ = 0;
  } else if (!IsFloat(type_)) {
    const auto integer = static_cast<int64_t>(code - zero);
    block_.append(reinterpret_cast<const char*>(&integer), static_cast<size_t>(BitWidth(type_) / 8));  // little-endian
  } else if (type_ == DataType::kDouble) {
    block_.append(EncodeNumber(type_, (code - zero) * scale));
  } else {
    const float value = static_cast<float>(code - zero) * static_cast<float>(scale);
    if (type_ == DataType::kFloat) {
      block_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else if (HasSixteenBits(type_)) {
      const uint16_t bits = BitsOf(type_, value);
      block_.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
    } else {
      block_.append(EncodeNumber(type_, static_cast<double>(value)));
    }
  }
}

// As Append, with what all these codes have in common asked once.
void DequantizingReader::AppendPlain(const char* packed, int64_t first, int64_t count, double zero, float scale) {
  const size_t begin = block_.size();
  block_.resize(begin + static_cast<size_t>(count * BitWidth(type_) / 8));
  char* const to = block_.data() + begin;
  const CodesOfRun run = {reinterpret_cast<const uint8_t*>(packed), first, count, how_.bits, how_.is_signed, zero, scale};
  if (type_ == DataType::kFloat) {
    WriteRun(run, reinterpret_cast<float*>(to), [](float value) { return value; });
  } else if (!std::isfinite(zero) || !std::isfinite(scale)) {
    WriteRun(run, reinterpret_cast<uint16_t*>(to), [this](float value) { return BitsOf(type_, value); });
  } else if (type_ == DataType::kFloat16) {
    WriteRun(run, reinterpret_cast<uint16_t*>(to), [](float value) { return HalfBits(value); });
  } else {
    WriteRun(run, reinterpret_cast<uint16_t*>(to), [](float value) { return BrainBits(value); });
  }
}

// Codes of one place along the outer axis, whose places follow one another and are not only padding.
absl::Status DequantizingReader::AppendRun(const char* packed, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count;) {
    const int64_t place = place_ + i;
    const int64_t group = GroupOf(place);
    const int64_t same = how_.groups.empty() ? std::min(count - i, (group + 1) * how_.block - place) : 1;
    const double scale = scales_.At(group, 0) * how_.factor;
    const double zero = zeros_.At(group, 0);
    if (are_plain_) {
      AppendPlain(packed, first + i, same, zero, static_cast<float>(scale));
    } else {
      for (int64_t j = 0; j < same; ++j) Append(CodeAt(packed, first + i + j), zero, scale);
    }
    i += same;
  }
  return absl::OkStatus();
}

absl::Status DequantizingReader::FillBlock() {
  if (left_ == 0) return absl::DataLossError("a dequantized constant has fewer elements than its dims ask for");
  const int64_t codes = std::min(left_, kCodesAtOnce);  // a multiple of 8, but for the last ones
  std::string packed(static_cast<size_t>((codes * how_.bits + 7) / 8), '\0');
  RETURN_IF_ERROR(codes_->Next(static_cast<int64_t>(packed.size()), packed.data()));
  left_ -= codes;
  block_.clear();
  used_ = 0;
  block_.reserve(static_cast<size_t>(codes * BitWidth(type_) / 8));
  for (int64_t i = 0; i < codes;) {
    if (place_ == 0 && inner_ == 0) {
      ++outer_;
      RETURN_IF_ERROR(scales_.MoveTo(outer_));
      RETURN_IF_ERROR(zeros_.MoveTo(outer_));
    }
    if (how_.inner == 1) {
      // Places before the first one count from -first on.
      const int64_t run = std::min(codes - i, how_.stride - place_);
      const int64_t begin = std::max(place_, how_.first);
      const int64_t end = std::min(place_ + run, how_.first + how_.length);
      const int64_t skipped = begin - place_;
      place_ = begin - how_.first;
      if (end > begin) RETURN_IF_ERROR(AppendRun(packed.data(), i + skipped, end - begin));
      place_ = (begin - skipped + run) % how_.stride;
      i += run;
      continue;
    }
    if (place_ < how_.length) {
      const int64_t group = GroupOf(place_);
      Append(CodeAt(packed.data(), i), zeros_.At(group, inner_), scales_.At(group, inner_) * how_.factor);
    }
    if (++inner_ == how_.inner) {
      inner_ = 0;
      place_ = (place_ + 1) % how_.stride;
    }
    ++i;
  }
  return absl::OkStatus();
}

// The same of many places, where codes come out as integers that only zero points are taken off, all the same one, or are scales.
bool DequantizingReader::FillTile() {
  // Of 4 bits eight lines of a cache, which are fetched together; and no more than some megabytes of results.
  constexpr int64_t kMost = 1024;
  constexpr int64_t kLeast = 128;
  constexpr int64_t kElements = int64_t{1} << 22;
  const int64_t places = std::clamp(kElements / std::max<int64_t>(how_.outer, 1) / kLeast * kLeast, kLeast, kMost);
  constexpr int64_t kEight = 8;
  const bool as_they_are = how_.scales == nullptr && how_.zeros == nullptr && how_.levels.empty();
  const int64_t count = std::min(places, how_.length - place_);
  if (!as_they_are || how_.outer <= 0) return false;
  if (how_.codes->type == DataType::kFloat && type_ == DataType::kFloat16 && how_.zero == 0) {
    block_.resize(static_cast<size_t>(count * how_.outer) * sizeof(uint16_t));
    TurnToHalves({whole_.get(), how_.outer, how_.stride * 4}, how_.first + place_, count, static_cast<float>(how_.factor),
                 reinterpret_cast<uint16_t*>(block_.data()));
  } else if (how_.codes->type == type_ && HasSixteenBits(type_) && how_.zero == 0 && how_.factor == 1) {
    block_.resize(static_cast<size_t>(count * how_.outer) * sizeof(uint16_t));
    TurnWords({whole_.get(), how_.outer, how_.stride * 2}, how_.first + place_, count,
              reinterpret_cast<uint16_t*>(block_.data()));
  } else if (IsFloat(how_.codes->type)) {
    return false;
  } else if (how_.bits == 8 && BitWidth(type_) == 8 && how_.pack == 1) {
    block_.resize(static_cast<size_t>(count * how_.outer));
    TurnBytes({whole_.get(), how_.outer, how_.stride}, how_.first + place_, count, static_cast<uint8_t>(how_.zero),
              reinterpret_cast<uint8_t*>(block_.data()));
  } else if (how_.bits == 4 && how_.pack == kEight && how_.first == 0 && !how_.first_high &&
             (how_.zero == 0 || how_.zero == kEight) && how_.outer % kEight == 0 && how_.stride % kEight == 0) {
    const int64_t columns = how_.outer / kEight;
    const int64_t whole = (count + kEight - 1) / kEight * kEight;
    block_.resize(static_cast<size_t>(whole * columns) * sizeof(uint32_t));
    TurnNibbles({whole_.get(), how_.outer, how_.stride / 2}, place_, whole, how_.zero == kEight,
                reinterpret_cast<uint32_t*>(block_.data()));
    block_.resize(static_cast<size_t>(count * columns) * sizeof(uint32_t));
  } else {
    return false;
  }
  place_ += count;
  return true;
}

// The elements of one place along the middle axis, of every place along the outer one.
absl::Status DequantizingReader::FillRow() {
  if (place_ == how_.length) return absl::DataLossError("a transposed constant has fewer elements than its dims ask for");
  if (whole_ == nullptr) {
    const int64_t size = (left_ * how_.bits + 7) / 8;
    whole_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(size));
    RETURN_IF_ERROR(codes_->Next(size, whole_.get()));
  }
  used_ = 0;
  if (FillTile()) return absl::OkStatus();
  block_.clear();
  const int64_t group = GroupOf(place_);
  for (int64_t outer = 0; outer < how_.outer; ++outer) {
    RETURN_IF_ERROR(scales_.MoveTo(outer));
    RETURN_IF_ERROR(zeros_.MoveTo(outer));
    const double code = CodeAt(whole_.get(), outer * how_.stride + how_.first + place_);
    Append(code, zeros_.At(group, 0), scales_.At(group, 0) * how_.factor);
  }
  ++place_;
  return absl::OkStatus();
}

}  // namespace ascend_fuse
