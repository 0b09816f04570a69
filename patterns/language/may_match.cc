#include "patterns/language/may_match.h"

#include "ir/schema.h"
#include "patterns/language/nearly_equal.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

// After so many steps a value passes.
constexpr int kMostSteps = 500;

}  // namespace

bool MayMatch::At(Prefilter::FormId form, const Value* value) const {
  int budget = kMostSteps;
  return MayBe(form, value, &budget);
}

bool MayMatch::MayBe(Prefilter::FormId id, const Value* value, int* budget) const {
  if (id == Prefilter::kAnything) return true;
  if (value == nullptr) return false;
  const Prefilter::Form& form = prefilter_.form(id);
  double number = 0;
  if (form.has_number && ConstantNumber(*context_.facts, value, &number)) {
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
    if ((form.operators & (bit(is.number) | bit(is.number_of_two))) == 0) continue;
    for (const Prefilter::Branch& branch : prefilter_.Branches(form)) {
      if (is.Is(*node, branch.operator_number) && MayRead(branch, *node, budget)) return true;
    }
  }
  return false;
}

bool MayMatch::MayRead(const Prefilter::Branch& branch, const Node& node, int* budget) const {
  const absl::Span<const Prefilter::FormId> arguments = prefilter_.Arguments(branch);
  const size_t count = arguments.size();
  bool fits = true;
  for (size_t i = 0; fits && i < count; ++i) fits = MayBe(arguments[i], node.input(i), budget);
  if (fits || count != 2 || node.input_count != 2) return fits;
  const Schema* schema = cache_.SchemaOf(node);
  return schema != nullptr && schema->commutative && MayBe(arguments[0], node.input(1), budget) &&
         MayBe(arguments[1], node.input(0), budget);
}

}  // namespace ascend_fuse
