#include "patterns/functions/functions.h"

#include <vector>

#include "fmt/format.h"
#include "patterns/functions/constructs.h"

namespace ascend_fuse {
namespace {

std::vector<FunctionRow> AllRows() {
  std::vector<FunctionRow> rows;
  for (const absl::Span<const FunctionRow> some :
       {TensorFunctions(), AxisFunctions(), ReaderFunctions(), ModelFunctions(), NodeFunctions(), NormFunctions(),
        LinearFunctions(), RotaryFunctions(), RotaryEmbeddingFunctions(), AttentionFunctions()}) {
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
  const absl::Span<const FunctionRow> rows = Functions();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return static_cast<int>(i);
  }
  return -1;
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
