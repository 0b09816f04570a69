#include "passes/core/module_path.h"

#include <algorithm>

#include "fmt/format.h"

namespace ascend_fuse {
namespace {

// "/model/layers.0/self_attn/MatMul_1", "bert/encoder/MatMul" -> all but the last part, the operator; "" without a slash.
std::string PathOfName(std::string_view name) {
  if (!name.empty() && name[0] == '/') name.remove_prefix(1);
  const size_t last = name.rfind('/');
  if (last == std::string_view::npos) return "";
  std::string path(name.substr(0, last));
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

// pkg.torch.onnx.name_scopes: "['', 'model', 'model.layers.0', 'pow_1']": the last entry is the operation.
std::string PathOfScopes(std::string_view scopes) {
  std::vector<std::string_view> names;
  size_t at = 0;
  while ((at = scopes.find('\'', at)) != std::string_view::npos) {
    const size_t end = scopes.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    names.push_back(scopes.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return names.size() >= 2 ? std::string(names[names.size() - 2]) : "";
}

// namespace: ": llama.Model/model: llama.Inner/model.layers.0: llama.Layer/pow_1: aten.pow": names with their classes, the
// last one of the operation. What dynamo wrote before it wrote name_scopes.
std::string PathOfNamespace(std::string_view scopes) {
  std::string_view before;
  std::string_view last;
  while (!scopes.empty()) {
    const size_t slash = std::min(scopes.find('/'), scopes.size());
    const std::string_view part = scopes.substr(0, slash);
    before = last;
    last = part.substr(0, std::min(part.find(':'), part.size()));
    scopes.remove_prefix(std::min(slash + 1, scopes.size()));
  }
  return std::string(before);
}

// "model.layers.0.mlp.gate_proj.weight" -> the module that has the weight.
std::string PathOfWeight(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.find_first_of("/: ") != std::string_view::npos) return "";
  const std::string_view last = name.substr(dot + 1);
  return last == "weight" || last == "bias" ? std::string(name.substr(0, dot)) : "";
}

}  // namespace

std::string ModulePath(const Node& node) {
  if (std::string path = PathOfScopes(NodeMetadata(node, "pkg.torch.onnx.name_scopes")); !path.empty()) return path;
  if (std::string path = PathOfNamespace(NodeMetadata(node, "namespace")); !path.empty()) return path;
  if (std::string path = PathOfName(NodeName(node)); !path.empty()) return path;
  // Optimizers name the nodes they make after themselves; what these compute and read keeps its names.
  for (const Value* value : node.outputs()) {
    if (value == nullptr) continue;
    if (std::string path = PathOfName(ValueName(*value)); !path.empty()) return path;
  }
  for (const Use& use : node.inputs()) {
    if (use.value == nullptr || !use.value->IsConstant()) continue;
    if (std::string path = PathOfWeight(ValueName(*use.value)); !path.empty()) return path;
  }
  return "";
}

namespace {

// Of names of modules that are looked at: every part of one is.
constexpr size_t kLongestName = 1024;

std::string Underscored(std::string_view path) {
  std::string text(path);
  std::replace(text.begin(), text.end(), '.', '_');
  return text;
}

bool StartsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

}  // namespace

ModuleNames::ModuleNames(const Model& model) {
  for (const Value* value : model.graph().initializers()) {
    const std::string_view name = ValueName(*value);
    if (name.size() > kLongestName || name.find_first_of("/: ") != std::string_view::npos) continue;
    for (size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0; dot = name.rfind('.', dot - 1)) {
      const std::string_view path = name.substr(0, dot);
      const auto [at, added] = modules_.try_emplace(Underscored(path), path);
      if (!added && at->second == path) break;  // and all modules around it
      if (!added) at->second.clear();
    }
  }
}

std::string ModuleNames::PathOfFunction(std::string_view function, std::string_view outer) const {
  // The number of the call.
  const size_t last = function.rfind('_');
  if (last == std::string_view::npos || last + 1 == function.size() || function.size() > kLongestName ||
      function.find_first_not_of("0123456789", last + 1) != std::string_view::npos) {
    return "";
  }
  const std::string name = Underscored(function.substr(0, last));
  std::string found;
  for (size_t at = name.find('_', 1); at != std::string::npos; at = name.find('_', at + 1)) {
    const auto module = modules_.find(name.substr(at + 1));
    if (module == modules_.end()) continue;
    const std::string& path = module->second;
    if (!outer.empty() && !StartsWith(path, fmt::format("{}.", outer))) continue;
    if (path.empty() || !found.empty()) return "";
    found = path;
  }
  if (!found.empty() || outer.empty()) return found;
  // <class>_<outer>_<the rest>
  const std::string middle = fmt::format("_{}_", Underscored(outer));
  const size_t at = name.find(middle);
  if (at == std::string::npos || at == 0 || name.find(middle, at + 1) != std::string::npos) return "";
  const std::string rest = name.substr(at + middle.size());
  return rest.empty() ? "" : fmt::format("{}.{}", outer, rest);
}

CallScope ModuleNames::ScopeOf(const Node& call, const CallScope& outer) const {
  const std::string name(NodeName(call).empty() ? OpType(call) : NodeName(call));
  const std::string_view domain = Domain(call);
  const bool exported = StartsWith(domain, "pkg.");
  // Operators that torch has and ONNX has not.
  const bool is_operator = StartsWith(domain, "pkg.onnxscript.");
  if (exported && !is_operator) {
    if (std::string path = PathOfFunction(OpType(call), outer.path); !path.empty()) return {std::move(path), ""};
  }
  const size_t slash = name.rfind('/');
  std::string path = PathOfScopes(NodeMetadata(call, "pkg.torch.onnx.name_scopes"));
  if (path.empty()) path = PathOfNamespace(NodeMetadata(call, "namespace"));
  if (path.empty()) {
    path = PathOfName(name);
    if (!path.empty() && !outer.path.empty()) path = fmt::format("{}.{}", outer.path, path);
    if (path.empty()) path = outer.path;
  }
  const std::string leaf = slash == std::string::npos ? name : name.substr(slash + 1);
  if (is_operator) return {std::move(path), fmt::format("{}{}_", outer.prefix, leaf)};
  return {path.empty() ? leaf : fmt::format("{}.{}", path, leaf), ""};
}

}  // namespace ascend_fuse
