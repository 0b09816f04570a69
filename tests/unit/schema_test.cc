// The operator table: what the committed rows say about operators whose parameters moved between versions.
#include "ir/schema.h"

#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

const Schema& At(std::string_view op_type, int64_t opset, std::string_view domain = "") {
  const Schema* schema = FindSchema(domain, op_type, opset);
  if (schema == nullptr) {
    ADD_FAILURE() << "no schema of " << op_type << " at opset " << opset;
    static const Schema none;
    return none;
  }
  return *schema;
}

TEST(SchemaTest, FirstUseFromManyThreadsIsOneTable) {
  std::vector<std::thread> threads;
  std::vector<const Schema*> seen(4);
  for (size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&seen, i] { seen[i] = FindSchema("", "Add", 17); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Schema* schema : seen) EXPECT_EQ(schema, seen[0]);
  EXPECT_NE(seen[0], nullptr);
}

TEST(SchemaTest, NoParameterTakesATypeThatOnnxDoesNotHave) {
  const TypeSet& types = At("Relu", 12).inputs.at(0).types;
  ASSERT_TRUE(types.known);
  EXPECT_TRUE(types.Takes(DataType::kFloat));
  constexpr int kBits = 64;
  EXPECT_FALSE(types.Takes(static_cast<DataType>(kBits + static_cast<int>(DataType::kFloat))));
  EXPECT_FALSE(types.Takes(static_cast<DataType>(-1)));
}

TEST(SchemaTest, AxesOfReduceMeanMovedFromAttributeToInput) {
  const Schema& before = At("ReduceMean", 17);
  EXPECT_EQ(before.since_version, 13);
  ASSERT_NE(before.FindAttribute("axes"), nullptr);
  EXPECT_EQ(before.FindAttribute("axes")->type, AttributeType::kInts);
  EXPECT_FALSE(before.FindAttribute("axes")->has_default);
  EXPECT_EQ(before.FindInput("axes"), -1);

  const Schema& after = At("ReduceMean", 18);
  EXPECT_EQ(after.since_version, 18);
  EXPECT_EQ(after.FindAttribute("axes"), nullptr);
  ASSERT_EQ(after.FindInput("axes"), 1);
  EXPECT_TRUE(after.inputs[1].optional);
  EXPECT_EQ(after.FindAttribute("noop_with_empty_axes")->default_value.i, 0);
}

TEST(SchemaTest, DefaultAxisOfSoftmaxChanged) {
  EXPECT_EQ(At("Softmax", 12).since_version, 11);
  EXPECT_EQ(At("Softmax", 12).FindAttribute("axis")->default_value.i, 1);
  EXPECT_EQ(At("Softmax", 13).FindAttribute("axis")->default_value.i, -1);
  EXPECT_EQ(At("Softmax", 24).FindAttribute("axis")->default_value.i, -1);
}

TEST(SchemaTest, Gemm) {
  const Schema& gemm = At("Gemm", 13);
  ASSERT_EQ(gemm.inputs.size(), 3u);
  EXPECT_EQ(gemm.FindInput("C"), 2);
  EXPECT_TRUE(gemm.inputs[2].optional);
  EXPECT_FALSE(At("Gemm", 9).inputs[2].optional);
  EXPECT_EQ(gemm.FindAttribute("alpha")->default_value.f, 1.0f);
  EXPECT_EQ(gemm.FindAttribute("transB")->default_value.i, 0);
  EXPECT_TRUE(gemm.costly);
  EXPECT_FALSE(gemm.commutative);
}

TEST(SchemaTest, LayerNormalization) {
  const Schema& norm = At("LayerNormalization", 17);
  EXPECT_EQ(norm.since_version, 17);
  EXPECT_EQ(norm.FindAttribute("axis")->default_value.i, -1);
  EXPECT_EQ(norm.FindAttribute("epsilon")->default_value.f, 1e-5f);
  ASSERT_EQ(norm.outputs.size(), 3u);
  EXPECT_EQ(norm.FindInput("B"), 2);
  EXPECT_EQ(norm.FindOutput("InvStdDev"), 2);
  EXPECT_EQ(norm.FindOutput("B"), -1);
  EXPECT_FALSE(norm.outputs[0].optional);
  EXPECT_TRUE(norm.outputs[1].optional);
  EXPECT_TRUE(norm.outputs[1].types.Takes(DataType::kFloat));
  EXPECT_FALSE(norm.outputs[1].types.Takes(DataType::kFloat16));
  // What ONNX Runtime writes into the default domain at any opset.
  EXPECT_EQ(At("LayerNormalization", 14).since_version, 1);
  EXPECT_EQ(At("SimplifiedLayerNormalization", 17).FindInput("scale"), 1);
}

TEST(SchemaTest, Split) {
  EXPECT_NE(At("Split", 11).FindAttribute("split"), nullptr);
  EXPECT_EQ(At("Split", 13).FindAttribute("split"), nullptr);
  EXPECT_EQ(At("Split", 13).FindInput("split"), 1);
  EXPECT_EQ(At("Split", 13).FindAttribute("num_outputs"), nullptr);
  EXPECT_NE(At("Split", 18).FindAttribute("num_outputs"), nullptr);
  EXPECT_EQ(At("Concat", 13).FindAttribute("axis")->required, true);
  EXPECT_TRUE(At("Concat", 13).inputs[0].variadic);
  EXPECT_TRUE(At("Split", 13).outputs[0].variadic);
  EXPECT_FALSE(At("Concat", 13).outputs[0].variadic);
}

// A recurrent operator may give any of its outputs, or none.
TEST(SchemaTest, OutputsThatMayBeAbsent) {
  for (const char* name : {"GRU", "LSTM", "RNN"}) {
    for (const SchemaParameter& output : At(name, 14).outputs) EXPECT_TRUE(output.optional) << name << " " << output.name;
  }
  EXPECT_FALSE(At("TopK", 11).outputs[1].optional);
}

TEST(SchemaTest, ListAndStringDefaults) {
  EXPECT_EQ(At("Gelu", 20).FindAttribute("approximate")->default_value.s, "none");
  const SchemaAttribute* activations = At("GRU", 14).FindAttribute("activations");
  ASSERT_NE(activations, nullptr);
  const SchemaAttribute* rnn = At("RNN", 14).FindAttribute("activations");
  ASSERT_TRUE(rnn->has_default);
  ASSERT_EQ(rnn->default_value.strings.size(), 2u);
  EXPECT_EQ(rnn->default_value.strings[1], "Tanh");
}

TEST(SchemaTest, Traits) {
  for (const char* name : {"Add", "Mul", "And", "Or", "Xor", "Equal", "Max", "Min", "Sum"}) {
    EXPECT_TRUE(At(name, 17).commutative) << name;
    EXPECT_TRUE(At(name, 17).elementwise) << name;
    EXPECT_FALSE(At(name, 17).costly) << name;
  }
  for (const char* name : {"Sub", "Div", "MatMul", "Less", "Where", "Pow", "Concat", "PRelu"}) {
    EXPECT_FALSE(At(name, 17).commutative) << name;
  }
  // `axis` aligned the second operand with the first one.
  EXPECT_FALSE(At("Add", 6).commutative);
  EXPECT_FALSE(At("Add", 6).elementwise);
  for (const char* name : {"MatMul", "Conv", "Softmax", "ReduceMean", "LayerNormalization", "TopK"}) {
    EXPECT_TRUE(At(name, 17).costly) << name;
    EXPECT_FALSE(At(name, 17).elementwise) << name;
  }
  for (const char* name : {"Cast", "Reshape", "Shape", "Transpose", "Slice", "Gather", "Constant"}) {
    EXPECT_FALSE(At(name, 17).costly) << name;
  }
  EXPECT_TRUE(At("Where", 17).elementwise);
  EXPECT_FALSE(At("Trilu", 17).elementwise);
  EXPECT_FALSE(At("RandomNormal", 17).deterministic);
  EXPECT_FALSE(At("Dropout", 13).deterministic);
  EXPECT_TRUE(At("Dropout", 10).deterministic);
  EXPECT_TRUE(At("MatMul", 17).deterministic);
}

TEST(SchemaTest, ContributedOperators) {
  const std::string_view ms = "com.microsoft";
  EXPECT_EQ(At("SkipLayerNormalization", 1, ms).FindInput("skip"), 1);
  EXPECT_EQ(At("SkipLayerNormalization", 1, ms).outputs.size(), 4u);
  EXPECT_EQ(At("MultiHeadAttention", 1, ms).FindInput("attention_bias"), 5);
  EXPECT_EQ(At("GroupQueryAttention", 1, ms).FindInput("seqlens_k"), 5);
  EXPECT_TRUE(At("GroupQueryAttention", 1, ms).FindAttribute("kv_num_heads")->required);
  EXPECT_EQ(At("RotaryEmbedding", 1, ms).FindInput("cos_cache"), 2);
  EXPECT_EQ(At("FusedMatMul", 1, ms).FindAttribute("alpha")->default_value.f, 1.0f);
  EXPECT_EQ(At("QuickGelu", 1, ms).FindAttribute("alpha")->default_value.f, 1.702f);
  EXPECT_TRUE(At("BiasGelu", 1, ms).elementwise);
}

TEST(SchemaTest, UnknownIsNull) {
  EXPECT_EQ(FindSchema("", "NoSuchOperator", 17), nullptr);
  EXPECT_EQ(FindSchema("npu", "NPURmsNorm", 1), nullptr);
  EXPECT_EQ(FindSchema("", "RMSNormalization", 22), nullptr);
  EXPECT_NE(FindSchema("", "RMSNormalization", 23), nullptr);
  EXPECT_EQ(FindSchema("", "Add", 0), nullptr);
  EXPECT_EQ(FindSchema("ai.onnx", "Add", 17), FindSchema("", "Add", 17));
}

TEST(SchemaTest, DeprecatedRowsAreMarked) {
  EXPECT_TRUE(At("Upsample", 10).deprecated);
  EXPECT_FALSE(At("Upsample", 9).deprecated);
}

TEST(SchemaTest, RowsAreSortedAndUnique) {
  const std::vector<const Schema*> all = AllSchemas();
  EXPECT_GT(all.size(), 700u);
  for (size_t i = 1; i < all.size(); ++i) {
    const auto key = [](const Schema& s) { return std::tuple(s.domain, s.op_type, s.since_version); };
    EXPECT_LT(key(*all[i - 1]), key(*all[i])) << all[i]->op_type;
  }
  for (const Schema* schema : all) {
    for (size_t i = 0; i + 1 < schema->inputs.size(); ++i) EXPECT_FALSE(schema->inputs[i].variadic);
    for (const SchemaAttribute& attribute : schema->attributes) {
      EXPECT_NE(attribute.type, AttributeType::kUndefined) << schema->op_type << "." << attribute.name;
      EXPECT_FALSE(attribute.required && attribute.has_default) << schema->op_type << "." << attribute.name;
    }
  }
}

}  // namespace
}  // namespace ascend_fuse
