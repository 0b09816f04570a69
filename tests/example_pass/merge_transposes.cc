// Runs the pass of the layout room that docs/newcomer.md writes, after choose_orders: merge_transposes MODEL.onnx OUT.onnx
#include <cstdio>

#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "passes/optimize.h"
#include "tests/example_pass/layout_room/merge_transposes.cc"

using namespace ascend_fuse;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto model = LoadModel(argv[1]);
  OptimizeOptions options;
  const Pass pass = {"merge_transposes", "the graph with its final operators", "one Transpose in place of two", MergeTransposes};
  options.passes = {{PlacedPass::Place::kAfter, "choose_orders", pass}};
  absl::Status status = model.status();
  if (status.ok()) status = Optimize(model->get(), options).status();
  if (status.ok()) status = SaveModel(**model, argv[2]);
  if (!status.ok()) std::printf("%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
