// The operator table at run time: ir/ops.txtpb, encoded and embedded when the program is built (cmake/embed.cmake). Its
// names are read once on first use, an operator when it is first asked for: one hash probe, and a short walk over its versions.
#include "ir/schema.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "embedded/ir_data.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "proto/schema.pb.h"

namespace ascend_fuse {
namespace {

using OperatorName = std::pair<std::string_view, std::string_view>;  // domain, op_type

// The versions of one operator, decoded when it is first asked for: a model has few of the operators that there are.
struct Versions {
  std::vector<std::string_view> rows;  // encoded
  absl::once_flag decoded;
  std::vector<proto::Operator> owners;  // of the names that the schemas view
  std::vector<Schema> schemas;          // by since_version
};

struct Table {
  int64_t newest_opset = 0;
  std::vector<TypeSet> type_sets;
  std::vector<std::string_view> anchors;
  std::vector<std::pair<std::string_view, std::string_view>> second_names;  // type, what it is with two inputs
  absl::flat_hash_map<OperatorName, std::unique_ptr<Versions>> versions;
  absl::once_flag listed;
  std::vector<Schema> all;  // by domain, op_type, since_version
};

Attribute DefaultOf(const proto::Attribute& from, bool* has_default) {
  Attribute value;
  value.name = from.name();
  value.type = static_cast<AttributeType>(from.type());
  value.i = from.i();
  value.f = from.f();
  value.s = from.s();
  value.ints.assign(from.ints().begin(), from.ints().end());
  value.floats.assign(from.floats().begin(), from.floats().end());
  value.strings.assign(from.strings().begin(), from.strings().end());
  *has_default =
      from.has_i() || from.has_f() || from.has_s() || from.ints_size() > 0 || from.floats_size() > 0 || from.strings_size() > 0;
  return value;
}

TypeSet TypesFrom(const proto::TypeSet& from) {
  TypeSet set;
  set.known = true;
  set.others = from.others();
  for (const std::string& name : from.types()) {
    const DataType type = DataTypeFromName(name);  // undefined: newer than what we know, and of no value
    if (type != DataType::kUndefined) set.tensors |= uint64_t{1} << static_cast<int>(type);
  }
  return set;
}

Schema SchemaFrom(const proto::Operator& from, const std::vector<TypeSet>& sets) {
  Schema schema;
  schema.domain = from.domain();
  schema.op_type = from.op_type();
  schema.since_version = from.since_version();
  schema.deprecated = from.deprecated();
  schema.commutative = from.commutative();
  schema.costly = from.costly();
  schema.deterministic = !from.nondeterministic();
  schema.elementwise = from.elementwise();
  schema.heavy = from.heavy();
  schema.near_miss_anchor = from.near_miss_anchor();
  schema.equals_with_two_inputs = from.equals_with_two_inputs();
  schema.inputs.reserve(from.inputs_size());
  for (const proto::Parameter& input : from.inputs()) {
    schema.inputs.push_back({input.name(), input.optional(), input.variadic(), {}});
    if (input.has_types()) schema.inputs.back().types = sets.at(static_cast<size_t>(input.types()));
  }
  schema.outputs.assign(from.outputs().begin(), from.outputs().end());
  for (const int set : from.output_types()) schema.output_types.push_back(sets.at(static_cast<size_t>(set)));
  schema.attributes.resize(from.attributes_size());
  for (int i = 0; i < from.attributes_size(); ++i) {
    SchemaAttribute& attribute = schema.attributes[i];
    attribute.name = from.attributes(i).name();
    attribute.type = static_cast<AttributeType>(from.attributes(i).type());
    attribute.required = from.attributes(i).required();
    attribute.default_value = DefaultOf(from.attributes(i), &attribute.has_default);
  }
  return schema;
}

// A table that does not parse is a broken build, which no caller could do anything about.
[[noreturn]] void Broken() {
  std::fprintf(stderr, "the operator table built into this program (ir/ops.txtpb) does not parse\n");
  std::abort();
}

// Calls `field (number, text, integer)` for each field of an encoded message: "" or 0 for what its value is not.
template <typename Field>
void ForEachField(std::string_view encoded, const Field& field) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(encoded.data()),
                                                static_cast<int>(encoded.size()));
  using Wire = google::protobuf::internal::WireFormatLite;
  while (const uint32_t tag = stream.ReadTag()) {
    std::string_view text;
    uint64_t integer = 0;
    if (Wire::GetTagWireType(tag) == Wire::WIRETYPE_VARINT) {
      if (!stream.ReadVarint64(&integer)) Broken();
    } else if (Wire::GetTagWireType(tag) == Wire::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t length = 0;
      if (!stream.ReadVarint32(&length) || length > encoded.size() - static_cast<size_t>(stream.CurrentPosition())) Broken();
      text = encoded.substr(static_cast<size_t>(stream.CurrentPosition()), length);
      stream.Skip(static_cast<int>(length));
    } else if (!Wire::SkipField(&stream, tag)) {
      Broken();
    }
    field(Wire::GetTagFieldNumber(tag), text, integer);
  }
}

// Finds the names in a row, and nothing else.
void AddRow(std::string_view row, Table* table) {
  std::string_view domain, op_type, second;
  bool anchor = false;
  ForEachField(row, [&](int number, std::string_view text, uint64_t integer) {
    if (number == proto::Operator::kDomainFieldNumber) domain = text;
    if (number == proto::Operator::kOpTypeFieldNumber) op_type = text;
    if (number == proto::Operator::kEqualsWithTwoInputsFieldNumber) second = text;
    if (number == proto::Operator::kNearMissAnchorFieldNumber) anchor = integer != 0;
  });
  std::unique_ptr<Versions>& versions = table->versions[{domain, op_type}];
  if (versions == nullptr) versions = std::make_unique<Versions>();
  versions->rows.push_back(row);
  if (!domain.empty()) return;
  const auto add = [](auto* to, const auto& one) {
    if (std::find(to->begin(), to->end(), one) == to->end()) to->push_back(one);
  };
  if (anchor) add(&table->anchors, op_type);
  if (!second.empty()) add(&table->second_names, std::pair(op_type, second));
}

// Never destroyed: schemas are looked up until the process ends.
Table* ReadTable() {
  auto* table = new Table;
  const std::string_view bytes = embedded::ir_data[0].text;
  proto::OperatorTable rest;
  ForEachField(bytes, [&](int number, std::string_view text, uint64_t integer) {
    if (number == proto::OperatorTable::kNewestOpsetFieldNumber) table->newest_opset = static_cast<int64_t>(integer);
    if (number == proto::OperatorTable::kOpsFieldNumber) AddRow(text, table);
    if (number != proto::OperatorTable::kTypeSetsFieldNumber) return;
    if (!rest.add_type_sets()->ParseFromArray(text.data(), static_cast<int>(text.size()))) Broken();
  });
  for (const proto::TypeSet& set : rest.type_sets()) table->type_sets.push_back(TypesFrom(set));
  return table;
}

Table& OperatorTable() {
  static Table* const table = ReadTable();
  return *table;
}

absl::Span<const Schema> Decoded(Versions& versions, const std::vector<TypeSet>& sets) {
  absl::call_once(versions.decoded, [&] {
    versions.owners.resize(versions.rows.size());
    for (size_t i = 0; i < versions.rows.size(); ++i) {
      const std::string_view row = versions.rows[i];
      if (!versions.owners[i].ParseFromArray(row.data(), static_cast<int>(row.size()))) Broken();
      versions.schemas.push_back(SchemaFrom(versions.owners[i], sets));
    }
    std::stable_sort(versions.schemas.begin(), versions.schemas.end(),
                     [](const Schema& a, const Schema& b) { return a.since_version < b.since_version; });
  });
  return versions.schemas;
}

}  // namespace

const SchemaAttribute* Schema::FindAttribute(std::string_view name) const {
  for (const SchemaAttribute& attribute : attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

int Schema::FindInput(std::string_view name) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

absl::Span<const Schema> SchemaVersions(std::string_view domain, std::string_view op_type) {
  if (domain == "ai.onnx") domain = "";
  const Table& table = OperatorTable();
  const auto found = table.versions.find(OperatorName(domain, op_type));
  return found != table.versions.end() ? Decoded(*found->second, table.type_sets) : absl::Span<const Schema>();
}

const Schema* FindSchema(std::string_view domain, std::string_view op_type, int64_t opset) {
  const Schema* in_force = nullptr;
  for (const Schema& schema : SchemaVersions(domain, op_type)) {
    if (schema.since_version <= opset) in_force = &schema;
  }
  return in_force;
}

int64_t NewestOpset() { return OperatorTable().newest_opset; }

int64_t VersionInForce(const Model& model, NameId domain) {
  const int64_t version = model.OpsetVersion(domain);
  // ONNX Runtime runs its own operators also in models that forgot the import
  // (microsoft/onnxruntime:onnxruntime/core/graph/model.cc adds every registered domain), and so do we.
  if (version == 0 && model.Text(domain) == "com.microsoft") return 1;
  return version;
}

const Schema* SchemaOf(const Node& node, int64_t opset) {
  const Model& model = node.graph->model();
  if (node.domain != NameId::kEmpty || opset == 0) opset = VersionInForce(model, node.domain);
  return FindSchema(model.Text(node.domain), OpType(node), opset);
}

const std::vector<Schema>& AllSchemas() {
  Table& table = OperatorTable();
  absl::call_once(table.listed, [&] {
    for (const auto& [name, versions] : table.versions) {
      const absl::Span<const Schema> schemas = Decoded(*versions, table.type_sets);
      table.all.insert(table.all.end(), schemas.begin(), schemas.end());
    }
    std::sort(table.all.begin(), table.all.end(), [](const Schema& a, const Schema& b) {
      return std::tie(a.domain, a.op_type, a.since_version) < std::tie(b.domain, b.op_type, b.since_version);
    });
  });
  return table.all;
}

const std::vector<std::string_view>& NearMissAnchors() { return OperatorTable().anchors; }

std::string_view SecondName(std::string_view op_type) {
  for (const auto& [name, second] : OperatorTable().second_names) {
    if (name == op_type) return second;
  }
  return {};
}

std::string_view SecondName(const Node& node) {
  if (node.input_count != 2 || node.domain != NameId::kEmpty) return {};
  return SecondName(OpType(node));
}

}  // namespace ascend_fuse
