// Rules run backwards: writes graphs that a rule must match and graphs that differ from them in one place, runs each through
// recognise, lower and expand, and hands over the models to be compared in numbers. `ascend-fuse rules test` and
// tests/python/test_backwards.py read what is written here.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "patterns/target/target.h"

namespace ascend_fuse::backwards {

struct RunOptions {
  std::vector<std::pair<std::string, std::string>> rule_files;  // path and text of a user's files
  std::optional<TargetOptions> target;                          // default: all there are
  uint64_t seed = 1;
  int count = 40;                   // matched graphs
  int mutants = 12;                 // of each
  bool trace = false;               // the name of each graph on stderr, before it is looked at
  bool plain = false;               // without noise
  std::set<std::string> unreached;  // alternatives that are known not to be reached
};

// Runs the rule of this name. Standard output: records, each a line of JSON and the bytes of its models one after the other
// ("sizes"); the last one is the summary. Same options, same bytes. NOT_FOUND where no recogniser or lowering has that name;
// other errors are those of RuleSet::Load and Target::Load.
absl::Status RunRule(const RunOptions& options, const std::string& name);

// The recognisers and lowerings of the user's files, in their order. Errors: those of RuleSet::Load, for reference rules too.
absl::StatusOr<std::vector<std::string>> RulesOf(const RunOptions& options);

}  // namespace ascend_fuse::backwards
