// Which module of the exported program a node belongs to, from what exporters and optimizers leave of it.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "ir/onnx/inline.h"

namespace ascend_fuse {

// The module a node belongs to: from the dynamo exporter's name scopes or namespace, else from the node's name
// ("/model/layers.0/mlp/Mul" is model.layers.0.mlp), else from the names of what it computes and of the weights it
// reads, which optimizers that rename nodes keep. "" if none says anything.
std::string ModulePath(const Node& node);

// Names for what calls of local functions become, so that ModulePath reads them. Calls of other functions than those
// of modules and of operators are modules of their own, named like the call.
//
// dynamo of torch 2.1 to 2.4 exports each call of a module as a function of its own in a domain such as
// pkg.transformers.4.37.0, named <class>_<module path>_<how many calls of it before> with _ for every dot:
// transformers_models_llama_modeling_llama_LlamaRMSNorm_model_layers_0_input_layernorm_1
// (pytorch/pytorch:torch/onnx/_internal/fx/passes/modularization.py). Where a _ was a dot is not in the name. It is in
// the names of weights, model.layers.0.input_layernorm.weight. The name of a module without any begins with that of the
// module that calls it, and the rest, act_fn, is left in one part. A name that says neither stays what it is.
class ModuleNames {
 public:
  explicit ModuleNames(const Model& model);
  CallScope ScopeOf(const Node& call, const CallScope& outer) const;

  // The module path in the name of a function that is called in `outer`; "" where it cannot be told.
  std::string PathOfFunction(std::string_view function, std::string_view outer) const;

 private:
  // Modules that have weights, or contain one that has, by their path with _ for dots; "" for two of one such name.
  absl::flat_hash_map<std::string, std::string> modules_;
};

}  // namespace ascend_fuse
