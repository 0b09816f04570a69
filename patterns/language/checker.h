// The checker: every name of a rule or definition is one that exists, and gets its number, so that the
// matcher only looks up slots and indices. A mistake is an error with file, line and column.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

// The indices of definitions by name.
using DefinitionIndex = absl::flat_hash_map<std::string, int>;

// INVALID_ARGUMENT for an operator that no opset has, for attributes and inputs that it has at none, and for
// too many arguments.
absl::Status CheckOperator(const SourcePosition& position, const std::string& domain, const std::string& op_type,
                           const std::vector<std::string>& attributes, int arguments);

// "2 arguments", "3 to 4 arguments": how many a function or a formula takes.
std::string ArgumentCount(size_t least, size_t most);

// Gives the names in an expression their slots, its calls their functions. may_bind: a name that is new gets
// a slot; may_build: operators may stand here.
absl::Status CheckExpression(Expression* expression, Scope* scope, bool may_bind, bool may_build);

// Checks the definitions from number `first` on, which may use each other and those before them. INVALID_ARGUMENT also
// for a definition that reaches itself without an operator between, which would match forever.
absl::Status CheckDefinitions(const DefinitionIndex& index, size_t first, std::vector<Definition>* definitions);

// Checks a rule that uses these definitions. INVALID_ARGUMENT also for a kind that is neither
// declared nor one of `kinds`, a
// construct that no target mentions, and a variable that occurs once, which is misspelt or should be `_`.
absl::Status CheckRule(const DefinitionIndex& index, const std::vector<Definition>& definitions,
                       const absl::flat_hash_set<std::string>& kinds, Rule* rule);

}  // namespace ascend_fuse
