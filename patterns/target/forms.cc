#include "patterns/target/forms.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/schema.h"
#include "patterns/target/judge.h"
#include "proto/contract.pb.h"

namespace ascend_fuse::contract {
namespace {

// Whether some version of `op` has what the condition names.
bool OnnxHas(const proto::FormCondition& condition, const std::string& op) {
  const std::string& input = condition.input().empty() ? condition.no_input() : condition.input();
  const std::string& attribute = condition.attribute().empty() ? condition.no_attribute() : condition.attribute();
  for (const Schema& schema : AllSchemas()) {
    if (!schema.domain.empty() || schema.op_type != op) continue;
    if (!input.empty() && schema.FindInput(input) >= 0) return true;
    if (!attribute.empty() && schema.FindAttribute(attribute) != nullptr) return true;
  }
  return false;
}

bool IsOneOf(const google::protobuf::RepeatedPtrField<std::string>& values, const Attribute& attribute) {
  return std::any_of(values.begin(), values.end(),
                     [&](const std::string& value) { return SameValue(value, attribute); });
}

bool Holds(const proto::FormCondition& condition, const Node& node, const Schema* schema) {
  const auto given = [&](const std::string& name) {
    const int index = schema != nullptr ? schema->FindInput(name) : -1;
    return index >= 0 && node.input(static_cast<size_t>(index)) != nullptr;
  };
  if (!condition.input().empty()) return given(condition.input());
  if (!condition.no_input().empty()) return !given(condition.no_input());
  if (!condition.no_attribute().empty()) return !FindAttribute(node, condition.no_attribute()).has_value();
  std::optional<Attribute> attribute = FindAttribute(node, condition.attribute());
  if (condition.is().empty() && condition.is_not().empty()) return attribute.has_value();
  if (!attribute.has_value()) {
    const SchemaAttribute* row = schema != nullptr ? schema->FindAttribute(condition.attribute()) : nullptr;
    if (row == nullptr || !row->has_default) return false;
    attribute = row->default_value;
  }
  if (!condition.is().empty() && !IsOneOf(condition.is(), *attribute)) return false;
  return !IsOneOf(condition.is_not(), *attribute);
}

UnreadForm::Effect EffectOf(proto::UnreadForm::Effect effect) {
  switch (effect) {
    case proto::UnreadForm::REFUSED:
      return UnreadForm::Effect::kRefused;
    case proto::UnreadForm::MISREAD:
      return UnreadForm::Effect::kMisread;
    default:
      return UnreadForm::Effect::kNoParser;
  }
}

}  // namespace

absl::Status CheckForm(const std::string& path, const proto::UnreadForm& row) {
  const auto error = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("{}: unread `{}`: {}", path, row.code(), what));
  };
  if (row.code().empty()) return error("`code` is missing");
  if (row.effect() == proto::UnreadForm::EFFECT_NOT_GIVEN) {
    return error("`effect` is missing: NO_PARSER, REFUSED or MISREAD");
  }
  if (row.op().empty()) return error("`op` is missing");
  if (row.because().empty() || row.source().empty()) return error("`because` or `source` is missing");
  if (row.last() > 0 && row.last() < row.first()) return error("`last` is below `first`");
  for (const proto::FormCondition& condition : row.when()) {
    const int fields = static_cast<int>(!condition.input().empty()) + static_cast<int>(!condition.no_input().empty()) +
                       static_cast<int>(!condition.attribute().empty()) +
                       static_cast<int>(!condition.no_attribute().empty());
    if (fields != 1) return error("`when` takes one of `input`, `no_input`, `attribute` and `no_attribute`");
    if (condition.attribute().empty() && (!condition.is().empty() || !condition.is_not().empty())) {
      return error("`is` and `is_not` need `attribute`");
    }
    for (const std::string& op : row.op()) {
      if (!OnnxHas(condition, op)) {
        return error(fmt::format("ONNX knows no {} {} of {}",
                                 condition.input().empty() && condition.no_input().empty() ? "attribute" : "input",
                                 condition.input() + condition.no_input() + condition.attribute() +
                                     condition.no_attribute(),
                                 op));
      }
    }
  }
  return absl::OkStatus();
}

void UnreadForms::Add(const proto::UnreadForm& row) {
  rows_.push_back({&row, {row.code(), EffectOf(row.effect()), row.form(), row.because(), row.instead(), row.source()}});
  for (const std::string& op : row.op()) by_op_[op].push_back(&rows_.back());
}

std::vector<const UnreadForm*> UnreadForms::Of(const Node& node, int64_t opset) const {
  std::vector<const UnreadForm*> forms;
  const auto found = by_op_.find(OpType(node));
  if (found == by_op_.end()) return forms;
  const Schema* schema = FindSchema("", OpType(node), opset);
  for (const Row* row : found->second) {
    const proto::UnreadForm& data = *row->data;
    if (opset < data.first() || (data.last() > 0 && opset > data.last())) continue;
    if (std::any_of(forms.begin(), forms.end(), [&](const UnreadForm* form) { return form->code == data.code(); })) {
      continue;
    }
    const bool holds = std::all_of(data.when().begin(), data.when().end(), [&](const proto::FormCondition& condition) {
      return Holds(condition, node, schema);
    });
    if (holds) forms.push_back(&row->form);
  }
  return forms;
}

}  // namespace ascend_fuse::contract
