// Functions of rules about the model as it was written: its opset, the attributes of its operators, and which of them
// rules made.
#include <algorithm>
#include <array>

#include "fmt/format.h"
#include "ir/attribute.h"
#include "patterns/functions/constructs.h"
#include "patterns/target/target.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

Holds OpsetFrom(const FunctionContext& context, int64_t n) {
  const int64_t opset = context.model->OpsetVersion();
  if (opset >= n) return absl::OkStatus();
  return Refuse(fmt::format("the model imports opset {}", opset), "opset-too-low");
}

Holds OpsetBefore(const FunctionContext& context, int64_t n) {
  const int64_t opset = context.model->OpsetVersion();
  return opset < n ? absl::OkStatus() : Refuse(fmt::format("the model imports opset {}", opset));
}

Holds WithLayerNormalization(const FunctionContext& context) {
  const int64_t opset = context.model->OpsetVersion();
  if (opset >= 17) return absl::OkStatus();
  std::string because = fmt::format("LayerNormalization exists from opset 17 on and the model has opset {}", opset);
  if (context.target == nullptr || context.target->FusedByGe("layer_norm_decomposed").has_value()) {
    because +=
        "; of LayerNormONNXFusionPass another form is known (one type, one Sub, Pow by 2, Div by Sqrt, last axes that "
        "count from the end, constant weights)";
  }
  return FinalWord(std::move(because), "opset-too-low");
}

Holds NegativeAxes(const Value* x) {
  const auto axes = x->producer == nullptr ? std::nullopt : IntsAttribute(*x->producer, "axes");
  if (axes.has_value() && std::all_of(axes->begin(), axes->end(), [](int64_t axis) { return axis < 0; })) {
    return absl::OkStatus();
  }
  return Refuse(fmt::format("the axes of {} are not an attribute that counts from the end", ValueName(*x)));
}

Holds Recognised(const Value* x) {
  if (x->producer != nullptr && x->producer->is_new) return absl::OkStatus();
  return Refuse(fmt::format("{} is an operator of the model", ValueName(*x)));
}

Holds Unset(const FunctionContext& context, const Term& attribute, double n, std::string_view name) {
  if (attribute.kind == Term::Kind::kAbsent || EqualTerms(context, attribute, Term::Number(n))) {
    return absl::OkStatus();
  }
  return Refuse(fmt::format("{} is {}, which no kernel knows", name, DescribeTerm(context, attribute)),
                "attribute-not-supported");
}

Holds Never(std::string_view sentence, Trailing<std::string_view> code) {
  return FinalWord(sentence, code.value_or("not-the-construct"));
}

Term Given(const Term& x, const Term& a, Trailing<Term> b) {
  if (x.kind != Term::Kind::kAbsent) return a;
  return b.has_value() ? *b : Term::Absent();
}

// NOT_FOUND for a word that the table lacks: the rule is about other words.
absl::StatusOr<Term> Translated(const FunctionContext& context, const Term& word, std::string_view table, List words) {
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    if (word.kind == Term::Kind::kText && word.text == words[i].text) return words[i + 1];
  }
  return absl::NotFoundError(fmt::format("the table {} has no word {}", table, DescribeTerm(context, word)));
}

constexpr std::array kRows = {
    Function<"given (x, a, b?)", Given>("a where x has a value, else b; without b no value."),
    Function<"translated (word, table, words)", Translated>(
        "What a use of a table of words becomes when rules are loaded: the meaning that follows the word."),
    Function<"opset_from (n)", OpsetFrom>("Holds where the model imports opset n of the default domain or a later one."),
    Function<"opset_before (n)", OpsetBefore>("Holds where the model imports an older opset than n."),
    Function<"with_layer_normalization ()", WithLayerNormalization>(
        "Holds where LayerNormalization may be written: from opset 17 on."),
    Function<"negative_axes (x)", NegativeAxes>(
        "Holds where the axes of the operator that computes x are an attribute that counts from the end."),
    Function<"recognised (x)", Recognised>(
        "Holds where a rule made the operator that computes x; not for operators that the model has."),
    Function<"unset (attribute, n, name)", Unset>(
        "Holds where the attribute of this name is not written, or is n, which means the same."),
    Function<"never (sentence, code?)", Never>(
        "Does not hold: the sentence says why what looks like the construct is not it; code is what reports call that."),
};

}  // namespace

absl::Span<const FunctionRow> ModelFunctions() { return kRows; }

}  // namespace ascend_fuse
