// What a name in a rule stands for while matching and emitting: a value of the graph, a number, a dimension,
// a list, a type, a text, or a node that is only built if the emission uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/dim.h"
#include "ir/graph.h"

namespace ascend_fuse {

class Facts;
struct Attribute;
struct DeferredNode;
struct FunctionContext;

struct Term {
  enum class Kind : uint8_t { kUnbound, kAbsent, kValue, kNumber, kDim, kList, kType, kText, kNode };
  Kind kind = Kind::kUnbound;
  // kValue: a constant of equal elements that, where it was met, broadcasts like a scalar: the other operands
  // alone give the shape of the result (docs/sources/export-patterns.md X1).
  bool like_scalar = false;
  bool is_integer = false;
  DataType type = DataType::kUndefined;
  int output = 0;  // kNode: which output
  const Value* value = nullptr;
  double number = 0;
  Dim dim;
  // Text, list and node are shared by all copies of a term: the matcher copies terms wherever it binds a name.
  std::string_view text;
  const std::vector<Term>* list = nullptr;
  const DeferredNode* node = nullptr;

  bool bound() const { return kind != Kind::kUnbound; }

  static Term Absent() { return OfKind(Kind::kAbsent); }
  static Term Of(const Value* value) {
    Term term = OfKind(value == nullptr ? Kind::kAbsent : Kind::kValue);
    term.value = value;
    return term;
  }
  static Term Number(double number) {
    Term term = OfKind(Kind::kNumber);
    term.number = number;
    return term;
  }
  static Term Integer(int64_t number) {
    Term term = Number(static_cast<double>(number));
    term.is_integer = true;
    return term;
  }
  static Term Of(Dim dim) {
    Term term = OfKind(Kind::kDim);
    term.dim = dim;
    return term;
  }
  static Term Of(DataType type) {
    Term term = OfKind(Kind::kType);
    term.type = type;
    return term;
  }
  static Term Text(std::string text) {
    Term term = OfKind(Kind::kText);
    auto kept = std::make_shared<const std::string>(std::move(text));
    term.text = *kept;
    term.kept_ = std::move(kept);
    return term;
  }
  static Term List(std::vector<Term> items) {
    Term term = OfKind(Kind::kList);
    auto kept = std::make_shared<const std::vector<Term>>(std::move(items));
    term.list = kept.get();
    term.kept_ = std::move(kept);
    return term;
  }
  static Term Node(DeferredNode node);

 private:
  static Term OfKind(Kind kind) {
    Term term;
    term.kind = kind;
    return term;
  }

  std::shared_ptr<const void> kept_;  // owns what text, list or node refers to
};

// A node to be built: named by `let`, returned by a C++ function, or written in `emit`.
struct DeferredNode {
  std::string domain;
  std::string op_type;
  std::vector<std::pair<std::string, Term>> attributes;  // an absent term: the attribute is left out
  std::vector<Term> inputs;                              // numbers and lists become constants
  int output_count = 1;
};

inline Term Term::Node(DeferredNode node) {
  Term term = OfKind(Kind::kNode);
  auto kept = std::make_shared<const DeferredNode>(std::move(node));
  term.node = kept.get();
  term.kept_ = std::move(kept);
  return term;
}

// A number, a text or a list as a term; nullopt for a tensor, a graph or a type.
std::optional<Term> TermOfAttribute(const Attribute& attribute);
// A dim as a term: a number where it is one.
Term TermOfDim(Dim dim);
// The whole number that a term is; nullopt where it is not one.
std::optional<int64_t> IntegerOf(const Term& term);
// The dim that a term is, number or not; an unknown dim where it is not one.
Dim DimOf(const Term& term);

// As messages show it: "x (float[2, 4])", "[B, 4]", "no value".
std::string DescribeTerm(const FunctionContext& context, const Term& term);
// a = b as rules mean it: same value, equal number, provably equal dim, equal list. [x] and x are the same list.
bool EqualTerms(const FunctionContext& context, const Term& a, const Term& b);

// The number that all elements of a constant are, if `value` is known to be one.
bool ConstantNumber(const Facts& facts, const Value* value, double* number);
// Whether it is a constant of one element, with any number of axes of length 1.
bool IsConstantOfOneElement(const Facts& facts, const Value& value);
// Whether it is computed of constants alone, by a few nodes: a gain of which the model has the difference from 1.
bool IsOfConstants(const Facts& facts, const Value& value, int most_nodes = 4);
// Whether nodes compute it, and not of constants alone: no weight, which may be an input of the model.
bool IsComputed(const Facts& facts, const Value& value);
// A parameter that is a list (`axes` of Slice): the attribute `name` or, at newer opsets, input `input`; nullopt where
// there is none or its elements are not known. Ints: the elements are numbers.
std::optional<std::vector<Dim>> ListParameter(const Facts& facts, const Node& node, std::string_view name, size_t input);
std::optional<std::vector<int64_t>> IntsParameter(const Facts& facts, const Node& node, std::string_view name, size_t input);

}  // namespace ascend_fuse
