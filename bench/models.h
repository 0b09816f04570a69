// Models for the benchmarks: synthetic ones with the names and operators that exporters write, and real exports made
// deeper by repeating their last layer.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_replace.h"
#include "fmt/format.h"
#include "ir/wire.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse::bench {

struct ModelSize {
  int nodes = 0;
  int initializers = 0;
  int64_t initializer_bytes = 0;
  bool value_info = false;
};

inline std::string Initializer(int index, int64_t bytes) {
  std::string tensor;
  wire::AppendInt(&tensor, onnx::TensorProto::kDimsFieldNumber, bytes / 4);
  wire::AppendInt(&tensor, onnx::TensorProto::kDataTypeFieldNumber, onnx::TensorProto::FLOAT);
  wire::AppendBytes(&tensor, onnx::TensorProto::kNameFieldNumber, fmt::format("model.layers.{}.weight", index));
  wire::AppendTag(&tensor, onnx::TensorProto::kRawDataFieldNumber, wire::kBytes);
  wire::AppendVarint(&tensor, static_cast<uint64_t>(bytes));
  return tensor;  // the payload follows
}

// Writes the model to `path`; false when that fails. Weights are cheap non-zero bytes.
inline bool Generate(const ModelSize& size, const std::string& path) {
  static constexpr const char* kOps[] = {"MatMul", "Add", "ReduceMean", "Sub", "Pow",     "Sqrt",
                                         "Div",    "Mul", "Transpose",  "Erf", "Softmax", "Reshape"};
  onnx::GraphProto graph;
  graph.set_name("main_graph");
  auto* input = graph.add_input();
  input->set_name("hidden_states");
  input->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  std::string last = "hidden_states";
  std::string before = last;
  for (int i = 0; i < size.nodes; ++i) {
    onnx::NodeProto* node = graph.add_node();
    const char* op = kOps[i % 12];
    const std::string name = fmt::format("/model/layers.{}/self_attn/{}_{}", i / 60, op, i);
    node->add_input(last);
    if (i % 3 == 0 && size.initializers > 0) {
      node->add_input(fmt::format("model.layers.{}.weight", i / 3 % size.initializers));
    } else if (i % 2 == 0) {
      node->add_input(before);
    }
    before = last;
    last = name + "_output_0";
    node->add_output(last);
    node->set_name(name);
    node->set_op_type(op);
    if (i % 12 == 2 || i % 12 == 8) {
      auto* attribute = node->add_attribute();
      attribute->set_name(i % 12 == 2 ? "axes" : "perm");
      attribute->set_type(onnx::AttributeProto::INTS);
      for (int j = 0; j < (i % 12 == 2 ? 1 : 4); ++j) attribute->add_ints(i % 12 == 2 ? -1 : (j * 3) % 4);
    }
    if (size.value_info) {
      auto* value = graph.add_value_info();
      value->set_name(last);
      auto* type = value->mutable_type()->mutable_tensor_type();
      type->set_elem_type(onnx::TensorProto::FLOAT);
      type->mutable_shape()->add_dim()->set_dim_param("batch");
      type->mutable_shape()->add_dim()->set_dim_param("seq");
      type->mutable_shape()->add_dim()->set_dim_value(4096);
    }
  }
  graph.add_output()->set_name(last);
  std::string body = graph.SerializeAsString();
  int64_t initializers = 0;
  for (int i = 0; i < size.initializers; ++i) {
    const auto message = static_cast<int64_t>(Initializer(i, size.initializer_bytes).size()) + size.initializer_bytes;
    std::string header;
    wire::AppendTag(&header, onnx::GraphProto::kInitializerFieldNumber, wire::kBytes);
    wire::AppendVarint(&header, static_cast<uint64_t>(message));
    initializers += static_cast<int64_t>(header.size()) + message;
  }
  std::string head;
  wire::AppendInt(&head, onnx::ModelProto::kIrVersionFieldNumber, 8);
  std::string import;
  wire::AppendInt(&import, onnx::OperatorSetIdProto::kVersionFieldNumber, 17);
  wire::AppendBytes(&head, onnx::ModelProto::kOpsetImportFieldNumber, import);
  wire::AppendTag(&head, onnx::ModelProto::kGraphFieldNumber, wire::kBytes);
  wire::AppendVarint(&head, body.size() + static_cast<uint64_t>(initializers));
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  auto put = [file](const std::string& bytes) { return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(); };
  bool ok = put(head) && put(body);
  std::string payload(static_cast<size_t>(size.initializer_bytes), '\0');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 31 + i / 4096);
  for (int i = 0; i < size.initializers && ok; ++i) {
    const std::string tensor = Initializer(i, size.initializer_bytes);
    std::string header;
    wire::AppendTag(&header, onnx::GraphProto::kInitializerFieldNumber, wire::kBytes);
    wire::AppendVarint(&header, tensor.size() + payload.size());
    ok = put(header) && put(tensor) && put(payload);
  }
  return std::fclose(file) == 0 && ok;
}

// The models of bench/README.md by letter.
inline ModelSize SizeOf(const std::string& letter) {
  if (letter == "A") return {5015, 300, int64_t{5} << 20, false};
  if (letter == "B") return {60003, 400, int64_t{512} << 10, true};
  if (letter == "C") return {60003, 200000, 64, false};
  if (letter == "D1") return {60003, 0, 0, true};
  return {60003, 0, 0, false};  // D0
}

// Layer 1 of an exported decoder, by the exporters' names ("/model/layers.1/...").
struct RepeatedLayer {
  std::vector<const onnx::NodeProto*> nodes;
  absl::flat_hash_set<std::string> inside;  // what it computes
  absl::flat_hash_set<std::string> own;     // what it alone reads: weights, the inputs of its cache
  std::string hidden;                       // what it computes and the rest reads
  std::string before;                       // the same of layer 0

  // False when there are no such layers.
  bool Find(const onnx::GraphProto& graph, const std::vector<onnx::NodeProto>& all) {
    absl::flat_hash_set<std::string> read;
    absl::flat_hash_set<std::string> read_elsewhere;
    absl::flat_hash_set<std::string> from_first;  // what layer 0 computes
    for (const onnx::NodeProto& node : all) {
      const bool last = node.name().find("layers.1/") != std::string::npos;
      if (last) nodes.push_back(&node);
      for (const std::string& name : node.input()) (last ? read : read_elsewhere).insert(name);
      for (const std::string& name : node.output()) {
        if (last) inside.insert(name);
        if (node.name().find("layers.0/") != std::string::npos) from_first.insert(name);
      }
    }
    for (const std::string& name : inside) {
      if (read_elsewhere.contains(name)) hidden = name;
    }
    before = absl::StrReplaceAll(hidden, {{"layers.1/", "layers.0/"}});
    const auto add = [&](const std::string& name) {
      if (read.contains(name) && !read_elsewhere.contains(name)) own.insert(name);
    };
    for (const auto& tensor : graph.initializer()) add(tensor.name());
    for (const auto& input : graph.input()) add(input.name());
    return !nodes.empty() && !hidden.empty() && from_first.contains(before);
  }
};

// An exported decoder of two layers, with `layers` of them: layer 1 is repeated after itself with nodes, weights and
// cache of its own, each copy reading the hidden state of the one before. Layers are told by the exporters' names
// ("/model/layers.1/..."). False when the model has no such layers or a file cannot be read or written.
inline bool StackLayers(const std::string& from, int layers, const std::string& to) {
  onnx::ModelProto model;
  std::ifstream in(from, std::ios::binary);
  if (!model.ParseFromIstream(&in)) return false;
  onnx::GraphProto* graph = model.mutable_graph();
  const std::vector<onnx::NodeProto> nodes(graph->node().begin(), graph->node().end());
  RepeatedLayer layer;
  if (!layer.Find(*graph, nodes)) return false;
  auto renamed = [&](const std::string& name, int copy) {
    const std::string moved = absl::StrReplaceAll(name, {{"layers.1", fmt::format("layers.{}", copy)}});
    return moved == name && !name.empty() ? fmt::format("{}_{}", name, copy) : moved;
  };
  auto value = [&](const std::string& name, int copy) {
    if (name == layer.before) return copy == 2 ? layer.hidden : renamed(layer.hidden, copy - 1);
    return layer.inside.contains(name) || layer.own.contains(name) ? renamed(name, copy) : name;
  };
  graph->clear_node();
  bool stacked = false;
  auto stack = [&] {
    for (int copy = 2; copy < layers; ++copy) {
      for (const onnx::NodeProto* node : layer.nodes) {
        onnx::NodeProto* made = graph->add_node();
        *made = *node;
        made->set_name(renamed(node->name(), copy));
        for (std::string& name : *made->mutable_input()) name = value(name, copy);
        for (std::string& name : *made->mutable_output()) name = renamed(name, copy);
      }
    }
    stacked = true;
  };
  size_t left = layer.nodes.size();
  for (const onnx::NodeProto& node : nodes) {
    const bool last = node.name().find("layers.1/") != std::string::npos;
    if (!stacked && left == 0) stack();
    onnx::NodeProto* kept = graph->add_node();
    *kept = node;
    left -= last ? 1 : 0;
    if (last || layers <= 2) continue;
    for (std::string& name : *kept->mutable_input()) {
      if (name == layer.hidden) name = renamed(layer.hidden, layers - 1);
    }
  }
  auto repeat = [&](auto* list, auto belongs) {
    const int count = list->size();
    for (int copy = 2; copy < layers; ++copy) {
      for (int i = 0; i < count; ++i) {
        if (!belongs(list->Get(i).name())) continue;
        auto one = list->Get(i);
        one.set_name(renamed(one.name(), copy));
        list->Add(std::move(one));
      }
    }
  };
  repeat(graph->mutable_initializer(), [&](const std::string& name) { return layer.own.contains(name); });
  repeat(graph->mutable_input(), [&](const std::string& name) { return layer.own.contains(name); });
  repeat(graph->mutable_output(), [&](const std::string& name) { return layer.inside.contains(name); });
  repeat(graph->mutable_value_info(), [&](const std::string& name) { return layer.inside.contains(name); });
  std::ofstream out(to, std::ios::binary);
  return model.SerializeToOstream(&out);
}

}  // namespace ascend_fuse::bench
