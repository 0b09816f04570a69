#include "patterns/analysis/product.h"

#include <string>
#include <string_view>

#include "ir/attribute.h"

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
      product->axes[operand].insert(product->axes[operand].end(), {row, Product::kSummed});
    } else {
      product->axes[operand].insert(product->axes[operand].end(), {Product::kSummed, column});
    }
    product->summed[operand] = static_cast<size_t>(operand == 0 ? rank - 1 : rank - 2);
  }
  return true;
}

bool HasRepeats(std::string_view letters) {
  for (size_t i = 0; i < letters.size(); ++i) {
    if (letters.find(letters[i], i + 1) != std::string_view::npos) return true;
  }
  return false;
}

// The letters of one tensor of `rank` dims, with one that no equation has for each dim that "..." stands for: these are
// aligned at their ends. Nothing where the letters do not fit the rank.
std::optional<std::string> WithoutEllipsis(std::string_view letters, int rank) {
  const size_t dots = letters.find("...");
  if (dots == std::string_view::npos) {
    if (letters.find('.') != std::string_view::npos) return std::nullopt;
    return std::string(letters);
  }
  const int count = rank - static_cast<int>(letters.size() - 3);
  if (count < 0 || count > 9 || letters.find('.', dots + 3) != std::string_view::npos) return std::nullopt;
  std::string whole(letters.substr(0, dots));
  for (int i = count; i > 0; --i) whole.push_back(static_cast<char>('0' + i));
  return whole.append(letters.substr(dots + 3));
}

bool ReadEinsum(const std::string& equation, std::array<int, 2> ranks, int result_rank, Product* product) {
  const size_t comma = equation.find(',');
  const size_t arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) return false;
  const std::string_view text = equation;
  const auto left = WithoutEllipsis(text.substr(0, comma), ranks[0]);
  const auto right = WithoutEllipsis(text.substr(comma + 1, arrow - comma - 1), ranks[1]);
  const auto whole = WithoutEllipsis(text.substr(arrow + 2), result_rank);
  if (!left.has_value() || !right.has_value() || !whole.has_value() || right->find(',') != std::string::npos) return false;
  const std::string& result = *whole;
  const std::array<std::string_view, 2> operands = {*left, *right};
  if (HasRepeats(result) || static_cast<int>(result.size()) != result_rank) return false;
  char summed = 0;
  for (size_t operand = 0; operand < 2; ++operand) {
    if (HasRepeats(operands[operand]) || static_cast<int>(operands[operand].size()) != ranks[operand]) return false;
    int summed_here = 0;
    for (size_t i = 0; i < operands[operand].size(); ++i) {
      const char letter = operands[operand][i];
      const size_t place = result.find(letter);
      if (place != std::string_view::npos) {
        product->axes[operand].push_back(static_cast<int>(place));
        continue;
      }
      product->axes[operand].push_back(Product::kSummed);
      product->summed[operand] = i;
      ++summed_here;
      if (operand == 1 && letter != summed) return false;
      summed = letter;
    }
    if (summed_here != 1) return false;
  }
  return true;
}

}  // namespace

std::optional<Product> FindProduct(const FunctionContext& context, Value* value) {
  const Node* node = value->producer;
  if (node == nullptr || node->domain != NameId::kEmpty || node->input_count != 2) return std::nullopt;
  Product product;
  product.node = node;
  product.result = value;
  product.operands = {node->input(0), node->input(1)};
  if (product.operands[0] == nullptr || product.operands[1] == nullptr) return std::nullopt;
  const std::array<int, 2> ranks = {context.facts->Of(product.operands[0]).rank(),
                                    context.facts->Of(product.operands[1]).rank()};
  const int rank = context.facts->Of(value).rank();
  if (ranks[0] < 0 || ranks[1] < 0 || rank < 0) return std::nullopt;
  bool read = false;
  if (IsOp(*node, "MatMul")) {
    read = ReadMatMul(ranks, rank, &product);
  } else if (IsOp(*node, "Einsum")) {
    std::string equation;
    for (char letter : StringAttribute(*node, "equation").value_or("")) {
      if (letter != ' ') equation.push_back(letter);
    }
    read = ReadEinsum(equation, ranks, rank, &product);
  }
  if (!read) return std::nullopt;
  return product;
}

}  // namespace ascend_fuse
