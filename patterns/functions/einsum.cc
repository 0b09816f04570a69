// Einsum of one or two operands as Transpose, ReduceSum, MatMul and Mul, which every ATC reads.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>

#include "patterns/functions/constructs.h"
#include "patterns/functions/tensor.h"
#include "patterns/language/node_builder.h"
#include "patterns/language/refusal.h"

namespace ascend_fuse {
namespace {

// An operand with one letter for each of its axes.
struct Lettered {
  Term value;
  std::string letters;
};

bool Has(std::string_view letters, char letter) { return letters.find(letter) != std::string_view::npos; }

// The letters of `all` for which `keep` holds.
template <typename Keep>
std::string Pick(std::string_view all, Keep keep) {
  std::string picked;
  std::copy_if(all.begin(), all.end(), std::back_inserter(picked), keep);
  return picked;
}

// The operand with its axes in this order; axes that it lacks have length 1.
Term Arranged(const Lettered& operand, std::string_view order) {
  std::vector<int64_t> perm;
  std::vector<int64_t> lacking;
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t at = operand.letters.find(order[i]);
    if (at == std::string::npos) {
      lacking.push_back(static_cast<int64_t>(i));
    } else {
      perm.push_back(static_cast<int64_t>(at));
    }
  }
  Term value = operand.value;
  if (!std::is_sorted(perm.begin(), perm.end())) value = build::Transpose(value, perm);
  return lacking.empty() ? value : build::Unsqueeze(value, lacking);
}

// The operand summed over the letters that only it has.
Lettered Summed(const Lettered& operand, std::string_view others) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < operand.letters.size(); ++i) {
    if (!Has(others, operand.letters[i])) axes.push_back(static_cast<int64_t>(i));
  }
  if (axes.empty()) return operand;
  const Term sum = build::Op("ReduceSum", {operand.value}, {{"axes", build::Numbers(axes)}, {"keepdims", Term::Integer(0)}});
  return {sum, Pick(operand.letters, [&](char letter) { return Has(others, letter); })};
}

// What is summed over as one axis, the last one. `lead`: how many axes stand before it; `length`: how long it is.
Term Merged(const Term& value, size_t lead, size_t count, int64_t length) {
  if (count == 1) return value;
  std::vector<int64_t> dims(lead, 0);
  dims.push_back(length);
  return build::Reshape(value, dims);
}

Term Product(const Lettered& a, const Lettered& b, const std::string& shared, const std::string& out, int64_t length) {
  const auto only = [&](const Lettered& one, const Lettered& other) {
    return Pick(one.letters, [&](char letter) { return Has(out, letter) && !Has(other.letters, letter); });
  };
  std::string rows = only(a, b);
  std::string columns = only(b, a);
  std::string lead = Pick(a.letters, [&](char letter) { return Has(b.letters, letter) && Has(out, letter); });
  // One axis of each operand is that of the matrix; the others are broadcast over.
  const std::string row = rows.empty() ? "" : rows.substr(rows.size() - 1);
  const std::string column = columns.empty() ? "" : columns.substr(columns.size() - 1);
  lead += rows.substr(0, rows.size() - row.size()) + columns.substr(0, columns.size() - column.size());
  // No operand has the letters '(' and ')': an axis of length 1.
  const std::string m = row.empty() ? "(" : row;
  const std::string n = column.empty() ? ")" : column;
  const Term left = Merged(Arranged(a, lead + m + shared), lead.size() + 1, shared.size(), length);
  Term right;
  if (shared.size() == 1) {
    right = Arranged(b, lead + shared + n);
  } else {
    std::vector<int64_t> perm;
    for (size_t i = 0; i < lead.size(); ++i) perm.push_back(static_cast<int64_t>(i));
    perm.insert(perm.end(), {static_cast<int64_t>(lead.size()) + 1, static_cast<int64_t>(lead.size())});
    right = build::Transpose(Merged(Arranged(b, lead + n + shared), lead.size() + 1, shared.size(), length), perm);
  }
  Term product = build::Op("MatMul", {left, right});
  std::vector<int64_t> ones;
  if (row.empty()) ones.push_back(static_cast<int64_t>(lead.size()));
  if (column.empty()) ones.push_back(static_cast<int64_t>(lead.size()) + 1);
  if (!ones.empty()) product = build::Squeeze(product, ones);
  return Arranged({product, lead + row + column}, out);
}

// The letters of the operands and of the result; refused are what is no product of two: dots, a letter twice in one operand.
absl::StatusOr<std::vector<std::string>> Letters(std::string_view equation, size_t operands) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  const size_t arrow = text.find("->");
  if (arrow == std::string::npos || Has(text, '.')) return Refuse("an equation without -> or with dots");
  std::vector<std::string> letters = {""};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      letters.emplace_back();
    } else {
      letters.back() += c;
    }
  }
  if (letters.size() != operands) return Refuse("another number of operands than in the equation");
  letters.push_back(text.substr(arrow + 2));
  for (std::string one : letters) {
    std::sort(one.begin(), one.end());
    if (std::adjacent_find(one.begin(), one.end()) != one.end()) return Refuse("a letter twice in one operand");
  }
  for (const char c : letters.back()) {
    const bool known = std::any_of(letters.begin(), letters.end() - 1, [c](const std::string& one) { return Has(one, c); });
    if (!known) return Refuse("a letter of the result that no operand has");
  }
  return letters;
}

absl::StatusOr<Term> Einsum(const FunctionContext& context, std::string_view equation, Value* a, std::optional<Value*> b) {
  const auto letters = Letters(equation, b.has_value() ? 2 : 1);
  if (!letters.ok()) return letters.status();
  const std::string& out = letters->back();
  Lettered left = {Term::Of(a), (*letters)[0]};
  const auto shape = ShapeOf(context, left.value);
  if (!shape.ok()) return shape.status();
  if (shape->size() != left.letters.size()) return Refuse("another rank than in the equation");
  if (!b.has_value()) return Arranged(Summed(left, out), out);
  Lettered right = {Term::Of(*b), (*letters)[1]};
  const auto other = ShapeOf(context, right.value);
  if (!other.ok()) return other.status();
  if (other->size() != right.letters.size()) return Refuse("another rank than in the equation");
  int64_t length = 1;
  const std::string shared = Pick(left.letters, [&](char letter) { return Has(right.letters, letter) && !Has(out, letter); });
  if (shared.size() > 1) {
    for (const char letter : shared) {
      const auto dim = PlainNumber(context, DimOf((*shape)[left.letters.find(letter)]));
      if (!dim.ok()) return dim.status();
      length *= *dim;
    }
  }
  left = Summed(left, right.letters + out);
  right = Summed(right, (*letters)[0] + out);
  if (!shared.empty()) return Product(left, right, shared, out, length);
  return build::Op("Mul", {Arranged(left, out), Arranged(right, out)});
}

constexpr std::array kRows = {
    Function<"einsum (equation, a, b)", Einsum>(
        "What the equation of an Einsum says of a and, if it is given, b, as products of matrices."),
};

}  // namespace

absl::Span<const FunctionRow> EinsumFunctions() { return kRows; }

}  // namespace ascend_fuse
