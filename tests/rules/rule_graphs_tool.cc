// Makes graphs from every rule of patterns/library, mutates them, optimizes and expands what comes out, and writes
// both models for tests/python/test_rule_graphs.py, which runs them.
//
//     rule_graphs_tool SEED COUNT FOLDER [RULE]
//
// FOLDER/models holds the bytes of all models one after another, FOLDER/cases.json what they are.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "passes/optimize.h"
#include "tests/rules/rule_graphs.h"

namespace ascend_fuse::testing {
namespace {

using Proto = onnx::TensorProto;

template <typename List>
auto& Pick(List* list, std::mt19937_64* random) {
  return *list->Mutable(std::uniform_int_distribution<int>(0, list->size() - 1)(*random));
}

int Below(int count, std::mt19937_64* random) { return std::uniform_int_distribution<int>(0, count - 1)(*random); }

// Changes one thing of the graph and says what; "" where there was nothing of the chosen kind.
std::string Mutate(onnx::ModelProto* model, std::mt19937_64* random) {
  onnx::GraphProto* graph = model->mutable_graph();
  switch (Below(10, random)) {
    case 0:
    case 1: {  // a constant
      if (graph->initializer_size() == 0) return "";
      auto& tensor = Pick(graph->mutable_initializer(), random);
      std::string* raw = tensor.mutable_raw_data();
      if (tensor.data_type() == Proto::FLOAT && raw->size() >= 4) {
        const size_t place = 4 * static_cast<size_t>(Below(static_cast<int>(raw->size() / 4), random));
        float number = 0;
        std::memcpy(&number, raw->data() + place, 4);
        static constexpr float kFactors[] = {1.5F, -1.0F, 1.0003F, 0.0F, 2.0F};
        const int choice = Below(6, random);
        number = choice == 5 ? number + 1 : number * kFactors[choice];
        std::memcpy(raw->data() + place, &number, 4);
        return fmt::format("constant {} = {}", tensor.name(), number);
      }
      if (tensor.data_type() == Proto::INT64 && raw->size() >= 8) {
        const size_t place = 8 * static_cast<size_t>(Below(static_cast<int>(raw->size() / 8), random));
        int64_t number = 0;
        std::memcpy(&number, raw->data() + place, 8);
        number += Below(2, random) == 0 ? 1 : -1;
        std::memcpy(raw->data() + place, &number, 8);
        return fmt::format("constant {} = {}", tensor.name(), number);
      }
      if (tensor.data_type() == Proto::BOOL && !raw->empty()) {
        char& bit = (*raw)[static_cast<size_t>(Below(static_cast<int>(raw->size()), random))];
        bit = bit == 0 ? 1 : 0;
        return fmt::format("constant {}", tensor.name());
      }
      return "";
    }
    case 2: {  // operands
      auto& node = Pick(graph->mutable_node(), random);
      if (node.input_size() < 2) return "";
      const int a = Below(node.input_size(), random);
      const int b = Below(node.input_size(), random);
      if (node.input(a) == node.input(b)) return "";
      node.mutable_input()->SwapElements(a, b);
      return fmt::format("operands of {}", node.name());
    }
    case 3: {  // operator
      static const std::map<std::string, std::vector<std::string>> kOthers = {
          {"Add", {"Sub", "Mul"}},   {"Sub", {"Add"}},          {"Mul", {"Div", "Add"}},     {"Div", {"Mul", "Sub"}},
          {"Erf", {"Tanh"}},         {"Tanh", {"Erf"}},         {"Sigmoid", {"HardSigmoid", "Tanh"}},
          {"Neg", {"Abs", "Identity"}}, {"Sqrt", {"Exp", "Identity"}}, {"ReduceMean", {"ReduceSum", "ReduceMax"}},
          {"Reciprocal", {"Neg"}},   {"Exp", {"Sqrt", "Neg"}},  {"Softmax", {"LogSoftmax"}}, {"IsNaN", {"IsInf"}}};
      auto& node = Pick(graph->mutable_node(), random);
      const auto others = kOthers.find(node.op_type());
      if (others == kOthers.end()) return "";
      const std::string was = node.op_type();
      node.set_op_type(others->second[static_cast<size_t>(Below(static_cast<int>(others->second.size()), random))]);
      return fmt::format("{} became {}", was, node.op_type());
    }
    case 4: {  // another value
      const int place = Below(graph->node_size(), random);
      auto& node = *graph->mutable_node(place);
      if (node.input_size() == 0) return "";
      std::vector<std::string> values;
      for (const auto& input : graph->input()) values.push_back(input.name());
      for (int i = 0; i < place; ++i) {
        for (const std::string& name : graph->node(i).output()) values.push_back(name);
      }
      const int input = Below(node.input_size(), random);
      const std::string& other = values[static_cast<size_t>(Below(static_cast<int>(values.size()), random))];
      if (node.input(input) == other) return "";
      node.set_input(input, other);
      return fmt::format("operand {} of {} is {}", input, node.name(), other);
    }
    case 5:
    case 6: {  // attribute: axis, permutation, type
      auto& node = Pick(graph->mutable_node(), random);
      if (node.attribute_size() == 0) return "";
      auto& attribute = Pick(node.mutable_attribute(), random);
      if (attribute.name() == "to") {
        attribute.set_i(attribute.i() == Proto::FLOAT ? Proto::FLOAT16 : Proto::FLOAT);
      } else if (attribute.type() == onnx::AttributeProto::INT) {
        attribute.set_i(attribute.i() + (Below(2, random) == 0 ? 1 : -1));
      } else if (attribute.type() == onnx::AttributeProto::FLOAT) {
        attribute.set_f(attribute.f() * 1.5F);
      } else if (attribute.type() == onnx::AttributeProto::INTS && attribute.ints_size() > 1) {
        const int a = Below(attribute.ints_size(), random);
        const int b = Below(attribute.ints_size(), random);
        if (a == b) return "";
        attribute.mutable_ints()->SwapElements(a, b);
      } else if (attribute.type() == onnx::AttributeProto::INTS && attribute.ints_size() == 1) {
        attribute.set_ints(0, attribute.ints(0) + (Below(2, random) == 0 ? 1 : -1));
      } else if (attribute.name() == "approximate") {
        attribute.set_s(attribute.s() == "tanh" ? "none" : "tanh");
      } else {
        return "";
      }
      return fmt::format("{} of {}", attribute.name(), node.name());
    }
    case 7: {  // one dim of an input
      auto& input = Pick(graph->mutable_input(), random);
      auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
      if (shape->dim_size() == 0) return "";
      auto& dim = Pick(shape->mutable_dim(), random);
      dim.set_dim_value(dim.dim_value() == 1 ? 3 : 1);
      for (auto& output : *graph->mutable_output()) output.mutable_type()->mutable_tensor_type()->clear_shape();
      return fmt::format("shape of {}", input.name());
    }
    case 8: {  // symbolic dims: all first dims that are one number
      const int64_t batch = graph->input(0).type().tensor_type().shape().dim_size() > 0
                                ? graph->input(0).type().tensor_type().shape().dim(0).dim_value()
                                : 0;
      if (batch < 2) return "";
      for (auto& input : *graph->mutable_input()) {
        auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
        if (shape->dim_size() > 1 && shape->dim(0).dim_value() == batch) {
          shape->mutable_dim(0)->set_dim_param(fmt::format("batch_{}", batch));
        }
      }
      for (auto& output : *graph->mutable_output()) output.mutable_type()->mutable_tensor_type()->clear_shape();
      return "symbolic batch";
    }
    default: {  // an inner value is an output, too
      const auto& node = graph->node(Below(graph->node_size(), random));
      for (const auto& output : graph->output()) {
        if (output.name() == node.output(0)) return "";
      }
      auto* output = graph->add_output();
      output->set_name(node.output(0));
      // Its type and shape are left to inference; Identity keeps the checker content with an untyped output.
      output->mutable_type()->mutable_tensor_type()->set_elem_type(
          node.op_type() == "IsNaN" || node.op_type() == "Not" ? Proto::BOOL : 0);
      return fmt::format("{} is an output", node.output(0));
    }
  }
}

std::string Quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + "\"";
}

int Run(uint64_t seed, int count, const std::string& folder, const std::string& only) {
  const auto rules = RuleSet::Load(RuleFolder::kLibrary);
  if (!rules.ok()) {
    std::cerr << rules.status().message() << "\n";
    return 1;
  }
  std::vector<TargetOptions> targets(4);
  targets[0].cann = "2026.07";
  targets[1].cann = "2026.07";
  targets[1].plugin = true;
  targets[2].chip = "ascend310p";
  targets[2].plugin = true;
  targets[3].chip = "ascend950";
  targets[3].cann = "2026.07";
  targets[3].plugin = true;

  std::ofstream models(folder + "/models", std::ios::binary);
  std::ofstream cases(folder + "/cases.json");
  int64_t offset = 0;
  auto write = [&](const std::string& bytes) {
    models.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    offset += static_cast<int64_t>(bytes.size());
    return fmt::format("[{}, {}]", offset - static_cast<int64_t>(bytes.size()), bytes.size());
  };
  cases << "{\"rules\": {";
  std::vector<std::unique_ptr<RuleGraphs>> generators;
  std::vector<const Rule*> makeable;
  for (const Rule& rule : (*rules)->rules()) {
    generators.push_back(std::make_unique<RuleGraphs>(**rules, rule));
    std::vector<std::string> choices;
    for (const std::string& choice : generators.back()->Choices()) choices.push_back(Quoted(choice));
    cases << fmt::format("{}\n{}: [{}]", generators.size() == 1 ? "" : ",", Quoted(rule.name), fmt::join(choices, ", "));
  }
  cases << "},\n\"cases\": [";
  std::mt19937_64 random(seed);
  bool first = true;
  for (int i = 0, made = 0; made < count; ++i) {
    const size_t r = static_cast<size_t>(i) % generators.size();
    const Rule& rule = (*rules)->rules()[r];
    if (!only.empty() && rule.name != only) continue;
    RuleGraph graph;
    std::string impossible;
    try {
      graph = generators[r]->Make(&random);
    } catch (const NoGraph& error) {
      impossible = error.what();
    }
    std::vector<std::string> choices;
    for (const std::string& choice : graph.choices) choices.push_back(Quoted(choice));
    const int mutations = impossible.empty() ? 5 : 1;
    for (int m = 0; m < mutations; ++m) {
      onnx::ModelProto model = graph.model;
      std::string mutation;
      if (m > 0) {
        for (int attempt = 0; attempt < 20 && mutation.empty(); ++attempt) {
          model = graph.model;
          mutation = Mutate(&model, &random);
        }
        if (mutation.empty()) continue;
      }
      const TargetOptions& target = targets[static_cast<size_t>(Below(static_cast<int>(targets.size()), &random))];
      std::string line = fmt::format("{}\n{{\"rule\": {}, \"kind\": {}, \"mutation\": {}, \"target\": {}, \"choices\": [{}]",
                                     first ? "" : ",", Quoted(rule.name), Quoted(rule.kind), Quoted(mutation),
                                     Quoted(target.chip + (target.plugin ? " --plugin" : "")),
                                     m == 0 ? fmt::format("{}", fmt::join(choices, ", ")) : "");
      first = false;
      ++made;
      if (!impossible.empty()) {
        cases << line << ", \"impossible\": " << Quoted(impossible) << "}";
        continue;
      }
      const std::string bytes = model.SerializeAsString();
      auto loaded = LoadModelFromBytes(bytes);
      if (!loaded.ok()) {
        cases << line << ", \"refused\": " << Quoted(std::string(loaded.status().message())) << "}";
        continue;
      }
      OptimizeOptions options;
      options.target = target;
      auto report = Optimize(loaded->get(), options);
      if (!report.ok()) {
        cases << line << ", \"original\": " << write(bytes) << ", \"error\": "
              << Quoted(std::string(report.status().message())) << "}";
        continue;
      }
      int found = 0;
      bool fused = false;
      bool blind = false;
      std::string nodes;
      std::string because;
      for (const ReportSite& site : report->sites) {
        found += site.kind == rule.kind ? 1 : 0;
        fused = fused || site.state == "fused";
        if (site.state == "fused") nodes += site.node + " ";
        if (site.state == "left") because = site.because;
        for (const std::string& sentence : site.assumptions)
          blind = blind || sentence.find("no allowed key") != std::string::npos;
      }
      std::vector<std::string> near;
      for (const ReportNearMiss& miss : report->near_misses)
        near.push_back(fmt::format("{}: expected {}, found {}", miss.rule, miss.expected, miss.found));
      line += fmt::format(", \"found\": {}, \"fused\": {}, \"blind\": {}, \"nodes\": {}, \"because\": {}, \"near\": {}",
                          found, fused, blind, Quoted(nodes), Quoted(because),
                          Quoted(fmt::format("{}", fmt::join(near, "; "))));
      line += fmt::format(", \"original\": {}", write(bytes));
      if (fused) {
        // What a file would hold, read again.
        const auto optimized = SaveModelToBytes(**loaded);
        auto again = optimized.ok() ? LoadModelFromBytes(*optimized)
                                    : absl::StatusOr<std::unique_ptr<Model>>(optimized.status());
        absl::Status status = again.status();
        if (status.ok()) status = Expand(again->get());
        const auto expanded = status.ok() ? SaveModelToBytes(**again) : absl::StatusOr<std::string>(status);
        if (expanded.ok()) {
          line += fmt::format(", \"expanded\": {}", write(*expanded));
        } else {
          line += fmt::format(", \"error\": {}", Quoted(std::string(expanded.status().message())));
        }
      }
      cases << line << "}";
    }
    if (i > 100 * count) break;  // a rule of that name does not exist
  }
  cases << "]}\n";
  return models.good() && cases.good() ? 0 : 1;
}

}  // namespace
}  // namespace ascend_fuse::testing

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "rule_graphs_tool SEED COUNT FOLDER [RULE]\n";
    return 2;
  }
  return ascend_fuse::testing::Run(std::strtoull(argv[1], nullptr, 10), std::atoi(argv[2]), argv[3],
                                   argc > 4 ? argv[4] : "");
}
