#include "patterns/operators/document.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "patterns/operators/declarations.h"
#include "patterns/operators/layout_choice.h"

namespace ascend_fuse {
namespace {

std::string_view TypeName(AttributeType type) {
  return type == AttributeType::kInt ? "INT" : type == AttributeType::kFloat ? "FLOAT" : "STRING";
}

// "`a`, `b`"
std::string Quoted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", word.empty() ? "\"\"" : word);
  return text;
}

// A sentence begins with a capital letter and ends with a full stop.
std::string Sentence(const std::string& text) {
  if (text.empty()) return text;
  return text.back() == '.' ? text : text + ".";
}

void AddAttributes(const DeclaredOperator& op, std::string* text) {
  if (op.attributes.empty()) return;
  const bool node = op.ge.has_value();
  *text += fmt::format("| attribute | type | default | values |{} |\n|---|---|---|---|{}---|\n", node ? " in GE |" : "",
                       node ? "---|" : "");
  for (const DeclaredAttribute& attribute : op.attributes) {
    std::string fallback = attribute.required ? "must be given" : "";
    if (attribute.default_text.has_value()) {
      fallback = Quoted({*attribute.default_text});
    }
    std::string ge;
    if (node) {
      ge = attribute.ge.empty() ? "not read" : fmt::format("`{}`", attribute.ge);
      if (!attribute.ge_type.empty()) ge += fmt::format(" ({})", attribute.ge_type);
      ge += " | ";
    }
    *text += fmt::format("| `{}` | {} | {} | {} | {}{} |\n", attribute.name, TypeName(attribute.type), fallback,
                         Quoted(attribute.only), ge, attribute.doc);
  }
  *text += "\n";
}

void AddOperator(const DeclaredOperator& op, absl::FunctionRef<std::string(std::string_view)> speed, std::string* text) {
  *text += fmt::format("### {}\n\n{}\n\n", op.name, Sentence(op.computes));
  if (!op.rows.empty()) {
    *text += "```text\n";
    for (const SignatureRow& row : op.rows) {
      *text += row.text;
      std::string_view word = "where";
      for (const AttributeCondition& when : row.when) {
        if (!when.is.empty()) *text += fmt::format("    {} {} is {}", word, when.attribute, fmt::join(when.is, " or "));
        if (!when.is_not.empty())
          *text += fmt::format("    {} {} is not {}", word, when.attribute, fmt::join(when.is_not, " or "));
        word = "and";
      }
      *text += "\n";
    }
    *text += "```\n\n";
  }
  AddAttributes(op, text);
  if (!op.doc.empty()) *text += Sentence(op.doc) + "\n\n";
  if (!op.never_emitted.empty()) *text += fmt::format("No rule makes it: {}\n\n", Sentence(op.never_emitted));
  if (op.domain == "npu" && op.never_emitted.empty()) *text += speed(op.op_type);
  if (op.domain == "npu" && ChoosesLayout(op.op_type)) {
    *text +=
        "Layout: the pass `choose_orders` takes the one with which this node and the Transposes around it are fastest by the "
        "[cost model](costs.md).\n\n";
  }
  if (op.ge.has_value()) {
    static constexpr std::pair<std::string_view, std::string_view> kParsers[] = {
        {"stock", "by the parser of stock ATC"}, {"plugin", "by our op plugin"}, {"none", "which no parser makes"}};
    std::string_view parser;
    for (const auto& [name, words] : kParsers) {
      if (op.ge->parser == name) parser = words;
    }
    *text += fmt::format("GE operator {}, {}", op.ge->op, parser);
    if (!op.ge->fixed.empty()) *text += fmt::format(", with {} always", fmt::join(op.ge->fixed, " and "));
    *text += fmt::format(" ({}).\n\n", fmt::join(op.ge->sources, "; "));
  }
}

void AddKinds(std::string* text) {
  *text +=
      "## Kinds of sites\n\n"
      "What the annotation `kind` of a rule names, and reports count. Its forms are names that targets and the annotation "
      "`ge_construct`\ngive to special sites of a kind.\n\n"
      "| kind | is | operators of it by themselves | forms |\n|---|---|---|---|\n";
  for (const SiteKind& kind : SiteKinds()) {
    *text += fmt::format("| `{}` | {} | {} | {} |\n", kind.name, kind.title, Quoted(kind.native), Quoted(kind.constructs));
  }
  *text += "\n";
}

}  // namespace

std::string OperatorsDocument(absl::FunctionRef<std::string(std::string_view op_type)> speed) {
  std::string text =
      "# Operators that ONNX does not have\n\n"
      "Written by `ascend-fuse rules --operators` from `patterns/operators.txtpb`; do not edit. A rule is checked against\n"
      "these declarations when it is loaded, and inference follows the rows of operands and outputs.\n\n"
      "In a row, a letter is one dim wherever it stands, `...L` is a list of dims, `...` any leading dims, `_` anything, `?`\n"
      "marks an operand that may be left out, `1...L` is as many 1 as L has dims. Of rows with conditions the first one that\n"
      "holds and whose ranks fit is the one.\n\n";
  AddKinds(&text);
  const auto add = [&text, &speed](std::string_view title, std::string_view introduction, auto wanted) {
    text += fmt::format("## {}\n\n{}\n\n", title, introduction);
    for (const DeclaredOperator& op : DeclaredOperators()) {
      if (wanted(op)) AddOperator(op, speed, &text);
    }
  };
  add("Our own",
      "Domain `ascend_fuse`. Rules of `patterns/rules/library` make them where ONNX has no operator for a construct; what no\n"
      "node takes becomes its original nodes again, so that no file ever holds one.",
      [](const DeclaredOperator& op) { return op.domain == "ascend_fuse"; });
  const auto nodes = [](std::string_view parser) {
    return
        [parser](const DeclaredOperator& op) { return op.ge.has_value() && op.never_emitted.empty() && op.ge->parser == parser; };
  };
  add("Ascend nodes of stock ATC",
      "Domain `npu`, or the default domain under the same name. Inputs and outputs are those of the GE operator, in its order.",
      nodes("stock"));
  add("Ascend nodes of our op plugin", "Read only with the plugin installed: [targets](targets.md#with-our-op-plugin).",
      [](const DeclaredOperator& op) { return op.domain == "npu" && op.ge->parser == "plugin"; });
  add("Ascend nodes that nothing reads", "They are declared so that targets and rules can name them when they say why.",
      [](const DeclaredOperator& op) {
        return op.ge.has_value() && (op.ge->parser == "none" || (op.ge->parser == "stock" && !op.never_emitted.empty()));
      });
  while (text.size() > 1 && text[text.size() - 2] == '\n') text.pop_back();
  return text;
}

}  // namespace ascend_fuse
