// The built-in rules that the program carries are those of the text, and a user's files change the one as the other.
#include "patterns/language/rule_archive.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ascend_fuse {
namespace {

std::vector<RuleFolder> AllFolders() {
  std::vector<RuleFolder> all;
  for (size_t i = 0; i < kRuleFolders; ++i) all.push_back(static_cast<RuleFolder>(i));
  return all;
}

// What the order and the places of rules depend on, as text.
std::string Outline(const RuleSet& rules) {
  std::string text;
  for (const Rule& rule : rules.rules()) {
    text += rule.name + " at " + rule.position.ToString() + ", size " + std::to_string(rule.size) + ":";
    for (const std::string& root : rule.roots) text += " " + root;
    text += "\n";
  }
  for (const Definition& definition : rules.definitions()) text += definition.position.ToString() + "\n";
  return text;
}

UserRules Parse(const std::string& text) {
  const auto user = UserRules::Parse({{"user.rule", text}});
  EXPECT_TRUE(user.ok()) << user.status().message();
  return *user;
}

TEST(RuleArchiveTest, WhatTheBuildWroteIsWhatTheTextSays) {
  for (const RuleFolder folder : AllFolders()) {
    RuleVocabulary vocabulary;
    const auto text = RuleSet::FromText(folder, {}, &vocabulary);
    const auto loaded = RuleSet::Load(folder);
    ASSERT_TRUE(text.ok() && loaded.ok());
    EXPECT_EQ(RuleArchive::Write(**text), RuleArchive::Write(**loaded)) << RuleFolderName(folder);
    RuleVocabulary again;
    RuleArchive::Read(RuleArchive::Write(vocabulary), &again);
    EXPECT_EQ(RuleArchive::Write(vocabulary), RuleArchive::Write(again)) << RuleFolderName(folder);
  }
}

TEST(RuleArchiveTest, AUsersRulesJoinTheLoadedOnesAsTheyJoinTheText) {
  for (const char* text : {
           "rule r (x) => (y) match { y = Relu (Relu (x)) } emit { y = Swish <alpha = 1> (x) }",
           "def mine (x)\n  | silu_of (x)\nrule r <preferred_over = silu> (x) => (y) match { y = Neg (mine (x)) }",
           "rule silu (x) => (y) match { y = Relu (x) } emit { y = Swish <alpha = 1> (x) }",
           "rule a (x) => (y) match { y = Relu (x) } emit { y = npu.NPUOne (x) }\n"
           "rule b (x) => (y) match { y = npu.NPUOne (x) } emit { y = Relu (x) }",
       }) {
    const UserRules user = Parse(text);
    for (const RuleFolder folder : AllFolders()) {
      const auto from_text = RuleSet::FromText(folder, user);
      const auto loaded = RuleSet::Load(folder, user);
      ASSERT_EQ(from_text.ok(), loaded.ok()) << text << from_text.status() << loaded.status();
      ASSERT_TRUE(loaded.ok()) << loaded.status();
      EXPECT_EQ(Outline(**from_text), Outline(**loaded)) << text;
    }
  }
}

TEST(RuleArchiveTest, AUserWhoRedefinesAPartOfBuiltInRulesChangesThem) {
  // A definition, a definition that has the name of an operator, and a formula.
  for (const char* text : {"def silu_of (x)\n  | Elu (x)\n", "def Sigmoid (x)\n  | Elu (x)\n"}) {
    const auto rules = RuleSet::Load(RuleFolder::kLibrary, Parse(text));
    ASSERT_TRUE(rules.ok()) << rules.status();
    const auto plain = RuleSet::Load(RuleFolder::kLibrary);
    EXPECT_NE(RuleArchive::Write(**rules), RuleArchive::Write(**plain));
    const auto from_text = RuleSet::FromText(RuleFolder::kLibrary, Parse(text));
    EXPECT_EQ(RuleArchive::Write(**rules), RuleArchive::Write(**from_text));
  }
}

}  // namespace
}  // namespace ascend_fuse
