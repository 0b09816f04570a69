// ONNX text in and out: tokens, what the parser makes of every construct, where its complaints point, and
// parse(print(model)) == model.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "ir/text/lexer.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

constexpr std::string_view kHeader = "<ir_version: 8, opset_import: [\"\" : 17, \"npu\" : 1]>\n";

std::string WithHeader(std::string_view text) { return std::string(kHeader) + std::string(text); }

onnx::ModelProto Encoded(std::string_view text) {
  const absl::StatusOr<std::string> bytes = EncodeModelText(text);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message() << "\nin\n" << text;
  onnx::ModelProto model;
  if (bytes.ok()) {
    EXPECT_TRUE(model.ParseFromString(*bytes));
  }
  return model;
}

std::unique_ptr<Model> Parsed(std::string_view text) {
  absl::StatusOr<std::unique_ptr<Model>> model = ParseModelText(text);
  EXPECT_TRUE(model.ok()) << model.status().message() << "\nin\n" << text;
  return model.ok() ? *std::move(model) : nullptr;
}

std::string Message(std::string_view text) {
  const absl::StatusOr<std::string> bytes = EncodeModelText(text);
  EXPECT_FALSE(bytes.ok()) << text;
  return std::string(bytes.status().message());
}

// The message as bytes; value infos by name, because the printer orders them by producer, not as the file did.
std::string Canonical(onnx::ModelProto model) {
  auto* infos = model.mutable_graph()->mutable_value_info();
  std::sort(infos->begin(), infos->end(),
            [](const onnx::ValueInfoProto& a, const onnx::ValueInfoProto& b) { return a.name() < b.name(); });
  return model.SerializeAsString();
}

TEST(LexerTest, TokensAndPlaces) {
  const absl::StatusOr<std::vector<Token>> tokens =
      Lex("a_1 = b.C<x=-1.5e-3>(\"q\\\"r\" , ...) # rest => ignored\n  => == != <= >= | ? @ ; 12... 3.");
  ASSERT_TRUE(tokens.ok()) << tokens.status().message();
  std::string all;
  for (const Token& token : *tokens) all += std::string(token.text) + " ";
  EXPECT_EQ(all, "a_1 = b . C < x = - 1.5e-3 > ( \"q\\\"r\" , ... ) => == != <= >= | ? @ ; 12 ... 3.  ");
  EXPECT_EQ((*tokens)[0].kind, TokenKind::kIdentifier);
  EXPECT_EQ((*tokens)[9].kind, TokenKind::kFloat);
  EXPECT_EQ((*tokens)[12].kind, TokenKind::kString);
  EXPECT_EQ(Unquote((*tokens)[12]), "q\"r");
  const Token& arrow = (*tokens)[16];
  EXPECT_TRUE(arrow.Is("=>"));
  EXPECT_EQ(arrow.line, 2u);
  EXPECT_EQ(arrow.column, 3u);
  EXPECT_EQ(tokens->back().kind, TokenKind::kEnd);
}

TEST(LexerTest, BadTokens) {
  EXPECT_EQ(Lex("x = $").status().message(), "1:5: no token starts with '$'");
  EXPECT_EQ(Lex("\n \"abc").status().message(), "2:2: the string that starts here has no closing quote");
  EXPECT_EQ(Lex("\"abc\\").status().message(), "1:1: the string that starts here has no closing quote");
  EXPECT_EQ(Lex("1e+").status().message(), "1:1: the exponent of this number has no digits");
  EXPECT_TRUE(Lex("").ok());
  EXPECT_TRUE(Lex("# only a comment").ok());
  EXPECT_EQ(Quote("a\"b\\"), "\"a\\\"b\\\\\"");
}

TEST(LexerTest, ReaderReadsNumbersToTheirLimits) {
  const std::vector<Token> tokens = *Lex("-9223372036854775808 9223372036854775808 -inf NaN 1e39 1e-400 -2");
  TokenReader in(tokens);
  EXPECT_EQ(*in.Integer("an integer"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(in.Integer("an integer").status().message(), "1:22: 9223372036854775808 does not fit a 64-bit integer");
  EXPECT_EQ(*in.Unsigned("an integer"), uint64_t{1} << 63);
  EXPECT_EQ(*in.Float("a number"), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(*in.Float("a number")));
  EXPECT_FALSE(in.Float("a number").ok());
  EXPECT_EQ(*in.Double("a number"), 1e39);
  EXPECT_EQ(*in.Double("a number"), 0.0);
  EXPECT_EQ(in.Identifier("a name").status().message(), "1:63: expected a name, found '-'");
  EXPECT_EQ(*in.Integer("an integer"), -2);
  EXPECT_EQ(in.Integer("an integer").status().message(), "1:65: expected an integer, found the end of the text");
}

TEST(FormatTest, ShortestDecimals) {
  EXPECT_EQ(FormatFloat(2), "2.0");
  EXPECT_EQ(FormatFloat(0), "0.0");
  EXPECT_EQ(FormatFloat(-0.0f), "-0.0");
  EXPECT_EQ(FormatFloat(1e-6f), "0.000001");
  EXPECT_EQ(FormatFloat(1e-7f), "1e-7");
  EXPECT_EQ(FormatFloat(0.1f), "0.1");
  EXPECT_EQ(FormatFloat(-1234.5f), "-1234.5");
  EXPECT_EQ(FormatFloat(3.4028235e38f), "3.4028235e38");
  EXPECT_EQ(FormatFloat(65504), "65504.0");
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatFloat(std::numeric_limits<float>::infinity()), "inf");
}

TEST(FormatTest, EveryFloatReadsBack) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isnan(value)) continue;
    const std::string text = FormatFloat(value);
    const std::vector<Token> tokens = *Lex(text);
    TokenReader in(tokens);
    const absl::StatusOr<float> again = in.Float("a number");
    ASSERT_TRUE(again.ok()) << text;
    EXPECT_EQ(std::memcmp(&*again, &value, sizeof(value)), 0) << text;
    EXPECT_TRUE(in.AtEnd()) << text;
  }
}

// Every construct; each model must survive print and parse.
const std::vector<std::string>& Models() {
  static const auto* const models = new std::vector<std::string>{
      "g () => () {}",
      WithHeader("g () => () {}"),
      "<ir_version: 10, opset_import: [\"\" : 23], producer_name: \"a \\\"b\\\"\", producer_version: \"2\"> "
      "g () => () {}",
      WithHeader("g (float16[B, S, 64] x, float16[64] gamma) => (float16[B, S, 64] y)\n"
                 "<float two = {2}, float eps = {0.000001}, float[B,S,64] h> {\n"
                 "h = Cast <to = 1> (x)  sq = Pow (h, two)\n y = Mul (sq, gamma)}"),
      WithHeader("g (x) => (y) { y, \"\", z = com.microsoft.Op (x, \"\", x) [lab] = Sink (z) }"),
      WithHeader("g (x) => (y) { y = Op <a = 1, b = 1.0, c = \"s\", d = [1, 2], e = [0.5], f = [\"a\", \"\"],"
                 "g : ints = [], h : floats = [], i : strings = [], j = nan, k = -inf, \"odd name\" = 1> (x) }"),
      WithHeader("g (x) => (y) { y = Op <a = int64[2] {1, 2}, b = float {1.0}, c = float16[1] w {15360},"
                 "d = float[N, ?], e = map(string, seq(float[])), f = [float {1}, int8[1] {3}],"
                 "g = [float, seq(float)], s = string[2] {\"a\", \"b\"}, ext = float[2] = [\"location\" : "
                 "\"w\"]> (x) }"),
      WithHeader("g (bool c) => (float y) { y = If (c) <then_branch = t () => (float a) <float one = {1}, float q> "
                 "{ q = Relu (one) a = Relu (q) }, else_branch = \"e/1\" () => (b) { b = Op <bodies = "
                 "[p () => () {}, q () => () {}], n = 1> () }> }"),
      WithHeader("g (seq(float[2]) a, optional(float) b, sparse_tensor(int64[3]) c, opaque(d.e, f) d, opaque(h) i,"
                 "float[\"a + b\", -1, ?] e, \"float\") => () {}"),
      WithHeader("g (float[2] w) => (float[2] w) <float[2] w = {1, 2}> {}"),
      WithHeader("g () => () <int4[3] a = {33, 4}, uint2[4] b = {27}, complex64[1] c = {1.0, -2.0}, bool[2] d = "
                 "{1, 0}, float8e5m2[2] e = {0, 255}, double[2] f = {1e300, 0.1}, uint64[1] u = "
                 "{18446744073709551615}, string[0] s = {}, float[3, 0] z = {}, float[2] none = {...}> {}"),
      WithHeader("g (x) => (y) { y = loc.F:over (x) }\n"
                 "<domain: \"loc\", overload: \"over\", opset_import: [\"\" : 17], doc_string: \"d\"> F <alpha, "
                 "beta : "
                 "float = 0.5, gamma : ints = []> (x, w) => (y) <float x> {\n"
                 "c = If (x) <then_branch = t () => (q) <float[2] k = {1, 2}> { q = Op <f : float = @alpha, u = "
                 "@beta> () }>\n"
                 "y = Mul <v = double {0.25}> (c, w) }"),
      WithHeader("\"main graph\" (float[\"batch size\"] \"x:0\") => (\"y.1\") { [\"n/1\"] \"y.1\" = "
                 "\"my-dom\".\"a::b\" "
                 "(\"x:0\") }"),
      // Points at the ends of a domain, or nothing else.
      WithHeader("g (x) => (y) { y = \"a.\".Op (x) }"),
      WithHeader("g (x) => (y) { y = \".a\".Op (x) }"),
      WithHeader("g (x) => (y) { y = \".\".Op (x) }"),
      WithHeader("g (opaque(\".d.\", \"..e\") x, opaque(\".\") z) => () {}"),
  };
  return *models;
}

TEST(TextTest, RoundTrips) {
  for (const std::string& text : Models()) {
    const std::unique_ptr<Model> model = Parsed(text);
    ASSERT_NE(model, nullptr);
    PrintOptions options;
    options.max_elements = -1;
    const std::string printed = PrintModelText(*model, options);
    EXPECT_EQ(Canonical(Encoded(text)), Canonical(Encoded(printed))) << printed;
    // Printing is stable.
    const std::unique_ptr<Model> again = Parsed(printed);
    ASSERT_NE(again, nullptr);
    EXPECT_EQ(PrintModelText(*again, options), printed);
  }
}

TEST(TextTest, WhatTheParserMakes) {
  const onnx::ModelProto model =
      Encoded(WithHeader("g (float[N, 3] x, float[2] w = {1, 2}) => (y) <float16[3] h = {1.0, 0.5, ...}> {\n"
                         "  y = Op <t : float = 2, m = [1, 2.5], neg = - 3> (x, , w,) }"));
  EXPECT_EQ(model.opset_import(1).domain(), "npu");
  EXPECT_EQ(model.graph().input(0).type().tensor_type().shape().dim(0).dim_param(), "N");
  ASSERT_EQ(model.graph().initializer_size(), 2);
  EXPECT_EQ(model.graph().initializer(0).name(), "w");
  EXPECT_EQ(model.graph().initializer(0).raw_data(), std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  EXPECT_EQ(model.graph().initializer(1).raw_data(), std::string("\0\x3c\0\x38\0\x38", 6));
  const onnx::NodeProto& node = model.graph().node(0);
  ASSERT_EQ(node.input_size(), 3);
  EXPECT_EQ(node.input(1), "");
  EXPECT_EQ(node.attribute(0).type(), onnx::AttributeProto::FLOAT);
  EXPECT_EQ(node.attribute(0).f(), 2.0f);
  ASSERT_EQ(node.attribute(1).floats_size(), 2);
  EXPECT_EQ(node.attribute(1).floats(0), 1.0f);
  EXPECT_EQ(node.attribute(2).i(), -3);
}

TEST(TextTest, ErrorsNameThePlace) {
  EXPECT_EQ(Message("g (x) => (y) {\n  y = Relu x\n}"), "2:12: expected '(' before the node's inputs, found 'x'");
  EXPECT_EQ(Message("g (x) => (y) {\n  y Relu (x)\n}"), "2:5: expected '=' after the node's outputs, found 'Relu'");
  EXPECT_EQ(Message("g (x) => (y) { y = Relu (x)"), "1:28: expected a node or '}', found the end of the text");
  EXPECT_EQ(Message(""), "1:1: expected the name of a graph, found the end of the text");
  EXPECT_EQ(Message("<ir_versoin: 8> g () => () {}"),
            "1:2: 'ir_versoin' is not a key of a model; expected ir_version, opset_import, producer_name, "
            "producer_version, domain, model_version, doc_string or metadata_props");
  EXPECT_EQ(Message("g () => () <float[2] w = {1}> {}"), "1:27: expected 2 elements for these dims, found 1");
  EXPECT_EQ(Message("g () => () <float[N] w = {1}> {}"), "1:26: the dims of a constant must be numbers of 0 or more");
  EXPECT_EQ(Message("g () => () <int8[1] w = {128}> {}"), "1:26: this element does not fit int8");
  EXPECT_EQ(Message("g () => () <bool[1] w = {2}> {}"), "1:26: this element does not fit bool");
  EXPECT_EQ(Message("g () => () <int64 w = {1.5}> {}"), "1:24: expected an integer, found '1.5'");
  EXPECT_EQ(Message("g () => (y) { y = Op <a = []> () }"), "1:27: an empty list needs its type: a : ints = []");
  EXPECT_EQ(Message("g () => (y) { y = Op <a : ins = 1> () }"), "1:27: 'ins' is not an attribute type");
  EXPECT_EQ(Message("g () => (y) { y = Op <a : int = 1.5> () }"), "1:33: expected a value of type int, found one of type float");
  EXPECT_EQ(Message("g () => (y) { y = Op <a = [1, \"b\"]> () }"), "1:27: the elements of 'a' are of different types");
  EXPECT_EQ(Message("g () => (y) { y = Op <a : int = [1]> () }"), "1:33: expected one int for 'a', found a list");
  EXPECT_EQ(Message("g (flaot[2] x) => (y) {}"), "1:9: expected ')' after the graph's inputs, found '['");
  EXPECT_EQ(Message("g () => () {} <name: \"x\">"),
            "1:16: 'name' is not a key of a function; expected domain, opset_import, overload or doc_string");
  EXPECT_EQ(Message("g () => () <float[1000000, 1000000] w = {1, ...}> {}"),
            "1:42: repeated elements may fill 268435456 bytes of a model at most");
}

TEST(TextTest, DeepNestingIsAnError) {
  std::string types;
  for (int i = 0; i < 10000; ++i) types += "seq(";
  EXPECT_NE(Message("g (" + types).find("nested more than"), std::string::npos);
  std::string bodies = "g () => () { ";
  for (int i = 0; i < 10000; ++i) bodies += "= If () <b = g () => () { ";
  EXPECT_NE(Message(bodies).find("nested more than"), std::string::npos);
}

// Any text gives a model or an error: cut and mutated models, deterministic.
TEST(TextTest, NoTextCrashes) {
  std::mt19937 random(11);
  constexpr std::string_view kBytes = "<>=(){}[],.:\"@?-|\\#a1 \n\xff";
  for (const std::string& text : Models()) {
    for (size_t cut = 0; cut < text.size(); cut += 3) (void)EncodeModelText(text.substr(0, cut));
    for (int i = 0; i < 300; ++i) {
      std::string mutated = text;
      for (int change = 0; change < 3; ++change) {
        mutated[random() % mutated.size()] = kBytes[random() % kBytes.size()];
      }
      const absl::StatusOr<std::unique_ptr<Model>> model = ParseModelText(mutated);
      if (model.ok()) PrintModelText(**model);
    }
  }
}

TEST(PrinterTest, ElidesLargeConstants) {
  const std::unique_ptr<Model> model =
      Parsed(WithHeader("g () => (y) <float[64] ones = {1, ...}, float[20] w = {1, 2, ...}, float16[2] h = {1.0, 0.1}> "
                        "{ y = Op <t = int64[20] {0, 1, ...}> () }"));
  ASSERT_NE(model, nullptr);
  const std::string text = PrintModelText(*model);
  EXPECT_NE(text.find("float[64] ones = {1.0, ...}"), std::string::npos) << text;
  EXPECT_NE(text.find("float[20] w = {... \""), std::string::npos) << text;
  EXPECT_NE(text.find("t = int64[20] {... \""), std::string::npos) << text;
  EXPECT_NE(text.find("float16[2] h = {15360, 11878}"), std::string::npos) << text;
  EXPECT_TRUE(EncodeModelText(text).ok());
  PrintOptions numbers;
  numbers.half_as_number = true;
  const std::string readable = PrintModelText(*model, numbers);
  EXPECT_NE(readable.find("float16[2] h = {1.0, 0.1}"), std::string::npos) << readable;
}

TEST(PrinterTest, OneNodeOnOneLine) {
  const std::unique_ptr<Model> model =
      Parsed(WithHeader("g (x, gamma) => (y) {\n"
                        "[n] y, y_rstd = npu.NPURmsNorm <epsilon = 0.000001> (x, gamma)\n"
                        "z = Constant <value = float16[2] {1.0, 0.1}> ()\n"
                        "w = If (x) <then_branch = t () => (a) { a = Op () b = Op () }, else_branch = e () "
                        "=> (c) { c = Op () }>\n"
                        "v = Clip (x, , z) }"));
  ASSERT_NE(model, nullptr);
  const std::vector<const Node*>& nodes = model->graph().nodes();
  EXPECT_EQ(PrintNode(*nodes[0]), "y, y_rstd = npu.NPURmsNorm <epsilon = 0.000001> (x, gamma)");
  EXPECT_EQ(PrintNode(*nodes[1]), "z = Constant <value = float16[2] {1.0, 0.1}> ()");
  EXPECT_EQ(PrintNode(*nodes[2]), "w = If (x) <then_branch = {2 nodes}, else_branch = {1 node}>");
  EXPECT_EQ(PrintNode(*nodes[3]), "v = Clip (x, \"\", z)");
}

TEST(PrinterTest, DeclaredTypes) {
  const std::unique_ptr<Model> model = Parsed(WithHeader("g (float16[B, 3, ?] x, y, float z, int64[] w) => () {}"));
  ASSERT_NE(model, nullptr);
  const std::vector<const Value*>& inputs = model->graph().inputs();
  EXPECT_EQ(PrintDeclaredType(*inputs[0]), "float16[B, 3, ?]");
  EXPECT_EQ(PrintDeclaredType(*inputs[1]), "");
  EXPECT_EQ(PrintDeclaredType(*inputs[2]), "float");
  EXPECT_EQ(PrintDeclaredType(*inputs[3]), "int64[]");
}

}  // namespace
}  // namespace ascend_fuse
