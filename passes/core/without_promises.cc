#include "passes/core/without_promises.h"

#include <algorithm>
#include <cstddef>

#include "passes/core/workspace.h"

namespace ascend_fuse {

absl::Status WithoutPromises(Workspace& workspace, absl::FunctionRef<absl::Status()> pass) {
  InferOptions options = workspace.options().infer;
  const auto& fixed = workspace.options().fix;
  const size_t told = options.dims.size() + options.equal_dims.size();
  std::erase_if(options.dims, [&](const auto& dim) { return std::find(fixed.begin(), fixed.end(), dim.first) == fixed.end(); });
  options.equal_dims.clear();
  options.learned_dims.clear();  // may rest on the promises
  if (options.dims.size() == told) return pass();
  workspace.InferModelAgain(options, &workspace.kept_without_promises);
  workspace.NumberValues();  // dims of the other facts are other dims
  const absl::Status status = pass();
  workspace.InferModelAgain();
  workspace.NumberValues();
  return status;
}

}  // namespace ascend_fuse
