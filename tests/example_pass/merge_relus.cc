// Relu (Relu (x)) is Relu (x): a pass that says so, between our own ones.
#include <cstdio>

#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "passes/core/workspace.h"
#include "passes/optimize.h"

using namespace ascend_fuse;

absl::Status MergeRelus(Workspace& workspace) {
  for (const Node* node : workspace.model().graph().nodes()) {
    if (node->dead || !IsOp(*node, "Relu")) continue;
    const Node* before = node->input(0)->producer;
    if (before == nullptr || !IsOp(*before, "Relu")) continue;
    workspace.rewriter().SetInput(node, 0, before->input(0));
    workspace.Refresh(node);
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  auto model = LoadModel(argv[1]);
  OptimizeOptions options;
  options.passes = {{PlacedPass::Place::kAfter, "number", {"merge_relus", "facts", "no Relu of a Relu", MergeRelus}}};
  absl::Status status = model.status();
  if (status.ok()) status = Optimize(model->get(), options).status();
  if (status.ok()) status = SaveModel(**model, argv[2]);
  if (!status.ok()) std::printf("%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
