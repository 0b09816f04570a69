// The operator table at run time: ir/ops.txtpb, encoded and embedded when the program is built (cmake/embed.cmake). Its
// names are read once on first use, an operator when it is first asked for: one hash probe, and a short walk over its versions.
#include "ir/schema.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "embedded/ir_data.h"
#include "ir/add_once.h"
#include "ir/wire.h"
#include "proto/schema.pb.h"

namespace ascend_fuse {
namespace {

using OperatorName = std::pair<std::string_view, std::string_view>;  // domain, op_type

// The versions of one operator, decoded when it is first asked for: a model has few of the operators that there are.
struct Versions {
  std::vector<std::pair<int64_t, std::string_view>> rows;  // since_version, encoded
  std::once_flag decoded;
  std::atomic<bool> is_decoded = false;
  std::vector<proto::Operator> owners;  // of the names that the schemas view
  std::vector<Schema> schemas;          // by since_version
};

struct Table {
  int64_t newest_opset = 0;
  std::vector<TypeSet> type_sets;
  std::vector<std::string_view> anchors;
  std::vector<std::pair<std::string_view, std::string_view>> second_names;  // type, what it is with two inputs
  absl::flat_hash_map<OperatorName, std::unique_ptr<Versions>> versions;
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

SchemaParameter ParameterFrom(const proto::Parameter& from, const std::vector<TypeSet>& sets) {
  SchemaParameter parameter{from.name(), from.optional(), from.variadic(), {}};
  if (from.has_types()) parameter.types = sets.at(static_cast<size_t>(from.types()));
  return parameter;
}

int PlaceOf(std::string_view name, const std::vector<SchemaParameter>& parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return static_cast<int>(i);
  }
  return -1;
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
  for (const proto::Parameter& input : from.inputs()) schema.inputs.push_back(ParameterFrom(input, sets));
  for (const proto::Parameter& output : from.outputs()) schema.outputs.push_back(ParameterFrom(output, sets));
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

template <typename Message>
Message Parsed(std::string_view encoded) {
  Message message;
  if (!message.ParseFromArray(encoded.data(), static_cast<int>(encoded.size()))) Broken();
  return message;
}

// Finds the names in a row, and nothing else.
void AddRow(std::string_view row, Table* table) {
  std::string_view domain, op_type, second;
  int64_t since_version = 0;
  bool anchor = false;
  wire::Field field;
  for (wire::Cursor fields(row); fields.Next(&field);) {
    switch (field.number) {
      case proto::Operator::kDomainFieldNumber:
        domain = field.text();
        break;
      case proto::Operator::kOpTypeFieldNumber:
        op_type = field.text();
        break;
      case proto::Operator::kSinceVersionFieldNumber:
        since_version = static_cast<int64_t>(field.value);
        break;
      case proto::Operator::kEqualsWithTwoInputsFieldNumber:
        second = field.text();
        break;
      case proto::Operator::kNearMissAnchorFieldNumber:
        anchor = field.value != 0;
        break;
      default:
        break;
    }
  }
  std::unique_ptr<Versions>& versions = table->versions[{domain, op_type}];
  if (versions == nullptr) versions = std::make_unique<Versions>();
  versions->rows.emplace_back(since_version, row);
  if (!domain.empty()) return;
  if (anchor) AddOnce(op_type, &table->anchors);
  if (!second.empty()) AddOnce(std::pair(op_type, second), &table->second_names);
}

// Never destroyed: schemas are looked up until the process ends.
const Table* ReadTable() {
  auto* table = new Table;
  wire::Field field;
  wire::Cursor fields{std::string_view(embedded::ir_data[0].text)};
  while (fields.Next(&field)) {
    if (field.number == proto::OperatorTable::kNewestOpsetFieldNumber) table->newest_opset = static_cast<int64_t>(field.value);
    if (field.number == proto::OperatorTable::kOpsFieldNumber) AddRow(field.text(), table);
    if (field.number == proto::OperatorTable::kTypeSetsFieldNumber) {
      table->type_sets.push_back(TypesFrom(Parsed<proto::TypeSet>(field.text())));
    }
  }
  if (fields.error() != nullptr) Broken();
  return table;
}

const Table& OperatorTable() {
  static const Table* const table = ReadTable();
  return *table;
}

absl::Span<const Schema> Decoded(Versions& versions, const std::vector<TypeSet>& sets) {
  // After the first time no more than a load. Not absl::call_once: ThreadSanitizer does not see what Debian's Abseil waits for.
  if (versions.is_decoded.load(std::memory_order_acquire)) return versions.schemas;
  std::call_once(versions.decoded, [&] {
    versions.owners.clear();  // of a call that ran out of memory
    versions.schemas.clear();
    std::sort(versions.rows.begin(), versions.rows.end());
    versions.owners.reserve(versions.rows.size());
    for (const auto& [since_version, row] : versions.rows) {
      versions.owners.push_back(Parsed<proto::Operator>(row));
      versions.schemas.push_back(SchemaFrom(versions.owners.back(), sets));
    }
    versions.is_decoded.store(true, std::memory_order_release);
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

int Schema::FindInput(std::string_view name) const { return PlaceOf(name, inputs); }
int Schema::FindOutput(std::string_view name) const { return PlaceOf(name, outputs); }

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

bool IsElementwise(const Node& node) {
  if (node.domain != NameId::kEmpty || node.output_count != 1 || node.output() == nullptr) return false;
  const Schema* const schema = SchemaOf(node);
  return schema != nullptr && schema->elementwise;
}

std::vector<const Schema*> AllSchemas() {
  const Table& table = OperatorTable();
  std::vector<const Schema*> all;
  for (const auto& [name, versions] : table.versions) {
    for (const Schema& schema : Decoded(*versions, table.type_sets)) all.push_back(&schema);
  }
  std::sort(all.begin(), all.end(), [](const Schema* a, const Schema* b) {
    return std::tie(a->domain, a->op_type, a->since_version) < std::tie(b->domain, b->op_type, b->since_version);
  });
  return all;
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
