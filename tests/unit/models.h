// Small models made with libprotobuf, and temporary directories, shared by the tests of reading and writing.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ir/model.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse::testing {

// A directory that is removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ascend_fuse_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
};

inline std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void WriteWhole(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

inline onnx::NodeProto* AddNode(onnx::GraphProto* graph, const std::string& op_type, std::initializer_list<const char*> inputs,
                                std::initializer_list<const char*> outputs, const std::string& name = "") {
  onnx::NodeProto* node = graph->add_node();
  for (const char* input : inputs) node->add_input(input);
  for (const char* output : outputs) node->add_output(output);
  if (!name.empty()) node->set_name(name);
  node->set_op_type(op_type);
  return node;
}

inline void SetType(onnx::ValueInfoProto* value, const std::string& name, int elem_type, std::initializer_list<int64_t> dims) {
  value->set_name(name);
  auto* type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(elem_type);
  type->mutable_shape();
  for (int64_t dim : dims) type->mutable_shape()->add_dim()->set_dim_value(dim);
}

inline onnx::TensorProto* AddInitializer(onnx::GraphProto* graph, const std::string& name, size_t floats) {
  onnx::TensorProto* tensor = graph->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(static_cast<int64_t>(floats));
  std::string data(floats * 4, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 37 + name.size());
  tensor->set_raw_data(data);
  return tensor;
}

inline onnx::ModelProto EmptyModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("test");
  model.set_producer_version("1.0");
  auto* import = model.add_opset_import();
  import->set_domain("");
  import->set_version(17);
  model.mutable_graph()->set_name("main");
  return model;
}

// x -> MatMul(w, 8 KB) -> Add(b, small) -> Relu -> y, an If whose bodies capture values, and one of
// everything that is only carried along.
inline onnx::ModelProto RichModel() {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  SetType(graph->add_input(), "x", onnx::TensorProto::FLOAT, {4, 32});
  SetType(graph->add_input(), "flag", onnx::TensorProto::BOOL, {});
  SetType(graph->add_output(), "y", onnx::TensorProto::FLOAT, {4, 64});
  AddNode(graph, "MatMul", {"x", "w"}, {"mm"}, "layer/matmul");
  AddNode(graph, "Add", {"mm", "b"}, {"sum"}, "layer/add")->set_doc_string("adds");
  onnx::NodeProto* relu = AddNode(graph, "Relu", {"sum"}, {"act"}, "layer/relu");
  auto* entry = relu->add_metadata_props();
  entry->set_key("pkg");
  entry->set_value("torch");
  onnx::NodeProto* choice = AddNode(graph, "If", {"flag"}, {"y"}, "choice");
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::AttributeProto* attribute = choice->add_attribute();
    attribute->set_name(branch);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto* body = attribute->mutable_g();
    body->set_name(branch);
    AddNode(body, "Mul", {"act", "scale"}, {"scaled"}, "inner/mul");
    AddNode(body, "Add", {"scaled", "offset"}, {"result"}, "inner/add");
    AddInitializer(body, "offset", branch[0] == 't' ? 2048 : 64);
    SetType(body->add_output(), "result", onnx::TensorProto::FLOAT, {4, 64});
    SetType(body->add_value_info(), "scaled", onnx::TensorProto::FLOAT, {4, 64});
  }
  onnx::NodeProto* constant = AddNode(graph, "Constant", {}, {"big"}, "big");
  onnx::AttributeProto* value = constant->add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  value->mutable_t()->set_data_type(onnx::TensorProto::INT64);
  value->mutable_t()->add_dims(3000);
  for (int i = 0; i < 3000; ++i) value->mutable_t()->add_int64_data(i * 1000);
  AddNode(graph, "Shape", {"big"}, {"unused"}, "unused");
  AddInitializer(graph, "w", 32 * 64);
  AddInitializer(graph, "b", 64);
  AddInitializer(graph, "scale", 1);
  for (const char* name : {"mm", "sum", "act"}) {
    SetType(graph->add_value_info(), name, onnx::TensorProto::FLOAT, {4, 64});
  }
  graph->add_quantization_annotation()->set_tensor_name("act");
  model.add_metadata_props()->set_key("k");
  onnx::FunctionProto* function = model.add_functions();
  function->set_name("Fn");
  function->set_domain("local");
  return model;
}

inline std::unique_ptr<Model> MustLoad(const std::string& bytes) {
  auto model = LoadModelFromBytes(bytes);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

inline std::string MustSave(const Model& model) {
  auto bytes = SaveModelToBytes(model);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *std::move(bytes) : "";
}

inline onnx::ModelProto Parse(const std::string& bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  return model;
}

// `text` contains `part`.
#define EXPECT_HAS(text, part) \
  EXPECT_PRED2([](const std::string& a, const std::string& b) { return a.find(b) != std::string::npos; }, text, part)

inline const Node* FindNode(const Graph& graph, const std::string& name) {
  for (const Node* node : graph.nodes()) {
    if (NodeName(*node) == name && !node->dead) return node;
  }
  ADD_FAILURE() << "no node " << name;
  return nullptr;
}

}  // namespace ascend_fuse::testing
