#include "patterns/target/plugin_source.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "embedded/plugin_data.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/status_macros.h"
#include "patterns/target/target.h"

namespace ascend_fuse {
namespace {

// The default domain of today has fewer opsets than this.
constexpr int64_t kLastOpset = 64;

// Lines of what is written are at most so wide.
constexpr size_t kWidth = 120;

// "8.5" -> {8, 5}
std::pair<int, int> VersionNumbers(std::string_view text) {
  std::pair<int, int> numbers(0, 0);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), numbers.first);
  if (error == std::errc() && end != text.data() + text.size()) {
    std::from_chars(end + 1, text.data() + text.size(), numbers.second);
  }
  return numbers;
}

std::string CppText(std::string_view text) { return fmt::format("\"{}\"", text); }

// A number as a literal of float: "1" -> "1.0F".
std::string CppFloat(std::string_view text) {
  const bool whole = text.find_first_of(".e") == std::string_view::npos;
  return fmt::format("{}{}F", text, whole ? ".0" : "");
}

// The words of `only` as an argument list: ", {0, 1}", or "".
std::string CppOnly(const DeclaredAttribute& attribute) {
  if (attribute.only.empty()) return "";
  std::vector<std::string> words = attribute.only;
  for (std::string& word : words) {
    if (attribute.type == AttributeType::kString) word = CppText(word);
    if (attribute.type == AttributeType::kFloat) word = CppFloat(word);
  }
  return fmt::format(", {{{}}}", fmt::join(words, ", "));
}

// How the parser asks for an attribute: `const int64_t dim = node.Int("dim", -1);`, or `node.Int("axis", -1, {-1});` where
// no attribute of the GE operator is set from it.
std::string AskLine(const DeclaredAttribute& attribute) {
  std::string_view type = "std::string", function = "Text";
  std::string fallback = attribute.default_text.value_or("");
  if (attribute.type == AttributeType::kInt) {
    type = "int64_t", function = "Int";
  } else if (attribute.type == AttributeType::kFloat) {
    type = "float", function = "Float";
    fallback = CppFloat(fallback);
  } else {
    fallback = CppText(fallback);
  }
  const std::string only = CppOnly(attribute);
  const std::string given = attribute.default_text.has_value() ? fmt::format(", {}", fallback) : "";
  const std::string result = attribute.ge.empty() ? "" : fmt::format("const {} {} = ", type, attribute.name);
  const std::string start = fmt::format("  {}node.{}(", result, function);
  const std::string line = fmt::format("{}\"{}\"{}{});\n", start, attribute.name, given, only);
  if (line.size() <= kWidth + 1) return line;
  return fmt::format("{}\n      \"{}\"{}{});\n", start, attribute.name, given, only);
}

// How the parser sets the attribute of the GE operator; "" where it has none.
std::string SetLine(const DeclaredAttribute& attribute) {
  if (attribute.ge.empty()) return "";
  std::string value = attribute.name;
  if (attribute.type == AttributeType::kString) value = fmt::format("ge::AscendString({}.c_str())", value);
  if (attribute.ge_type == "bool") value += " != 0";
  return fmt::format("  target.SetAttr(\"{}\", {});\n", attribute.ge, value);
}

// "data_format = "NCHW"" as a line of the parser.
std::string FixedLine(std::string_view fixed) {
  const size_t equals = fixed.find(" = ");
  const std::string_view name = fixed.substr(0, equals);
  const std::string_view value = fixed.substr(equals + 3);
  std::string literal(value);
  if (value.front() == '"') {
    literal = fmt::format("ge::AscendString({})", value);
  } else if (value.find('.') != std::string_view::npos) {
    literal = CppFloat(value);
  } else if (value != "true" && value != "false") {
    literal = fmt::format("static_cast<int64_t>({})", value);
  }
  return fmt::format("  target.SetAttr(\"{}\", {});\n", name, literal);
}

// An input of the GE operator that is a list gets its one place where the node has it.
std::string DynamicLines(const DeclaredOperator& op) {
  const auto& inputs = op.rows[0].signature.inputs;
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& dynamic = op.ge->dynamic;
    if (std::find(dynamic.begin(), dynamic.end(), inputs[i].name) == dynamic.end()) continue;
    text += fmt::format("  target.DynamicInputRegisterByIndex(\"{}\", 1, {});\n", inputs[i].name, i);
  }
  return text;
}

// "ParseNPUSwiGlu".
std::string FunctionOf(const DeclaredOperator& op) { return fmt::format("Parse{}", op.op_type); }

std::string Parser(const DeclaredOperator& op) {
  const SignaturePattern& signature = op.rows[0].signature;
  std::string names;
  size_t required = 0;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", signature.inputs[i].name);
    if (!signature.inputs[i].optional) required = i + 1;
  }
  std::string body = fmt::format("  Node node(\"{}\", source);\n", op.op_type);
  const std::string takes = fmt::format("  node.TakesInputs({}, {{{}}});\n", required, names);
  body +=
      takes.size() <= kWidth + 1 ? takes : fmt::format("  node.TakesInputs({},\n                   {{{}}});\n", required, names);
  body += fmt::format("  node.TakesOutputs({});\n", signature.outputs.size());
  std::string sets = DynamicLines(op);
  for (const DeclaredAttribute& attribute : op.attributes) {
    body += AskLine(attribute);
    sets += SetLine(attribute);
  }
  for (const std::string& fixed : op.ge->fixed) sets += FixedLine(fixed);
  body += "  if (!node.Accepted()) return domi::FAILED;\n";
  return fmt::format(
      "// {}\n"
      "domi::Status {}(const ge::Operator& source, ge::Operator& {}) {{\n{}{}  return domi::SUCCESS;\n}}\n",
      op.computes, FunctionOf(op), sets.empty() ? "/*target*/" : "target", body, sets);
}

// The first and the last opset at which the node has a name in the default domain, and all between; 0 and 0 without any.
std::pair<int64_t, int64_t> AliasOpsets(const DeclaredOperator& op) {
  TargetOptions options;
  options.plugin = true;
  static const absl::StatusOr<Target>* const target = new absl::StatusOr<Target>(Target::Load(options));
  std::pair<int64_t, int64_t> opsets(0, 0);
  for (int64_t opset = 1; target->ok() && opset <= kLastOpset; ++opset) {
    if (!(*target)->HasAlias(op.name, opset)) continue;
    if (opsets.first == 0) opsets.first = opset;
    opsets.second = opset;
  }
  return opsets;
}

std::string ParserSource(const std::vector<const DeclaredOperator*>& nodes) {
  std::string text =
      "// One parser for each node, and the names under which ATC finds it. Written by `ascend-fuse plugin` from\n"
      "// patterns/operators.txtpb; do not edit.\n"
      "#include <cstdint>\n#include <string>\n#include <vector>\n\n"
      "#include \"graph/ascend_string.h\"\n#include \"graph/operator.h\"\n#include \"register/register.h\"\n\n"
      "#include \"node.h\"\n\n"
      "namespace ascend_fuse_plugin {\nnamespace {\n\n";
  std::string registrations;
  for (const DeclaredOperator* op : nodes) {
    text += Parser(*op) + "\n";
    const auto [first, last] = AliasOpsets(*op);
    registrations += fmt::format(
        "REGISTER_CUSTOM_OP(\"{}\")\n    .FrameworkType(ONNX)\n    .OriginOpType(ascend_fuse_plugin::Keys(\"{}\", {}, {}))\n"
        "    .ParseParamsByOperatorFn(ascend_fuse_plugin::{})\n    .ImplyType(ImplyType::TVM);\n",
        op->ge->op, op->op_type, first, last, FunctionOf(*op));
  }
  text +=
      "// \"npu::1::NPUX\", and \"ai.onnx::N::NPUX\" for the opsets from first to last.\n"
      "std::vector<ge::AscendString> Keys(const std::string& op_type, int first, int last) {\n"
      "  std::vector<ge::AscendString> keys;\n"
      "  for (int opset = first; opset != 0 && opset <= last; ++opset) {\n"
      "    const std::string key = \"ai.onnx::\" + std::to_string(opset) + \"::\" + op_type;\n"
      "    keys.push_back(ge::AscendString(key.c_str()));\n"
      "  }\n"
      "  keys.push_back(ge::AscendString((\"npu::1::\" + op_type).c_str()));\n"
      "  return keys;\n"
      "}\n\n"
      "}  // namespace\n}  // namespace ascend_fuse_plugin\n\n"
      "// For `strings`: the version that a library has.\n"
      "extern \"C\" __attribute__((visibility(\"default\"))) const char* ascend_fuse_op_plugin_version() {\n"
      "  return \"ascend-fuse op plugin, version " +
      std::to_string(PluginVersion()) +
      "\";\n}\n\n"
      "// ATC's header names its types without the namespace.\nnamespace domi {\n";
  return text + registrations + "}  // namespace domi\n";
}

std::string VersionHeader() {
  return fmt::format(
      "// The version of this plugin. Written by `ascend-fuse plugin`; do not edit.\n"
      "#ifndef ASCEND_FUSE_PLUGIN_VERSION_H_\n#define ASCEND_FUSE_PLUGIN_VERSION_H_\n\n"
      "#define ASCEND_FUSE_PLUGIN_VERSION {}\n\n#endif  // ASCEND_FUSE_PLUGIN_VERSION_H_\n",
      PluginVersion());
}

std::string NodeTable(const std::vector<const DeclaredOperator*>& nodes) {
  std::string text = "| node | GE operator | since version | chips with a kernel |\n|---|---|---|---|\n";
  for (const DeclaredOperator* op : nodes) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", op->op_type, op->ge->op, op->ge->since, fmt::join(op->ge->chips, ", "));
  }
  return text;
}

// The text with what stands between the lines that mark the table of nodes written anew.
std::string WithTable(std::string_view text, const std::string& table) {
  constexpr std::string_view kStart = "<!-- nodes -->\n", kEnd = "<!-- end of nodes -->";
  const size_t start = text.find(kStart), end = text.find(kEnd);
  if (start == std::string_view::npos || end == std::string_view::npos) return std::string(text);
  return fmt::format("{}{}{}", text.substr(0, start + kStart.size()), table, text.substr(end));
}

absl::StatusOr<std::vector<const DeclaredOperator*>> Chosen(const PluginOptions& options) {
  const std::vector<const DeclaredOperator*> all = PluginNodes();
  std::vector<std::string> names;
  for (const DeclaredOperator* op : all) names.push_back(op->op_type);
  for (const std::string& wanted : options.nodes) {
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
      return absl::NotFoundError(
          fmt::format("--nodes {}: the plugin has no such node; there are {}", wanted, fmt::join(names, ", ")));
    }
  }
  const auto versions = Target::CannVersions();
  if (!options.cann.empty() && std::find(versions.begin(), versions.end(), options.cann) == versions.end()) {
    return absl::NotFoundError(fmt::format("--cann {}: there are {}", options.cann, fmt::join(versions, ", ")));
  }
  std::vector<const DeclaredOperator*> chosen;
  for (const DeclaredOperator* op : all) {
    const auto& wanted = options.nodes;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), op->op_type) == wanted.end()) continue;
    if (!options.cann.empty() && VersionNumbers(options.cann) < VersionNumbers(op->ge->release)) continue;
    chosen.push_back(op);
  }
  if (chosen.empty()) {
    return absl::NotFoundError(
        fmt::format("--cann {}: it has no GE operator of {}", options.cann, fmt::join(options.nodes, ", ")));
  }
  return chosen;
}

}  // namespace

std::vector<const DeclaredOperator*> PluginNodes() {
  std::vector<const DeclaredOperator*> nodes;
  for (const DeclaredOperator& op : DeclaredOperators()) {
    if (op.ge.has_value() && op.ge->parser == "plugin") nodes.push_back(&op);
  }
  return nodes;
}

int PluginVersion() {
  int version = 0;
  for (const DeclaredOperator* op : PluginNodes()) {
    version = std::max(version, op->ge->since);
    for (const DeclaredAttribute& attribute : op->attributes) version = std::max(version, attribute.since);
  }
  return version;
}

absl::StatusOr<std::vector<PluginFile>> PluginFiles(const PluginOptions& options) {
  ASSIGN_OR_RETURN(const auto nodes, Chosen(options));
  std::vector<PluginFile> files;
  for (size_t i = 0; i < embedded::plugin_data_count; ++i) {
    const auto& file = embedded::plugin_data[i];
    const std::string_view path = std::string_view(file.path).substr(std::string_view("plugin/").size());
    files.push_back({std::string(path), WithTable(file.text, NodeTable(nodes)), path.ends_with(".sh")});
  }
  files.push_back({"parsers.cc", ParserSource(nodes)});
  files.push_back({"version.h", VersionHeader()});
  std::sort(files.begin(), files.end(), [](const PluginFile& a, const PluginFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace ascend_fuse
