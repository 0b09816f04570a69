// The rules in force: built-in ones, embedded at build time, and the user's, checked and in the order in
// which they are tried.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "patterns/language/pattern.h"
#include "patterns/language/prefilter.h"

namespace ascend_fuse {

class OperatorCheck;

enum class RuleFolder { kLibrary, kNpu, kReference, kContrib, kLeftovers, kAdapt, kMisread };
inline constexpr size_t kRuleFolders = 7;
std::string_view RuleFolderName(RuleFolder folder);  // that of patterns/rules: "library"

// Rule files of a user, parsed: once, for all folders.
class UserRules {
 public:
  UserRules() = default;
  // `files`: path and text of each. INVALID_ARGUMENT with file, line and column for text that does not parse.
  static absl::StatusOr<UserRules> Parse(const std::vector<std::pair<std::string, std::string>>& files);

  bool empty() const { return texts_.empty(); }
  const std::vector<RuleText>& texts() const { return texts_; }

 private:
  std::vector<RuleText> texts_;
};

class RuleSet {
 public:
  // The built-in rules of a folder, with those of the user that belong there: a rule that matches npu nodes is a
  // reference rule, one that makes npu nodes an npu rule, any other a library rule; none is of another folder. A user's
  // rule or definition of the same name replaces the built-in one. Errors: INVALID_ARGUMENT with file, line and column, for
  // names, arguments, attributes and operators that do not exist.
  static absl::StatusOr<std::unique_ptr<RuleSet>> Load(RuleFolder folder, const UserRules& user = UserRules());
  // The same of files that are not parsed yet.
  static absl::StatusOr<std::unique_ptr<RuleSet>> Load(RuleFolder folder,
                                                       const std::vector<std::pair<std::string, std::string>>& user);

  // The built-in rules alone, loaded once in a process and shared.
  static std::shared_ptr<const RuleSet> Shared(RuleFolder folder);

  // The same as Load, all from the text: what is done once when the program is built, and where a user's file redefines
  // a part of built-in rules. `vocabulary`, if given, receives what the folder's files define of it.
  static absl::StatusOr<std::unique_ptr<RuleSet>> FromText(RuleFolder folder, const UserRules& user = UserRules(),
                                                           RuleVocabulary* vocabulary = nullptr);

  const std::vector<Definition>& definitions() const { return definitions_; }
  // Largest pattern first, a rule before the one that it is preferred over.
  const std::vector<Rule>& rules() const { return rules_; }

  // Operator types ("domain.op_type", without "." for the default domain) that the first output's pattern of
  // a rule can end in.
  const std::vector<std::string>& RootOperators(size_t rule) const { return rules_[rule].roots; }
  // The rules that can end in an operator, in the order in which they are tried: rules about other operators cost nothing.
  absl::Span<const size_t> RulesEndingIn(std::string_view op) const;

  // The operators that patterns of these rules name, numbered from 1; 0 for any other.
  uint16_t OperatorNumber(std::string_view domain, std::string_view op_type) const;
  // What a value must look like for a rule to match there.
  const Prefilter& prefilter() const { return prefilter_; }

 private:
  friend class RuleArchive;

  absl::Status Extend(std::vector<RuleText> texts, size_t built_in, RuleFolder folder, const RuleVocabulary& vocabulary);
  absl::Status Add(RuleText* text, RuleFolder folder, const OperatorCheck& operators, bool of_user);
  void DropUnreached(const absl::flat_hash_set<std::string_view>& user_files);
  absl::Status Check(const absl::flat_hash_set<std::string>& kinds, size_t first_definition);
  absl::Status Complete(Rule* rule);
  bool Redefines(const UserRules& user, const RuleVocabulary& vocabulary) const;
  void NumberOperators(Pattern* pattern);
  void Index();

  std::vector<Definition> definitions_;
  std::vector<Rule> rules_;
  std::vector<std::pair<std::string, std::string>> operators_;  // domain, op_type; the first one has number 1
  Prefilter prefilter_;
  absl::flat_hash_map<std::string_view, std::vector<size_t>> ending_in_;  // keys: of the rules
  absl::flat_hash_map<std::pair<std::string, std::string>, uint16_t> operator_numbers_;
};

}  // namespace ascend_fuse
