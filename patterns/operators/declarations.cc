// patterns/operators.txtpb at run time. The build encodes it, so that a process reads it in a fraction of a millisecond;
// signatures are parsed with it.
#include "patterns/operators/declarations.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "embedded/operators_data.h"
#include "fmt/format.h"
#include "patterns/operators/layout_choice.h"
#include "proto/operators.pb.h"

namespace ascend_fuse {
namespace {

template <typename Repeated>
std::vector<std::string> Strings(const Repeated& from) {
  return {from.begin(), from.end()};
}

struct Table {
  std::vector<SiteKind> kinds;
  std::vector<DeclaredOperator> operators;
  absl::flat_hash_map<std::pair<std::string_view, std::string_view>, const DeclaredOperator*> by_name;
  absl::flat_hash_set<std::string> choose_layouts;
};

// Declarations that cannot be read are a broken build, which no caller could do anything about; a test reads them first.
[[noreturn]] void Broken(const std::string& sentence) {
  std::fprintf(stderr, "patterns/operators.txtpb, built into this program: %s\n", sentence.c_str());
  std::abort();
}

DeclaredAttribute AttributeFrom(const proto::AttributeDeclaration& from, const std::string& op) {
  DeclaredAttribute attribute;
  attribute.name = from.name();
  attribute.type = from.type() == "INT"      ? AttributeType::kInt
                   : from.type() == "FLOAT"  ? AttributeType::kFloat
                   : from.type() == "STRING" ? AttributeType::kString
                                             : AttributeType::kUndefined;
  if (attribute.type == AttributeType::kUndefined) {
    Broken(fmt::format("{}.{}: '{}' is not a type of an attribute", op, from.name(), from.type()));
  }
  attribute.required = from.required();
  if (from.has_default_()) attribute.default_text = from.default_();
  attribute.only = Strings(from.only());
  attribute.ge = from.ge();
  attribute.ge_type = from.ge_type();
  attribute.doc = from.doc();
  attribute.since = from.since();
  return attribute;
}

DeclaredOperator OperatorFrom(const proto::OperatorDeclaration& from) {
  DeclaredOperator op;
  op.name = from.name();
  const size_t dot = op.name.rfind('.');
  if (dot == std::string::npos) Broken(fmt::format("'{}' has no domain", op.name));
  op.domain = op.name.substr(0, dot);
  op.op_type = op.name.substr(dot + 1);
  for (const proto::SignatureRow& row : from.signature()) {
    auto signature = ParseInferenceSignature(row.row());
    if (!signature.ok()) Broken(fmt::format("{}: {}", op.name, std::string(signature.status().message())));
    op.rows.push_back({*std::move(signature), row.row(), {}});
    for (const proto::AttributeCondition& when : row.when()) {
      op.rows.back().when.push_back({when.attribute(), Strings(when.is()), Strings(when.is_not())});
    }
  }
  for (const proto::AttributeDeclaration& attribute : from.attribute()) {
    op.attributes.push_back(AttributeFrom(attribute, op.name));
  }
  op.computes = from.computes();
  op.doc = from.doc();
  if (from.has_ge()) {
    const proto::GeOperator& ge = from.ge();
    op.ge = GeOperator{ge.op(),    ge.parser(),  Strings(ge.fixed()), Strings(ge.source()),
                       ge.since(), ge.release(), Strings(ge.chip()),  Strings(ge.dynamic())};
  }
  op.never_emitted = from.never_emitted();
  op.keeps_facts = from.keeps_facts();
  op.along_last_axis = static_cast<size_t>(from.along_last_axis());
  op.joined_with_sum = from.joined_with_sum();
  if (from.has_rotated_halves()) op.rotated_halves = RotatedHalves{from.rotated_halves().attribute(), from.rotated_halves().is()};
  return op;
}

const Table* ReadTable() {
  auto* table = new Table;
  proto::OperatorDeclarations declarations;
  const std::string_view bytes = embedded::operators_data[0].text;
  if (!declarations.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) Broken("does not parse");
  for (const proto::SiteKind& kind : declarations.kind()) {
    table->kinds.push_back(
        {kind.name(), kind.title(), Strings(kind.native()), Strings(kind.sum_before()), Strings(kind.construct())});
  }
  table->operators.reserve(static_cast<size_t>(declarations.op_size()));
  for (const proto::OperatorDeclaration& op : declarations.op()) {
    if (op.chooses_layout()) table->choose_layouts.insert(op.name());
  }
  for (const proto::OperatorDeclaration& op : declarations.op()) {
    DeclaredOperator declared = OperatorFrom(op);
    table->operators.push_back(std::move(declared));
  }
  for (const DeclaredOperator& op : table->operators) {
    table->by_name.emplace(std::pair<std::string_view, std::string_view>(op.domain, op.op_type), &op);
    if (op.domain == "npu") table->by_name.emplace(std::pair<std::string_view, std::string_view>("", op.op_type), &op);
  }
  return table;
}

// Read on first use, by one thread; never destroyed, for threads may outlive main's statics.
const Table& Declarations() {
  static const Table* const table = ReadTable();
  return *table;
}

}  // namespace

bool SiteKind::IsSumBefore(std::string_view norm) const {
  return std::find(sum_before.begin(), sum_before.end(), norm) != sum_before.end();
}

const DeclaredAttribute* DeclaredOperator::FindAttribute(std::string_view attribute) const {
  for (const DeclaredAttribute& declared : attributes) {
    if (declared.name == attribute) return &declared;
  }
  return nullptr;
}

const std::vector<SiteKind>& SiteKinds() { return Declarations().kinds; }

const SiteKind* FindSiteKind(std::string_view name) {
  for (const SiteKind& kind : SiteKinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

const std::vector<DeclaredOperator>& DeclaredOperators() { return Declarations().operators; }

const DeclaredOperator* FindDeclaredOperator(std::string_view domain, std::string_view op_type) {
  const auto& by_name = Declarations().by_name;
  const auto found = by_name.find(std::pair<std::string_view, std::string_view>(domain, op_type));
  return found == by_name.end() ? nullptr : found->second;
}

bool ChoosesLayout(std::string_view op_type) { return Declarations().choose_layouts.contains(fmt::format("npu.{}", op_type)); }

}  // namespace ascend_fuse
