// What ATC's parser makes of the frame of a model: imports, names, empty inputs and outputs, branches, element types.
// The behaviour is that of hicann/ge:parser/parser/onnx; each function names its place there.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/spelling.h"
#include "passes/check/atc_check.h"
#include "passes/core/call_of.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {
namespace {

constexpr char kParser[] = "hicann/ge:parser/parser/onnx/onnx_parser.cc";

bool HasEmptyOutput(const Node& node) {
  return std::any_of(node.outputs().begin(), node.outputs().end(),
                     [&](const Value* value) { return value == nullptr || value->producer != &node; });
}
bool HasEmptyInput(const Node& node) {
  return std::any_of(node.inputs().begin(), node.inputs().end(), [](const Use& use) { return use.value == nullptr; });
}

bool IsReadType(DataType type) {
  switch (type) {
    case DataType::kFloat8E4M3FNUZ:
    case DataType::kFloat8E5M2FNUZ:
    case DataType::kFloat8E8M0:
    case DataType::kFloat8E4M3FN:  // mapped, and missing in the table of sizes of constants
    case DataType::kFloat8E5M2:
    case DataType::kFloat4E2M1:
    case DataType::kUint4:
    case DataType::kUint2:
    case DataType::kInt2:
      return false;
    default:
      return true;
  }
}

class Structure {
 public:
  Structure(const Model& model, const Target& target) : model_(model), target_(target) {}

  std::vector<FindingRecord> Run() {
    CheckOpset();
    CheckNpuVersion();
    CheckImports();
    CheckPorts();
    for (const auto& graph : model_.graphs()) {
      CheckNames(*graph);
      CheckEmpty(*graph);
      CheckConstants(*graph);
      if (graph->owner() != nullptr) CheckBranch(*graph);
      for (const Node* node : graph->nodes()) {
        if (!node->dead && IsOp(*node, "If")) CheckIf(*node);
      }
    }
    return std::move(findings_);
  }

 private:
  void Add(FindingRecord finding, std::string_view place, std::string_view error, std::string way_out) {
    finding.source = fmt::format("{} {}", kParser, place);
    finding.error = error;
    finding.way_out = std::move(way_out);
    findings_.push_back(std::move(finding));
  }
  // About the whole model.
  void AddOfModel(std::string code, std::string effect, std::string because, std::string_view place, std::string_view error,
                  std::string way_out) {
    FindingRecord finding;
    finding.code = std::move(code);
    finding.effect = std::move(effect);
    finding.because = std::move(because);
    Add(std::move(finding), place, error, std::move(way_out));
  }

  void CheckOpset() {
    if (model_.OpsetVersion() <= target_.MaxOpset()) return;
    AddOfModel("opset-too-high", "no_parser",
               fmt::format("the model imports opset {}; ATC of CANN {} reads standard operators up to opset {}",
                           model_.OpsetVersion(), target_.cann(), target_.MaxOpset()),
               "ConstructOriType", "E13010", fmt::format("export at opset {} or lower", target_.MaxOpset()));
  }

  // Parsers are registered under domain, version and name, and those of the npu nodes as version 1.
  void CheckNpuVersion() {
    const auto imports = model_.opset_imports();
    const auto npu = std::find_if(imports.begin(), imports.end(),
                                  [this](const OpsetImport& import) { return model_.Text(import.domain) == "npu"; });
    if (npu == imports.end() || npu->version == 1) return;
    for (const auto& graph : model_.graphs()) {
      for (const Node* node : graph->nodes()) {
        if (node->dead || Domain(*node) != "npu") continue;
        return AddOfModel("npu-version", "no_parser",
                          fmt::format("the model imports version {} of the domain npu, and parsers of its nodes are registered "
                                      "for version 1",
                                      npu->version),
                          "ConstructOriType", "E13010", "write 1 there");
      }
    }
  }

  // A node of the empty domain is read beside one import only; one of domain ai.onnx if that is what is imported.
  void CheckImports() {
    if (target_.ParsesNpuDomain()) return;
    const Spelling spelling(model_);
    const std::vector<std::string> imports = spelling.Imports();
    const bool has_explicit = std::find(imports.begin(), imports.end(), "ai.onnx") != imports.end();
    for (const auto& graph : model_.graphs()) {
      for (const Node* node : graph->nodes()) {
        if (node->dead || node->domain != NameId::kEmpty) continue;
        const bool empty = spelling.DomainOf(*node).empty();
        if (empty ? imports.size() == 1 : has_explicit) continue;
        std::vector<std::string> words;
        for (const std::string& import : imports) words.push_back(fmt::format("'{}'", import));
        FindingRecord finding =
            FindingOf(*node, "imports-mixed", "refused",
                      empty ? fmt::format("a node of the empty domain, where the model imports {} domains ({}): the parser of "
                                          "CANN {} takes only one then",
                                          imports.size(), fmt::join(words, ", "), target_.cann())
                            : fmt::format("a node of domain ai.onnx, which the model does not import under that name ({})",
                                          fmt::join(words, ", ")));
        Add(std::move(finding), "ConstructOriType", "E16005", "drop imports that no node needs, or write ai.onnx everywhere");
        return;  // all nodes are written alike
      }
    }
  }

  void CheckPorts() {
    const Graph& graph = model_.graph();
    if (graph.inputs().empty() && graph.initializers().empty()) {
      AddOfModel("no-inputs", "refused", "the model has no input and no initializer", "ParseInput", "E16001", "give it an input");
    }
    if (graph.outputs().empty()) {
      AddOfModel("no-outputs", "refused", "the model has no output", "ParseOutput", "E16001", "give it an output");
    }
  }

  void CheckNames(const Graph& graph) {
    absl::flat_hash_map<NameId, const Node*> named;
    absl::flat_hash_set<NameId> inputs;
    for (const Value* input : graph.inputs()) inputs.insert(input->name);
    int64_t unnamed = 0;
    absl::flat_hash_set<NameId> unnamed_types;
    for (const Node* node : graph.nodes()) {
      if (node->dead) continue;
      if (node->name == NameId::kEmpty) {
        ++unnamed;
        unnamed_types.insert(node->op_type);
        continue;
      }
      if (inputs.contains(node->name)) {
        Add(FindingOf(*node, "name-of-an-input", "refused", "a node has the name of an input of the graph"), "ParseInput",
            "E13009", "name it otherwise");
      }
      if (!named.try_emplace(node->name, node).second) {
        Add(FindingOf(*node, "name-twice", "refused", "two nodes of one graph have this name"), "PreChecker::CheckName", "E13009",
            "name them differently");
      }
    }
    if (unnamed == 0) return;
    for (const auto& [name, node] : named) CheckMadeName(*node, unnamed, unnamed_types);
  }

  // Nodes without a name get one: <op_type>_<how many of these came before>.
  void CheckMadeName(const Node& node, int64_t unnamed, const absl::flat_hash_set<NameId>& unnamed_types) {
    const std::string_view name = NodeName(node);
    const size_t line = name.rfind('_');
    if (line == std::string_view::npos) return;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data() + line + 1, name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number > unnamed) return;
    const auto same = [&](NameId type) { return model_.Text(type) == name.substr(0, line); };
    if (std::none_of(unnamed_types.begin(), unnamed_types.end(), same)) return;
    FindingRecord finding = FindingOf(node, "name-twice", "refused",
                                      "it has a name that ATC may make for a node without one (possible: nodes without "
                                      "a name are counted in the order in which they stand)");
    finding.certain = false;
    Add(std::move(finding), "UpdateNodeNameAndOpType", "E13009", "give every node a name");
  }

  // Empty names are names like any other: every empty input is connected to an empty output of the graph.
  void CheckEmpty(const Graph& graph) {
    const std::optional<LeftReason> in_branch = target_.EmptyInputInBranch();
    const Node* output = nullptr;
    for (const Node* node : graph.nodes()) {
      if (!node->dead && output == nullptr && HasEmptyOutput(*node)) output = node;
    }
    for (const Node* node : graph.nodes()) {
      if (node->dead || !HasEmptyInput(*node)) continue;
      if (output != nullptr) {
        Add(FindingOf(*node, "empty-names-wired", "misread",
                      fmt::format("its empty input is connected to the empty output of {}", Label(*output))),
            "ConstructInputOutputContext", "", "leave trailing outputs out, or name them");
      } else if (in_branch.has_value() && IsBranchOfIf(graph)) {
        FindingRecord finding = FindingOf(*node, in_branch->code, "misread", in_branch->because);
        finding.source = in_branch->source;
        finding.way_out = "leave the input out, or give it its default";
        findings_.push_back(std::move(finding));
      }
    }
  }

  void CheckConstants(const Graph& graph) {
    for (const Value* value : graph.initializers()) {
      if (value->initializer == nullptr || (LiveUses(*value).empty() && !value->is_graph_output)) continue;
      const Tensor& tensor = *value->initializer;
      FindingRecord finding;
      finding.node = std::string(ValueName(*value));
      if (!IsReadType(tensor.type)) {
        finding.code = "constant-type", finding.effect = "refused";
        finding.because = fmt::format("a constant of type {}, which ATC does not read", DataTypeName(tensor.type));
        Add(finding, "onnx_constant_parser.cc, onnx_util.cc", "", "store it in another type");
      }
      if (tensor.ElementCount() > INT32_MAX) {
        finding.code = "constant-too-large", finding.effect = "misread";
        finding.because = fmt::format("a constant of {} elements: ATC counts them in 32 bits", tensor.ElementCount());
        Add(finding, "onnx_constant_parser.cc", "", "divide it");
      }
      if (graph.owner() != nullptr && tensor.storage == Storage::kExternal) {
        finding.code = "branch-external-data", finding.effect = "refused";
        finding.because = "a constant of a branch lies in a file of its own, and ATC looks for it beside nothing";
        Add(finding, "SetExternalPath", "", "move it to the main graph");
      }
    }
  }

  // Only what direct nodes of a branch read is handed into it: a tensor that only a branch inside it reads is missed.
  void CheckBranch(const Graph& graph) {
    const Graph* around = graph.owner()->graph;
    if (around->owner() == nullptr) return;
    absl::flat_hash_set<const Value*> handed;
    for (const Node* node : around->nodes()) {
      if (node->dead) continue;
      for (const Use& use : node->inputs()) handed.insert(use.value);
    }
    for (const Node* node : graph.nodes()) {
      if (node->dead) continue;
      for (const Use& use : node->inputs()) {
        if (use.value == nullptr || use.value->graph == &graph || use.value->graph == around) continue;
        if (handed.contains(use.value)) continue;
        Add(FindingOf(*node, "nested-capture", "refused",
                      fmt::format("it reads {} from outside of the branch around its own, and no node of that branch "
                                  "does",
                                  ValueName(*use.value))),
            "GetSubgraphsAllInputs", "", "read it by an Identity in the branch around");
      }
    }
  }

  void CheckIf(const Node& node) {
    std::vector<std::string> others;
    for (const Attribute& attribute : ReadAttributes(node)) {
      if (attribute.name != "then_branch" && attribute.name != "else_branch") others.emplace_back(attribute.name);
    }
    if (others.empty()) return;
    Add(FindingOf(node, "if-attributes", "refused", fmt::format("an If with {} beside its branches", fmt::join(others, ", "))),
        "if_subgraph_adapter.cc", "", "leave it out");
  }

  const Model& model_;
  const Target& target_;
  std::vector<FindingRecord> findings_;
};

}  // namespace

std::vector<FindingRecord> FindInStructure(const Model& model, const Target& target) { return Structure(model, target).Run(); }

}  // namespace ascend_fuse
