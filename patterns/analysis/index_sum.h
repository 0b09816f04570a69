// Integers that depend on a place in a tensor: sums of positions, of elements that are read, and of dims. The arithmetic
// under index functions (index_function.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/dim.h"
#include "ir/graph.h"

namespace ascend_fuse {

// A sum of an IndexTable. One sum has one number, so that equal sums are equal numbers.
using IndexSum = uint32_t;
// What an operation gives that cannot say its result; it may be an operand of every other one.
inline constexpr IndexSum kNoSum = UINT32_MAX;

// The axes of scores [B, N, S, T], as bits of a set: what something depends on. Inner axes are those of a node that is
// looked into; no result depends on them.
enum PositionBit : uint8_t { kOnBatch = 1, kOnHead = 2, kOnQuery = 4, kOnKey = 8, kOnInnerAxis = 128 };

// What is not taken apart further.
struct IndexAtom {
  enum class Kind : uint8_t {
    kPosition,   // the place along axis `axis`, 0 to extent - 1
    kRead,       // element `indices` of `value`, which every run has anew
    kFloorDiv,   // indices[0] / extent, rounded down
    kBroadcast,  // indices[0], or 0 where `extent` is 1
  };
  Kind kind = Kind::kPosition;
  uint8_t depends = 0;  // PositionBits
  int axis = 0;
  Dim extent;
  const Value* value = nullptr;
  std::vector<IndexSum> indices;
};

// Owns sums and atoms. Dims must be those of the table it was made for.
class IndexTable {
 public:
  struct Term {
    uint32_t atom = 0;
    Dim coefficient;
  };
  struct Sum {
    std::vector<Term> terms;  // by atom, rising; no coefficient is 0
    Dim constant;
    uint8_t depends = 0;  // PositionBits
  };

  explicit IndexTable(DimTable* dims) : dims_(*dims) {}

  IndexSum Of(Dim dim);
  IndexSum Of(int64_t number) { return Of(Dim::Of(number)); }
  // The place along an axis of scores [B, N, S, T] of which `extent` places are looked at.
  IndexSum Position(int axis, Dim extent);
  IndexSum Read(const Value* value, absl::Span<const IndexSum> indices);
  // `index` into an axis of `extent` elements that is broadcast along it, where it is not known whether it is 1.
  IndexSum Broadcast(IndexSum index, Dim extent);

  IndexSum Add(IndexSum a, IndexSum b) { return AddScaled(a, b, Dim::Of(1)); }
  IndexSum Sub(IndexSum a, IndexSum b) { return AddScaled(a, b, Dim::Of(-1)); }
  IndexSum Scale(IndexSum a, Dim factor) { return AddScaled(Of(0), a, factor); }
  // a / divisor rounded down, and the rest. The divisor must be positive in every run in which this is asked for.
  std::pair<IndexSum, IndexSum> DivMod(IndexSum a, Dim divisor);

  const Sum& operator[](IndexSum sum) const { return sums_[sum]; }
  const IndexAtom& Atom(uint32_t atom) const { return atoms_[atom]; }
  // The dim that a sum without atoms is; an unknown one for every other sum.
  Dim DimOf(IndexSum sum) const;
  std::optional<int64_t> NumberOf(IndexSum sum) const;
  // What a sum is never below and never above, whatever the positions are; an unknown dim where nothing is known.
  Dim Lower(IndexSum sum);
  Dim Upper(IndexSum sum);
  bool AtLeast(IndexSum sum, int64_t number);  // provably
  bool AtMost(IndexSum sum, int64_t number);   // provably

  // An expression of Python over b, h, i, j, the symbols of dims, and the values that are read.
  std::string ToString(IndexSum sum) const;
  std::string AtomToString(uint32_t atom) const;
  DimTable& dims() const { return dims_; }

 private:
  IndexSum AddScaled(IndexSum a, IndexSum b, Dim factor);
  IndexSum Intern(std::vector<Term> terms, Dim constant);
  IndexSum OfAtom(IndexAtom atom);
  Dim Bound(IndexSum sum, bool upper);
  Dim AtomBound(uint32_t atom, bool upper);

  DimTable& dims_;
  std::vector<IndexAtom> atoms_;
  std::vector<Sum> sums_;
  absl::flat_hash_map<std::string, uint32_t> atom_ids_;
  absl::flat_hash_map<std::string, IndexSum> sum_ids_;
};

}  // namespace ascend_fuse
