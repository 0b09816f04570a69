#include "ir/streamed_tensor.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/constant_tensor.h"
#include "ir/status_macros.h"

namespace ascend_fuse {

absl::Status NotStreamed(std::string_view name, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{} cannot be part of a merged constant: {}", name, why));
}

absl::StatusOr<const Tensor*> PlainTensor(Model* model, const Tensor& of_the_model, std::string_view name) {
  const Tensor* tensor = &of_the_model;
  const int64_t count = tensor->ElementCount();
  const int bits = BitWidth(tensor->type);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 64;
  if (count <= 0 || count > kMost || bits == 0) return NotStreamed(name, "it has no whole bytes");
  const int64_t bytes = (count * bits + 7) / 8;
  Arena& arena = model->arena();
  if (tensor->storage == Storage::kTyped) {
    // Typed fields are for small tensors; packed here once.
    constexpr int64_t kLargestTyped = int64_t{1} << 24;
    ASSIGN_OR_RETURN(std::string packed, ReadBytes(*model, *tensor, kLargestTyped));
    Tensor* copy = arena.New<Tensor>();
    copy->type = tensor->type;
    copy->storage = Storage::kMemory;
    copy->dims = tensor->dims;
    copy->memory = arena.Copy(std::string_view(packed));
    tensor = copy;
  }
  const bool complete = tensor->storage == Storage::kMemory ? static_cast<int64_t>(tensor->memory.size()) == bytes
                        : tensor->storage == Storage::kFile ? tensor->file.size == bytes
                        : tensor->storage == Storage::kExternal
                            ? tensor->file.size < 0 || tensor->file.size == bytes
                            : tensor->storage == Storage::kDequantized || tensor->storage == Storage::kJoined;
  if (!complete) return NotStreamed(name, "its elements are not all there");
  return tensor;
}

bool HasComputedElements(const Tensor& tensor) {
  if (tensor.storage != Storage::kJoined) return tensor.storage == Storage::kDequantized;
  return std::any_of(tensor.parts.begin(), tensor.parts.end(), [](const Tensor* part) { return HasComputedElements(*part); });
}

namespace {

// Whether the codes are the elements as they lie in memory: the same bytes under another type and other dims.
bool IsTheSameBytes(DataType type, const Dequantization& how) {
  const bool whole = !how.transposed && how.first == 0 && how.stride == how.length && how.levels.empty() && !how.first_high;
  const bool as_it_is = how.scales == nullptr && how.zeros == nullptr && how.zero == 0 && !IsFloat(how.codes->type);
  return whole && as_it_is && IsInteger(type) && how.bits * how.pack == BitWidth(type);
}

}  // namespace

absl::StatusOr<Tensor*> DequantizedTensor(Model* model, DataType type, absl::Span<const int64_t> dims, const Dequantization& how,
                                          std::string_view name) {
  Arena& arena = model->arena();
  Dequantization* own = arena.New<Dequantization>(how);
  for (const Tensor** part : {&own->codes, &own->scales, &own->zeros}) {
    if (*part == nullptr) continue;
    ASSIGN_OR_RETURN(*part, PlainTensor(model, *arena.New<Tensor>(**part), name));
  }
  const Tensor& codes = *own->codes;
  if (IsTheSameBytes(type, how) && codes.storage != Storage::kDequantized && codes.storage != Storage::kJoined) {
    // It may stay where it is, without a copy.
    Tensor* same = arena.New<Tensor>();
    same->type = type;
    same->storage = codes.storage;
    same->dims = arena.Copy(dims);
    same->memory = codes.memory;
    same->file = codes.file;
    same->location = codes.location;
    const int64_t bytes = same->ElementCount() * BitWidth(type) / 8;
    if (same->file.size < 0 && same->storage == Storage::kExternal) same->file.size = bytes;
    if (same->storage == Storage::kMemory || same->file.size == bytes) return same;
  }
  own->groups = arena.Copy(how.groups);
  own->levels = arena.Copy(how.levels);
  Tensor* tensor = arena.New<Tensor>();
  tensor->type = type;
  tensor->storage = Storage::kDequantized;
  tensor->dequantization = own;
  tensor->dims = arena.Copy(dims);
  return tensor;
}

std::string DescribeDequantization(DataType type, absl::Span<const int64_t> dims, const Dequantization& how) {
  const auto place = [](const Tensor* tensor) {
    if (tensor == nullptr) return std::string("-");
    const void* bytes = tensor->storage == Storage::kMemory        ? static_cast<const void*>(tensor->memory.data())
                        : tensor->storage == Storage::kDequantized ? tensor->dequantization
                        : tensor->storage == Storage::kJoined      ? static_cast<const void*>(tensor->parts.data())
                                                                   : tensor->proto_bytes;
    return fmt::format("{}:{}:{}:{}:{}", bytes, tensor->file.offset, tensor->proto.offset, tensor->location,
                       tensor->memory.size());
  };
  const auto steps = [](const FactorSteps& of) { return fmt::format("{},{},{}", of.outer, of.group, of.inner); };
  const std::string sizes =
      fmt::format("{},{},{},{},{},{},{},{}", how.bits, how.is_signed, how.outer, how.length, how.inner, how.stride, how.first,
                  how.block) +
      fmt::format(",{},{},{},{},{}", how.factor, how.transposed, how.pack, how.first_high,
                  std::string_view(reinterpret_cast<const char*>(how.levels.data()), how.levels.size() * sizeof(float)));
  const std::string zeros = fmt::format("{}:{}:{}:{}", place(how.zeros), how.zero_bits, steps(how.zero_steps), how.zero);
  return fmt::format("{}:{}:{}:{}:{}:{}:{}:{}", static_cast<int>(type), fmt::join(dims, ","), place(how.codes), sizes,
                     fmt::join(how.groups, ","), place(how.scales), steps(how.scale_steps), zeros);
}

namespace {

Tensor* OfParts(Model* model, absl::Span<const Tensor* const> parts, absl::Span<const int64_t> dims, int64_t rows,
                absl::Span<const int64_t> order, int64_t unit) {
  Arena& arena = model->arena();
  Tensor* tensor = arena.New<Tensor>();
  tensor->type = parts[0]->type;
  tensor->storage = Storage::kJoined;
  tensor->parts = arena.Copy(parts);
  tensor->rows = rows;
  tensor->order = arena.Copy(order);
  tensor->unit = unit;
  tensor->dims = arena.Copy(dims);
  return tensor;
}

}  // namespace

std::vector<const Tensor*> RunsOf(Model* model, const Tensor& whole, int64_t inner, absl::Span<const int64_t> order) {
  const int64_t bytes = inner * BitWidth(whole.type) / 8;
  std::vector<const Tensor*> parts;
  if (whole.storage == Storage::kDequantized || whole.storage == Storage::kJoined) {  // computed one after another
    return {OfParts(model, {&whole}, {static_cast<int64_t>(order.size()) * inner}, 1, order, inner)};
  }
  std::string_view zeros;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const int64_t step = order[begin] < 0 ? 0 : 1;
    for (end = begin + 1; end < order.size() && order[end] == order[end - 1] + step;) ++end;
    const auto count = static_cast<int64_t>(end - begin);
    const int64_t offset = order[begin] * bytes;
    const int64_t size = count * bytes;
    Tensor* part = model->arena().New<Tensor>(whole);
    part->dims = model->arena().Copy(absl::Span<const int64_t>({count * inner}));
    if (step == 0) {
      if (static_cast<int64_t>(zeros.size()) < size) {
        zeros = model->arena().Copy(std::string_view(std::string(static_cast<size_t>(size), '\0')));
      }
      part->storage = Storage::kMemory;
      part->memory = zeros.substr(0, static_cast<size_t>(size));
    } else if (part->storage == Storage::kMemory) {
      part->memory = part->memory.substr(static_cast<size_t>(offset), static_cast<size_t>(size));
    } else {
      part->file = {std::max<int64_t>(part->file.offset, 0) + offset, size};
    }
    parts.push_back(part);
  }
  return parts;
}

namespace {

// Of an initializer, or of a Constant node that holds a tensor; nullptr for any other value.
const Tensor* TensorOf(const Value& constant, Arena* arena) {
  if (constant.IsConstant()) return constant.initializer;
  const std::optional<Tensor> tensor = ConstantTensor(constant);
  return tensor.has_value() ? arena->New<Tensor>(*tensor) : nullptr;
}

}  // namespace

absl::StatusOr<Tensor*> JoinedTensor(Model* model, absl::Span<const Value* const> constants, int64_t axis) {
  std::vector<int64_t> dims;
  int64_t along = 0;
  std::vector<const Tensor*> parts;
  for (const Value* value : constants) {
    if (!value->IsConstant()) return NotStreamed(ValueName(*value), "it is not an initializer");
    const Tensor* tensor = value->initializer;
    if (axis < 0 || axis >= static_cast<int64_t>(tensor->dims.size()))
      return NotStreamed(ValueName(*value), "it has too few dims");
    std::vector<int64_t> own(tensor->dims.begin(), tensor->dims.end());
    along += own[static_cast<size_t>(axis)];
    own[static_cast<size_t>(axis)] = 0;
    if (parts.empty()) dims = own;
    if (dims != own || tensor->type != constants[0]->initializer->type)
      return NotStreamed(ValueName(*value), "type or dims differ");
    if (BitWidth(tensor->type) % 8 != 0) return NotStreamed(ValueName(*value), "it has no whole bytes");
    ASSIGN_OR_RETURN(const Tensor* part, PlainTensor(model, *tensor, ValueName(*value)));
    parts.push_back(part);
  }
  if (parts.empty()) return absl::InvalidArgumentError("nothing to merge");
  int64_t rows = 1;
  for (int64_t i = 0; i < axis; ++i) rows *= dims[static_cast<size_t>(i)];
  dims[static_cast<size_t>(axis)] = along;
  return OfParts(model, parts, dims, rows, {}, 1);
}

absl::StatusOr<Tensor*> ReorderedTensor(Model* model, const Value& constant, int64_t axis, absl::Span<const int64_t> order) {
  const Tensor* tensor = TensorOf(constant, &model->arena());
  if (tensor == nullptr) return NotStreamed(ValueName(constant), "it is not an initializer");
  std::vector<int64_t> dims(tensor->dims.begin(), tensor->dims.end());
  if (axis < 0 || axis >= static_cast<int64_t>(dims.size()) || order.empty())
    return NotStreamed(ValueName(constant), "it has no such axis");
  if (BitWidth(tensor->type) % 8 != 0) return NotStreamed(ValueName(constant), "it has no whole bytes");
  ASSIGN_OR_RETURN(const Tensor* whole, PlainTensor(model, *tensor, ValueName(constant)));
  const auto place = static_cast<size_t>(axis);
  const int64_t before = dims[place];
  if (std::any_of(order.begin(), order.end(), [before](int64_t from) { return from < -1 || from >= before; })) {
    return NotStreamed(ValueName(constant), "the order names places that it has not");
  }
  int64_t rows = 1;
  int64_t inner = 1;  // elements at one place
  for (size_t i = 0; i < dims.size(); ++i) (i < place ? rows : inner) *= i == place ? 1 : dims[i];
  dims[place] = static_cast<int64_t>(order.size());
  if (rows == 1) return OfParts(model, RunsOf(model, *whole, inner, order), dims, 1, {}, 1);
  return OfParts(model, {whole}, dims, rows, order, inner);
}

}  // namespace ascend_fuse
