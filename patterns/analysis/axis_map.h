// What the axes of a tensor are, followed through operators that only move elements: every axis is a product of atoms
// (batch, heads, query position ...), which Reshapes group and split, Transposes permute and Expands repeat.
#pragma once

#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// Atoms in row-major order, outermost first. An axis of dim 1 has none.
using Atoms = absl::InlinedVector<int, 4>;
using AxisList = std::vector<Atoms>;

// The atoms of one construct. A Reshape that cuts through an atom splits it everywhere at once: lists keep the atom, and
// Leaves names what became of it.
class AtomTable {
 public:
  // One dim and one atom are equal where dims and atoms after them hold as many elements. With `by_count` that is seen where
  // several atoms are one of these dims too: for who builds nothing whose dims must have the names of those that were followed.
  explicit AtomTable(DimTable* dims, bool by_count = false) : dims_(dims), by_count_(by_count) {}

  // The atoms of a new axis of this size: one, or none for a size of 1.
  Atoms New(Dim size);
  Atoms Leaves(const Atoms& atoms) const;
  AxisList Leaves(const AxisList& axes) const;
  Dim SizeOf(const Atoms& atoms) const;
  // The axis is found to have this size. False where it is made of several atoms.
  bool Resize(const Atoms& axis, Dim size);
  std::vector<Dim> SizesOf(const AxisList& axes) const;
  // The elements of all `axes` in row-major order as axes of these dims, which hold as many; nullopt where it is not
  // proved how.
  std::optional<AxisList> Regroup(const AxisList& axes, absl::Span<const Dim> dims);

 private:
  struct Atom {
    Dim size;
    int outer = -1;  // what it was split into
    int inner = -1;
  };
  void AddLeaves(int atom, Atoms* leaves) const;

  DimTable* dims_;
  bool by_count_;
  std::vector<Atom> atoms_;
};

bool Contains(const Atoms& atoms, int atom);
Atoms Joined(const AxisList& axes);

// Element `index` of `count` along an axis.
struct PickedElement {
  int atom = -1;  // of the axis, as it was met: Leaves names what became of it
  int64_t index = 0;
  int64_t count = 0;
};

// A value whose axes are known as atoms.
struct AxisView {
  const Value* value = nullptr;
  AxisList axes;                        // of `value`
  std::optional<PickedElement> picked;  // what was followed has only this of `value`; see FollowPick
  Atoms copied;                         // atoms along which what was followed repeats `value`
  double factor = 1;                    // the product of all numbers that were multiplied on the way
  std::vector<const Node*> nodes;       // between what was followed and `value`, the last one first
};

// Goes back over the node that computes view->value where it only moves elements of one value: from the axes of its output
// to those of its input. False, and nothing is changed, where it does anything else or its dims are not proved.
bool FollowMovement(const FunctionContext& context, AtomTable* atoms, AxisView* view);
// The same over a Gather of one index and a Split into single elements, once: what is picked gets an atom.
bool FollowPick(const FunctionContext& context, AtomTable* atoms, AxisView* view);
// The same over copies (ValueNumbering::Source).
bool FollowCopy(const FunctionContext& context, AxisView* view);
// The same over a product or quotient with a number that is not 0, which view->factor takes up.
bool FollowFactor(const FunctionContext& context, AxisView* view);
// The same over a Cast from float16 or bfloat16 to float32.
bool FollowWidening(const FunctionContext& context, AxisView* view);

// A tensor to be built.
struct Arranged {
  Term term;
  int nodes = 0;  // how many are built
};

// `source`, whose axes are `from`, with the axes `to`: by at most two Reshapes with a Transpose between. Dims that are
// no numbers are read from `shape_of`. nullopt where the atoms are not the same ones, or a dim cannot be told.
std::optional<Arranged> Arrange(const FunctionContext& context, const AtomTable& atoms, Term source, const AxisList& from,
                                const AxisList& to, const Value* shape_of);

}  // namespace ascend_fuse
