// Contractions: MatMul, Gemm, Einsum. A contraction is the best witness that two dims are equal.
#include <algorithm>
#include <array>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

void MatMulShape(NodeContext& c, Shape a, Shape b) {
  if (a.empty() || b.empty()) return;
  const bool a_vector = a.size() == 1;
  const bool b_vector = b.size() == 1;
  if (a_vector) a.insert(a.begin(), Dim::Of(1));
  if (b_vector) b.push_back(Dim::Of(1));
  c.Require(a[a.size() - 1], b[b.size() - 2]);
  const Dim rows = a[a.size() - 2];
  const Dim columns = b[b.size() - 1];
  Shape shape = c.Broadcast(absl::MakeConstSpan(a).subspan(0, a.size() - 2), absl::MakeConstSpan(b).subspan(0, b.size() - 2));
  if (!a_vector) shape.push_back(rows);
  if (!b_vector) shape.push_back(columns);
  c.SetShape(0, shape);
}

void MatMul(NodeContext& c) {
  c.SetType(0, ProductType(c));
  if (c.in(0).has_rank && c.in(1).has_rank) MatMulShape(c, c.shape(0), c.shape(1));
}

void MatMulInteger(NodeContext& c) {
  MatMul(c);
  c.SetType(0, DataType::kInt32);
}

void QLinearMatMul(NodeContext& c) {
  c.SetType(0, c.type(7));
  if (c.in(0).has_rank && c.in(3).has_rank) MatMulShape(c, c.shape(0), c.shape(3));
}

void FusedMatMul(NodeContext& c) {
  c.SetType(0, EitherType(c, 0, 1));
  if (!c.in(0).has_rank || !c.in(1).has_rank) return;
  Shape a = c.shape(0);
  Shape b = c.shape(1);
  // The first dim goes after those of the batch.
  if (c.Int("transBatchA", 0) != 0 && a.size() >= 3) std::rotate(a.begin(), a.begin() + 1, a.end() - 1);
  if (c.Int("transBatchB", 0) != 0 && b.size() >= 3) std::rotate(b.begin(), b.begin() + 1, b.end() - 1);
  if (c.Int("transA", 0) != 0 && a.size() >= 2) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (c.Int("transB", 0) != 0 && b.size() >= 2) std::swap(b[b.size() - 1], b[b.size() - 2]);
  MatMulShape(c, a, b);
}

void GemmShape(NodeContext& c, size_t first, size_t second) {
  if (c.rank(first) != 2 || c.rank(second) != 2) return c.SetRank(0, 2);
  Shape a = c.shape(first);
  Shape b = c.shape(second);
  if (c.Int("transA", 0) != 0) std::swap(a[0], a[1]);
  if (c.Int("transB", 0) != 0) std::swap(b[0], b[1]);
  c.Require(a[1], b[0]);
  c.SetShape(0, {a[0], b[1]});
}

void Gemm(NodeContext& c) {
  c.SetType(0, ProductType(c));
  GemmShape(c, 0, 1);
}

// com.microsoft QGemm(A, scale, zero, B, scale, zero, C, y_scale, y_zero): float without a zero point of Y.
void QGemm(NodeContext& c) {
  c.SetType(0, c.has(8) ? c.type(8) : DataType::kFloat);
  GemmShape(c, 0, 3);
}

void MatMulIntegerToFloat(NodeContext& c) {
  MatMul(c);
  c.SetType(0, c.type(2));
}

void DynamicQuantizeMatMul(NodeContext& c) {
  MatMul(c);
  c.SetType(0, c.type(0));
}

// Einsum: letters with one dim each; an ellipsis stands for dims that are broadcast.
void Einsum(NodeContext& c) {
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.type(i) != DataType::kUndefined) c.SetType(0, c.type(i));
  }
  std::string equation;
  for (char letter : c.String("equation", "")) {
    if (letter != ' ') equation.push_back(letter);
  }
  const size_t arrow = equation.find("->");
  const std::string left = equation.substr(0, arrow);
  std::array<Dim, 128> dims{};
  std::array<int, 128> seen{};
  Shape ellipsis;
  size_t begin = 0;
  size_t input = 0;
  const auto is_letter = [](char letter) { return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'); };
  while (begin <= left.size()) {
    size_t end = left.find(',', begin);
    if (end == std::string::npos) end = left.size();
    const std::string term = left.substr(begin, end - begin);
    begin = end + 1;
    if (input >= c.input_count() || !c.in(input).has_rank) return;
    const Shape shape = c.shape(input++);
    size_t letters = 0;
    for (char letter : term) letters += is_letter(letter) ? 1 : 0;
    if (letters > shape.size()) return;
    size_t at = 0;
    for (size_t i = 0; i < term.size(); ++i) {
      if (term[i] == '.') {
        if (term.compare(i, 3, "...") != 0) return;
        const size_t hidden = shape.size() - letters;
        ellipsis = c.Broadcast(ellipsis, absl::MakeConstSpan(shape).subspan(at, hidden));
        at += hidden;
        i += 2;
        continue;
      }
      if (!is_letter(term[i]) || at >= shape.size()) return;
      const size_t letter = static_cast<unsigned char>(term[i]);
      // The operator lets a dim of 1 be broadcast here, too; only two dims that cannot be 1 are equal.
      dims[letter] = seen[letter] == 0 ? shape[at] : c.dims().Meet(dims[letter], shape[at]);
      ++seen[letter];
      ++at;
    }
  }
  if (input != c.input_count()) return;
  Shape result;
  if (arrow != std::string::npos) {
    const std::string right = equation.substr(arrow + 2);
    for (size_t i = 0; i < right.size(); ++i) {
      if (right[i] == '.') {
        if (right.compare(i, 3, "...") != 0) return;
        result.insert(result.end(), ellipsis.begin(), ellipsis.end());
        i += 2;
      } else if (is_letter(right[i]) && seen[static_cast<unsigned char>(right[i])] > 0) {
        result.push_back(dims[static_cast<unsigned char>(right[i])]);
      } else {
        return;
      }
    }
  } else {
    result = ellipsis;
    for (size_t letter = 0; letter < dims.size(); ++letter) {
      if (seen[letter] == 1) result.push_back(dims[letter]);
    }
  }
  c.SetShape(0, result);
}

// com.microsoft MatMulNBits: A[.., K] times a packed weight of N rows.
void MatMulNBits(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (!c.in(0).has_rank || c.in(0).shape.empty()) return;
  Shape shape = c.shape(0);
  c.Require(shape.back(), Dim::Of(c.Int("K", 0)));
  shape.back() = Dim::Of(c.Int("N", 0));
  c.SetShape(0, shape);
}

void Det(NodeContext& c) {
  c.SetType(0, c.type(0));
  if (c.rank(0) >= 2) c.SetShape(0, c.in(0).shape.subspan(0, c.in(0).shape.size() - 2));
}

constexpr Entry kOps[] = {
    {"", "MatMul", MatMul},
    {"", "Gemm", Gemm},
    {"", "Einsum", Einsum},
    {"", "MatMulInteger", MatMulInteger},
    {"", "QLinearMatMul", QLinearMatMul},
    {"", "Det", Det},
    {"com.microsoft", "FusedMatMul", FusedMatMul},
    {"com.microsoft", "MatMulNBits", MatMulNBits},
    {"com.microsoft", "MatMulBnb4", MatMulNBits},
    {"com.microsoft", "TransposeMatMul", FusedMatMul},
    {"com.microsoft", "FusedMatMulActivation", FusedMatMul},
    {"com.microsoft", "FusedGemm", Gemm},
    {"com.microsoft", "QGemm", QGemm},
    {"com.microsoft", "GemmFastGelu", MatMul},
    {"com.microsoft", "MatMulInteger16", MatMulInteger},
    {"com.microsoft", "MatMulIntegerToFloat", MatMulIntegerToFloat},
    {"com.microsoft", "DynamicQuantizeMatMul", DynamicQuantizeMatMul},
};

}  // namespace

absl::Span<const Entry> MatMulOps() { return kOps; }

}  // namespace ascend_fuse::infer
