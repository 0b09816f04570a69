#include "patterns/language/may_match.h"

#include "patterns/language/nearly_equal.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

// After so many steps a value passes.
constexpr int kMostSteps = 500;

}  // namespace

bool MayMatch::At(Prefilter::FormId form, const Value* value, Pardoned pardoned) const {
  int budget = kMostSteps;
  return MayBe(form, value, pardoned, &budget);
}

bool MayMatch::MayBe(Prefilter::FormId id, const Value* value, Pardoned pardoned, int* budget) const {
  if (id == Prefilter::kAnything) return true;
  if (value == nullptr) return false;
  const Prefilter::Form& form = prefilter_.form(id);
  double number = 0;
  if (form.has_number && ConstantNumber(*context_.facts, value, &number)) {
    if (pardoned != Pardoned::kNothing) return true;
    const DataType type = context_.facts->Of(value).type;
    for (const Prefilter::Branch& branch : prefilter_.Branches(form)) {
      if (branch.operator_number == 0 && NearlyEqual(branch.number, number, type)) return true;
    }
  }
  auto bit = [](uint16_t operator_number) { return uint64_t{1} << (operator_number % 64); };
  for (const Value* current = value; current != nullptr;
       current = context_.literal ? nullptr : context_.numbering->Source(current)) {
    const Node* node = current->producer;
    if (node == nullptr || node->dead) break;
    if (--*budget < 0) return true;
    const MatchCache::Operator is = operators_->Of(*node);
    const bool any = pardoned == Pardoned::kNumberOrOperator;
    if (!any && (form.operators & (bit(is.number) | bit(is.number_of_two))) == 0) continue;
    for (const Prefilter::Branch& branch : prefilter_.Branches(form)) {
      if (is.Is(*node, branch.operator_number)) {
        if (MayRead(branch, *node, pardoned, budget)) return true;
      } else if (any && branch.operator_number != 0 && node->input_count >= branch.argument_count) {
        if (MayReadIn(false, branch, *node, Pardoned::kNothing, budget)) return true;
        const bool two = branch.argument_count == 2 && node->input_count == 2;
        if (two && MayReadIn(true, branch, *node, Pardoned::kNothing, budget)) return true;
      }
    }
  }
  return false;
}

bool MayMatch::MayRead(const Prefilter::Branch& branch, const Node& node, Pardoned pardoned, int* budget) const {
  if (MayReadIn(false, branch, node, pardoned, budget)) return true;
  if (branch.argument_count != 2 || node.input_count != 2) return false;
  return cache_.IsCommutative(node) && MayReadIn(true, branch, node, pardoned, budget);
}

bool MayMatch::MayReadIn(bool swapped, const Prefilter::Branch& branch, const Node& node, Pardoned pardoned, int* budget) const {
  const absl::Span<const Prefilter::FormId> arguments = prefilter_.Arguments(branch);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Value* input = node.input(swapped ? 1 - i : i);
    if (MayBe(arguments[i], input, Pardoned::kNothing, budget)) continue;
    if (pardoned == Pardoned::kNothing || !MayBe(arguments[i], input, pardoned, budget)) return false;
    pardoned = Pardoned::kNothing;
  }
  return true;
}

}  // namespace ascend_fuse
