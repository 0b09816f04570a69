// Node attributes. A node keeps its attributes in the file's own encoding and decodes one when asked, so
// loading costs nothing per attribute and an untouched node is written back to the bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/tensor.h"

namespace ascend_fuse {

struct Node;
class Graph;
class Model;

// Values equal onnx.AttributeProto.AttributeType.
enum class AttributeType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

// One decoded attribute. Views point into the model (valid as long as it lives) or, for attributes made
// with the constructors below, into the caller's text until the node is created.
struct Attribute {
  std::string_view name;
  AttributeType type = AttributeType::kUndefined;
  int64_t i = 0;
  float f = 0;
  std::string_view s;
  absl::InlinedVector<int64_t, 4> ints;
  absl::InlinedVector<float, 4> floats;
  absl::InlinedVector<std::string_view, 2> strings;
  Tensor tensor;                   // kTensor
  std::string_view ref_attr_name;  // inside a local function: the function's attribute it stands for
  std::string_view encoded;        // the AttributeProto's body as encoded (payloads of 4 KB and more left out)

  static Attribute Int(std::string_view name, int64_t value);
  static Attribute Float(std::string_view name, float value);
  static Attribute String(std::string_view name, std::string_view value);
  static Attribute Ints(std::string_view name, absl::Span<const int64_t> values);
  static Attribute Floats(std::string_view name, absl::Span<const float> values);
  static Attribute OfTensor(std::string_view name, const Tensor& value);  // value in memory
};

// The attribute of that name, or nullopt. Implemented in ir/onnx/attribute.cc; costs one scan of the node's
// attribute fields (tens of nanoseconds).
std::optional<Attribute> FindAttribute(const Node& node, std::string_view name);

// The value of a metadata_props entry of the node, "" if there is none.
std::string_view NodeMetadata(const Node& node, std::string_view key);

// The overload that a call of a local function names; "" for every other node.
std::string_view NodeOverload(const Node& node);

// All attributes in the order written.
std::vector<Attribute> ReadAttributes(const Node& node);

// Attributes that hold one INT / FLOAT / STRING / INTS; nullopt when absent or of another type.
std::optional<int64_t> IntAttribute(const Node& node, std::string_view name);
std::optional<float> FloatAttribute(const Node& node, std::string_view name);
std::optional<std::string_view> StringAttribute(const Node& node, std::string_view name);
std::optional<std::vector<int64_t>> IntsAttribute(const Node& node, std::string_view name);

}  // namespace ascend_fuse
