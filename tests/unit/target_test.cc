// What the targets answer: yes, no with its sentence, or yes under an assumption, for every node and chip.
#include "patterns/target/target.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool AnyHas(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) { return Has(text, part); });
}

constexpr int64_t kAll = 2147483647;

Attribute Int(std::string_view name, int64_t value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kInt;
  attribute.i = value;
  return attribute;
}

Attribute Float(std::string_view name, float value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kFloat;
  attribute.f = value;
  return attribute;
}

Attribute String(std::string_view name, std::string_view value) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::kString;
  attribute.s = value;
  return attribute;
}

class ContractTest : public ::testing::Test {
 protected:
  Target Load(const std::string& chip, const std::string& mode = "force_fp16", const std::string& cann = "8.1") {
    TargetOptions options;
    options.chip = chip;
    options.cann = cann;
    options.precision_mode = mode;
    auto target = Target::Load(options);
    EXPECT_TRUE(target.ok()) << target.status();
    return *std::move(target);
  }

  // The chip with our op plugin, under the CANN that knows it.
  Target LoadPlugin(const std::string& chip, const std::string& cann = "", const std::string& mode = "force_fp16") {
    TargetOptions options;
    options.precision_mode = mode;
    options.chip = chip;
    options.cann = !cann.empty() ? cann : chip == "ascend950" ? "2026.07" : "8.1";
    options.plugin = true;
    auto target = Target::Load(options);
    EXPECT_TRUE(target.ok()) << target.status();
    return *std::move(target);
  }

  // A shape: numbers, or names of symbols.
  struct Size {
    Size(int number) : number(number) {}          // NOLINT
    Size(const char* symbol) : symbol(symbol) {}  // NOLINT
    int number = 0;
    const char* symbol = nullptr;
  };

  CallInput In(DataType type, const std::vector<Size>& shape) {
    CallInput input;
    input.present = true;
    input.type = type;
    input.has_rank = true;
    for (const Size& size : shape) {
      input.shape.push_back(size.symbol == nullptr ? Dim::Of(size.number) : dims_.Symbol(size.symbol));
    }
    return input;
  }

  Call RmsNorm(DataType x = DataType::kFloat, Size width = 128, DataType gamma = DataType::kFloat) {
    return {"npu.NPURmsNorm", {In(x, {"batch", "seq", width}), In(gamma, {width})}, {}};
  }

  Call Attention(std::vector<CallInput> inputs, int64_t heads = 4, int64_t kv_heads = 0, std::string_view layout = "BNSD") {
    return {"npu.NPUPromptFlashAttention",
            std::move(inputs),
            {Int("num_heads", heads), String("input_layout", layout), Float("scale_value", 0.125f), Int("pre_tokens", kAll),
             Int("next_tokens", kAll), Int("num_key_value_heads", kv_heads), Int("sparse_mode", 0), Int("inner_precise", 1)}};
  }

  std::vector<CallInput> Qkv(Size head_dim = 64, DataType type = DataType::kFloat, Size batch = 2, Size heads = 4,
                             Size kv_heads = 4) {
    return {In(type, {batch, heads, "seq", head_dim}), In(type, {batch, kv_heads, "total", head_dim}),
            In(type, {batch, kv_heads, "total", head_dim})};
  }

  std::vector<CallInput> WithMask(std::vector<CallInput> inputs, CallInput mask) {
    CallInput none = In(inputs[0].type, {0});
    inputs.push_back(none);
    inputs.push_back(std::move(mask));
    return inputs;
  }

  Call Rotary(std::vector<Size> x, std::vector<Size> r, DataType type = DataType::kFloat) {
    return {"npu.NPURotaryMul", {In(type, x), In(type, r), In(type, r)}, {}};
  }

  DimTable dims_;
};

#define EXPECT_YES(answer)                                \
  do {                                                    \
    const Answer a = (answer);                            \
    EXPECT_TRUE(a.legal) << a.because;                    \
    EXPECT_EQ(a.assumptions, std::vector<std::string>()); \
  } while (false)

#define EXPECT_NO(answer, sentence)         \
  do {                                      \
    const Answer a = (answer);              \
    EXPECT_FALSE(a.legal);                  \
    EXPECT_PRED2(Has, a.because, sentence); \
    EXPECT_NE(a.source, "") << a.because;   \
  } while (false)

// Chips of whose kernels something is known.
std::vector<std::string> KnownChips() { return {"ascend310p", "ascend910_93", "ascend910b", "ascend950"}; }

TEST_F(ContractTest, EveryTargetLoads) {
  EXPECT_EQ(Target::Chips(),
            (std::vector<std::string>{"ascend310b", "ascend310p", "ascend910", "ascend910_93", "ascend910b", "ascend950"}));
  EXPECT_EQ(Target::CannVersions(), (std::vector<std::string>{"2026.07", "8.1", "8.5", "9.0", "9.1", "9.2"}));
  for (const std::string& chip : Target::Chips()) {
    for (const std::string& cann : Target::CannVersions()) {
      const Target target = Load(chip, "force_fp16", cann);
      EXPECT_EQ(target.chip(), chip);
      EXPECT_EQ(target.cann(), cann);
      const std::vector<std::string> with_kernels = KnownChips();
      const bool known = std::find(with_kernels.begin(), with_kernels.end(), chip) != with_kernels.end();
      EXPECT_EQ(AnyHas(target.Nodes(), "npu.NPURmsNorm"), known);
      EXPECT_EQ(LoadPlugin(chip, cann).HasNode("npu.NPUSwiGlu"), known);
      EXPECT_FALSE(AnyHas(target.Nodes(), "npu.NPUSwiGlu"));
      EXPECT_EQ(target.CheckData(), absl::OkStatus());
      EXPECT_EQ(LoadPlugin(chip, cann).CheckData(), absl::OkStatus());
    }
  }
}

TEST_F(ContractTest, UnknownNamesListWhatThereIs) {
  TargetOptions options;
  options.chip = "h100";
  auto target = Target::Load(options);
  EXPECT_EQ(target.status().code(), absl::StatusCode::kNotFound);
  EXPECT_PRED2(Has, std::string(target.status().message()),
               "ascend310b, ascend310p, ascend910, ascend910_93, ascend910b, ascend950, or give");
  options = {};
  options.cann = "7.0";
  target = Target::Load(options);
  EXPECT_EQ(target.status().code(), absl::StatusCode::kNotFound);
  EXPECT_PRED2(Has, std::string(target.status().message()), "2026.07, 8.1");
  options = {};
  options.precision_mode = "fp16";
  target = Target::Load(options);
  EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_PRED2(Has, std::string(target.status().message()), "must_keep_origin_dtype");
  options = {};
  options.style = "Z";
  EXPECT_PRED2(Has, std::string(Target::Load(options).status().message()), "no emission style is called Z");
}

TEST_F(ContractTest, SocVersionsAreChips) {
  EXPECT_EQ(Load("Ascend910B4").chip(), "ascend910b");
  EXPECT_EQ(Load("Ascend310P3").chip(), "ascend310p");
  EXPECT_EQ(Load("Ascend910_9391").chip(), "ascend910_93");
}

TEST_F(ContractTest, RmsNorm) {
  for (const std::string chip : {"ascend910b", "ascend910_93", "ascend950", "ascend310p"}) {
    const Target target = Load(chip);
    EXPECT_YES(target.Check(RmsNorm(), dims_));
    EXPECT_YES(target.Check(RmsNorm(DataType::kFloat16, 128, DataType::kFloat16), dims_));
    Call call = RmsNorm();
    call.attributes = {Float("epsilon", 1e-6f)};
    EXPECT_YES(target.Check(call, dims_));
    call.attributes = {Float("epsilon", 1e-5f)};
    EXPECT_NO(target.Check(call, dims_), "epsilon is 1e-05, only 1e-6");
    call.attributes = {Int("axis", -1)};
    EXPECT_NO(target.Check(call, dims_), "does not read an attribute axis");
    call = RmsNorm();
    call.inputs[1].shape = {Dim::Of(64)};
    EXPECT_NO(target.Check(call, dims_), "axis 0 of gamma is 64, 128 (D) is needed");
    call.inputs[1].shape = {dims_.Symbol("s3")};
    EXPECT_NO(target.Check(call, dims_), "bind it with --dim s3=N");
    EXPECT_NO(target.Check(RmsNorm(DataType::kInt32), dims_), "x is int32, npu.NPURmsNorm takes float16");
  }
}

TEST_F(ContractTest, RmsNormTypesOfEachChip) {
  const std::string keep = "must_keep_origin_dtype";
  EXPECT_YES(Load("ascend910b", keep).Check(RmsNorm(DataType::kBfloat16, 128, DataType::kFloat), dims_));
  EXPECT_YES(Load("ascend910b", keep).Check(RmsNorm(DataType::kBfloat16, 128, DataType::kBfloat16), dims_));
  EXPECT_NO(Load("ascend310p", keep).Check(RmsNorm(DataType::kBfloat16, 128, DataType::kBfloat16), dims_),
            "x is bfloat16, npu.NPURmsNorm takes float16 or float on ascend310p");
  // force_fp16 turns bfloat16 into float16 as well.
  EXPECT_YES(Load("ascend310p").Check(RmsNorm(DataType::kBfloat16, 128, DataType::kBfloat16), dims_));
  EXPECT_NO(Load("ascend310p", "allow_fp32_to_bf16").Check(RmsNorm(DataType::kFloat, 128, DataType::kFloat16), dims_),
            "(float, float16) is not a combination of types that npu.NPURmsNorm takes on ascend310p");
  // must_keep_origin_dtype may still raise float16 to float.
  EXPECT_YES(Load("ascend310p", keep).Check(RmsNorm(DataType::kFloat, 128, DataType::kFloat16), dims_));
}

TEST_F(ContractTest, RmsNormOn310pMovesBlocksOf32Bytes) {
  const Target half = Load("ascend310p");
  EXPECT_YES(half.Check(RmsNorm(DataType::kFloat, 16), dims_));
  EXPECT_NO(half.Check(RmsNorm(DataType::kFloat16, 8, DataType::kFloat16), dims_), "the last dim in bytes is 16, at least 32");
  // force_fp16 makes float16 of it, however well float32 would fit.
  EXPECT_NO(half.Check(RmsNorm(DataType::kFloat, 8), dims_), "the last dim in bytes is 16, at least 32");
  EXPECT_YES(Load("ascend310p", "must_keep_origin_dtype").Check(RmsNorm(DataType::kFloat, 8), dims_));
  const Answer answer = half.Check(RmsNorm(DataType::kFloat, "width"), dims_);
  EXPECT_TRUE(answer.legal);
  EXPECT_EQ(answer.assumptions, (std::vector<std::string>{"`width` is at least 16 (the last dim in bytes, npu.NPURmsNorm)"}));
}

TEST_F(ContractTest, AddRmsNormNeedsEqualSummands) {
  for (const std::string chip : {"ascend910b", "ascend310p"}) {
    const Target target = Load(chip);
    Call call{
        "npu.NPUAddRmsNorm",
        {In(DataType::kFloat, {"batch", "seq", 128}), In(DataType::kFloat, {"batch", "seq", 128}), In(DataType::kFloat, {128})},
        {}};
    EXPECT_YES(target.Check(call, dims_));
    call.inputs[1] = In(DataType::kFloat, {1, "seq", 128});
    EXPECT_NO(target.Check(call, dims_), "that dim 0 of x2 (`1`) equals `batch` cannot be decided; bind it with --dim batch=N");
    call.inputs[1] = In(DataType::kFloat, {"seq", 128});
    EXPECT_NO(target.Check(call, dims_), "no broadcast");
  }
  EXPECT_TRUE(Load("ascend910b").FusedByGe("add_rms_norm").has_value());
  EXPECT_FALSE(Load("ascend310p").FusedByGe("add_rms_norm").has_value());
}

TEST_F(ContractTest, BoundsThatMostRunsBreakAreProvenNotAssumed) {
  const auto rope = [&](const std::vector<Size>& x, const std::vector<Size>& table) {
    return Call{"npu.NPURotaryPositionEmbedding",
                {In(DataType::kFloat16, x), In(DataType::kFloat16, table), In(DataType::kFloat16, table)},
                {Int("mode", 0)}};
  };
  const Target a2 = Load("ascend910b");
  EXPECT_NO(a2.Check(rope({2, 32, "seq", 80}, {1, 1, "seq", 80}), dims_),
            "that B*N is at most seq*8 cannot be decided for the symbolic dim `seq`; bind it with --dim seq=N");
  EXPECT_YES(a2.Check(rope({2, 32, 8, 80}, {1, 1, 8, 80}), dims_));
  EXPECT_NO(a2.Check(rope({2, 32, 7, 80}, {1, 1, 7, 80}), dims_), "B*N is 64, at most 56");
  EXPECT_YES(a2.Check(rope({2, "seq", 32, 80}, {1, "seq", 1, 80}), dims_));               // tokens before heads: no such bound
  EXPECT_NO(a2.Check(rope({5000, "seq", 32, 80}, {5000, "seq", 1, 80}), dims_), "5000");  // also read as S, B, N, D
}

TEST_F(ContractTest, Gelu) {
  for (const std::string& chip : KnownChips()) {
    const Target target = Load(chip);
    for (const char* op : {"npu.NPUGeluV2", "npu.NPUFastGelu", "npu.NPUMish"}) {
      Call call{op, {In(DataType::kFloat, {"batch", 7})}, {}};
      EXPECT_YES(target.Check(call, dims_));
      call.inputs[0].type = DataType::kInt64;
      EXPECT_NO(target.Check(call, dims_), "x is int64");
      call.inputs[0] = {};
      EXPECT_FALSE(target.Check(call, dims_).legal);
    }
    Call call{"npu.NPUGeluV2", {In(DataType::kFloat, {"batch", 7})}, {String("approximate", "tanh")}};
    EXPECT_YES(target.Check(call, dims_));
    call.attributes = {String("approximate", "quick")};
    EXPECT_NO(target.Check(call, dims_), "approximate is quick, only none or tanh");
    call.attributes = {Int("approximate", 1)};
    EXPECT_NO(target.Check(call, dims_), "approximate is INT, the plugin reads STRING only");
  }
}

TEST_F(ContractTest, Geglu) {
  for (const std::string& chip : KnownChips()) {
    const Target target = Load(chip);
    EXPECT_YES(target.Check({"npu.NPUGeglu", {In(DataType::kFloat, {"batch", 512})}, {}}, dims_));
    EXPECT_NO(target.Check({"npu.NPUGeglu", {In(DataType::kFloat, {"batch", 511})}, {}}, dims_),
              "the last dim is 511, a multiple of 2 is needed");
    EXPECT_NO(target.Check({"npu.NPUGeglu", {In(DataType::kFloat, {"batch", "s3"})}, {}}, dims_),
              "cannot be decided for the symbolic dim `s3`; bind it with --dim s3=N");
    EXPECT_NO(target.Check({"npu.NPUGeglu", {In(DataType::kFloat, {8, 512})}, {Int("activate_left", 1)}}, dims_),
              "activate_left is 1, only 0");
  }
}

TEST_F(ContractTest, MultiplesOfSymbolsAreDecidedWhenTheTableMayGrow) {
  const Target target = Load("ascend910b");
  Call call{"npu.NPUGeglu", {In(DataType::kFloat, {"batch", 2})}, {}};
  call.inputs[0].shape[1] = dims_.Mul(Dim::Of(2), dims_.Symbol("h"));
  EXPECT_FALSE(target.Check(call, dims_).legal);
  EXPECT_YES(target.Check(call, &dims_));
  call.inputs[0].shape[1] = dims_.Add(call.inputs[0].shape[1], Dim::Of(1));
  EXPECT_NO(target.Check(call, &dims_), "is 2*h + 1, a multiple of 2 is needed");
  call.inputs[0].shape[1] = dims_.Symbol("h");
  EXPECT_NO(target.Check(call, &dims_), "--dim h=N");
}

TEST_F(ContractTest, GroupNormSilu) {
  const Target target = Load("ascend910b");
  Call call{"npu.NPUGroupNormSilu",
            {In(DataType::kFloat, {"batch", 64, "h", "w"}), In(DataType::kFloat, {64}), In(DataType::kFloat, {64})},
            {Int("num_groups", 32), Float("eps", 1e-6f)}};
  EXPECT_YES(target.Check(call, dims_));
  call.attributes[0].i = 24;
  EXPECT_NO(target.Check(call, dims_), "the number of channels is 64, a multiple of 24 is needed");
  call.attributes[1].f = 0;
  call.attributes[0].i = 32;
  EXPECT_NO(target.Check(call, dims_), "eps is 0, more than 0");
  call.attributes = {};
  EXPECT_NO(target.Check(call, dims_), "num_groups must be written");
}

TEST_F(ContractTest, RotaryMul) {
  for (const std::string& chip : KnownChips()) {
    const Target target = Load(chip);
    EXPECT_YES(target.Check(Rotary({2, 4, "seq", 64}, {1, 1, "seq", 64}), dims_));
    EXPECT_YES(target.Check(Rotary({2, "seq", 4, 64}, {1, "seq", 1, 64}), dims_));
    EXPECT_YES(target.Check(Rotary({2, 4, "seq", 64}, {2, 1, "seq", 64}), dims_));
    EXPECT_NO(target.Check(Rotary({2, 4, "seq", 80}, {1, 1, "seq", 80}), dims_),
              "the rotary dim is 80, a multiple of 64 is needed");
    EXPECT_NO(target.Check(Rotary({2, 4, "seq", 64}, {1, 1, "seq", 32}), dims_), "axis 3 of r1 is 32");
    EXPECT_NO(target.Check(Rotary({2000, 4, "seq", 64}, {2000, 1, "seq", 64}), dims_),
              "the batch of a rotary embedding is 2000, at most 999");
    EXPECT_NO(target.Check(Rotary({64, 32, "seq", 64}, {1, 1, "seq", 64}), dims_), "B*N is 2048, at most 1023");
  }
  const Answer answer = Load("ascend910b").Check(Rotary({"batch", 4, "seq", 64}, {1, 1, "seq", 64}), dims_);
  EXPECT_TRUE(answer.legal) << answer.because;
  EXPECT_EQ(answer.assumptions,
            (std::vector<std::string>{"`batch` is at most 255 (B*N, npu.NPURotaryMul)",
                                      "`batch` is at most 999 (the batch of a rotary embedding, npu.NPURotaryMul)"}));
  // The newer kernel documents of A2 relax the width.
  EXPECT_YES(Load("ascend910b", "force_fp16", "2026.07").Check(Rotary({2, 4, "seq", 80}, {1, 1, "seq", 80}), dims_));
  EXPECT_FALSE(Load("ascend310p", "force_fp16", "2026.07").Check(Rotary({2, 4, "seq", 80}, {1, 1, "seq", 80}), dims_).legal);
}

TEST_F(ContractTest, RotaryPositionEmbedding) {
  Call call = Rotary({2, 4, 128, 64}, {1, 1, 128, 64});
  call.op = "npu.NPURotaryPositionEmbedding";
  EXPECT_NO(Load("ascend910b").Check(call, dims_), "mode must be written");
  call.attributes = {Int("mode", 1)};
  EXPECT_YES(Load("ascend910b").Check(call, dims_));
  EXPECT_NO(Load("ascend310p").Check(call, dims_), "no kernel on 310P");
  call.inputs[0] = In(DataType::kFloat, {300, 4, 128, 64});
  EXPECT_NO(Load("ascend910b").Check(call, dims_), "is 1200, at most 999");
  call.attributes = {Int("mode", 2)};
  EXPECT_NO(Load("ascend910b").Check(call, dims_), "mode is 2, only 0 or 1");
  EXPECT_YES(Load("ascend950", "force_fp16", "2026.07").Check(call, dims_));
}

// cos is [2, 1, S, D] and x is [batch, N, S, D]: one row wants 1 there, another one `batch`, which may be 2.
TEST_F(ContractTest, ARefusalIsNotCertainWhereAnotherFormIsUndecided) {
  Call call = Rotary({"batch", 4, 128, 64}, {2, 1, 128, 64});
  call.op = "npu.NPURotaryPositionEmbedding";
  call.attributes = {Int("mode", 1)};
  const Answer undecided = Load("ascend910b").Check(call, dims_);
  EXPECT_FALSE(undecided.legal);
  EXPECT_FALSE(undecided.certain);
  EXPECT_EQ(undecided.code, "undecided-dim");
  EXPECT_PRED2(Has, undecided.because, "--dim");
  call.inputs[0] = In(DataType::kFloat, {3, 4, 128, 64});
  const Answer refused = Load("ascend910b").Check(call, dims_);
  EXPECT_FALSE(refused.legal);
  EXPECT_TRUE(refused.certain) << refused.because;
}

TEST_F(ContractTest, AttentionWithoutMask) {
  for (const std::string chip : {"ascend910b", "ascend910_93", "ascend310p"}) {
    const Target target = Load(chip);
    const Answer answer = target.Check(Attention(Qkv()), dims_);
    EXPECT_TRUE(answer.legal) << answer.because;
    EXPECT_EQ(answer.assumptions.size(), 2u);  // the lengths
    EXPECT_NO(target.Check(Attention(Qkv(576)), dims_), "head_dim is 576, at most 512");
    EXPECT_NO(target.Check(Attention(Qkv(), 8), dims_), "the number of query heads is 4, 8 is needed");
    EXPECT_NO(target.Check(Attention(Qkv(), 512), dims_), "num_heads is 512, at most 256");
    Call call = Attention(Qkv());
    call.attributes.erase(call.attributes.begin() + 3);
    EXPECT_NO(target.Check(call, dims_), "pre_tokens must be written");
    EXPECT_NO(Load(chip, "must_keep_origin_dtype").Check(Attention(Qkv()), dims_), "query is float");
  }
  EXPECT_NO(Load("ascend950").Check(Attention(Qkv()), dims_), "has no kernel for ascend950");
}

TEST_F(ContractTest, NoPrecisionModeLowersWhatACastMadeFloat) {
  const Target target = Load("ascend910b");
  auto attention = [&](DataType query, DataType value) {
    Call call = Attention(Qkv());
    call.inputs[0].type = query;
    call.inputs[1].type = query;
    call.inputs[2].type = value;
    return target.Check(call, dims_);
  };
  EXPECT_TRUE(attention(DataType::kFloat, DataType::kFloat).legal);
  EXPECT_TRUE(attention(DataType::kFloat16, DataType::kFloat16).legal);
  EXPECT_NO(attention(DataType::kFloat, DataType::kFloat16), "no precision mode lowers what a Cast made float");
  EXPECT_NO(attention(DataType::kFloat16, DataType::kFloat), "(float16, float16, float) is not a combination of types");
}

TEST_F(ContractTest, AttentionWithMask) {
  const CallInput mask = In(DataType::kBool, {2, 1, "seq", "total"});
  const Target a2 = Load("ascend910b");
  EXPECT_TRUE(a2.Check(Attention(WithMask(Qkv(), mask)), dims_).legal);
  EXPECT_TRUE(a2.Check(Attention(WithMask(Qkv(), In(DataType::kBool, {"seq", "total"}))), dims_).legal);
  EXPECT_NO(a2.Check(Attention(WithMask(Qkv(72), mask)), dims_), "head_dim is 72, a multiple of 16 is needed");
  EXPECT_TRUE(a2.Check(Attention(Qkv(72)), dims_).legal);  // without the mask it need not be aligned
  EXPECT_NO(a2.Check(Attention(WithMask(Qkv(), In(DataType::kBool, {2, 4, "seq", "total"}))), dims_),
            "atten_mask has shape [2, 4, seq, total]");
  EXPECT_NO(a2.Check(Attention(WithMask(Qkv(), In(DataType::kFloat, {2, 1, "seq", "total"}))), dims_),
            "atten_mask is float, npu.NPUPromptFlashAttention takes bool, int8 or uint8");
  EXPECT_NO(Load("ascend310p").Check(Attention(WithMask(Qkv(), mask)), dims_), "atten_mask must not be given");
  // Sizes that only may be large enough are assumptions.
  const Answer answer = a2.Check(Attention(WithMask(Qkv(), In(DataType::kBool, {2, 1, "seq", "longest"}))), dims_);
  EXPECT_TRUE(answer.legal) << answer.because;
  EXPECT_PRED2(AnyHas, answer.assumptions, "`longest` is at least total");
}

TEST_F(ContractTest, AttentionInputCounts) {
  const Target target = Load("ascend910b");
  std::vector<CallInput> four = Qkv();
  four.push_back(In(DataType::kFloat, {0}));
  EXPECT_NO(target.Check(Attention(four), dims_), "4 inputs, npu.NPUPromptFlashAttention takes 3, 5, 7, 9 or 12");
  std::vector<CallInput> hole = WithMask(Qkv(), In(DataType::kBool, {"seq", "total"}));
  hole[3] = {};
  EXPECT_NO(target.Check(Attention(hole), dims_), "input 3 is not connected");
}

TEST_F(ContractTest, AttentionBatchWithUnalignedHeads) {
  const Target target = Load("ascend910b");
  const Answer answer = target.Check(Attention(Qkv(72, DataType::kFloat, "batch")), dims_);
  EXPECT_TRUE(answer.legal) << answer.because;
  EXPECT_PRED2(AnyHas, answer.assumptions, "`batch` is at most 128 (the batch of an attention, npu.NPUPromptFlashAttention)");
  dims_.SetRange("small", 1, 16);
  const Answer bound = target.Check(Attention(Qkv(72, DataType::kFloat, "small")), dims_);
  EXPECT_FALSE(AnyHas(bound.assumptions, "small"));
  dims_.SetRange("huge", 4096, 8192);
  EXPECT_NO(target.Check(Attention(Qkv(72, DataType::kFloat, "huge")), dims_), "the batch of an attention is huge, at most 128");
}

TEST_F(ContractTest, GroupedQueries) {
  const std::vector<CallInput> inputs = Qkv(64, DataType::kFloat16, 2, 4, 2);
  EXPECT_TRUE(Load("ascend910b").Check(Attention(inputs, 4, 2), dims_).legal);
  EXPECT_NO(Load("ascend910b").Check(Attention(inputs, 4, 0), dims_), "the number of key/value heads is 2, 4 is needed");
  EXPECT_NO(Load("ascend910b").Check(Attention(inputs, 4, 3), dims_), "num_heads is 4, a multiple of 3 is needed");
  EXPECT_NO(Load("ascend310p").Check(Attention(inputs, 4, 2), dims_), "num_key_value_heads is 2, only 0");
}

TEST_F(ContractTest, AttentionLayouts) {
  const Target target = Load("ascend910b");
  const auto bsh = [this](Size heads, Size kv) -> std::vector<CallInput> {
    return {In(DataType::kFloat16, {"batch", "seq", heads}), In(DataType::kFloat16, {"batch", "total", kv}),
            In(DataType::kFloat16, {"batch", "total", kv})};
  };
  EXPECT_TRUE(target.Check(Attention(bsh(256, 256), 4, 0, "BSH"), dims_).legal);
  EXPECT_TRUE(target.Check(Attention(bsh(256, 128), 4, 2, "BSH"), dims_).legal);
  EXPECT_NO(target.Check(Attention(bsh(256, 192), 4, 2, "BSH"), dims_), "is 768, 512 is needed");
  EXPECT_NO(target.Check(Attention(bsh(4096, 4096), 4, 0, "BSH"), dims_), "head_dim is 1024, at most 512");
  EXPECT_NO(target.Check(Attention(bsh("s1", "s1"), 4, 0, "BSH"), dims_), "--dim s1=N");
  EXPECT_NO(target.Check(Attention(Qkv(), 4, 0, "SBH"), dims_), "input_layout is SBH, only BSH, BSND, BNSD or BNSD_BSND");
  EXPECT_NO(target.Check(Attention(Qkv(), 4, 0, "BSH"), dims_), "query has shape [2, 4, seq, 64], [B, S, H] is needed");
}

TEST_F(ContractTest, SparseModeTakesTheTemplate) {
  const Target target = Load("ascend910b");
  Call call = Attention(WithMask(Qkv(), In(DataType::kBool, {2048, 2048})));
  call.attributes[6] = Int("sparse_mode", 3);
  EXPECT_TRUE(target.Check(call, dims_).legal);
  call.inputs[4] = In(DataType::kBool, {"seq", "total"});
  EXPECT_NO(target.Check(call, dims_), "axis 0 of atten_mask (`seq`) is 2048 cannot be decided");
  call.inputs.resize(3);
  EXPECT_NO(target.Check(call, dims_), "atten_mask must be given");
}

TEST_F(ContractTest, NodesStockAtcCannotParse) {
  for (const std::string& chip : KnownChips()) {
    EXPECT_NO(Load(chip).Check({"npu.NPUSwiGlu", {In(DataType::kFloat16, {4, 8})}, {}}, dims_),
              "stock ATC has no ONNX parser for SwiGlu");
    EXPECT_NO(Load(chip).Check({"npu.NPUIncreFlashAttention", {}, {}}, dims_), "key0 and value0 stay unconnected");
    EXPECT_NO(Load(chip).Check({"npu.NPUNothing", {}, {}}, dims_), "npu.NPUNothing is not in the contract");
  }
}

// With --plugin: each node on the chips that have its kernel, and on one that has not.
TEST_F(ContractTest, NodesOfOurPlugin) {
  auto half = [&](const std::vector<Size>& shape) { return In(DataType::kFloat16, shape); };
  const Call swish{"npu.NPUSwish", {half({2, 64})}, {}};
  const Call swiglu{"npu.NPUSwiGlu", {half({2, 64})}, {Int("dim", -1)}};
  const Call odd{"npu.NPUSwiGlu", {half({2, 63})}, {Int("dim", -1)}};
  const Call rms{"npu.NPURmsNormWithEpsilon", {half({2, 64}), half({64})}, {Float("epsilon", 1e-5F)}};
  const Call rotary{"npu.NPUApplyRotaryPosEmb",
                    {half({2, 7, 8, 128}), half({2, 7, 2, 128}), half({2, 7, 1, 128}), half({2, 7, 1, 128})},
                    {Int("layout", 1)}};
  for (const std::string chip : {"ascend310p", "ascend910b", "ascend910_93", "ascend950"}) {
    SCOPED_TRACE(chip);
    const Target target = LoadPlugin(chip);
    for (const Call* call : {&swish, &swiglu, &rms, &rotary}) {
      EXPECT_YES(target.Check(*call, dims_));
      EXPECT_TRUE(target.NeedsPlugin(call->op));
      EXPECT_TRUE(target.HasAlias(call->op, 11) && target.HasAlias(call->op, 18));
      EXPECT_FALSE(target.HasAlias(call->op, 19));
      const Target stock = Load(chip, "force_fp16", chip == "ascend950" ? "2026.07" : "8.1");
      EXPECT_FALSE(stock.Check(*call, dims_).legal);
      EXPECT_FALSE(stock.NeedsPlugin(call->op));
      EXPECT_FALSE(stock.HasAlias(call->op, 17));
    }
    EXPECT_NO(target.Check(odd, dims_), "the last dim is 63, a multiple of 2 is needed");
    EXPECT_FALSE(target.NeedsPlugin("npu.NPURmsNorm"));
  }
}

TEST_F(ContractTest, OurRotaryOfQueryAndKey) {
  auto call = [&](int heads, int width) {
    const auto half = [&](int n) { return In(DataType::kFloat16, {2, 7, n, width}); };
    return Call{"npu.NPUApplyRotaryPosEmb", {half(heads), half(2), half(1), half(1)}, {Int("layout", 1)}};
  };
  EXPECT_NO(LoadPlugin("ascend910b").Check(call(8, 64), dims_), "the rotary dim is 64, 128 is needed");
  EXPECT_YES(LoadPlugin("ascend910b", "2026.07").Check(call(8, 64), dims_));
  EXPECT_NO(LoadPlugin("ascend910b").Check(call(40, 128), dims_), "at most 4864");
  Call bnsd = call(8, 128);
  bnsd.attributes = {Int("layout", 3)};
  EXPECT_NO(LoadPlugin("ascend910b").Check(bnsd, dims_), "layout is 3, only 1");
}

TEST_F(ContractTest, OurMatMulWithActivation) {
  auto call = [&](std::string_view activation, const std::vector<Size>& x, const std::vector<Size>& w, int bias) {
    Call result{"npu.NPUFusedMatMul", {In(DataType::kFloat, x), In(DataType::kFloat, w)}, {String("fused_op_type", activation)}};
    if (bias > 0) result.inputs.push_back(In(DataType::kFloat, {bias}));
    return result;
  };
  const Target target = LoadPlugin("ascend950");
  EXPECT_YES(target.Check(call("gelu_erf", {8, 16}, {16, 32}, 0), dims_));
  EXPECT_YES(target.Check(call("relu", {8, 16}, {16, 32}, 32), dims_));
  EXPECT_YES(target.Check(call("relu", {4, 8, 16}, {4, 16, 32}, 0), dims_));
  EXPECT_FALSE(target.Check(call("gelu_erf", {8, 16}, {16, 32}, 32), dims_).legal);
  EXPECT_FALSE(target.Check(call("gelu_tanh", {4, 8, 16}, {4, 16, 32}, 0), dims_).legal);
  EXPECT_FALSE(target.Check(call("relu", {4, 8, 16}, {16, 32}, 0), dims_).legal);
  EXPECT_NO(target.Check(call("tanh", {8, 16}, {16, 32}, 0), dims_), "fused_op_type is");
  EXPECT_NO(LoadPlugin("ascend910b").Check(call("relu", {8, 16}, {16, 32}, 0), dims_),
            "FusedMatMul has a kernel for ascend950 only");
  EXPECT_NO(Load("ascend950", "force_fp16", "2026.07").Check(call("relu", {8, 16}, {16, 32}, 0), dims_),
            "stock ATC has no ONNX parser for FusedMatMul");
}

TEST_F(ContractTest, UnknownShapes) {
  const Target target = Load("ascend910b");
  Call call = RmsNorm();
  call.inputs[0].has_rank = false;
  call.inputs[0].shape.clear();
  EXPECT_NO(target.Check(call, dims_), "the rank of x is not known");
  call = Attention(Qkv());
  for (CallInput& input : call.inputs) input.shape[3] = Dim();
  EXPECT_FALSE(target.Check(call, dims_).legal);
}

TEST_F(ContractTest, WhyLeft) {
  const Target a2 = Load("ascend910b");
  const Target n = Load("ascend950");
  // What GE does on one chip is left on another, and says so there.
  EXPECT_TRUE(a2.FusedByGe("glu_of_split").has_value());
  EXPECT_FALSE(n.FusedByGe("glu_of_split").has_value());
  EXPECT_PRED2(Has, n.WhyLeft("glu_of_split")->because, "not documented for this chip");
  // FusedMatMul takes these on 950: what its row says decides there.
  EXPECT_PRED2(Has, a2.WhyLeft("linear_gelu_erf")->because, "ascend950 only");
  EXPECT_FALSE(n.WhyLeft("linear_gelu_erf").has_value());
  EXPECT_TRUE(Load("ascend310p").FusedByGe("linear_tanh")->static_shapes);
  EXPECT_EQ(Load("ascend310p").FusedByGe("linear_fast_gelu")->computed_by, "npu.NPUFastGelu");
}

TEST_F(ContractTest, GeConstructs) {
  const Target a2 = Load("ascend910b"), p = Load("ascend310p"), n = Load("ascend950");
  EXPECT_PRED2(Has, a2.FusedByGe("add_rms_norm")->because, "AddRmsNormFusionGraphPass");
  EXPECT_PRED2(Has, a2.FusedByGe("linear_bias")->because, "MatMulBiasAddFusionPass");
  EXPECT_FALSE(p.FusedByGe("linear_bias").has_value());
  EXPECT_PRED2(Has, p.FusedByGe("linear_relu")->because, "static shapes only");
  EXPECT_FALSE(n.FusedByGe("linear_relu").has_value());
  EXPECT_TRUE(n.FusedByGe("add_rms_norm").has_value());
  EXPECT_FALSE(Load("ascend910_93").FusedByGe("add_layer_norm").has_value());
  for (const Target* target : {&a2, &p, &n}) {
    EXPECT_TRUE(target->FusedByGe("layer_norm").has_value());
    EXPECT_TRUE(target->Standard("HardSwish", DataType::kFloat, 14).has_value());
    EXPECT_FALSE(target->Standard("Mish", DataType::kFloat, 18).has_value());
    EXPECT_FALSE(target->FusedByGe("rotary").has_value());
  }
}

TEST_F(ContractTest, StandardOperatorsAtTheOpsetsThatHaveAParser) {
  const Target target = Load("ascend910b");
  LeftReason outside;
  EXPECT_TRUE(target.Standard("HardSwish", DataType::kFloat, 14, &outside).has_value());
  EXPECT_TRUE(target.Standard("HardSwish", DataType::kFloat, 18, &outside).has_value());
  EXPECT_EQ(outside.because, "");
  for (const int64_t opset : {13, 19, 22}) {
    EXPECT_FALSE(target.Standard("HardSwish", DataType::kFloat, opset, &outside).has_value()) << opset;
    EXPECT_EQ(outside.because,
              "ATC's parser maps HardSwish (opset 14 to 18) to the HardSwish kernel; the model "
              "imports opset " +
                  std::to_string(opset));
    EXPECT_NE(outside.source, "");
  }
  outside = {};
  EXPECT_FALSE(target.Standard("Relu", DataType::kFloat, 14, &outside).has_value());
  EXPECT_EQ(outside.because, "");
}

TEST_F(ContractTest, Styles) {
  const Target old_parser = Load("ascend910b"), new_parser = Load("ascend910b", "force_fp16", "2026.07");
  EXPECT_FALSE(old_parser.ParsesNpuDomain());
  EXPECT_TRUE(new_parser.ParsesNpuDomain());
  EXPECT_TRUE(old_parser.HasAlias("npu.NPURmsNorm", 17));
  EXPECT_FALSE(old_parser.HasAlias("npu.NPURmsNorm", 19));
  EXPECT_FALSE(old_parser.HasAlias("npu.NPUGeluV2", 17));
  EXPECT_FALSE(old_parser.HasAlias("npu.NPUPromptFlashAttention", 17));
  EXPECT_TRUE(old_parser.HasAlias("npu.NPUPromptFlashAttention", 19));
  EXPECT_EQ(old_parser.AliasOpset({"npu.NPURmsNorm"}, 17), 17);
  EXPECT_EQ(old_parser.AliasOpset({"npu.NPURmsNorm", "npu.NPUPromptFlashAttention"}, 18), 16);
  EXPECT_EQ(old_parser.AliasOpset({"npu.NPUPromptFlashAttention"}, 21), 16);
  EXPECT_EQ(old_parser.AliasOpset({"npu.NPUGeluV2"}, 17), 0);
  EXPECT_EQ(old_parser.AliasOpset({"npu.NPURmsNorm"}, 10), 0);
  EXPECT_EQ(old_parser.MaxOpset(), 18);
}

TEST_F(ContractTest, PrecisionModes) {
  const Call attention = Attention(Qkv());
  for (const char* mode : {"force_fp16", "allow_fp32_to_fp16", "allow_mix_precision", "allow_mix_precision_fp16",
                           "allow_fp32_to_bf16", "allow_mix_precision_bf16", "force_fp32", "cube_fp16in_fp32out"}) {
    EXPECT_TRUE(Load("ascend910b", mode).Check(attention, dims_).legal) << mode;
  }
  EXPECT_FALSE(Load("ascend310p", "allow_fp32_to_bf16").Check(attention, dims_).legal);
  EXPECT_NO(Load("ascend910b", "must_keep_origin_dtype").Check(attention, dims_),
            "query is float, npu.NPUPromptFlashAttention takes float16 or bfloat16 on ascend910b, and "
            "precision mode "
            "must_keep_origin_dtype does not change it");
}

TEST_F(ContractTest, A950NeedsANewerCann) {
  EXPECT_PRED2(AnyHas, Load("ascend950").warnings(), "CANN 8.1.RC1 lists no kernels for ascend950");
  EXPECT_EQ(Load("ascend950", "force_fp16", "2026.07").warnings(), std::vector<std::string>());
}

class TargetFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<Target> Load(const std::string& text, bool plugin = false) {
    const std::string path = ::testing::TempDir() + "/my-target.txtpb";
    std::ofstream(path) << text;
    TargetOptions options;
    options.chip = path;
    options.plugin = plugin;
    return Target::Load(options);
  }
  std::string Message(const std::string& text) { return std::string(Load(text).status().message()); }
};

TEST_F(TargetFileTest, AUsersFileChangesOneRow) {
  auto target = Load(R"pb(
    chip: "mine"
    base: "ascend910b"
    node {
      op: "npu.NPUGeluV2"
      refused { because: "slow here" source: "measured" }
    }
  )pb");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->chip(), "mine");
  EXPECT_EQ(target->Check({"npu.NPUGeluV2", {}, {}}, DimTable()).because, "slow here");
  EXPECT_TRUE(target->FusedByGe("linear_bias").has_value());
}

TEST_F(TargetFileTest, ErrorsNameThePlace) {
  EXPECT_PRED2(Has, Message("chip: \"mine\"\nnode { opp: \"x\" }"), "my-target.txtpb: line 2, column");
  EXPECT_PRED2(Has, Message("base: \"ascend910b\""), "`chip` is missing");
  EXPECT_PRED2(Has, Message("chip: \"mine\" base: \"h100\""), "base `h100` is not one of the built-in");
  EXPECT_PRED2(Has, Message("chip: \"mine\" node { op: \"npu.X\" accepts: \"(float16[..., D x) => ()\" }"),
               "node npu.X: `(float16[..., D x) => ()`, column 17: `,` or `]` expected");
  EXPECT_PRED2(Has, Message("chip: \"mine\" node { op: \"npu.X\" accepts: \"(half x) => ()\" }"), "a type");
  EXPECT_PRED2(Has, Message("chip: \"mine\" node { op: \"npu.X\" accepts: \"(T x) => ()\" }"), "no `types` says what T is");
  EXPECT_PRED2(Has,
               Message("chip: \"mine\" node { op: \"npu.X\" accepts: \"(float[D] x) => ()\" limit { of: "
                       "\"E\" at_most: \"4\" } }"),
               "nothing is called E");
  EXPECT_PRED2(Has,
               Message("chip: \"mine\" node { op: \"npu.X\" accepts: \"(float[D] x) => ()\" limit { of: "
                       "\"D\" at_most: \"4 4\" } }"),
               "expected");
  EXPECT_PRED2(Has,
               Message("chip: \"mine\" node { op: \"npu.X\" accepts: \"(float x) => ()\" input { name: \"y\" "
                       "absent: true } }"),
               "no row has an input `y`");
  EXPECT_PRED2(Has, Message("chip: \"mine\" node { op: \"npu.X\" }"), "no `accepts`");
}

TEST_F(TargetFileTest, RowsOfAPluginCountWithItOnly) {
  const std::string text = R"pb(
    chip: "mine"
    base: "ascend910b"
    node { op: "npu.NPUMine" plugin: true like: "npu.NPUMish" source: "ours" }
    node {
      op: "npu.NPUGeluV2"
      plugin: true
      refused { because: "not with the plugin" source: "measured" }
    }
    node {
      op: "npu.NPUFastGelu"
      refused { because: "slow here" source: "measured" }
    }
  )pb";
  DimTable dims;
  const Call mine{"npu.NPUMine", {{true, DataType::kFloat16, true, {Dim::Of(4)}}}, {}};
  const Call gelu{"npu.NPUGeluV2", mine.inputs, {}};
  const Call swish{"npu.NPUSwish", mine.inputs, {}};
  const auto stock = Load(text);
  ASSERT_TRUE(stock.ok()) << stock.status();
  EXPECT_FALSE(stock->Check(mine, dims).legal);
  EXPECT_TRUE(stock->Check(gelu, dims).legal);
  const auto plugin = Load(text, true);
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  EXPECT_TRUE(plugin->Check(mine, dims).legal);
  EXPECT_EQ(plugin->Check(gelu, dims).because, "not with the plugin");
  // Swish is like FastGelu, which is refused here: what stock ATC says holds.
  EXPECT_PRED2(Has, plugin->Check(swish, dims).because, "stock ATC has no ONNX parser for Swish");

  auto message = [&](const std::string& row) {
    return std::string(Load("chip: \"mine\" base: \"ascend910b\" node { op: \"npu.X\" " + row + " }", true).status().message());
  };
  EXPECT_PRED2(Has, message("like: \"npu.NPUMisch\""), "`like`: there is no node npu.NPUMisch with rows of its own");
  EXPECT_PRED2(Has, message("like: \"npu.NPUMish\" accepts: \"(float x) => ()\""), "`like` beside `accepts`");
}

TEST_F(TargetFileTest, ACannVersionOfAUser) {
  const auto load = [](const std::string& rows) {
    const std::string path = ::testing::TempDir() + "/my-cann.txtpb";
    std::ofstream(path) << "version: \"mine\" max_opset: 18 precision_mode { name: \"force_fp16\" view { } } " + rows;
    TargetOptions options;
    options.cann = path;
    return Target::Load(options);
  };
  EXPECT_TRUE(load("").ok());
  EXPECT_EQ(load("base: \"_parser\" without: \"no-parser\"").status(), absl::OkStatus());
  const auto message = [&](const std::string& rows) { return std::string(load(rows).status().message()); };
  EXPECT_PRED2(Has, message("base: \"8.1\""), "base `8.1` is not one of the built-in target files (_parser)");
  EXPECT_PRED2(Has, message("unsupported { code: \"x\" }"), "my-cann.txtpb: unsupported `x`: `effect` is missing");
  const std::string row = "code: \"x\" effect: MISREAD op: \"Shape\" because: \"it is so\" source: \"measured\" ";
  EXPECT_EQ(load("unsupported { " + row + "when { attribute: \"end\" } }").status(), absl::OkStatus());
  EXPECT_PRED2(Has, message("unsupported { " + row + "when { attribute: \"ende\" } }"), "ONNX knows no attribute ende of Shape");
  EXPECT_PRED2(Has, message("unsupported { " + row + "when { input: \"end\" } }"), "ONNX knows no input end of Shape");
  EXPECT_PRED2(Has, message("unsupported { " + row + "when { input: \"data\" attribute: \"end\" } }"), "`when` takes one of");
  EXPECT_PRED2(Has, message("unsupported { " + row + "when { input: \"data\" is: \"1\" } }"), "need `attribute`");
  EXPECT_PRED2(Has, message("unsupported { " + row + "first: 5 last: 4 }"), "`last` is below `first`");
}

TEST_F(TargetFileTest, AMissingFileIsSaid) {
  TargetOptions options;
  options.chip = "/nowhere/a.txtpb";
  EXPECT_PRED2(Has, std::string(Target::Load(options).status().message()), "/nowhere/a.txtpb cannot be read");
}

}  // namespace
}  // namespace ascend_fuse
