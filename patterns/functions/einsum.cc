// Einsum of one to four operands as Transpose, ReduceSum, MatMul and Mul, which every ATC reads.
#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>
#include <string_view>

#include "ir/status_macros.h"
#include "patterns/analysis/einsum_letters.h"
#include "patterns/functions/constructs.h"
#include "patterns/functions/tensor.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

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
  const Term sum = build::ReduceSum(operand.value, axes, 0);
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

// An operand with a letter twice: the diagonal of these two axes, of one length that is known.
absl::StatusOr<Lettered> Diagonal(const FunctionContext& context, const Lettered& operand, List shape) {
  std::string sorted = operand.letters;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return operand;
  const char letter = *twice;
  if (std::count(sorted.begin(), sorted.end(), letter) != 2 || std::adjacent_find(twice + 1, sorted.end()) != sorted.end()) {
    return Refuse("more than one letter twice in one operand");
  }
  const size_t at[] = {operand.letters.find(letter), operand.letters.rfind(letter)};
  ASSIGN_OR_RETURN(const auto length, PlainNumber(context, DimOf(shape[at[0]])));
  if (!DimOf(shape[at[1]]).is(length)) return Refuse("a letter for axes of two lengths");
  std::vector<int64_t> perm;
  std::string rest;
  for (size_t i = 0; i < operand.letters.size(); ++i) {
    if (operand.letters[i] == letter) continue;
    perm.push_back(static_cast<int64_t>(i));
    rest += operand.letters[i];
  }
  perm.insert(perm.end(), {static_cast<int64_t>(at[0]), static_cast<int64_t>(at[1])});
  std::vector<int64_t> dims(rest.size(), 0);
  dims.push_back(length * length);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < length; ++i) places.push_back(i * (length + 1));
  const Term turned = std::is_sorted(perm.begin(), perm.end()) ? operand.value : build::Transpose(operand.value, perm);
  const Term flat = build::Reshape(turned, dims);
  return Lettered{build::Gather(flat, build::Numbers(places), static_cast<int64_t>(rest.size())), rest + letter};
}

// The lengths of letters, as far as they are known.
using Lengths = std::array<Dim, 128>;

// a and b summed over the letters that no other operand and not the result have; the letters of the product are those of
// `out` that one of the two has, in this order.
absl::StatusOr<Lettered> Pair(const FunctionContext& context, const Lettered& a, const Lettered& b, std::string_view out,
                              const Lengths& lengths) {
  const std::string kept = Pick(out, [&](char letter) { return Has(a.letters, letter) || Has(b.letters, letter); });
  const std::string shared = Pick(a.letters, [&](char letter) { return Has(b.letters, letter) && !Has(kept, letter); });
  int64_t length = 1;
  if (shared.size() > 1) {
    for (const char letter : shared) {
      ASSIGN_OR_RETURN(const auto dim, PlainNumber(context, lengths[static_cast<size_t>(letter)]));
      length *= dim;
    }
  }
  const Lettered left = Summed(a, b.letters + kept);
  const Lettered right = Summed(b, a.letters + kept);
  if (!shared.empty()) return Lettered{Product(left, right, shared, kept, length), kept};
  return Lettered{build::Op("Mul", {Arranged(left, kept), Arranged(right, kept)}), kept};
}

absl::StatusOr<Term> Einsum(const FunctionContext& context, std::string_view equation, const Value* a,
                            std::optional<const Value*> b, std::optional<const Value*> c, std::optional<const Value*> d) {
  std::vector<Lettered> operands = {{Term::Of(a), ""}};
  for (const std::optional<const Value*>& more : {b, c, d}) {
    if (more.has_value()) operands.push_back({Term::Of(*more), ""});
  }
  std::vector<std::vector<Term>> shapes;
  std::vector<size_t> ranks;
  for (const Lettered& operand : operands) {
    ASSIGN_OR_RETURN(const auto shape, ShapeOf(context, operand.value));
    shapes.push_back(shape);
    ranks.push_back(shape.size());
  }
  ASSIGN_OR_RETURN(const auto letters, EinsumLetters(equation, ranks));
  const std::string& out = letters.back();
  Lengths lengths;
  for (size_t i = 0; i < operands.size(); ++i) {
    operands[i].letters = letters[i];
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const char letter = operands[i].letters[axis];
      if (!std::isalpha(static_cast<unsigned char>(letter)) && !std::isdigit(static_cast<unsigned char>(letter))) {
        return Refuse("an equation of other characters than letters");
      }
      Dim& known = lengths[static_cast<size_t>(letter)];
      const Dim dim = DimOf(shapes[i][axis]);
      // An axis of length 1 is broadcast, by its dots or by an Einsum that is more generous than its document.
      const bool differ = known.known() && dim.known() &&
                          (known.is(1) != dim.is(1) || (known.is_number() && dim.is_number() && !known.is(dim.number())));
      if (differ && std::isalpha(static_cast<unsigned char>(letter))) return Refuse("a letter for axes of two lengths");
      if (!known.is_number()) known = dim;
    }
    ASSIGN_OR_RETURN(operands[i], Diagonal(context, operands[i], shapes[i]));
  }
  std::string sorted = out;
  std::sort(sorted.begin(), sorted.end());
  const bool known = std::all_of(out.begin(), out.end(), [&](char letter) {
    return std::any_of(operands.begin(), operands.end(), [&](const Lettered& one) { return Has(one.letters, letter); });
  });
  if (!known || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return Refuse("a result with a letter that no operand has, or twice");
  }
  Lettered whole = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    // What later operands need stays: first what the result has, in its order.
    std::string wanted = out;
    for (size_t later = i + 1; later < operands.size(); ++later) {
      for (const char letter : operands[later].letters) {
        if (!Has(wanted, letter)) wanted += letter;
      }
    }
    ASSIGN_OR_RETURN(whole, Pair(context, whole, operands[i], wanted, lengths));
  }
  return Arranged(Summed(whole, out), out);
}

constexpr std::array kRows = {
    Function<"einsum (equation, a, b, c, d)", Einsum>(
        "What the equation of an Einsum says of a and of those of b, c and d that are given, as products of matrices."),
};

}  // namespace

absl::Span<const FunctionRow> EinsumFunctions() { return kRows; }

}  // namespace ascend_fuse
