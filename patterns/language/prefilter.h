// A test that every value passes where a rule's pattern matches: the operators and numbers that the pattern asks for at
// fixed places above its root. It binds no names and takes nothing back, so that most attempts to match end here, after
// a few steps.
#pragma once

#include <cstdint>
#include <vector>

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
    double number = 0;
    std::vector<FormId> arguments;
  };
  struct Form {
    uint64_t operators = 0;  // the bit `operator_number` modulo 64 of every branch
    bool has_number = false;
    std::vector<Branch> branches;
  };

  Prefilter() = default;
  // Definitions are written out where they are used, to a bounded depth: what lies deeper asks for nothing.
  Prefilter(const std::vector<Definition>& definitions, const std::vector<Rule>& rules);

  const Form& form(FormId id) const { return forms_[id]; }
  size_t size() const { return forms_.size(); }
  // Of the rule's first output, and of what it calls `from`.
  FormId RootOf(size_t rule) const { return roots_[rule]; }
  FormId StartOf(size_t rule) const { return starts_[rule]; }

 private:
  std::vector<Form> forms_;
  std::vector<FormId> roots_;
  std::vector<FormId> starts_;
};

}  // namespace ascend_fuse
