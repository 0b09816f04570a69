// The operator table: what the parameters of an operator are at an opset, wherever that opset keeps them.
// Data in ir/ops.txtpb, generated from the official operator definitions by tools/schema/generate.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/attribute.h"
#include "ir/data_type.h"
#include "ir/model.h"

namespace ascend_fuse {

// The types that a parameter takes. Of com.microsoft they are not known.
struct TypeSet {
  uint64_t tensors = 0;  // a bit for each DataType
  bool others = false;   // sequences, optionals or maps, too
  bool known = false;

  // A file may say a type that ONNX does not have; no parameter takes it.
  bool Takes(DataType type) const {
    constexpr unsigned kBits = 64;
    const auto bit = static_cast<unsigned>(type);
    return !known || (bit < kBits && (tensors >> bit & 1) != 0);
  }
};

// An input or an output of an operator.
struct SchemaParameter {
  std::string_view name;
  bool optional = false;
  bool variadic = false;  // only the last
  TypeSet types;
};

struct SchemaAttribute {
  std::string_view name;
  AttributeType type = AttributeType::kUndefined;
  bool required = false;
  bool has_default = false;
  Attribute default_value;  // valid when has_default
};

// One operator at one since_version.
struct Schema {
  std::string_view domain;
  std::string_view op_type;
  int since_version = 1;
  bool deprecated = false;
  bool commutative = false;       // the first two inputs may be swapped (Add, Mul, And, Or, Xor, Equal, Max, Min, Sum ...)
  bool costly = false;            // computing it twice is not free: MatMul, Conv, Softmax, reductions ...; not Cast, Reshape ...
  bool deterministic = true;      // false for Random*, Bernoulli, Multinomial, Dropout in training
  bool elementwise = false;       // output element depends on the input elements at the (broadcast) same place only
  bool heavy = false;             // MatMul, Gemm, Softmax: not computed twice even where both readers are of one construct
  bool near_miss_anchor = false;  // it mostly stands in a construct: one that no rule covered deserves an answer
  std::string_view equals_with_two_inputs;  // "Add" of Sum: what it is when it has two inputs
  std::vector<SchemaParameter> inputs;
  std::vector<SchemaParameter> outputs;
  std::vector<SchemaAttribute> attributes;

  const SchemaAttribute* FindAttribute(std::string_view name) const;
  int FindInput(std::string_view name) const;  // index, or -1
  int FindOutput(std::string_view name) const;
};

// The schema in force at `opset` (the highest since_version <= opset), or nullptr if the operator is unknown
// or not there yet. Domains "" (to NewestOpset) and "com.microsoft". Lookup is one hash probe.
const Schema* FindSchema(std::string_view domain, std::string_view op_type, int64_t opset);

// The newest opset of the default domain whose operators the table has. What a later one changed is not known: an operator
// is looked up there as if nothing had.
int64_t NewestOpset();

// The version of the operators of a domain that `model` imports, as ONNX Runtime reads it: its own operators are
// there without an import. 0 when the domain is not imported.
int64_t VersionInForce(const Model& model, NameId domain);

// The schema of a node in its model. With `opset` the node is read as one of that opset of the default domain, whatever
// the model imports; 0 is the model's import.
const Schema* SchemaOf(const Node& node, int64_t opset = 0);

// Whether the node is an operator of ONNX with one output, an element of which depends on those elements of the inputs alone
// that stand at the same (broadcast) place.
bool IsElementwise(const Node& node);

// All versions of one operator, the oldest first; empty if it is unknown. One hash probe.
absl::Span<const Schema> SchemaVersions(std::string_view domain, std::string_view op_type);

// All schemas of the table by domain, op_type and since_version, for listing. Decodes all of them.
std::vector<const Schema*> AllSchemas();

// The operators of ai.onnx with near_miss_anchor at any version, by name.
const std::vector<std::string_view>& NearMissAnchors();

// What an operator of ai.onnx with two inputs is besides its own type: "Add" for Sum; "" for every other one.
std::string_view SecondName(std::string_view op_type);
// The same of a node: "" unless it has two inputs.
std::string_view SecondName(const Node& node);

}  // namespace ascend_fuse
