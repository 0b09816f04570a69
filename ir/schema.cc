// The operator table at run time: ir/ops.txtpb, encoded and embedded when the program is built (cmake/embed.cmake), read
// once on first use, then found by one hash probe and a short walk over the versions of one operator.
#include "ir/schema.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "embedded/ir_data.h"
#include "proto/schema.pb.h"

namespace ascend_fuse {
namespace {

using OperatorName = std::pair<std::string_view, std::string_view>;  // domain, op_type

struct Table {
  proto::OperatorTable rows;    // owns every name that the schemas view
  std::vector<Schema> schemas;  // by domain, op_type, since_version
  std::vector<std::string_view> anchors;
  std::vector<std::pair<std::string_view, std::string_view>> second_names;  // type, what it is with two inputs
  absl::flat_hash_map<OperatorName, absl::Span<const Schema>> versions;
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

// Never destroyed: schemas are looked up until the process ends. A table that does not parse is a broken
// build, which no caller could do anything about.
const Table* ReadTable() {
  auto* table = new Table;
  const std::string_view bytes = embedded::ir_data[0].text;
  if (!table->rows.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    std::fprintf(stderr, "the operator table built into this program (ir/ops.txtpb) does not parse\n");
    std::abort();
  }
  table->schemas.reserve(table->rows.ops_size());
  std::vector<TypeSet> sets;
  for (const proto::TypeSet& set : table->rows.type_sets()) sets.push_back(TypesFrom(set));
  for (const proto::Operator& row : table->rows.ops()) table->schemas.push_back(SchemaFrom(row, sets));
  std::stable_sort(table->schemas.begin(), table->schemas.end(), [](const Schema& a, const Schema& b) {
    if (a.domain != b.domain) return a.domain < b.domain;
    if (a.op_type != b.op_type) return a.op_type < b.op_type;
    return a.since_version < b.since_version;
  });
  const absl::Span<const Schema> all(table->schemas);
  for (size_t first = 0; first < all.size();) {
    size_t end = first + 1;
    while (end < all.size() && all[end].domain == all[first].domain && all[end].op_type == all[first].op_type) {
      ++end;
    }
    table->versions[{all[first].domain, all[first].op_type}] = all.subspan(first, end - first);
    first = end;
  }
  for (const Schema& schema : all) {
    if (!schema.domain.empty()) continue;
    if (schema.near_miss_anchor && (table->anchors.empty() || table->anchors.back() != schema.op_type)) {
      table->anchors.push_back(schema.op_type);
    }
    const std::pair second(schema.op_type, schema.equals_with_two_inputs);
    if (!second.second.empty() && (table->second_names.empty() || table->second_names.back() != second)) {
      table->second_names.push_back(second);
    }
  }
  return table;
}

const Table& OperatorTable() {
  static const Table* const table = ReadTable();
  return *table;
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
  return found != table.versions.end() ? found->second : absl::Span<const Schema>();
}

const Schema* FindSchema(std::string_view domain, std::string_view op_type, int64_t opset) {
  const Schema* in_force = nullptr;
  for (const Schema& schema : SchemaVersions(domain, op_type)) {
    if (schema.since_version <= opset) in_force = &schema;
  }
  return in_force;
}

int64_t NewestOpset() { return OperatorTable().rows.newest_opset(); }

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

const std::vector<Schema>& AllSchemas() { return OperatorTable().schemas; }

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
