#include "patterns/functions/functions.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "patterns/functions/constructs.h"

namespace ascend_fuse {
namespace {

std::vector<FunctionRow> AllRows() {
  std::vector<FunctionRow> rows;
  for (const absl::Span<const FunctionRow> some :
       {TensorFunctions(), AxisFunctions(), ReaderFunctions(), ModelFunctions(), NodeFunctions(), NormFunctions(),
        LinearFunctions(), AntiquantFunctions(), RotaryFunctions(), RotaryEmbeddingFunctions(), AttentionFunctions(),
        MaskFunctions(), SoftcapFunctions(), AdaptShapeFunctions(), AdaptMathFunctions(), EinsumFunctions(),
        ReadyMadeAttentionFunctions(), MixtureFunctions()}) {
    rows.insert(rows.end(), some.begin(), some.end());
  }
  return rows;
}

}  // namespace

absl::Span<const FunctionRow> Functions() {
  static const auto* const kRows = new std::vector<FunctionRow>(AllRows());
  return *kRows;
}

int FindFunction(std::string_view name) {
  static const auto* const kIndex = [] {
    auto* index = new absl::flat_hash_map<std::string_view, int>;
    for (const FunctionRow& row : Functions()) index->emplace(row.name, static_cast<int>(index->size()));
    return index;
  }();
  const auto found = kIndex->find(name);
  return found == kIndex->end() ? -1 : found->second;
}

std::string DescribeFunctions() {
  std::string text = "| function | gives | which is |\n|---|---|---|\n";
  for (const FunctionRow& row : Functions()) {
    text += fmt::format("| `{}` | {} | ", row.signature, row.result_name);
    for (const char c : row.doc) {
      if (c == '|') text += '\\';
      text += c;
    }
    text += " |\n";
  }
  return text;
}

}  // namespace ascend_fuse
