// Which module a node belongs to, from what each exporter and each optimizer leaves of it.
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "passes/core/module_path.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

struct Traces {
  std::string name;
  std::vector<std::pair<std::string, std::string>> metadata = {};
  std::string output = "val_7";
  std::string weight = "val_8";
};

std::string PathOf(const Traces& traces) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->add_input()->set_name("x");
  graph->add_output()->set_name(traces.output);
  onnx::TensorProto* weight = graph->add_initializer();
  weight->set_name(traces.weight);
  weight->set_data_type(onnx::TensorProto::FLOAT);
  weight->add_dims(1);
  weight->add_float_data(1);
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Mul");
  node->set_name(traces.name);
  node->add_input("x");
  node->add_input(traces.weight);
  node->add_output(traces.output);
  for (const auto& [key, value] : traces.metadata) {
    onnx::StringStringEntryProto* entry = node->add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  const auto loaded = LoadModelFromBytes(model.SerializeAsString());
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? ModulePath(*(*loaded)->graph().nodes()[0]) : "";
}

const char kScopes[] = "pkg.torch.onnx.name_scopes";

TEST(ModulePathTest, Dynamo) {
  EXPECT_EQ(PathOf({"node_mul", {{kScopes, "['', 'model', 'model.layers.0', 'model.layers.0.mlp', 'mul_3']"}}}),
            "model.layers.0.mlp");
  EXPECT_EQ(PathOf({"node_mul", {{kScopes, "['', 'mul_3']"}}}), "") << "in no module";
  EXPECT_EQ(PathOf({"node_mul", {{kScopes, "['mul_3']"}}}), "");
  EXPECT_EQ(PathOf({"node_mul", {{kScopes, "['', 'model"}}}), "") << "cut off";
}

TEST(ModulePathTest, DynamoBeforeItWroteScopes) {
  EXPECT_EQ(PathOf({"n17",
                    {{"namespace",
                      ": llama.Model/model: llama.Inner/model.layers.1: llama.Layer/"
                      "model.layers.1.mlp: llama.MLP/mul_2: aten.mul.Tensor"}}}),
            "model.layers.1.mlp");
  EXPECT_EQ(PathOf({"n17", {{"namespace", ": llama.Model/mul_2: aten.mul.Tensor"}}}), "");
  EXPECT_EQ(PathOf({"n17", {{"namespace", ""}}}), "");
  EXPECT_EQ(PathOf({"n17", {{kScopes, "['', 'a.b', 'mul']"}, {"namespace", ": x/c.d: y/mul: z"}}}), "a.b");
}

TEST(ModulePathTest, TorchScriptAndTensorFlow) {
  EXPECT_EQ(PathOf({"/model/layers.0/self_attn/Mul_1"}), "model.layers.0.self_attn");
  EXPECT_EQ(PathOf({"/Mul"}), "");
  EXPECT_EQ(PathOf({"model/bert/encoder/layer_._0/attention/mul"}), "model.bert.encoder.layer_._0.attention");
  EXPECT_EQ(PathOf({"Mul_17"}), "");
}

TEST(ModulePathTest, OptimizersThatRenamedTheNode) {
  EXPECT_EQ(PathOf({"SkipLayerNorm_3", {}, "/model/layers.0/norm/Add_1_output_0"}), "model.layers.0.norm");
  EXPECT_EQ(PathOf({"", {}, "/model/layers.0/mlp/Mul_output_0"}), "model.layers.0.mlp");
  EXPECT_EQ(PathOf({"MatMul_fused", {}, "val_7", "model.layers.0.mlp.gate_proj.weight"}), "model.layers.0.mlp.gate_proj");
  EXPECT_EQ(PathOf({"/a/Mul", {}, "/b/Mul_output_0", "c.weight"}), "a") << "the node's own name goes first";
  EXPECT_EQ(PathOf({"Mul", {}, "val_7", "onnx::MatMul_123"}), "");
  EXPECT_EQ(PathOf({"Mul", {}, "val_7", "lifted.tensor_0"}), "");
}

// Names of functions as dynamo of torch 2.1 to 2.4 wrote them; a model with these weights.
std::string PathOfFunction(std::vector<std::string> weights, const std::string& function, const std::string& outer = "") {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.mutable_graph()->set_name("main");
  for (const std::string& name : weights) {
    onnx::TensorProto* weight = model.mutable_graph()->add_initializer();
    weight->set_name(name);
    weight->set_data_type(onnx::TensorProto::FLOAT);
  }
  const auto loaded = LoadModelFromBytes(model.SerializeAsString());
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? ModuleNames(**loaded).PathOfFunction(function, outer) : "";
}

TEST(ModulePathTest, FunctionsOfModulesWithWeights) {
  const std::vector<std::string> llama = {"model.layers.0.input_layernorm.weight", "model.layers.0.mlp.up_proj.weight",
                                          "model.layers.10.mlp.up_proj.weight"};
  const std::string class_name = "transformers_models_llama_modeling_llama_Llama";
  EXPECT_EQ(PathOfFunction(llama, class_name + "RMSNorm_model_layers_0_input_layernorm_1"), "model.layers.0.input_layernorm");
  EXPECT_EQ(PathOfFunction(llama, class_name + "RMSNorm_model_layers_0_input_layernorm_2", "model.layers.0"),
            "model.layers.0.input_layernorm")
      << "called a second time";
  EXPECT_EQ(PathOfFunction(llama, class_name + "MLP_model_layers_10_mlp_1", "model.layers.10"), "model.layers.10.mlp");
  EXPECT_EQ(PathOfFunction(llama, class_name + "Model_model_1"), "model");
  EXPECT_EQ(PathOfFunction({"h.1.attn.bias"}, "gpt2_Attention_h.1.attn_1"), "h.1.attn") << "fx writes dots";
}

TEST(ModulePathTest, FunctionsOfModulesWithoutWeights) {
  const std::vector<std::string> weights = {"model.layers.0.mlp.up_proj.weight"};
  EXPECT_EQ(PathOfFunction(weights, "torch_SiLU_model_layers_0_mlp_act_fn_1", "model.layers.0.mlp"), "model.layers.0.mlp.act_fn");
  EXPECT_EQ(PathOfFunction({}, "torch_SiLU_mlp_act_1", "mlp"), "mlp.act");
  EXPECT_EQ(PathOfFunction(weights, "torch_SiLU_model_layers_0_mlp_act_fn_1"), "") << "in no module that is known";
  EXPECT_EQ(PathOfFunction(weights, "torch_SiLU_model_layers_0_mlp_act_fn_1", "model.layers.1.mlp"), "");
  EXPECT_EQ(PathOfFunction({}, "mlp_Dropout_mlp_drop_1", "mlp"), "mlp.drop");
  EXPECT_EQ(PathOfFunction({}, "net_mlp_Dropout_mlp_drop_1", "mlp"), "") << "which mlp begins the path?";
}

TEST(ModulePathTest, FunctionsWhoseNamesDoNotTell) {
  // Either module could be meant.
  EXPECT_EQ(PathOfFunction({"a.b.weight", "b.weight"}, "package_Class_a_b_1"), "");
  EXPECT_EQ(PathOfFunction({"a.b.weight", "b.weight"}, "package_Class_a_b_1", "a"), "a.b") << "the one inside a";
  EXPECT_EQ(PathOfFunction({"a_b.weight", "a.b.weight"}, "package_Class_a_b_1"), "");
  EXPECT_EQ(PathOfFunction({"a.b.weight"}, "package_Class_a_b"), "") << "without a number of the call";
  EXPECT_EQ(PathOfFunction({"a.b.weight"}, "a_b_1"), "") << "without a class";
  EXPECT_EQ(PathOfFunction({"a.b.weight"}, "aten_mean_dim_1"), "");
}

}  // namespace
}  // namespace ascend_fuse
