#include "passes/core/known_constant.h"

#include <cstdint>
#include <vector>

#include "ir/onnx/encode.h"

namespace ascend_fuse {

std::optional<std::string> KnownBytes(const Fact& fact, const DimTable& dims) {
  if (fact.elements == nullptr || !fact.has_rank) return std::nullopt;
  std::string bytes;
  if (IsFloat(fact.type)) {
    for (const double element : fact.elements->floats) {
      const std::string encoded = EncodeNumber(fact.type, element);
      if (encoded.empty()) return std::nullopt;
      bytes += encoded;
    }
    return bytes;
  }
  const int bits = BitWidth(fact.type);
  if (bits < 8 || bits > 64 || (!IsInteger(fact.type) && fact.type != DataType::kBool)) return std::nullopt;
  for (const Dim element : fact.elements->integers) {
    const Dim known = dims.Resolve(element);
    if (!known.is_number()) return std::nullopt;
    const int64_t number = known.number();
    bytes.append(reinterpret_cast<const char*>(&number), static_cast<size_t>(bits / 8));  // little-endian
  }
  return bytes;
}

const Value* KnownConstant(Workspace& workspace, const Value& value, const std::string& bytes) {
  const Fact fact = workspace.facts().Of(&value);
  std::vector<int64_t> dims;
  for (const Dim dim : fact.shape) {
    const Dim known = workspace.facts().dims().Resolve(dim);
    if (!known.is_number()) return nullptr;
    dims.push_back(known.number());
  }
  const Value* const constant = workspace.rewriter().Constant(value.graph, fact.type, dims, bytes, std::string(ValueName(value)));
  InferConstant(constant, &workspace.facts());
  return constant;
}

}  // namespace ascend_fuse
