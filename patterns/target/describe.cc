// A target as a person reads it.
#include <algorithm>
#include <cctype>
#include <map>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/add_once.h"
#include "patterns/target/target_impl.h"
#include "proto/contract.pb.h"

namespace ascend_fuse {
namespace {

std::string OpsetsOf(const proto::ParsedOperator& parsed) {
  std::string text = fmt::format("opset {} to {}", parsed.first(), parsed.last());
  if (!parsed.except().empty()) text += fmt::format(", not {}", fmt::join(parsed.except(), ", "));
  return text;
}

std::string EffectText(proto::UnsupportedForm::Effect effect) {
  std::string text = proto::UnsupportedForm::Effect_Name(effect);
  for (char& c : text) c = c == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string RowText(const proto::UnsupportedForm& row) {
  const char* possibly = row.unsettled() ? "possibly " : "";
  std::string text = fmt::format("  {}{} [{}]\n", possibly, EffectText(row.effect()), row.code());
  std::string opsets;
  if (row.first() > 0) opsets += fmt::format("from opset {} on", row.first());
  if (row.last() > 0) opsets += fmt::format("{}up to opset {}", opsets.empty() ? "" : ", ", row.last());
  if (!opsets.empty()) text += fmt::format("      {}\n", opsets);
  if (!row.form().empty()) text += fmt::format("      {}\n", row.form());
  text += fmt::format("      {}\n", row.because());
  if (!row.instead().empty()) text += fmt::format("      way out: {}\n", row.instead());
  return text + fmt::format("      source {}\n", row.source());
}

std::string LimitText(const proto::Limit& limit) {
  std::vector<std::string> words;
  if (!limit.at_most().empty()) words.push_back("at most " + limit.at_most());
  if (!limit.at_least().empty()) words.push_back("at least " + limit.at_least());
  if (!limit.multiple_of().empty()) words.push_back("a multiple of " + limit.multiple_of());
  if (!limit.equals().empty()) words.push_back("equal to " + limit.equals());
  const std::string name = limit.name().empty() ? limit.of() : fmt::format("{} ({})", limit.name(), limit.of());
  return fmt::format("  {} is {}{}: {}\n", name, fmt::join(words, " and "), limit.when().empty() ? "" : ", in some cases",
                     limit.because());
}

std::string NodeText(const proto::NodeContract& node) {
  std::string text = node.op() + "\n";
  if (node.has_refused()) {
    return text + fmt::format("  refused: {}\n  source {}\n", node.refused().because(), node.refused().source());
  }
  if (node.plugin()) text += "  with our op plugin only\n";
  for (const std::string& row : node.accepts()) text += fmt::format("  {}\n", row);
  for (const proto::Row& row : node.row()) {
    text += fmt::format("  {}{}\n", row.accepts(), row.when().empty() ? "" : "  (in some cases)");
    for (const proto::Limit& limit : row.limit()) text += "  " + LimitText(limit);
  }
  for (const proto::TypeVariable& types : node.types()) {
    text += fmt::format("  {} is {}\n", types.name(), fmt::join(types.is(), ", "));
  }
  for (const proto::AttributeRule& rule : node.attribute()) {
    text += fmt::format("  attribute {} {}{}", rule.type(), rule.name(), rule.required() ? ", required" : "");
    if (!rule.default_().empty()) text += fmt::format(", {} where it is left out", rule.default_());
    if (!rule.only().empty()) text += fmt::format(", only {}", fmt::join(rule.only(), ", "));
    if (!rule.because().empty()) text += fmt::format(": {}", rule.because());
    text += "\n";
  }
  for (const proto::InputRule& rule : node.input()) {
    text += fmt::format("  input {}{}{}{}{}: {}\n", rule.name(), rule.absent() ? " must be left out" : "",
                        rule.required() ? " is required" : "",
                        rule.shape().empty() ? "" : fmt::format(" is {}", fmt::join(rule.shape(), " or ")),
                        rule.when().empty() ? "" : ", in some cases", rule.because());
  }
  for (const proto::Limit& limit : node.limit()) text += LimitText(limit);
  if (node.has_unsettled()) text += fmt::format("  unsettled: {}\n", node.unsettled().because());
  for (const std::string& source : node.source()) text += fmt::format("  source {}\n", source);
  return text;
}

}  // namespace

std::vector<std::string> Target::Socs() const {
  const proto::TargetFile& file = *impl_->files[0].data;
  return {file.soc().begin(), file.soc().end()};
}

std::string Target::NamedSoc() const {
  const std::string& named = impl_->options.chip;
  const auto same_letter = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  const auto same = [&](const std::string& soc) {
    return std::equal(soc.begin(), soc.end(), named.begin(), named.end(), same_letter);
  };
  const std::vector<std::string> socs = Socs();
  const auto found = std::find_if(socs.begin(), socs.end(), same);
  return found == socs.end() ? "" : *found;
}

bool Target::TakesShapeRanges() const { return !impl_->files[0].data->no_shape_range(); }

std::string Target::Describe() const {
  const proto::TargetFile& file = *impl_->files[0].data;
  std::string text =
      fmt::format("{}: {}\nCANN {}: {}\n", impl_->chip, file.title(), impl_->cann->version(), impl_->cann->title());
  for (const std::string& warning : impl_->warnings) text += fmt::format("warning: {}\n", warning);
  if (!file.soc().empty()) text += fmt::format("--soc_version {}\n", fmt::join(file.soc(), ", "));
  text += fmt::format("standard operators up to opset {}\n", impl_->max_opset);
  std::string refused;
  text += "\nnodes\n";
  for (const std::string& op : impl_->node_order) {
    const proto::NodeContract& node = *impl_->nodes.at(op).data;
    if (node.has_refused()) {
      refused += fmt::format("  {}: {}\n", op, node.refused().because());
    } else {
      text += fmt::format("  {}\n", op);
    }
  }
  if (impl_->other_nodes != nullptr) text += fmt::format("  any other: {}\n", impl_->other_nodes->because());
  text += fmt::format("\nrefused nodes\n{}\nfused by GE\n", refused);
  for (const auto& [construct, row] : impl_->ge_constructs) text += fmt::format("  {}: {}\n", construct, row->because());
  text +=
      "\nstandard operators that ATC does not read as ONNX defines them, or that run elsewhere than on the AI Core:\n"
      "`targets CHIP OPERATOR` says in which form\n";
  std::map<std::string, std::vector<std::string>> effects;  // by effect: operators
  for (const std::string& op : impl_->unsupported.Operators()) {
    for (const proto::UnsupportedForm* row : impl_->unsupported.RowsOf(op)) {
      AddOnce(op, &effects[EffectText(row->effect())]);
    }
  }
  for (const auto& [effect, ops] : effects) text += fmt::format("  {}: {}\n", effect, fmt::join(ops, ", "));
  return text;
}

absl::StatusOr<std::string> Target::DescribeOperator(const std::string& op) const {
  for (const std::string& name : {op, "npu." + op}) {
    const auto node = impl_->nodes.find(name);
    if (node != impl_->nodes.end()) return NodeText(*node->second.data);
  }
  const proto::ParsedOperator* parsed = impl_->unsupported.ParsedOf(op);
  const auto rows = impl_->unsupported.RowsOf(op);
  if (parsed == nullptr && rows.empty()) {
    return absl::NotFoundError(fmt::format("nothing is known of {} on {} with CANN {}: ATC has no parser for it", op, impl_->chip,
                                           impl_->cann->version()));
  }
  std::string text = op + "\n";
  if (parsed != nullptr) text += fmt::format("  parsed at {}\n", OpsetsOf(*parsed));
  for (const proto::UnsupportedForm* row : rows) text += RowText(*row);
  if (rows.empty()) text += "  nothing known that ATC would not read as ONNX defines it\n";
  return text;
}

std::string Target::DescribeAll() {
  std::string text = "chips\n";
  for (const std::string& chip : contract::ChipNames()) {
    const auto files = contract::OpenChip(chip, false);
    if (!files.ok()) continue;
    const proto::TargetFile& file = *files->front().data;
    text += fmt::format("  {:14}{}\n", chip, file.title());
    if (!file.soc().empty()) text += fmt::format("  {:14}--soc_version {}\n", "", fmt::join(file.soc(), ", "));
  }
  text += "CANN versions\n";
  for (const std::string& version : contract::CannNames()) {
    const auto files = contract::OpenCann(version);
    if (files.ok()) text += fmt::format("  {:14}{}\n", version, files->front().data->title());
  }
  return text;
}

}  // namespace ascend_fuse
