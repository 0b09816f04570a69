// Random rewriting of a model through the Rewriter that never makes a cycle, models to do it on, and a picture of all that
// is linked in a model: shared by the tests of Rewriter and Verify.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/rewriter.h"
#include "ir/text/parser.h"
#include "ir/verify.h"
#include "tests/support/reads.h"
#include "tests/unit/models.h"

namespace ascend_fuse::testing {

inline NewNode Spec(std::string_view op_type, std::vector<const Value*> inputs) {
  NewNode node;
  node.op_type = op_type;
  node.inputs = std::move(inputs);
  return node;
}

// "name (inputs) => (outputs) { nodes }" as a model that was read from a file.
inline std::unique_ptr<Model> Loaded(std::string_view text) {
  auto parsed = ParseModelText(fmt::format("<ir_version: 8, opset_import: [\"\" : 17]>\n{}", text));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return MustLoad(MustSave(**parsed));
}

// Bodies in bodies that capture values, a Loop, and nodes of several outputs whose readers stand before and after one
// another.
inline constexpr std::string_view kNested = R"(nested (bool c, float[4, 8] x) => (float[4, 8] y, float[4, 8] z)
<float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[8] b = {8, 7, 6, 5, 4, 3, 2, 1}> {
  r = Relu (x)
  p = Mul (r, w)
  i = If (c) <
    then_branch = g1 () => (a) { n = Neg (p)
                                 k = If (c) < then_branch = g3 () => (e) { e = Add (n, r) },
                                              else_branch = g4 () => (f) { t = Sigmoid (n)
                                                                           f = Mul (t, w) } >
                                 a = Add (k, b) },
    else_branch = g2 () => (d) { u = Sub (r, w)
                                 d = Abs (u) }
  >
  s = Add (i, p)
  trips = Constant <value_int = 3> ()
  l, all = Loop (trips, c, s) <
    body = g5 (int64 j, bool go, float[4, 8] v) => (bool on, float[4, 8] m, float[4, 8] out) {
      on = Identity (go)
      q = Mul (v, w)
      m = Add (q, r)
      out = Neg (m) }
  >
  o = Sub (l, i)
  y = Mul (o, p)
  z = Relu (s)
})";

inline constexpr std::string_view kOutputs = R"(outputs (float[4, 8] x) => (float[4, 2] y, float[4, 2] z)
<float[2] w = {1, 2}, float[2] b = {2, 1}> {
  s0, s1, s2, s3 = Split <axis = 1> (x)
  a = Mul (s0, w)
  ra = Relu (a)
  na = Neg (ra)
  d = Mul (s1, w)
  rd = Relu (d)
  e = Add (s2, b)
  re = Relu (e)
  f = Add (na, rd)
  g = Add (f, re)
  y = Mul (g, s3)
  z = Sub (ra, re)
})";

// Bodies whose inputs and initializers have names of values around them, as the checker of ONNX lets them, in bodies and under
// one another.
inline constexpr std::string_view kHiding = R"(hiding (bool c, float[4, 8] x) => (float[4, 8] y, float[4, 8] z)
<float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[8] b = {8, 7, 6, 5, 4, 3, 2, 1}> {
  r = Relu (x)
  p = Identity (r)
  i = If (c) <
    then_branch = g1 () => (a) <float[8] r = {1, 0, 1, 0, 1, 0, 1, 0}> {
      n = Mul (p, r)
      k = If (c) < then_branch = g3 () => (e) <float[8] b = {2, 2, 2, 2, 2, 2, 2, 2}> { v = Add (n, r)
                                                                                    e = Mul (v, b) },
                   else_branch = g4 () => (f) { t = Sigmoid (n)
                                                                                    f = Add (t, r) } >
      a = Add (k, w) },
    else_branch = g2 () => (d) { u = Sub (r, w)
                                 d = Abs (u) }
  >
  s = Add (i, p)
  trips = Constant <value_int = 3> ()
  l, all = Loop (trips, c, s) <
    body = g5 (int64 i, bool go, float[4, 8] p) => (bool go, float[4, 8] m, float[4, 8] p) <float[8] x = {3, 3, 3, 3, 3, 3, 3, 3}>
    { q = Mul (p, w)
      o = Mul (q, x)
      m = Add (o, s) }
  >
  o = Sub (l, i)
  y = Mul (o, p)
  z = Relu (s)
})";

inline std::vector<std::unique_ptr<Model>> ModelsToRewrite() {
  std::vector<std::unique_ptr<Model>> models;
  models.push_back(MustLoad(RichModel().SerializeAsString()));
  models.push_back(Loaded(kNested));
  models.push_back(Loaded(kOutputs));
  models.push_back(Loaded(kHiding));
  return models;
}

// All fields of nodes, values and graphs in one text: the uses in the order of their lists too.
inline std::string Picture(const Model& model) {
  std::string text;
  auto add = [&](const Value* value) {
    text += fmt::format(" [{} {} {} {}:", fmt::ptr(value), static_cast<uint32_t>(value->name), fmt::ptr(value->producer),
                        value->output_index);
    for (const Use* use = value->uses; use != nullptr; use = use->next) {
      text += fmt::format(" {}.{}", use->user->id, use->index);
    }
    text += "]";
  };
  for (const auto& graph : model.graphs()) {
    for (const auto* list : {&graph->inputs(), &graph->outputs(), &graph->initializers()}) {
      for (const Value* value : *list) add(value);
      text += "\n";
    }
    for (const Node* node : graph->nodes()) {
      text += fmt::format("{} {}.{} '{}' {} {}{}{} (", node->id, Domain(*node), OpType(*node), NodeName(*node), node->order,
                          node->dead ? "dead " : "", node->is_new ? "new " : "", node->rewired ? "rewired" : "");
      for (const Use& use : node->inputs()) text += fmt::format("{},", fmt::ptr(use.value));
      text += ") =>";
      for (const Value* value : node->outputs()) {
        if (value != nullptr) add(value);
      }
      text += "\n";
    }
  }
  for (const OpsetImport& import : model.opset_imports()) text += fmt::format("{} ", import.version);
  return text;
}

class RandomRewrites {
 public:
  RandomRewrites(Model* model, uint32_t seed) : model_(*model), rewriter_(model), random_(seed) {
    for (const auto& graph : model->graphs()) {
      for (const Value* value : graph->inputs()) levels_[value] = 0;
      for (const Value* value : graph->initializers()) levels_[value] = 0;
    }
    SetLevels(model->graph());
  }

  Rewriter& rewriter() { return rewriter_; }
  size_t Below(size_t count) { return random_() % count; }

  // One step; what was done.
  std::string Step() {
    switch (Below(10)) {
      case 0:
      case 1:
        return Insert();
      case 2:
      case 3:
      case 4:
        return Replace();
      case 5:
      case 6:
        return SetInput();
      case 7:
        return Restore();
      case 8:
        return Constant();
      default:
        return Other();
    }
  }

  // The nodes that are alive.
  std::vector<const Node*> Nodes() const {
    std::vector<const Node*> nodes;
    for (const auto& graph : model_.graphs()) {
      if (!IsAlive(*graph)) continue;
      for (const Node* node : graph->nodes()) {
        if (!node->dead) nodes.push_back(node);
      }
    }
    return nodes;
  }

 private:
  // Every node computes values of a higher level than those it and its bodies read: then there is no cycle. The nodes of
  // the file have their place as level.
  void SetLevels(const Graph& graph) {
    for (const Node* node : graph.nodes()) {
      for (const Graph* body : node->subgraphs()) SetLevels(*body);
      ++next_level_;
      for (const Value* value : node->outputs()) {
        if (value != nullptr) levels_[value] = next_level_;
      }
    }
  }

  double Level(const Value* value) {
    const auto found = levels_.find(value);
    return found != levels_.end() ? found->second : 0;
  }
  double Level(const Node& node) {
    double level = 1e9;
    for (const Value* value : node.outputs()) {
      if (value != nullptr) level = std::min(level, Level(value));
    }
    return level;
  }

  // A value that a node in `graph` may read which computes values of `level`; dead ones too, which come back.
  const Value* Readable(const Graph* graph, double level) {
    std::vector<const Value*> values;
    for (const Graph* at = graph; at != nullptr; at = at->owner() != nullptr ? at->owner()->graph : nullptr) {
      values.insert(values.end(), at->inputs().begin(), at->inputs().end());
      values.insert(values.end(), at->initializers().begin(), at->initializers().end());
      for (const Node* node : at->nodes()) {
        for (const Value* value : node->outputs()) {
          if (value != nullptr && value->producer == node && Level(value) < level) values.push_back(value);
        }
      }
    }
    return values.empty() ? nullptr : values[Below(values.size())];
  }

  std::vector<const Value*> SomeReadable(const Graph* graph, double level) {
    std::vector<const Value*> values;
    for (size_t i = 1 + Below(3); i > 0; --i) {
      if (const Value* value = Readable(graph, level)) values.push_back(value);
    }
    return values;
  }

  const Graph* SomeGraph() {
    std::vector<const Graph*> graphs;
    for (const auto& graph : model_.graphs()) {
      if (IsAlive(*graph)) graphs.push_back(graph.get());
    }
    return graphs[Below(graphs.size())];
  }

  void SetLevel(const Node* node, double level) {
    for (const Value* value : node->outputs()) {
      if (value != nullptr && !levels_.contains(value)) levels_[value] = level;
    }
  }

  // Smaller than the distance of two levels after any number of steps of a test.
  static constexpr double kStep = 1e-6;

  std::string Insert() {
    const Graph* graph = SomeGraph();
    const double limit = graph->owner() != nullptr ? Level(*graph->owner()) - 0.5 : 1e8;
    const std::vector<const Value*> inputs = SomeReadable(graph, limit);
    double level = 0;
    for (const Value* value : inputs) level = std::max(level, Level(value));
    NewNode spec = Spec("Made", inputs);
    spec.name = Below(2) == 0 ? "made" : "";
    const Node* node = rewriter_.Insert(spec, 1 + Below(2), graph, "made");
    for (const Value* value : node->outputs()) levels_[value] = level + kStep;
    return fmt::format("insert {}", ValueName(*node->output()));
  }

  std::string Replace() {
    std::vector<const Value*> candidates;
    for (const Node* node : Nodes()) {
      for (const Value* value : node->outputs()) {
        if (value != nullptr && value->producer == node) candidates.push_back(value);
      }
    }
    if (candidates.empty()) return "nothing";
    std::vector<const Value*> outputs = {candidates[Below(candidates.size())]};
    for (size_t i = Below(3); i > 0; --i) {
      const Value* value = candidates[Below(candidates.size())];
      if (value->graph == outputs[0]->graph && std::find(outputs.begin(), outputs.end(), value) == outputs.end()) {
        outputs.push_back(value);
      }
    }
    double level = 1e9;
    for (const Value* value : outputs) level = std::min(level, Level(value));
    NewNode spec = Spec("Fused", SomeReadable(outputs[0]->graph, level));
    if (Below(3) != 0) {
      spec.name = NodeName(*outputs[0]->producer);
      spec.keep_name = true;
    }
    std::string text = "replace";
    for (const Value* value : outputs) text += fmt::format(" {}", ValueName(*value));
    const size_t more = Below(3);  // outputs that are new values, before and after those
    std::vector<TakenOutput> taken;
    for (size_t i = 0; i < outputs.size(); ++i) taken.push_back({i + more / 2, outputs[i]});
    const Node* node = rewriter_.Replace(taken, outputs.size() + more, spec);
    SetLevel(node, level);
    return text;
  }

  std::string SetInput() {
    const std::vector<const Node*> nodes = Nodes();
    if (nodes.empty()) return "nothing";
    const Node* node = nodes[Below(nodes.size())];
    if (node->input_count == 0) return "nothing";
    const Value* value = Readable(node->graph, Level(*node));
    if (value == nullptr) return "nothing";
    rewriter_.SetInput(node, Below(node->input_count), value);
    return fmt::format("{} '{}' reads {}", OpType(*node), NodeName(*node), ValueName(*value));
  }

  std::string Restore() {
    std::vector<const Node*> replacements;
    for (const Node* node : Nodes()) {
      if (OpType(*node) != "Fused") continue;
      const bool latest = std::all_of(node->outputs().begin(), node->outputs().end(),
                                      [&](const Value* value) { return value->producer == node; });
      if (latest) replacements.push_back(node);
    }
    if (replacements.empty()) return "nothing";
    const Node* node = replacements[Below(replacements.size())];
    const std::string text = fmt::format("restore {}", ValueName(*node->output()));
    rewriter_.Restore(node);
    return text;
  }

  std::string Constant() {
    const Graph* graph = SomeGraph();
    if (Below(3) > 0) {
      rewriter_.NumberConstant(graph, DataType::kFloat, static_cast<double>(Below(4)), "constant");
      return "constant";
    }
    std::vector<const Value*> parts;
    for (const Value* value : model_.graph().initializers()) {
      const Tensor& tensor = *value->initializer;
      if (tensor.dims.size() != 1 || tensor.type != DataType::kFloat || tensor.storage == Storage::kJoined) continue;
      parts.push_back(value);
    }
    if (parts.empty()) return "nothing";
    parts = {parts[Below(parts.size())], parts[Below(parts.size())]};
    const absl::StatusOr<const Value*> joined = rewriter_.Join(parts, 0, "joined");
    EXPECT_TRUE(joined.ok()) << joined.status();
    return "join";
  }

  std::string Other() {
    switch (Below(4)) {
      case 0:
        rewriter_.SetOpsetImport("npu", static_cast<int64_t>(Below(3)));
        return "import";
      case 1:
        rewriter_.SpellDefaultDomain(static_cast<DefaultDomain>(Below(3)));
        return "spell";
      case 2:
        rewriter_.UniqueName("made");
        return "name";
      default:
        for (const Node* node : Nodes()) {
          if (!node->is_new || OpType(*node) != "Made" || Below(2) == 0) continue;
          rewriter_.Rename(node, "npu", "Renamed");
          return "rename";
        }
        return "nothing";
    }
  }

  Model& model_;
  Rewriter rewriter_;
  std::mt19937 random_;
  absl::flat_hash_map<const Value*, double> levels_;
  double next_level_ = 0;
};

}  // namespace ascend_fuse::testing
