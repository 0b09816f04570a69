#include "patterns/terms/term.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/constant_tensor.h"
#include "ir/infer/facts.h"
#include "ir/whole_number.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

std::optional<Term> TermOfAttribute(const Attribute& attribute) {
  std::vector<Term> items;
  switch (attribute.type) {
    case AttributeType::kInt:
      return Term::Integer(attribute.i);
    case AttributeType::kFloat:
      return Term::Number(attribute.f);
    case AttributeType::kString:
      return Term::Text(std::string(attribute.s));
    case AttributeType::kInts:
      for (int64_t item : attribute.ints) items.push_back(Term::Integer(item));
      return Term::List(std::move(items));
    case AttributeType::kFloats:
      for (float item : attribute.floats) items.push_back(Term::Number(item));
      return Term::List(std::move(items));
    default:
      return std::nullopt;
  }
}

Term TermOfDim(Dim dim) { return dim.is_number() ? Term::Integer(dim.number()) : Term::Of(dim); }

std::optional<int64_t> IntegerOf(const Term& term) {
  constexpr double kLargest = 9.2e18;  // what int64_t holds, infinity left out
  if (term.kind == Term::Kind::kNumber && term.number == std::floor(term.number) && std::fabs(term.number) <= kLargest) {
    return static_cast<int64_t>(term.number);
  }
  if (term.kind == Term::Kind::kDim && term.dim.is_number()) return term.dim.number();
  return std::nullopt;
}

Dim DimOf(const Term& term) {
  if (term.kind == Term::Kind::kDim) return term.dim;
  if (const auto number = IntegerOf(term); number.has_value()) return Dim::Of(*number);
  return Dim();
}

std::optional<std::vector<Dim>> ListParameter(const Facts& facts, const Node& node, std::string_view name, size_t input) {
  std::vector<Dim> list;
  if (const auto attribute = IntsAttribute(node, name); attribute.has_value()) {
    for (int64_t number : *attribute) list.push_back(Dim::Of(number));
    return list;
  }
  const Value* value = node.input(input);
  if (value == nullptr || facts.Of(value).elements == nullptr) return std::nullopt;
  const auto& elements = facts.Of(value).elements->integers;
  list.assign(elements.begin(), elements.end());
  return list;
}

std::optional<std::vector<int64_t>> IntsParameter(const Facts& facts, const Node& node, std::string_view name, size_t input) {
  const auto list = ListParameter(facts, node, name, input);
  if (!list.has_value()) return std::nullopt;
  std::vector<int64_t> numbers;
  for (Dim element : *list) {
    if (!element.is_number()) return std::nullopt;
    numbers.push_back(element.number());
  }
  return numbers;
}

bool ConstantNumber(const Facts& facts, const Value* value, double* number) {
  const Fact& fact = facts.Of(value);
  if (fact.is_splat) {
    *number = fact.splat;
    return true;
  }
  if (fact.elements == nullptr) return false;
  const auto& floats = fact.elements->floats;
  const auto& integers = fact.elements->integers;
  if (!floats.empty()) {
    if (!std::all_of(floats.begin(), floats.end(), [&](double f) { return f == floats[0]; })) return false;
    *number = floats[0];
    return true;
  }
  if (integers.empty() || !integers[0].is_number()) return false;
  if (!std::all_of(integers.begin(), integers.end(), [&](Dim i) { return i == integers[0]; })) return false;
  *number = static_cast<double>(integers[0].number());
  return true;
}

bool IsConstantOfOneElement(const Facts& facts, const Value& value) {
  const Fact& fact = facts.Of(&value);
  const bool is_constant = fact.elements != nullptr || IsWrittenConstant(value);
  return is_constant && fact.has_rank && std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is(1); });
}

bool IsOfConstants(const Facts& facts, const Value& value, int most_nodes) {
  if (value.IsConstant() || facts.Of(&value).elements != nullptr) return true;
  if (value.producer == nullptr || value.producer->input_count == 0 || most_nodes == 0) return false;
  return std::all_of(value.producer->inputs().begin(), value.producer->inputs().end(),
                     [&](const Use& use) { return use.value == nullptr || IsOfConstants(facts, *use.value, most_nodes - 1); });
}

bool IsComputed(const Facts& facts, const Value& value) { return value.producer != nullptr && !IsOfConstants(facts, value); }

std::string DescribeTerm(const FunctionContext& context, const Term& term) {
  switch (term.kind) {
    case Term::Kind::kUnbound:
      return "nothing";
    case Term::Kind::kAbsent:
      return "no value";
    case Term::Kind::kValue: {
      double number = 0;
      if (ConstantNumber(*context.facts, term.value, &number)) {
        return fmt::format("{} = {}", ValueName(*term.value), static_cast<float>(number));
      }
      return fmt::format("{} ({})", ValueName(*term.value), context.facts->Describe(term.value));
    }
    case Term::Kind::kNumber:
      return term.is_integer ? fmt::format("{}", WholeNumber(term.number)) : fmt::format("{}", term.number);
    case Term::Kind::kDim:
      return context.facts->dims().ToString(term.dim);
    case Term::Kind::kList: {
      std::string text = "[";
      for (const Term& item : *term.list) {
        if (text.size() > 1) text += ", ";
        text += DescribeTerm(context, item);
      }
      return text + "]";
    }
    case Term::Kind::kType:
      return std::string(DataTypeName(term.type));
    case Term::Kind::kText:
      return fmt::format("\"{}\"", term.text);
    case Term::Kind::kNode:
      return fmt::format("a {} to be built", term.node->op_type);
  }
  return "?";
}

bool EqualTerms(const FunctionContext& context, const Term& a, const Term& b) {
  if (a.kind == Term::Kind::kList || b.kind == Term::Kind::kList) {
    // [x] and x are the same list of axes.
    if (a.kind != b.kind) {
      const Term& list = a.kind == Term::Kind::kList ? a : b;
      const Term& item = a.kind == Term::Kind::kList ? b : a;
      return list.list->size() == 1 && item.kind != Term::Kind::kList && EqualTerms(context, (*list.list)[0], item);
    }
    if (a.list->size() != b.list->size()) return false;
    for (size_t i = 0; i < a.list->size(); ++i) {
      if (!EqualTerms(context, (*a.list)[i], (*b.list)[i])) return false;
    }
    return true;
  }
  const bool a_dim = a.kind == Term::Kind::kDim;
  const bool b_dim = b.kind == Term::Kind::kDim;
  if (a_dim || b_dim) return context.facts->dims().Equal(DimOf(a), DimOf(b));
  // A type is written as its number in attributes (Cast's `to`).
  if (a.kind == Term::Kind::kType && b.kind == Term::Kind::kNumber) return static_cast<double>(a.type) == b.number;
  if (b.kind == Term::Kind::kType && a.kind == Term::Kind::kNumber) return static_cast<double>(b.type) == a.number;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Term::Kind::kValue:
      return context.numbering->Same(a.value, b.value);
    case Term::Kind::kNumber:
      // Attributes are float: 1e-06 read back is 9.99999997e-07.
      return a.number == b.number || std::fabs(a.number - b.number) <= 1e-6 * std::fabs(a.number);
    case Term::Kind::kType:
      return a.type == b.type;
    case Term::Kind::kText:
      return a.text == b.text;
    case Term::Kind::kNode:
      return a.node == b.node && a.output == b.output;
    case Term::Kind::kAbsent:
      return true;
    default:
      return false;
  }
}

}  // namespace ascend_fuse
