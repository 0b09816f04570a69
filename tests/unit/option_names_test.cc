// Options by name and text: what each sets, and what is said of one that means nothing.
#include "passes/option_names.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

std::string Error(std::string_view name, std::string_view value) {
  OptimizeOptions options;
  return std::string(SetOption(&options, name, value).message());
}

TEST(OptionNames, EveryNameSetsItsField) {
  OptimizeOptions options;
  const std::pair<const char*, const char*> given[] = {
      {"target", "ascend310p"}, {"cann", "8.0"},         {"plugin", "true"},     {"precision-mode", "origin"},
      {"style", "X"},           {"dim", "seq=1..8"},     {"dim", "batch=2"},     {"dim", "past=1..100:16"},
      {"strict", ""},           {"skip", "gelu,rotary"}, {"skip", "silu"},       {"assume", "mask=left-padded"},
      {"keep-rest", "true"},    {"tidy", "twins,casts"}, {"quantised", "float"}, {"limit", "3"},
      {"dump", "folder"}};
  for (const auto& [name, value] : given) {
    EXPECT_TRUE(SetOption(&options, name, value).ok()) << name;
  }
  EXPECT_EQ(options.target.chip, "ascend310p");
  EXPECT_EQ(options.target.cann, "8.0");
  EXPECT_TRUE(options.target.plugin);
  EXPECT_EQ(options.target.precision_mode, "origin");
  EXPECT_EQ(options.target.style, "X");
  ASSERT_EQ(options.infer.dims.size(), 3u);
  EXPECT_EQ(options.infer.dims[0], std::pair(std::string("seq"), DimRange{1, 8}));
  EXPECT_EQ(options.infer.dims[1], std::pair(std::string("batch"), DimRange{2, 2}));
  EXPECT_EQ(options.infer.dims[2], std::pair(std::string("past"), DimRange{16, 96, 16}));
  EXPECT_TRUE(options.strict);
  EXPECT_EQ(options.skip, (std::vector<std::string>{"gelu", "rotary", "silu"}));
  EXPECT_TRUE(options.keep_rest);
  EXPECT_EQ(options.tidy, (std::vector<std::string>{"twins", "casts"}));
  ASSERT_EQ(options.assumptions.size(), 1u);
  EXPECT_EQ(options.assumptions[0].kind, InputAssumption::Kind::kLeftPadded);
  EXPECT_EQ(options.limit, 3);
  EXPECT_EQ(options.quantised, Quantised::kFloat);
  EXPECT_EQ(options.dump_directory, "folder");
  EXPECT_TRUE(SetOption(&options, "strict", "false").ok());
  EXPECT_FALSE(options.strict);
}

TEST(OptionNames, TheListIsWhatThereIs) {
  std::set<std::string> names;
  for (const OptionName& option : OptionNames()) {
    EXPECT_EQ(Error(option.name, "\n").find("is not an option"), std::string::npos) << option.name;
    EXPECT_TRUE(names.insert(std::string(option.name)).second);
    EXPECT_NE(Error("no such", "").find(option.name), std::string::npos);
  }
}

TEST(OptionNames, ADimMayBeTheSameAsAnotherOne) {
  OptimizeOptions options;
  ASSERT_TRUE(SetOption(&options, "dim", "unk__410=DynamicDimension.3").ok());
  EXPECT_TRUE(options.infer.dims.empty());
  ASSERT_EQ(options.infer.equal_dims.size(), 1u);
  EXPECT_EQ(options.infer.equal_dims[0].first, "unk__410");
  EXPECT_EQ(options.infer.equal_dims[0].second, "DynamicDimension.3");
  EXPECT_NE(Error("fix", "seq=keys").find("expected name=N"), std::string::npos);
  EXPECT_NE(Error("dim", "seq=seq").find("expected name=N"), std::string::npos);
}

TEST(OptionNames, WrongValuesAreSaidToBeSo) {
  EXPECT_EQ(Error("tarjet", "x").find("tarjet is not an option; there are target, cann"), 0u);
  for (const char* dim : {"seq", "=1", "seq=", "seq=-1", "seq=2..1", "seq=1..", "seq=1x", "seq=99999999999999999999",
                          "seq=1..8:0", "seq=1..8:", "seq=5..7:8", "seq=8:2"}) {
    EXPECT_NE(Error("dim", dim).find("expected name=N"), std::string::npos) << dim;
  }
  EXPECT_EQ(Error("strict", "maybe"), "--strict maybe: expected true or false");
  EXPECT_EQ(Error("limit", "few"), "--limit few: expected a number");
  EXPECT_NE(Error("assume", "mask").find("expected INPUT=ones"), std::string::npos);
  EXPECT_NE(Error("assume", "=ones").find("expected INPUT=ones"), std::string::npos);
  OptimizeOptions options;
  EXPECT_EQ(SetOption(&options, "rules", "there is no such.rule").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ascend_fuse
