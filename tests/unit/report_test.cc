// The text a person reads, word for word, and the JSON scripts rely on.
#include "passes/report/report.h"
#include "passes/report/report_html.h"

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

Report Example() {
  Report report;
  report.model = "m.onnx";
  report.target = {"ascend910b", "8.1", "D", "force_fp16", 16, false, {}};
  report.nodes_before = 812;
  report.nodes_after = 402;
  for (int layer = 0; layer < 3; ++layer) {
    SiteRecord norm;
    norm.kind = "rms_norm";
    norm.state = "fused";
    norm.module = "model.layers." + std::to_string(layer) + ".input_layernorm";
    norm.rule = "rms_norm";
    norm.emitted_op = "npu.NPURmsNorm";
    norm.precision = "exact";
    norm.node = "/model/layers." + std::to_string(layer) + "/input_layernorm/Mul_1";
    norm.covers = {"Pow_1", "Mul_1"};
    norm.outputs = {"y" + std::to_string(layer)};
    norm.assumptions = {"`batch` is at most 999"};
    report.sites.push_back(norm);
    SiteRecord attention;
    attention.kind = "attention";
    attention.state = layer < 2 ? "left" : "fused";
    attention.module = "model.layers." + std::to_string(layer) + ".self_attn";
    attention.node = "MatMul_" + std::to_string(layer);
    if (layer < 2) {
      attention.because = "head_dim is 576, at most 512 (the kernel takes D up to 512)";
      attention.source = "docs/aclnnPromptFlashAttentionV3.md";
    } else {
      attention.emitted_op = "npu.NPUPromptFlashAttention";
      attention.mask = "causal+padding";
      attention.precision = "reassociated";
    }
    report.sites.push_back(attention);
  }
  SiteRecord bias;
  bias.kind = "linear_activation";
  bias.state = "by_ge";
  bias.module = "model.fc1";
  bias.because = "TbeMatmulFixPipeFusionPass computes Relu on the way out of MatMul";
  bias.source = "fusion_config.json";
  report.sites.push_back(bias);
  report.near_misses = {
      {"rotary", "/rotary/Add", "model.layers.0.self_attn", 4, "Concat", "form-differs", "Neg", "Mul", "rotary.rule:12:3"}};
  report.contradictions = {{"h", "float[1, 4]", "float[batch, 4]", "Add_3"}};
  report.warnings = {{"care", "be careful"}};
  report.passes = {{"infer", 1.25, 0}, {"recognise", 10, 7}};
  report.Summarize();
  return report;
}

TEST(ReportText, Golden) {
  EXPECT_EQ(ReportToText(Example()), R"(m.onnx
target ascend910b, CANN 8.1, style D, opset 16, precision mode force_fp16
warning: be careful

                   found  fused  by GE  left  commonest reason
rms_norm               3      3      0     0
linear_activation      1      0      1     0
attention              3      1      0     2  head_dim is 576, at most 512 (the kernel takes D up to 512)
none found: layer_norm, group_norm, add_norm, gelu, silu, hard_swish, mish, glu, rotary
nodes 812 -> 402

rms_norm
  3 x fused -> NPURmsNorm  model.layers.*.input_layernorm

linear_activation
  by GE  model.fc1
      because TbeMatmulFixPipeFusionPass computes Relu on the way out of MatMul
      source fusion_config.json

attention
  2 x left  model.layers.*.self_attn
      because head_dim is 576, at most 512 (the kernel takes D up to 512)
      source docs/aclnnPromptFlashAttentionV3.md
  fused -> NPUPromptFlashAttention  model.layers.2.self_attn (mask causal+padding, reassociated)

assumptions (--strict refuses instead; --dim decides those about dims)
  `batch` is at most 999  [3 sites]

near misses
  rotary at /rotary/Add (model.layers.0.self_attn): matched 4 nodes, stopped by Concat
      expected Neg
      found Mul
      rule text rotary.rule:12:3

contradictions (the computed shape was believed)
  h: declared float[1, 4], computed float[batch, 4] at Add_3
)");
}

TEST(ReportText, VerboseShowsEverySite) {
  ReportTextOptions options;
  options.verbose = true;
  const std::string text = ReportToText(Example(), options);
  EXPECT_NE(text.find(R"(
  fused -> NPURmsNorm  model.layers.0.input_layernorm
      rule rms_norm, at /model/layers.0/input_layernorm/Mul_1
      covers Pow_1 Mul_1
      gives y0
  fused -> NPURmsNorm  model.layers.1.input_layernorm
)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  recognise               10.0 ms  7 changes\n"), std::string::npos) << text;
}

TEST(ReportText, ZeroFusionsAreNeverSilent) {
  Report report;
  report.target = {"ascend310p", "8.1", "", "force_fp16", 17, false, {}};
  report.nodes_before = report.nodes_after = 3;
  report.Summarize();
  EXPECT_EQ(ReportToText(report), R"(target ascend310p, CANN 8.1, opset 17, precision mode force_fp16

No site of any kind was found (rms_norm, layer_norm, group_norm, add_norm, gelu, silu, hard_swish, mish, glu, linear_activation, rotary, attention): nothing was fused.
Near misses below, if any, say where a pattern stopped; `ascend-fuse print` shows the graph.
nodes 3 -> 3
)");
  SiteRecord site;
  site.kind = "gelu";
  site.state = "left";
  site.node = "Erf_1";
  report.sites = {site};
  report.Summarize();
  EXPECT_NE(ReportToText(report).find("1 site was found, none was fused"), std::string::npos);
  EXPECT_NE(ReportToText(report).find("because no reason was recorded"), std::string::npos);
}

TEST(ReportText, ListChangesNothing) {
  ReportTextOptions options;
  options.changed = false;
  const std::string text = ReportToText(Example(), options);
  EXPECT_NE(text.find("nodes 812 (nothing was changed)"), std::string::npos);
  EXPECT_NE(text.find("3 x can be fused -> NPURmsNorm"), std::string::npos);
}

TEST(ReportSummary, CountsAndReasons) {
  Report report = Example();
  const ReportKindCount* attention = report.FindKind("attention");
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(attention->found, 3);
  EXPECT_EQ(attention->fused, 1);
  EXPECT_EQ(attention->left, 2);
  EXPECT_EQ(report.FindKind("gelu")->found, 0);
  EXPECT_EQ(report.FindKind("nothing"), nullptr);
  report.sites[0].kind = "new_kind";
  report.Summarize();
  EXPECT_EQ(report.FindKind("new_kind")->fused, 1);
  EXPECT_EQ(report.kinds.size(), ReportKinds().size() + 1);
}

TEST(ReportJson, NamesAndZeros) {
  const std::string json = ReportToJson(Example());
  for (const char* part :
       {"\"chip\": \"ascend910b\"", "\"precision_mode\": \"force_fp16\"", "\"opset\": 16", "\"by_ge\": 1", "\"before\": 812",
        "\"commonest_reason\": \"head_dim is 576", "\"near_misses\"", "\"matched_nodes\": 4", "\"source\": \"rotary.rule:12:3\"",
        "\"schema\": 1", "\"code\": \"form-differs\"", "\"gelu\": {\n    \"found\": 0"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
  EXPECT_EQ(json, ReportToJson(Example()));
}

TEST(ReportJson, ReadsBack) {
  const auto report = ReportFromJson(ReportToJson(Example()));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ReportToText(*report), ReportToText(Example()));
  EXPECT_FALSE(ReportFromJson("{]").ok());
}

// Zero has a sign in JSON that writing does not keep. Found by report_fuzz.
TEST(ReportJson, NegativeZeroIsZero) {
  const auto report = ReportFromJson(R"({"schema": 1, "passes": [{"name": "adapt", "milliseconds": -0.0}]})");
  ASSERT_TRUE(report.ok()) << report.status();
  const std::string json = ReportToJson(*report);
  const auto again = ReportFromJson(json);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ReportToJson(*again), json);
}

// A report may come from a file of somebody else.
TEST(ReportHtml, CodesOfTidiedNodesAreText) {
  Report report = Example();
  report.tidied.push_back({"tidy-<script>\xe2\x80\xae", "Identity", {"n"}});
  const std::string page = ReportToHtml(report);
  EXPECT_NE(page.find("&lt;script&gt;\\u{202e}"), std::string::npos) << page;
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

}  // namespace
}  // namespace ascend_fuse
