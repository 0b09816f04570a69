// The operands of the two products of an attention: their axes, the places on the way back from them at which a kernel could
// take them, and which of those costs least.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/analysis/axis_map.h"
#include "patterns/analysis/product.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// So many nodes are followed back from an operand or a mask.
constexpr int kMostOperandSteps = 24;
// A node that is built costs more than one that stays: what is there is left where both would do.
constexpr int kCostOfBuilt = 3;
constexpr int kCostOfKept = 2;

// An operand of a product, and the places on the way back from it at which it could be taken.
struct AttentionOperand {
  std::vector<AxisView> places;          // the operand itself first
  DataType half = DataType::kUndefined;  // the half-precision type that some place has
};

struct AttentionOperands {
  AttentionOperand query;
  AttentionOperand key;
  AttentionOperand value;
};

// An axis must have this size, which is that of the value.
struct SizeToProve {
  Atoms axis;
  Dim size;
  const Value* value = nullptr;
};

// Operand `place` of a product, from the axes of the result. `summed`: the axes that are summed over, in the order of the
// product. `sizes` gets what has to be proved later, when more is known of the axes.
absl::StatusOr<AxisView> OperandView(const FunctionContext& context, AtomTable* atoms, const Product& product, size_t place,
                                     const AxisList& result, const AxisList& summed, std::vector<SizeToProve>* sizes);

AttentionOperand FollowOperand(const FunctionContext& context, AtomTable* atoms, AxisView view);

// Which operand of the product of scores is the key: the one that has the axis `keys`. A single key has no atoms; then the query
// is the operand with axes of its own. A single query has none either: the product of one with one key is the same both ways, and
// the key is the one that is repeated for several heads, or the second. nullopt where both could be it and it matters.
std::optional<size_t> KeyAmong(const AtomTable& atoms, const std::array<AttentionOperand, 2>& operands, const Atoms& keys);

// The type that all operands can have in one kernel: half precision where all have a place of one such type.
DataType CommonType(const FunctionContext& context, const AttentionOperands& operands);

// A place in an operand, as what the kernel takes.
struct OperandChoice {
  Term term;
  const AxisView* place = nullptr;
  int cost = 0;
};

// What a place has to be.
struct OperandForm {
  DataType type = DataType::kUndefined;
  bool any_factor = false;  // numbers that it is multiplied with are taken up elsewhere
};

// The place that costs least of those that are repeated along `copied` and can be given the axes `to`: of one with the type
// wanted, and where there is none of any, with a Cast. Of equal ones the first.
std::optional<OperandChoice> ChoosePlace(const FunctionContext& context, const AtomTable& atoms, const AttentionOperand& operand,
                                         const OperandForm& form, const AxisList& to, const Atoms& copied);

// The same of a query that is one for all of the batch, or for all heads: repeated along them. `like` has dims that are no
// numbers.
std::optional<OperandChoice> ChooseShared(const FunctionContext& context, const AtomTable& atoms, const AttentionOperand& operand,
                                          const OperandForm& form, const AxisList& to, const Value* like);

// A dim as an element of an Expand's shape: a number, or read from the shape of `like` or of an input of its graph.
std::optional<Term> DimAtRunTime(const FunctionContext& context, Dim dim, const Value* like);

}  // namespace ascend_fuse
