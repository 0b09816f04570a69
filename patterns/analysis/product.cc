#include "patterns/analysis/product.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "ir/attribute.h"
#include "patterns/analysis/einsum_letters.h"

namespace ascend_fuse {
namespace {

bool ReadMatMul(std::array<int, 2> ranks, int result_rank, Product* product) {
  if (ranks[0] < 2 || ranks[1] < 2 || result_rank < 2) return false;
  for (size_t operand = 0; operand < 2; ++operand) {
    const int rank = ranks[operand];
    for (int i = 0; i < rank - 2; ++i) product->axes[operand].push_back(result_rank - rank + i);
    const int row = result_rank - 2;
    const int column = result_rank - 1;
    if (operand == 0) {
      product->axes[operand].insert(product->axes[operand].end(), {row, Product::Summed(0)});
    } else {
      product->axes[operand].insert(product->axes[operand].end(), {Product::Summed(0), column});
    }
    product->summed[operand] = {static_cast<size_t>(operand == 0 ? rank - 1 : rank - 2)};
  }
  return true;
}

bool HasRepeats(std::string_view letters) {
  for (size_t i = 0; i < letters.size(); ++i) {
    if (letters.find(letters[i], i + 1) != std::string_view::npos) return true;
  }
  return false;
}

bool ReadEinsum(std::string_view equation, std::array<int, 2> ranks, int result_rank, Product* product) {
  if (equation.find("->") == std::string_view::npos) return false;
  const auto letters = EinsumLetters(equation, {static_cast<size_t>(ranks[0]), static_cast<size_t>(ranks[1])});
  if (!letters.ok()) return false;
  const std::string& result = letters->back();
  const std::vector<std::string>& operands = *letters;  // and the result
  if (HasRepeats(result) || static_cast<int>(result.size()) != result_rank) return false;
  std::string summed;  // letters, in the order of the first operand
  for (size_t operand = 0; operand < 2; ++operand) {
    if (HasRepeats(operands[operand])) return false;
    product->summed[operand].resize(summed.size());
    for (size_t i = 0; i < operands[operand].size(); ++i) {
      const char letter = operands[operand][i];
      const size_t place = result.find(letter);
      if (place != std::string_view::npos) {
        product->axes[operand].push_back(static_cast<int>(place));
        continue;
      }
      if (operand == 0) {
        summed.push_back(letter);
        product->summed[0].push_back(i);
      }
      const size_t of_summed = summed.find(letter);
      if (of_summed == std::string::npos) return false;
      product->axes[operand].push_back(Product::Summed(of_summed));
      product->summed[operand][of_summed] = i;
    }
  }
  // A letter of one operand alone would be summed before the product.
  return !summed.empty() &&
         std::all_of(summed.begin(), summed.end(), [&](char letter) { return operands[1].find(letter) != std::string::npos; });
}

}  // namespace

std::optional<Product> FindProduct(const FunctionContext& context, const Value* value) {
  const Node* node = value != nullptr ? value->producer : nullptr;
  if (node == nullptr || node->domain != NameId::kEmpty || node->input_count != 2) return std::nullopt;
  Product product;
  product.node = node;
  product.result = value;
  product.operands = {node->input(0), node->input(1)};
  if (product.operands[0] == nullptr || product.operands[1] == nullptr) return std::nullopt;
  const std::array<int, 2> ranks = {context.facts->Of(product.operands[0]).rank(), context.facts->Of(product.operands[1]).rank()};
  const int rank = context.facts->Of(value).rank();
  if (ranks[0] < 0 || ranks[1] < 0 || rank < 0) return std::nullopt;
  bool read = false;
  if (IsOp(*node, "MatMul")) {
    read = ReadMatMul(ranks, rank, &product);
  } else if (IsOp(*node, "Einsum")) {
    read = ReadEinsum(StringAttribute(*node, "equation").value_or(""), ranks, rank, &product);
  }
  if (!read) return std::nullopt;
  return product;
}

}  // namespace ascend_fuse
