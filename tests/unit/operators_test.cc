// The declarations of patterns/operators.txtpb: what rules and targets say agrees with them, every slip in a rule is
// refused with its place, inference follows their rows, and docs/operators.md is what they say.
#include "patterns/operators/declarations.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ir/schema.h"
#include "passes/report/report.h"
#include "patterns/cost/evidence.h"
#include "patterns/operators/document.h"
#include "patterns/operators/inference.h"
#include "proto/contract.pb.h"
#include "tests/support/source_dir.h"
#include "tests/unit/inferred.h"
#include "tests/unit/rule_testing.h"

namespace ascend_fuse {
namespace {

using testing::Inferred;
using testing::Rules;

constexpr RuleFolder kFolders[] = {RuleFolder::kLibrary, RuleFolder::kNpu,       RuleFolder::kReference,
                                   RuleFolder::kContrib, RuleFolder::kLeftovers, RuleFolder::kAdapt};

// The sentence with which a user's rules are refused, in the first folder that they belong to.
std::string Refusal(const std::string& text) {
  for (const RuleFolder folder : kFolders) {
    const auto rules = RuleSet::Load(folder, {{"user.rule", text}});
    if (!rules.ok()) return std::string(rules.status().message());
  }
  return "";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// "npu.X" and "ascend_fuse.X" in an expression or pattern and below it.
void AddOwn(const Expression& expression, std::set<std::string>* names) {
  if (expression.kind == Expression::Kind::kOperator && !expression.domain.empty()) {
    names->insert(expression.domain + "." + expression.text);
  }
  for (const Expression& argument : expression.arguments) AddOwn(argument, names);
}
void AddOwn(const Pattern& pattern, std::set<std::string>* names) {
  if (!pattern.domain.empty()) names->insert(pattern.domain + "." + pattern.name);
  for (const PatternPointer& argument : pattern.arguments) AddOwn(*argument, names);
}

struct Mentioned {
  std::set<std::string> made;
  std::set<std::string> matched;
};
Mentioned BuiltInRules() {
  Mentioned all;
  for (const RuleFolder folder : kFolders) {
    const auto rules = RuleSet::Load(folder);
    EXPECT_TRUE(rules.ok()) << rules.status().message();
    for (const Definition& definition : (*rules)->definitions()) {
      for (const Definition::Alternative& alternative : definition.alternatives) AddOwn(*alternative.pattern, &all.matched);
    }
    for (const Rule& rule : (*rules)->rules()) {
      for (const MatchStatement& statement : rule.match) AddOwn(*statement.pattern, &all.matched);
      for (const EmitStatement& statement : rule.emit) AddOwn(statement.value, &all.made);
    }
  }
  return all;
}

// The target files, read with protobuf.
std::vector<proto::TargetFile> Targets() {
  std::vector<proto::TargetFile> targets;
  for (const auto& entry : std::filesystem::directory_iterator(testing::SourceDir() / "patterns/targets")) {
    const std::string text = ReadFile(entry.path());
    if (text.find("# proto-message: ascend_fuse.proto.CannFile\n") != std::string::npos) continue;  // about releases
    proto::TargetFile target;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &target)) << entry.path();
    targets.push_back(std::move(target));
  }
  EXPECT_GE(targets.size(), 6u);
  return targets;
}

TEST(OperatorsTest, EveryOperatorIsMadeAndMatched) {
  const Mentioned rules = BuiltInRules();
  for (const DeclaredOperator& op : DeclaredOperators()) {
    if (!op.never_emitted.empty()) {
      EXPECT_FALSE(rules.made.contains(op.name)) << op.name << " is made";
      continue;
    }
    // The passes write_quantised and quantise_norms make them, out of bits and nodes that no rule reads.
    const std::set<std::string> of_pass = {"npu.WeightQuantBatchMatmulV2",
                                           "npu.QuantBatchMatMul",
                                           "npu.NPUQuantize",
                                           "npu.NPUDynamicQuant",
                                           "npu.AscendQuant",
                                           "npu.AscendDequant",
                                           "npu.NPUQuantBatchMatMul",
                                           "npu.NPUWeightQuantBatchMatmulTurned",
                                           "npu.NPUAddRmsNormQuant",
                                           "npu.NPUAddRmsNormDynamicQuant"};
    const bool by_pass = of_pass.contains(op.name);
    EXPECT_NE(rules.made.contains(op.name), by_pass) << op.name << " is made by no rule";
    // GroupNorm has no parser anywhere: it is made to hear why, and never stays.
    if (op.ge.has_value() && op.ge->parser == "none") continue;
    EXPECT_TRUE(rules.matched.contains(op.name)) << op.name << " is matched by no rule";
  }
}

TEST(OperatorsTest, EveryOperatorOfARuleIsDeclared) {
  const Mentioned rules = BuiltInRules();
  for (const auto* names : {&rules.made, &rules.matched}) {
    for (const std::string& name : *names) {
      if (name.starts_with("com.microsoft.")) continue;
      const size_t dot = name.find('.');
      EXPECT_NE(FindDeclaredOperator(name.substr(0, dot), name.substr(dot + 1)), nullptr) << name;
    }
  }
}

TEST(OperatorsTest, DeclarationsAreWhole) {
  std::set<std::string> seen;
  for (const DeclaredOperator& op : DeclaredOperators()) {
    EXPECT_TRUE(seen.insert(op.name).second) << op.name << " is declared twice";
    EXPECT_FALSE(op.computes.empty()) << op.name;
    EXPECT_EQ(op.ge.has_value(), op.domain == "npu") << op.name;
    EXPECT_EQ(FindDeclaredOperator(op.domain, op.op_type), &op);
    EXPECT_EQ(FindDeclaredOperator("", op.op_type), op.domain == "npu" ? &op : nullptr);
    EXPECT_TRUE(!op.rows.empty() || !op.never_emitted.empty()) << op.name << " has no row";
    if (op.ge.has_value()) {
      EXPECT_TRUE(op.ge->parser == "stock" || op.ge->parser == "plugin" || op.ge->parser == "none") << op.name;
      EXPECT_FALSE(op.ge->sources.empty()) << op.name;
    }
    EXPECT_TRUE(op.along_last_axis == 0 || op.along_last_axis <= op.rows[0].signature.inputs.size()) << op.name;
    if (op.rotated_halves.has_value() && !op.rotated_halves->attribute.empty()) {
      const DeclaredAttribute* attribute = op.FindAttribute(op.rotated_halves->attribute);
      ASSERT_NE(attribute, nullptr) << op.name << " has no attribute " << op.rotated_halves->attribute;
      EXPECT_TRUE(attribute->required && attribute->type == AttributeType::kInt) << op.name << "." << attribute->name;
    }
    for (const SignatureRow& row : op.rows) {
      for (const AttributeCondition& when : row.when) {
        EXPECT_NE(op.FindAttribute(when.attribute), nullptr) << op.name << ": " << row.text;
      }
      const auto same = [&](const std::vector<OperandPattern>& a, const std::vector<OperandPattern>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const OperandPattern& x, const OperandPattern& y) {
          return x.name == y.name && x.optional == y.optional;
        });
      };
      EXPECT_TRUE(same(row.signature.inputs, op.rows[0].signature.inputs)) << op.name << ": " << row.text;
      EXPECT_TRUE(same(row.signature.outputs, op.rows[0].signature.outputs)) << op.name << ": " << row.text;
    }
    for (const DeclaredAttribute& attribute : op.attributes) {
      if (!attribute.default_text.has_value() || attribute.only.empty()) continue;
      EXPECT_NE(std::find(attribute.only.begin(), attribute.only.end(), *attribute.default_text), attribute.only.end())
          << op.name << "." << attribute.name;
    }
  }
}

// A chip may know fewer operands and words than there are, never others.
TEST(OperatorsTest, TargetsSayNothingElse) {
  for (const proto::TargetFile& target : Targets()) {
    for (const proto::NodeContract& node : target.node()) {
      ASSERT_TRUE(node.op().starts_with("npu."));
      const DeclaredOperator* op = FindDeclaredOperator("npu", node.op().substr(4));
      ASSERT_NE(op, nullptr) << target.chip() << ": " << node.op() << " is not declared";
      std::vector<std::string> rows(node.accepts().begin(), node.accepts().end());
      for (const proto::Row& row : node.row()) rows.push_back(row.accepts());
      for (const std::string& row : rows) {
        ASSERT_FALSE(op->rows.empty()) << target.chip() << ": " << node.op();
        const auto signature = ParseSignature(row);
        ASSERT_TRUE(signature.ok()) << signature.status().message();
        const auto begins = [&](const std::vector<OperandPattern>& of_chip, const std::vector<OperandPattern>& declared) {
          if (of_chip.size() > declared.size()) return false;
          for (size_t i = 0; i < of_chip.size(); ++i) {
            if (of_chip[i].name != declared[i].name || (of_chip[i].optional && !declared[i].optional)) return false;
          }
          return true;
        };
        EXPECT_TRUE(begins(signature->inputs, op->rows[0].signature.inputs)) << target.chip() << ": " << node.op() << row;
        EXPECT_TRUE(begins(signature->outputs, op->rows[0].signature.outputs)) << target.chip() << ": " << node.op() << row;
      }
      for (const proto::AttributeRule& rule : node.attribute()) {
        const DeclaredAttribute* attribute = op->FindAttribute(rule.name());
        ASSERT_NE(attribute, nullptr) << target.chip() << ": " << node.op() << "." << rule.name();
        const std::string type = attribute->type == AttributeType::kInt     ? "INT"
                                 : attribute->type == AttributeType::kFloat ? "FLOAT"
                                                                            : "STRING";
        EXPECT_EQ(rule.type(), type) << target.chip() << ": " << node.op() << "." << rule.name();
        for (const std::string& word : rule.only()) {
          if (attribute->only.empty()) break;
          EXPECT_NE(std::find(attribute->only.begin(), attribute->only.end(), word), attribute->only.end())
              << target.chip() << ": " << node.op() << "." << rule.name() << " " << word;
        }
      }
      for (const proto::InputRule& rule : node.input()) {
        const auto& inputs = op->rows[0].signature.inputs;
        EXPECT_TRUE(std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) { return input.name == rule.name(); }))
            << target.chip() << ": " << node.op() << " " << rule.name();
      }
    }
  }
}

TEST(OperatorsTest, KindsAndConstructsAreOneVocabulary) {
  std::set<std::string> constructs = {"int8_conv",
                                      "int8_linear"};  // of sites that no rule finds: passes/quantised/deployed_form.cc
  for (const SiteKind& kind : SiteKinds()) {
    EXPECT_EQ(FindSiteKind(kind.name), &kind);
    EXPECT_FALSE(kind.title.empty()) << kind.name;
    constructs.insert(kind.name);
    constructs.insert(kind.constructs.begin(), kind.constructs.end());
    for (const std::string& norm : kind.sum_before) EXPECT_NE(FindSiteKind(norm), nullptr) << norm;
    for (const std::string& native : kind.native) {
      const size_t dot = native.find('.');
      const bool known = dot == std::string::npos
                             ? FindSchema("", native, 24) != nullptr
                             : FindDeclaredOperator(native.substr(0, dot), native.substr(dot + 1)) != nullptr;
      EXPECT_TRUE(known) << native;
    }
  }
  for (const proto::TargetFile& target : Targets()) {
    for (const proto::GeConstructRow& row : target.ge_construct())
      EXPECT_TRUE(constructs.contains(row.construct())) << row.construct();
    for (const proto::LeftRow& row : target.left()) {
      for (const std::string& construct : row.construct()) EXPECT_TRUE(constructs.contains(construct)) << construct;
    }
  }
  for (const RuleFolder folder : {RuleFolder::kLibrary, RuleFolder::kNpu}) {
    const auto rules = RuleSet::Load(folder);
    for (const Rule& rule : (*rules)->rules()) {
      // What GE alone builds is counted under the name of its construct, and reports list it where it is found only.
      EXPECT_TRUE(FindSiteKind(rule.kind) != nullptr || constructs.contains(rule.kind)) << rule.name << " " << rule.kind;
      // `nothing` is a construct that no target has a row for.
      EXPECT_TRUE(rule.ge_construct.empty() || rule.ge_construct == "nothing" || constructs.contains(rule.ge_construct))
          << rule.ge_construct;
    }
  }
  EXPECT_EQ(ReportKinds().size(), SiteKinds().size());
}

// Every operator that a recogniser makes of its own domain is natively of that rule's kind.
TEST(OperatorsTest, NativeOperatorsAreThoseOfTheRules) {
  const auto rules = RuleSet::Load(RuleFolder::kLibrary);
  for (const Rule& rule : (*rules)->rules()) {
    std::set<std::string> made;
    for (const EmitStatement& statement : rule.emit) AddOwn(statement.value, &made);
    for (const std::string& name : made) {
      if (!name.starts_with("ascend_fuse.")) continue;
      const auto& native = FindSiteKind(rule.kind)->native;
      EXPECT_NE(std::find(native.begin(), native.end(), name), native.end()) << rule.name << " makes " << name;
    }
  }
}

TEST(OperatorsTest, UnknownOperators) {
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = npu.NPURmsNrom (x, x) }"),
            "user.rule:3:12: unknown operator 'npu.NPURmsNrom': it is not among those of docs/operators.md, and no rule of "
            "a user matches it too");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Neg (npu.NPUMishh (x)) }\nemit { y = Relu (x) }"),
            "user.rule:2:18: unknown operator 'npu.NPUMishh': it is not among those of docs/operators.md, and no rule of a "
            "user makes it too");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = Neg (ascend_fuse.Gul (x, x)) }"),
            "user.rule:3:17: unknown operator 'ascend_fuse.Gul': it is not among those of docs/operators.md, and no rule of "
            "a user matches it too");
  EXPECT_EQ(Refusal("def d (x)\n  | ascend_fuse.Gul (x, x)\n"),
            "user.rule:2:5: unknown operator 'ascend_fuse.Gul': it is not among those of docs/operators.md, and no rule of a "
            "user makes it too");
}

TEST(OperatorsTest, NumberOfOperands) {
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = ascend_fuse.Glu <activation = \"relu\"> (x) }"),
            "user.rule:3:12: ascend_fuse.Glu takes 2 operands, 1 given: (T[...L] a, T[...L] b) => (T[...L] y)");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = npu.NPUMish (x, x) }"),
            "user.rule:2:13: npu.NPUMish takes 1 operands, 2 given: (T[...L] x) => (T[...L] y)");
  EXPECT_NE(Refusal("rule r (x) => (y)\nmatch { y = ascend_fuse.Attention (x, x) }")
                .find("user.rule:2:13: ascend_fuse.Attention takes 3 to 6 operands, 2 given"),
            std::string::npos);
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y, z = npu.NPUMish (x) }"),
            "user.rule:3:15: npu.NPUMish has 1 outputs, 2 named: (T[...L] x) => (T[...L] y)");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y, z = ascend_fuse.QuickGelu (x) }"),
            "user.rule:2:16: ascend_fuse.QuickGelu has 1 outputs, 2 named: (T[...L] x) => (T[...L] y)");
}

TEST(OperatorsTest, Attributes) {
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = npu.NPUGeluV2 <aproximate = \"tanh\"> (x) }"),
            "user.rule:2:28: npu.NPUGeluV2 has no attribute 'aproximate'; it has approximate");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = npu.NPUMish <alpha = 1> (x) }"),
            "user.rule:3:33: npu.NPUMish has no attribute 'alpha'");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = npu.NPUGeluV2 <approximate = \"tan\"> (x) }"),
            "user.rule:3:41: approximate of npu.NPUGeluV2 is a text of none, tanh, not \"tan\"");
  EXPECT_EQ(Refusal("rule r (a, b) => (y)\nmatch { y = ascend_fuse.Glu <activation = \"swish\"> (a, b) }"),
            "user.rule:2:30: activation of ascend_fuse.Glu is a text of silu, gelu, gelu_tanh, quick_gelu, sigmoid, relu, "
            "not \"swish\"");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = Relu (x) }\nemit { y = npu.NPUGeluV2 <approximate = 1> (x) }"),
            "user.rule:3:41: approximate of npu.NPUGeluV2 is a text of none, tanh, not 1");
  EXPECT_EQ(Refusal("rule r (x, c) => (y)\nmatch { y = npu.NPURotaryPositionEmbedding <mode = 7> (x, c, c) }"),
            "user.rule:2:45: mode of npu.NPURotaryPositionEmbedding is an integer of 0, 1, 2, 3, not 7");
  EXPECT_EQ(Refusal("rule r (x) => (y)\nmatch { y = npu.NPUSwish <scale = \"1\"> (x) }"),
            "user.rule:2:27: scale of npu.NPUSwish is a number, not \"1\"");
  // A name is whatever it is bound to.
  Rules("rule r (x) => (y)\nmatch { y = npu.NPUGeluV2 <approximate> (x) }\nemit { y = Gelu <approximate = approximate> (x) }",
        RuleFolder::kReference);
}

// What a user's rules make and match needs no declaration; the rule that makes it says what it has.
TEST(OperatorsTest, OperatorsOfAUser) {
  const std::string made = "rule one (x) => (y)\nmatch { y = Relu (x) }\nemit { y = ascend_fuse.Mish <beta = 1.0> (x) }\n";
  Rules(made + "rule two (x) => (y)\nmatch { y = ascend_fuse.Mish <beta = 1> (x) }\nemit { y = npu.NPUMish (x) }");
  EXPECT_EQ(Refusal(made + "rule two (x) => (y)\nmatch { y = ascend_fuse.Mish <beat = 1> (x) }\nemit { y = npu.NPUMish (x) }"),
            "user.rule:5:31: no rule makes a ascend_fuse.Mish with an attribute 'beat'");
  EXPECT_EQ(Refusal(made + "rule two (x) => (y)\nmatch { y = ascend_fuse.Mish <beta = _> (x, x) }\nemit { y = npu.NPUMish (x) }"),
            "user.rule:5:13: ascend_fuse.Mish has 2 operands, and no rule makes one with more than 1");
  EXPECT_EQ(Refusal(made + "rule two (x) => (y)\nmatch { y = ascend_fuse.Mihs <beta = _> (x) }\nemit { y = npu.NPUMish (x) }"),
            "user.rule:3:12: unknown operator 'ascend_fuse.Mish': it is not among those of docs/operators.md, and no rule of "
            "a user matches it too");
  // In whichever file and folder they stand.
  for (const RuleFolder folder : kFolders) {
    const auto rules = RuleSet::Load(
        folder, {{"a.rule", made},
                 {"b.rule", "rule two (x) => (y)\nmatch { y = ascend_fuse.Mish <beta = _> (x) }\nemit { y = npu.NPUMish (x) }"}});
    EXPECT_TRUE(rules.ok()) << rules.status().message();
  }
}

// Facts of every row, as the handlers of these nodes gave them before there were rows.
TEST(OperatorsTest, InferenceOfNorms) {
  const Inferred m(R"(g (float16[b, s, 64] x, float16[b, s, 64] x2, float[64] gamma, float16[4, s] half, float16[4, 4, s] wide,
                         int32[1] n) => (y) {
    y, rstd = npu.NPURmsNorm (x, gamma)
    w, rstd_w = npu.NPURmsNorm (wide, half)
    a, rstd2, sum = npu.NPUAddRmsNormWithEpsilon (x, x2, gamma)
    l, mean, rstd3 = npu.NPULayerNormV4 (x, n, gamma, gamma)
    k, mean4, rstd4 = npu.NPULayerNormV4 (x, n)
    p, mean5, rstd5, sum5 = npu.NPUAddLayerNorm (x, x2, gamma, gamma)
    alias, rstd6 = NPURmsNorm (x, gamma)
    q, q2, sum6 = npu.NPUAddRmsNormQuant (x, x2, gamma, gamma)
    rows, rows2, sum7, scale1, scale2 = npu.NPUAddRmsNormDynamicQuant (x, x2, gamma)
  })");
  EXPECT_EQ(m["y"], "float16[b, s, 64]");
  EXPECT_EQ(m["rstd"], "float[b, s, 1]");
  EXPECT_EQ(m["q"], "int8[b, s, 64]");
  EXPECT_EQ(m["q2"], "int8[1]");
  EXPECT_EQ(m["sum6"], "float16[b, s, 64]");
  EXPECT_EQ(m["rows"], "int8[b, s, 64]");
  EXPECT_EQ(m["scale1"], "float[b, s]");
  EXPECT_EQ(m["w"], "float16[4, 4, s]");
  EXPECT_EQ(m["rstd_w"], "float[4, 1, 1]");
  EXPECT_EQ(m["a"], "float16[b, s, 64]");
  EXPECT_EQ(m["rstd2"], "float[b, s, 1]");
  EXPECT_EQ(m["sum"], "float16[b, s, 64]");
  EXPECT_EQ(m["l"], "float16[b, s, 64]");
  EXPECT_EQ(m["mean"], "float[b, s, 1]");
  EXPECT_EQ(m["rstd3"], "float[b, s, 1]");
  EXPECT_EQ(m["k"], "float16[b, s, 64]");
  EXPECT_EQ(m["mean4"], "float[...]");
  EXPECT_EQ(m["sum5"], "float16[b, s, 64]");
  EXPECT_EQ(m["rstd6"], "float[b, s, 1]");
}

TEST(OperatorsTest, InferenceOfGatesAndLinears) {
  const Inferred m(R"(g (float16[b, s, d] h, float16[b, s, 6] six, float16[m, k] u, float16[k, n] v) => (g1) {
    x = Concat <axis = -1> (h, h)
    g1, gelu = npu.NPUGeglu <dim = -1> (x)
    g2 = npu.NPUSwiGlu (six)
    g3 = npu.NPUSwiGlu <dim = 1> (six)
    f = npu.NPUFusedMatMul (u, v)
    gl = ascend_fuse.Glu <activation = "silu"> (x, x)
  })");
  EXPECT_EQ(m["g1"], "float16[b, s, d]");
  EXPECT_EQ(m["gelu"], "float16[b, s, d]");
  EXPECT_EQ(m["g2"], "float16[b, s, 3]");
  EXPECT_EQ(m["g3"].substr(0, 8), "float16[") << "only the last axis is known to be halved";
  EXPECT_EQ(m["f"], "float16[m, n]");
}

TEST(OperatorsTest, InferenceOfAttention) {
  const Inferred m(R"(g (float16[b, 4, s, 64] q, float16[b, 2, t, 64] k, float16[b, 2, t, 32] v, float16[b, s, 256] qh,
                         float16[b, t, 128] kh, float16[b, t, 64] vh) => (a) {
    a = npu.NPUPromptFlashAttention <num_heads = 4, input_layout = "BNSD", num_key_value_heads = 2> (q, k, v)
    turned = npu.NPUPromptFlashAttention <num_heads = 4, input_layout = "BNSD_BSND", num_key_value_heads = 2> (q, k, v)
    flat = npu.NPUPromptFlashAttention <num_heads = 4, input_layout = "BSH", num_key_value_heads = 2> (qh, kh, vh)
    same = npu.NPUPromptFlashAttention <num_heads = 4, input_layout = "BSH"> (qh, qh, qh)
    own = ascend_fuse.Attention <scale = 1.0, guard = 0> (q, k, v)
    y, z = npu.NPUApplyRotaryPosEmb (q, k, q, q)
  })");
  EXPECT_EQ(m["a"], "float16[b, 4, s, 32]");
  EXPECT_EQ(m["turned"], "float16[b, s, 4, 32]");
  EXPECT_EQ(m["flat"], "float16[b, s, 128]");
  EXPECT_EQ(m["same"], "float16[b, s, 256]");
  EXPECT_EQ(m["own"], "float16[b, 4, s, 32]");
  EXPECT_EQ(m["y"], "float16[b, 4, s, 64]");
  EXPECT_EQ(m["z"], "float16[b, 2, t, 64]");
}

// Dims that a row gives one letter are equal in every run.
TEST(OperatorsTest, RowsUnify) {
  const Inferred m(R"(g (float16[a, 64] x, float16[b, 64] x2, float16[64] gamma) => (y) {
    y, _, sum = npu.NPUAddRmsNorm (x, x2, gamma)
    z = Neg (x2)
  })");
  EXPECT_EQ(m["z"], m["sum"]);
}

TEST(OperatorsTest, WithoutTheDeclarationsNothingIsKnown) {
  const auto model =
      ParseModelText("<ir_version: 8, opset_import: [\"\" : 18, \"npu\" : 1]>\ng (float[2] x) => (y) { y = npu.NPUMish (x) }");
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(Infer(**model).Describe((*model)->graph().nodes()[0]->output(0)), "?[...]");
}

// Operands that do not fit the rows: nothing is known, and nothing crashes.
TEST(OperatorsTest, InferenceOfWrongOperands) {
  const Inferred m(R"(g (float x, float[2, 3] u, float[4] v) => (y) {
    y = npu.NPUGeglu (x)
    a = npu.NPUPromptFlashAttention (u, v, x)
    f = npu.NPUFusedMatMul (x, v)
    r, rstd = npu.NPURmsNorm (v, u)
    n = npu.NPUGroupNormSilu <num_groups = -1> (v)
    e = npu.NPUMish ()
  })");
  EXPECT_EQ(m["y"], "float[...]");
  EXPECT_EQ(m["r"], "float[4]");
  EXPECT_EQ(m["rstd"], "float[...]");
  EXPECT_EQ(m["n"], "float[4]");
}

TEST(OperatorsTest, TheDocumentIsCurrent) {
  const std::filesystem::path path = testing::SourceDir() / "docs/operators.md";
  if (std::getenv("BLESS") != nullptr) std::ofstream(path, std::ios::binary) << OperatorsDocument(DescribeSpeed);
  EXPECT_EQ(ReadFile(path), OperatorsDocument(DescribeSpeed)) << "BLESS=1 writes it";
}

// Every process that optimizes reads them.
TEST(OperatorsTest, ReadingIsCheap) {
  const auto start = std::chrono::steady_clock::now();
  DeclaredOperators();
  const std::chrono::duration<double, std::milli> first = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", std::to_string(first.count()));
  EXPECT_LT(first.count(), 50) << "generous, for sanitizers and busy machines";
}

}  // namespace
}  // namespace ascend_fuse
