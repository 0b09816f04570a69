// Models written at other opsets, node by node and by nothing but `ConvertNode` (passes/legalise/convert_node.h), for
// tests/python/test_adapt.py.
//
// A request is a line on standard input, its fields separated by tabs: a model, a folder for results, then opsets. On
// standard output
//     written OPSET N        converted-N.onnx is the model at that opset
//     kept OPSET SENTENCE    a node has no form there
//     done                   the last line of an answer
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "ir/infer/facts.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "passes/legalise/convert_node.h"
#include "patterns/operators/inference.h"
#include "tests/support/requests.h"

namespace ascend_fuse {
namespace {

// The bytes of the model with every node of the default domain as opset `to` has it.
absl::StatusOr<std::string> At(const std::string& path, int64_t to) {
  auto model = LoadModel(path);
  if (!model.ok()) return model.status();
  const int64_t from = (*model)->OpsetVersion();
  const Facts facts = Infer(**model, WithDeclaredOperators());
  std::vector<std::pair<const Node*, NodeConversion>> planned;
  for (const auto& graph : (*model)->graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->domain != NameId::kEmpty) continue;
      auto conversion = ConvertNode(*node, from, to, facts);
      if (!conversion.ok()) return conversion.status();
      if (conversion->has_value()) planned.emplace_back(node, **std::move(conversion));
    }
  }
  Rewriter rewriter(model->get());
  for (const auto& [node, conversion] : planned) Write(conversion, *node, &rewriter);
  rewriter.SetOpsetImport("", to);
  return SaveModelToBytes(**model);
}

void Answer(const std::vector<std::string>& fields) {
  if (fields.size() < 3) return;
  testing::NumberedFiles files(fields[1] + "/converted-");
  for (size_t i = 2; i < fields.size(); ++i) {
    const absl::StatusOr<std::string> bytes = At(fields[0], std::atoll(fields[i].c_str()));
    if (bytes.ok()) {
      std::cout << fmt::format("written\t{}\t{}\n", fields[i], files.Write(*bytes));
    } else {
      std::cout << fmt::format("kept\t{}\t{}\n", fields[i], testing::OnOneLine(std::string(bytes.status().message())));
    }
  }
}

}  // namespace
}  // namespace ascend_fuse

int main() {
  ascend_fuse::testing::ServeRequests(ascend_fuse::Answer);
  return 0;
}
