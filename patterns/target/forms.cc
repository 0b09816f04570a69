#include "patterns/target/forms.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/schema.h"
#include "patterns/target/conditions.h"
#include "proto/contract.pb.h"

namespace ascend_fuse::contract {
namespace {

constexpr std::string_view kNoParser = "no-parser";
constexpr std::string_view kNoParserBecause = "stock ATC has no parser for it and will refuse the model";
constexpr std::string_view kNoParserError = "E16002";

UnsupportedForm::Effect EffectOf(proto::UnsupportedForm::Effect effect) {
  switch (effect) {
    case proto::UnsupportedForm::REFUSED:
      return UnsupportedForm::Effect::kRefused;
    case proto::UnsupportedForm::MISREAD:
      return UnsupportedForm::Effect::kMisread;
    case proto::UnsupportedForm::LOSES_TYPE:
      return UnsupportedForm::Effect::kLosesType;
    case proto::UnsupportedForm::NO_KERNEL:
      return UnsupportedForm::Effect::kNoKernel;
    case proto::UnsupportedForm::AI_CPU:
      return UnsupportedForm::Effect::kAiCpu;
    case proto::UnsupportedForm::HOST:
      return UnsupportedForm::Effect::kHost;
    case proto::UnsupportedForm::SLOW:
      return UnsupportedForm::Effect::kSlow;
    default:
      return UnsupportedForm::Effect::kNoParser;
  }
}

UnsupportedForm FormOf(const proto::UnsupportedForm& row) {
  UnsupportedForm form;
  form.code = row.code();
  form.effect = EffectOf(row.effect());
  form.form = row.form();
  form.because = row.because();
  form.instead = row.instead();
  form.source = row.source();
  form.error = row.error();
  return form;
}

bool ParsedAt(const proto::ParsedOperator& row, int64_t opset) {
  return opset >= row.first() && opset <= row.last() &&
         std::find(row.except().begin(), row.except().end(), opset) == row.except().end();
}

}  // namespace

absl::Status CheckForm(const std::string& path, const proto::UnsupportedForm& row) {
  const auto error = [&](std::string_view what) {
    return absl::InvalidArgumentError(fmt::format("{}: unsupported `{}`: {}", path, row.code(), what));
  };
  if (row.code().empty()) return error("`code` is missing");
  if (row.effect() == proto::UnsupportedForm::EFFECT_NOT_GIVEN) {
    return error("`effect` is missing: NO_PARSER, REFUSED, MISREAD, LOSES_TYPE, NO_KERNEL, AI_CPU, HOST or SLOW");
  }
  if (row.op().empty()) return error("`op` is missing");
  if (row.because().empty() || row.source().empty()) return error("`because` or `source` is missing");
  if (row.last() > 0 && row.last() < row.first()) return error("`last` is below `first`");
  for (const proto::FormCondition& condition : row.when()) {
    for (const std::string& op : row.op()) {
      if (absl::Status status = CheckCondition(condition, op); !status.ok()) return error(std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

void UnsupportedForms::Add(const proto::UnsupportedForm& row) {
  Row& added = rows_.emplace_back();
  added.data = &row;
  added.certain = FormOf(row);
  added.possible = added.certain;
  added.possible.certain = false;
  added.possible.unsettled = row.unsettled();
  added.possible.open =
      row.unsettled() ? "the sources do not settle it for this release" : "what the node is given does not decide it";
  for (const std::string& op : row.op()) by_op_[op].push_back(&added);
}

void UnsupportedForms::AddParsed(const proto::ParsedOperator& row, const std::string& source) {
  Parsed& added = parsed_rows_.emplace_back();
  added.data = &row;
  UnsupportedForm& form = added.outside;
  form.code = kNoParser;
  form.effect = UnsupportedForm::Effect::kNoParser;
  form.form = "at this opset";
  form.because = fmt::format("stock ATC has a parser for it at opset {} to {}{} and will refuse the model", row.first(),
                             row.last(), row.except().empty() ? " only" : ", not at all of them,");
  form.instead = fmt::format("export at opset {}", row.last());
  form.source = source;
  form.error = kNoParserError;
  for (const std::string& op : row.op()) parsed_.try_emplace(op, &added);
}

const UnsupportedForm* UnsupportedForms::Judge(const Row& row, const Node& node, int64_t opset, const Facts* facts) const {
  const proto::UnsupportedForm& data = *row.data;
  if (opset < data.first() || (data.last() > 0 && opset > data.last())) return nullptr;
  Truth truth = data.unsettled() ? Truth::kUnknown : Truth::kYes;
  const JudgedNode judged = {node, FindSchema("", OpType(node), opset), facts};
  for (const proto::FormCondition& condition : data.when()) {
    const Truth holds = Holds(condition, judged);
    if (holds == Truth::kNo || (holds == Truth::kUnknown && data.only_if_proven())) return nullptr;
    truth = std::min(truth, holds);
  }
  return truth == Truth::kYes ? &row.certain : &row.possible;
}

const UnsupportedForm* UnsupportedForms::WithoutParser(std::string_view op, int64_t opset, int64_t max_opset) const {
  static const UnsupportedForm* const kUnknown = [] {
    auto* form = new UnsupportedForm();
    form->code = kNoParser;
    form->effect = UnsupportedForm::Effect::kNoParser;
    form->because = kNoParserBecause;
    form->error = kNoParserError;
    return form;
  }();
  if (parsed_.empty()) return nullptr;
  const auto found = parsed_.find(op);
  if (found == parsed_.end()) return kUnknown;
  const Parsed& parsed = *found->second;
  return opset > max_opset || ParsedAt(*parsed.data, opset) ? nullptr : &parsed.outside;
}

std::vector<const UnsupportedForm*> UnsupportedForms::Of(const Node& node, int64_t opset, int64_t max_opset, bool is_node,
                                                         const Facts* facts) const {
  std::vector<const UnsupportedForm*> forms;
  const std::string_view op = OpType(node);
  if (const auto found = by_op_.find(op); found != by_op_.end()) {
    for (const Row* row : found->second) {
      const auto same =
          std::find_if(forms.begin(), forms.end(), [&](const UnsupportedForm* form) { return form->code == row->data->code(); });
      if (same != forms.end() && (*same)->certain) continue;
      // Stock ATC has none, and our plugin has.
      const auto parsed = parsed_.find(op);
      const bool no_parser = row->data->effect() == proto::UnsupportedForm::NO_PARSER && row->data->when().empty();
      if (no_parser && parsed != parsed_.end() && ParsedAt(*parsed->second->data, opset)) continue;
      const UnsupportedForm* form = Judge(*row, node, opset, facts);
      if (form == nullptr) continue;
      if (same == forms.end()) {
        forms.push_back(form);
      } else if (form->certain) {
        *same = form;
      }
    }
  }
  const bool refused = std::any_of(forms.begin(), forms.end(), [](const UnsupportedForm* form) {
    return form->effect == UnsupportedForm::Effect::kNoParser && form->certain;
  });
  if (is_node || refused) return forms;
  if (const UnsupportedForm* form = WithoutParser(op, opset, max_opset); form != nullptr) forms.push_back(form);
  return forms;
}

std::vector<const proto::UnsupportedForm*> UnsupportedForms::RowsOf(std::string_view op) const {
  std::vector<const proto::UnsupportedForm*> rows;
  if (const auto found = by_op_.find(op); found != by_op_.end()) {
    for (const Row* row : found->second) rows.push_back(row->data);
  }
  return rows;
}

std::vector<std::string> UnsupportedForms::Operators() const {
  std::vector<std::string> operators;
  for (const auto& [op, rows] : by_op_) operators.emplace_back(op);
  std::sort(operators.begin(), operators.end());
  return operators;
}

const proto::ParsedOperator* UnsupportedForms::ParsedOf(std::string_view op) const {
  const auto found = parsed_.find(op);
  return found == parsed_.end() ? nullptr : found->second->data;
}

}  // namespace ascend_fuse::contract
