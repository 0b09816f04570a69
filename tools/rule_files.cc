#include "tools/rule_files.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/status_macros.h"
#include "patterns/language/rule_set.h"

namespace ascend_fuse {
namespace {

// NAME stands for the rule's name.
constexpr std::string_view kRule =
    R"(# NAME: mish without tanh and log. The first line of this comment is what `ascend-fuse rules` prints.
#
# y = x * ((1 + exp(x))^2 - 1) / ((1 + exp(x))^2 + 1), which is x * tanh(log(1 + exp(x))).
#
# kind: under which name the report counts its sites. One of the report's kinds, or left out: the rule's own name.
# (x): values that stay as they are. (y): the value that is computed anew.
rule NAME <kind = mish> (x) => (y)
match {
  # A line names a value by the operator that computes it. The order of lines does not matter, nor that of the operands of
  # Add and Mul; Identity, Casts that change nothing and the like are looked through.
  u = Add (Exp (x), 1)  # 1: a constant all of whose elements are 1
  v = Mul (u, u)        # the same name is the same value
  y = Mul (x, Div (Sub (v, 1), Add (v, 1)))
}
where {
  # What must hold besides, or the match is none. Letters in shapes are dims; `ascend-fuse rules --functions` lists functions.
  shape (x) = [..., D]
  floating (x)
}
emit {
  # What computes y instead. Mish is an operator of ONNX that a built-in rule lowers to the node NPUMish. For a node of your
  # own a second rule matches what this one makes and emits npu.YourNode, and a third one, a reference rule, says what that
  # node computes: docs/rules.md.
  y = Mish (x)
}
)";

// One graph for both goldens, which differ in a number of its denominator.
constexpr std::string_view kGolden = R"(# NAME: SENTENCE
# RUN: --rules=NAME.rule

<ir_version: 8, opset_import: ["" : 17]>
example (float[B, 8, W] x) => (float[B, 8, W] y)
<float one = {1}, float addend = {ADDEND}>
{
  e = Exp (x)
  u = Add (e, one)
  v = Mul (u, u)
  a = Sub (v, one)
  b = Add (v, addend)
  q = Div (a, b)
  y = Mul (x, q)
}

# GRAPH:
#   EXPECTED
)";

using Words = std::vector<std::pair<std::string_view, std::string_view>>;

// The text with other words in the place of these.
std::string Fill(std::string_view text, const Words& words) {
  std::string out(text);
  for (const auto& [from, to] : words) {
    for (size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + to.size()))
      out.replace(at, from.size(), to);
  }
  return out;
}

constexpr RuleFolder kUserFolders[] = {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kReference};

std::string_view WhatItIs(RuleFolder folder, const Rule& rule) {
  if (rule.emit.empty()) return "observes";
  if (folder == RuleFolder::kNpu) return "lowering";
  return folder == RuleFolder::kReference ? "reference" : "recogniser";
}

std::string MakesOf(const Rule& rule) {
  std::vector<std::string> made;
  for (const EmitStatement& statement : rule.emit) {
    const Expression& value = statement.value;
    if (value.kind == Expression::Kind::kOperator)
      made.push_back(value.domain.empty() ? value.text : value.domain + "." + value.text);
  }
  return made.empty() ? std::string() : fmt::format(", makes {}", fmt::join(made, ", "));
}

}  // namespace

absl::StatusOr<std::string> CheckRuleFiles(const OptimizeOptions& options) {
  ASSIGN_OR_RETURN(const auto user, UserRules::Parse(options.rule_files));
  std::string text;
  size_t count = 0;
  for (const RuleFolder folder : kUserFolders) {
    ASSIGN_OR_RETURN(const auto rules, RuleSet::Load(folder, user));
    const auto built_in = RuleSet::Shared(folder);
    for (const Rule& rule : rules->rules()) {
      const bool of_user = std::any_of(user.texts().begin(), user.texts().end(),
                                       [&](const RuleText& file) { return file.file == rule.position.file; });
      if (!of_user) continue;
      ++count;
      const bool replaces = std::any_of(built_in->rules().begin(), built_in->rules().end(),
                                        [&](const Rule& other) { return other.name == rule.name; });
      text += fmt::format("{}:{}: {}: {} of kind {}, ends in {}{}{}\n", rule.position.file, rule.position.line, rule.name,
                          WhatItIs(folder, rule), rule.kind, fmt::join(rule.roots, " or "), MakesOf(rule),
                          replaces ? ", in place of the built-in rule" : "");
    }
  }
  return text + fmt::format("{} rule{}, no mistake\n", count, count == 1 ? "" : "s");
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> NewRuleFiles(const std::string& name) {
  const bool is_name =
      !name.empty() && (std::islower(static_cast<unsigned char>(name[0])) != 0) &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return std::islower(static_cast<unsigned char>(c)) != 0 || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_';
      });
  if (!is_name) {
    return absl::InvalidArgumentError(
        fmt::format("{} cannot be the name of a rule: small letters, digits and _, a letter first", name));
  }
  for (const RuleFolder folder : kUserFolders) {
    for (const Rule& rule : RuleSet::Shared(folder)->rules()) {
      if (rule.name == name) {
        return absl::InvalidArgumentError(fmt::format(
            "there is a built-in rule {} ({}); another one of that name would take its place", name, rule.position.ToString()));
      }
    }
  }
  const std::string fuses = Fill(
      kGolden,
      {{"SENTENCE", "what it fuses. `ascend-fuse rules test NAME.rule` compares what comes out with what stands after GRAPH."},
       {"ADDEND", "1"},
       {"EXPECTED", "y = NPUMish (x)"},
       {"NAME", name}});
  const std::string near_miss =
      Fill(kGolden, {{"SENTENCE", "the nearest graph that it must not match. Another number in the denominator is not a mish."},
                     {"ADDEND", "2"},
                     {"EXPECTED", "unchanged"},
                     {"NAME", name}});
  return std::vector<std::pair<std::string, std::string>>{
      {name + ".rule", Fill(kRule, {{"NAME", name}})}, {name + ".onnxtxt", fuses}, {name + "_near_miss.onnxtxt", near_miss}};
}

}  // namespace ascend_fuse
