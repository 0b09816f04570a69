// Checks what rules say of operators that are not operators of ONNX: those of domain ascend_fuse and the Ascend nodes of
// domain npu, against their declarations (patterns/operators.txtpb).
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

// A user's rules may have operators and nodes of their own: one that a rule of theirs makes and another one matches needs
// no declaration, and the rule that makes it says what it has. A name that only one side has is taken for a misspelt one.
class OperatorCheck {
 public:
  // What these rules and definitions of a user's file make and match, whatever folder they belong to.
  void AddOfUser(const std::vector<Definition>& definitions, const std::vector<Rule>& rules);

  // INVALID_ARGUMENT with file, line and column: an operator that is not declared, more or fewer operands or outputs than
  // it has, an attribute it does not have, a literal that its attribute does not take.
  absl::Status Check(const std::vector<Definition>& definitions, const std::vector<Rule>& rules) const;

 private:
  struct OwnOperator {
    bool matched = false;
    bool made = false;
    size_t operands = 0;  // of what makes it: the most
    absl::flat_hash_set<std::string> attributes;
  };
  struct Use;

  static Use UseOf(const Pattern& pattern, size_t outputs);
  static Use UseOf(const Expression& expression, size_t outputs);
  void Note(const Use& use);
  absl::Status CheckUse(const Use& use) const;
  absl::Status CheckOwn(const Use& use) const;

  absl::flat_hash_map<std::string, OwnOperator> own_;
};

}  // namespace ascend_fuse
