// Write dims: inputs and outputs of the model are declared with the numbers that --fix gives their symbolic dims.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ir/infer/context.h"
#include "ir/onnx/declared_type.h"
#include "passes/core/without_promises.h"
#include "passes/core/workspace.h"
#include "passes/legalise/passes.h"

namespace ascend_fuse {
namespace {

class Writer {
 public:
  explicit Writer(Workspace& workspace) : workspace_(workspace), fixed_(workspace.options().fix) {}

  void Run() {
    const Graph& graph = workspace_.model().graph();
    for (const Value* value : graph.inputs()) Declare(value);
    for (const Value* value : graph.outputs()) {
      if (!value->is_graph_input) Declare(value);
    }
    // What is declared of inner values speaks of the symbols.
    workspace_.rewriter().DropValueInfo();
    workspace_.KnowSignature();
  }

 private:
  // Whether a dim, as it was declared, mentions what is fixed.
  bool Mentions(Dim dim) const {
    const auto names = unbound_.dims().Symbols(dim);
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return std::find(fixed_.begin(), fixed_.end(), name) != fixed_.end(); });
  }

  void Declare(const Value* value) {
    const Fact& fact = workspace_.facts().Of(value);
    const Fact declared = infer::DeclaredFact(*value, &unbound_);
    if (!fact.has_rank || declared.rank() != fact.rank()) return;
    std::vector<NewDim> dims(fact.shape.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      const Dim dim = workspace_.facts().dims().Resolve(fact.shape[i]);
      if (declared.shape[i].is_number()) continue;
      if (dim.is_number()) {
        dims[i].number = dim.number();
      } else if (dim.known() && Mentions(declared.shape[i])) {
        dims[i].text = workspace_.facts().dims().ToString(dim);
      }
    }
    const std::string type = WithDims(value->declared_type, dims);
    if (!type.empty()) workspace_.rewriter().Declare(value, type);
  }

  Workspace& workspace_;
  const std::vector<std::string>& fixed_;
  Facts unbound_;  // without the numbers, which take the place of symbols
};

}  // namespace

absl::Status WriteDims(Workspace& workspace) {
  if (workspace.options().fix.empty()) return absl::OkStatus();
  // What only --dim says stays a promise: the model is as general as it was.
  return WithoutPromises(workspace, [&workspace] {
    Writer(workspace).Run();
    return absl::OkStatus();
  });
}

}  // namespace ascend_fuse
