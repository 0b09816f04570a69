// Formulas (`def f (x) = ...`) and tables of words are written out where rules use them, once, when the rules
// are loaded. What the checker, the matcher and the emitter see has neither.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

class FormulaExpander {
 public:
  // `formulas` and `tables` have names of their own and outlive the expander.
  FormulaExpander(const std::vector<Formula>& formulas, const std::vector<WordTable>& tables);

  // Writes out what the conditions and the emission of a rule use. A parameter that a formula mentions more
  // than once stands for one value: where the argument is more than a name or a number, it is bound to a
  // fresh name first, by a line of its own. INVALID_ARGUMENT with file, line and column for a wrong number of
  // arguments, a formula that uses itself or grows beyond kMaximumParts, and a word that a table does not
  // have.
  absl::Status Expand(Rule* rule);
  // The same for the conditions of a definition.
  absl::Status Expand(Definition* definition);
  // INVALID_ARGUMENT for a formula with the name of a function, which no rule could then call.
  absl::Status CheckNames() const;
  // All formulas, used or not: also INVALID_ARGUMENT for a name in a formula that is not one of its parameters.
  absl::Status CheckAll();

  static constexpr int kMaximumParts = 10000;

 private:
  using Bindings = std::vector<std::pair<std::string, Expression>>;
  // A formula whose own uses of others are written out: `lets` in order, then the value.
  struct Expanded {
    enum class State { kNew, kOpen, kDone };
    State state = State::kNew;
    Bindings lets;
    Expression value;
    int parts = 0;
  };

  absl::Status Expand(std::vector<Condition>* conditions);
  absl::Status Expand(Expression* expression, Bindings* lets);
  absl::Status ExpandFormula(size_t index);
  absl::Status UseFormula(size_t index, Expression* call, Bindings* lets);
  absl::Status UseTable(const WordTable& table, Expression* call) const;
  std::string Fresh(const std::string& name);

  const std::vector<Formula>& formulas_;
  const std::vector<WordTable>& tables_;
  absl::flat_hash_map<std::string_view, size_t> formula_index_;
  absl::flat_hash_map<std::string_view, size_t> table_index_;
  std::vector<Expanded> expanded_;
  int fresh_ = 0;
};

}  // namespace ascend_fuse
