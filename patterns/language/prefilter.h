// A test that every value passes where a rule's pattern matches: the operators and numbers that the pattern asks for at
// fixed places above its root. It binds no names and takes nothing back, so that most attempts to match end here, after
// a few steps.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph.h"
#include "patterns/language/pattern.h"

namespace ascend_fuse {

class Prefilter {
 public:
  // The pattern as far as it is the same for every binding. Index into forms(); kAnything asks for nothing.
  using FormId = uint32_t;
  static constexpr FormId kAnything = 0;
  // One operator, or one number, that a value can be.
  struct Branch {
    uint16_t operator_number = 0;  // 0: a constant whose elements are `number`
    uint16_t argument_count = 0;
    uint32_t first_argument = 0;
    double number = 0;
  };
  struct Form {
    uint64_t operators = 0;  // the bit `operator_number` modulo 64 of every branch
    bool has_number = false;
    uint32_t first_branch = 0;
    uint32_t branch_count = 0;
  };

  // Gives a checked rule its root_form. Definitions are written out where they are used, to a bounded
  // depth: what lies deeper asks for nothing.
  void Add(const std::vector<Definition>& definitions, Rule* rule);

  const Form& form(FormId id) const { return forms_[id]; }
  absl::Span<const Branch> Branches(const Form& form) const {
    return absl::MakeConstSpan(branches_).subspan(form.first_branch, form.branch_count);
  }
  absl::Span<const FormId> Arguments(const Branch& branch) const {
    return absl::MakeConstSpan(arguments_).subspan(branch.first_argument, branch.argument_count);
  }
  size_t size() const { return forms_.size(); }

 private:
  friend class RuleArchive;
  class Compiler;

  // Every process reads thousands of them: three tables instead of a tree.
  std::vector<Form> forms_ = std::vector<Form>(1);  // kAnything
  std::vector<Branch> branches_;
  std::vector<FormId> arguments_;
};

}  // namespace ascend_fuse
