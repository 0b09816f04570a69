// What inference knows of a model, one JSON object a line, for tests/python/check_inference.py:
//   infer_tool MODEL.onnx [--dim name=low..high]... [--text] [--movements]
//   infer_tool --operators      every operator that inference knows, "domain type"
// With --text: "name: type[shape] elements" for people. With --movements: what nodes do to positions, as arrays in the order of
// the members in ir/movement/movement.h.
#include <charconv>
#include <cmath>
#include <iostream>
#include <string>

#include "fmt/format.h"
#include "ir/infer/facts.h"
#include "ir/movement/movement.h"
#include "ir/onnx/load.h"
#include "patterns/operators/inference.h"

namespace ascend_fuse {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string Number(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value < 0 ? "\"-inf\"" : "\"inf\"";
  return fmt::format("{:.17g}", value);
}

std::string DimText(const Facts& facts, Dim dim) {
  if (!dim.known()) return "null";
  const std::string text = facts.dims().ToString(dim);
  return dim.is_number() ? text : Quoted(text);
}

std::string Elements(const Facts& facts, const Fact& fact) {
  std::string out;
  for (Dim dim : fact.elements->integers) out += (out.empty() ? "" : ", ") + DimText(facts, facts.dims().Resolve(dim));
  for (double value : fact.elements->floats) out += (out.empty() ? "" : ", ") + Number(value);
  return out;
}

std::string Dims(const Facts& facts, absl::Span<const Dim> dims) {
  std::string out;
  for (const Dim dim : dims) out += (out.empty() ? "" : ", ") + DimText(facts, facts.dims().Resolve(dim));
  return "[" + out + "]";
}

std::string SourceText(const Facts& facts, const AxisSource& source) {
  static constexpr std::string_view kKinds[] = {"place", "fixed", "broadcast", "wrapped", "read"};
  return fmt::format("[{}, {}, {}, {}, {}, {}]", Quoted(kKinds[static_cast<size_t>(source.kind)]), source.axis, source.step,
                     DimText(facts, facts.dims().Resolve(source.start)), source.operand, source.component);
}

std::string MovementText(const Facts& facts, const Movement& movement) {
  static constexpr std::string_view kKinds[] = {"none", "keeps_order", "permutes", "picks", "copies", "joins", "pads", "writes"};
  std::string parts;
  for (const MovedPart& part : movement.parts) {
    std::string windows, axes;
    for (const PlaceWindow& window : part.windows) {
      windows += fmt::format("{}[{}, {}, {}, {}]", windows.empty() ? "" : ", ", window.axis,
                             DimText(facts, facts.dims().Resolve(window.begin)),
                             DimText(facts, facts.dims().Resolve(window.count)), window.step);
    }
    for (const AxisSource& source : part.axes) axes += (axes.empty() ? "" : ", ") + SourceText(facts, source);
    parts += fmt::format("{}{{\"operand\": {}, \"windows\": [{}], \"known\": {}, \"axes\": [{}], \"view\": {}}}",
                         parts.empty() ? "" : ", ", part.operand, windows, part.known, axes, Dims(facts, part.view));
  }
  return fmt::format("{{\"kind\": {}, \"parts\": [{}], \"places\": {}, \"fill_operand\": {}, \"fill\": {}}}",
                     Quoted(kKinds[static_cast<size_t>(movement.kind)]), parts, Dims(facts, movement.places),
                     movement.fill_operand, Number(movement.fill));
}

// What is printed.
struct Wanted {
  bool text = false;
  bool movements = false;
};

void Print(const Value& value, const Facts& facts, Wanted wanted) {
  const Fact& fact = facts.Of(&value);
  if (wanted.text) {
    fmt::print("{}: {}", ValueName(value), facts.Describe(&value));
    if (fact.elements != nullptr) fmt::print(" {{{}}}", Elements(facts, fact));
    if (fact.is_splat) fmt::print(" splat {}", fact.splat);
    fmt::print("\n");
    return;
  }
  std::string shape = "null";
  bool fresh = !fact.has_rank;
  if (fact.has_rank) {
    shape = "[";
    for (Dim dim : fact.shape) {
      if (shape.size() > 1) shape += ", ";
      const Dim resolved = facts.dims().Resolve(dim);
      shape += DimText(facts, resolved);
      fresh = fresh || !dim.known() || facts.dims().MentionsFresh(resolved);
    }
    shape += "]";
  }
  static constexpr std::string_view kOrigins[] = {"nothing", "input", "constant", "operator", "declared", "unified"};
  fmt::print("{{\"name\": {}, \"body\": {}, \"type\": {}, \"shape\": {}, \"fresh\": {}, \"from\": \"{}\", \"op\": {}",
             Quoted(ValueName(value)), value.graph->owner() != nullptr, static_cast<int>(fact.type), shape, fresh,
             kOrigins[static_cast<size_t>(facts.OriginOf(&value))],
             Quoted(value.producer != nullptr ? OpType(*value.producer) : std::string_view()));
  if (fact.elements != nullptr) fmt::print(", \"elements\": [{}]", Elements(facts, fact));
  if (fact.is_splat) fmt::print(", \"splat\": {}", Number(fact.splat));
  if (const Movement* movement = facts.MovementOf(&value); wanted.movements && movement != nullptr) {
    fmt::print(", \"movement\": {}", MovementText(facts, *movement));
  }
  fmt::print("}}\n");
}

// The values of a graph, then those of the bodies in it.
void PrintGraph(const Graph& graph, const Facts& facts, Wanted wanted) {
  for (const Value* value : graph.inputs()) Print(*value, facts, wanted);
  if (wanted.text) {
    for (const Value* value : graph.initializers()) Print(*value, facts, wanted);
  }
  for (const Node* node : graph.nodes()) {
    for (const Value* value : node->outputs()) {
      if (value != nullptr) Print(*value, facts, wanted);
    }
  }
  for (const Node* node : graph.nodes()) {
    for (const Graph* body : node->subgraphs()) {
      if (body != nullptr) PrintGraph(*body, facts, wanted);
    }
  }
}

int Main(int argc, char** argv) {
  std::string path;
  Wanted wanted;
  InferOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--operators") {
      auto operators = InferredOperators();
      const auto declared = DeclaredInference()->Operators();
      operators.insert(operators.end(), declared.begin(), declared.end());
      for (const auto& [domain, op_type] : operators) fmt::print("{} {}\n", domain, op_type);
      return 0;
    }
    if (argument == "--text") {
      wanted.text = true;
    } else if (argument == "--movements") {
      wanted.movements = true;
    } else if (argument == "--dim" && i + 1 < argc) {
      const std::string binding = argv[++i];
      const size_t equals = binding.find('=');
      const size_t dots = binding.find("..");
      if (equals == std::string::npos) return 2;
      const int64_t low = std::atoll(binding.c_str() + equals + 1);
      const int64_t high = dots == std::string::npos ? low : std::atoll(binding.c_str() + dots + 2);
      options.dims.push_back({binding.substr(0, equals), {low, high}});
    } else {
      path = argument;
    }
  }
  const absl::StatusOr<std::unique_ptr<Model>> model = LoadModel(path);
  if (!model.ok()) {
    std::cerr << model.status().message() << "\n";
    return 1;
  }
  const Facts facts = Infer(**model, WithDeclaredOperators(options));
  PrintGraph((*model)->graph(), facts, wanted);
  for (const Contradiction& contradiction : facts.contradictions()) {
    std::cerr << "contradiction: " << contradiction.sentence << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace ascend_fuse

int main(int argc, char** argv) { return ascend_fuse::Main(argc, argv); }
