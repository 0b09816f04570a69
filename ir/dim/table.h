// The expressions of a DimTable: polynomials over symbols and opaque atoms (floor division, min, max,
// broadcast), hash-consed so that one expression has one number. What is unified becomes a substitution of
// atoms; resolving is memoised. Modulo has no atom of its own: a mod b is a - b * floor(a / b), so that the
// two cancel each other. Included by ir/dim/*.cc only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/arena.h"
#include "ir/dim.h"
#include "ir/dim/polynomial.h"
#include "ir/dim/scoped_dims.h"

namespace ascend_fuse {
namespace dim_algebra {

enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMin, kMax, kBroadcast };

struct Interval {
  int64_t low = kMinusInfinity;
  int64_t high = kInfinity;
};

// Which atom of a sum that is 0 is best replaced by what.
struct Substitution {
  int64_t atom = -1;  // none
  Polynomial value;
};

}  // namespace dim_algebra

struct DimTable::Impl {
  using AtomKind = dim_algebra::AtomKind;
  using Interval = dim_algebra::Interval;
  using Polynomial = dim_algebra::Polynomial;
  using Term = dim_algebra::Term;

  struct Atom {
    AtomKind kind = AtomKind::kSymbol;
    bool fresh = false;
    bool can_be_told = true;  // of a symbol
    bool resolving = false;
    uint8_t nesting = 0;
    // The body that made it up: nobody else knows it, so what that body proves of it harms nobody. 0 for
    // names and for what is computed from names, which stand for the same dims everywhere. See
    // DimTable::SetScope.
    uint64_t scope = 0;
    size_t weight = 1;
    std::string_view name;  // of a symbol
    Dim a;                  // operands of an opaque atom
    Dim b;
    Interval range{0, dim_algebra::kInfinity};  // of a symbol
    Dim substitute;                             // what it was unified with
    Dim itself;                                 // the expression that is this atom, once it was asked for
    uint64_t bounds_version = 0;
    Interval bounds;
  };
  struct Expression {
    Polynomial polynomial;
    Dim resolved;
    uint64_t version = 0;  // of `resolved`
  };

  std::vector<Atom> atoms;
  std::vector<std::unique_ptr<Expression>> expressions;
  absl::flat_hash_map<std::string, int64_t> expression_ids;
  absl::flat_hash_map<std::string_view, uint32_t> symbols;
  absl::flat_hash_map<std::string, uint32_t> opaque_ids;
  absl::flat_hash_map<int64_t, Interval> expression_bounds;  // of what a ranged symbol was replaced with
  absl::flat_hash_map<std::string, uint32_t> fresh_suffixes;
  Arena names;
  uint64_t version = 1;
  bool has_fresh = false;
  uint64_t scope = 0;
  bool had_scope = false;  // whether there ever was one
  dim_algebra::ScopedDims scoped;
  bool unification = true;  // whether Unify and Meet record what they are told
  uint64_t work = 0;
  size_t stored_terms = 0;
  int depth = 0;  // of ResolveAtom

  // --- Building expressions: arithmetic.cc. Operands of the operations are resolved.

  // False when too much work was done already.
  bool Spend(uint64_t terms);
  Polynomial Of(Dim dim) const;
  Dim Intern(Polynomial polynomial);
  Dim OfAtom(uint32_t atom);
  Dim Opaque(AtomKind kind, Dim a, Dim b);
  // The one atom that `dim` is, or -1.
  int64_t SingleAtom(Dim dim) const;
  Dim Sum(Dim a, Dim b, int64_t scale);
  Dim Product(Dim a, Dim b);
  Dim Build(AtomKind kind, Dim a, Dim b);
  Dim ExactDiv(Dim a, Dim b);
  Dim FloorDiv(Dim a, Dim b);
  static void DivideByNumber(const Polynomial& numerator, int64_t* divisor, Polynomial* quotient, Polynomial* rest);
  Dim MinMax(AtomKind kind, Dim a, Dim b);
  bool IsOperand(AtomKind kind, Dim whole, Dim part) const;
  Dim Broadcast(Dim a, Dim b);
  static void Order(Dim* a, Dim* b);

  // --- Bounds: bounds.cc.

  Interval BoundsOfAtom(uint32_t id, int effort);
  int64_t LowerOf(Dim dim);
  int64_t Upper(const Polynomial& polynomial, int effort);
  // A number that `polynomial` is never below; kMinusInfinity if none is known.
  int64_t Lower(const Polynomial& polynomial, int effort);
  bool NonNegative(const Polynomial& polynomial);
  bool AtLeast(Dim a, Dim b);
  bool NonZero(const Polynomial& difference);
  // Provably not 1: at least 2, 0 or a multiple of something.
  bool NeverOne(Dim dim);

  // --- Equalities: unify.cc.

  // Atoms whose substitution is being followed stay as they are: two opaque atoms that were unified with
  // each other's parts cannot make this loop. So do atoms at the end of very long chains: what is not
  // resolved is still true.
  Dim ResolveAtom(uint32_t id);
  Dim Resolve(Dim dim);
  // `dim` of a body, built anew where we are.
  Dim Outside(Dim dim);
  // `dim` with every Min(x, n) of a number n >= 2 replaced by x; the atoms replaced are added to `clamps`.
  Dim Unclamp(Dim dim, std::vector<std::pair<uint32_t, Dim>>* clamps);
  // Slicing a buffer of n rows by [past, past + seq) gives Min(past + seq, n) - Min(past, n) rows. Where that
  // meets `seq`, the run is within the buffer (or the rows left would not fit what they meet).
  bool UnifyWithinBounds(Dim a, Dim b);
  bool Unify(Dim a, Dim b);
  dim_algebra::Substitution BestSubstitution(const Polynomial& difference,
                                             bool of_scope);  // among atoms that the scope made, or all
  // What was known of the atom that `value` replaces holds for `value`.
  void Transfer(const Polynomial& polynomial, Dim value, const Interval& range);

  // --- Which atoms occur in an expression: mentions.cc.

  bool Occurs(uint32_t atom, const Polynomial& polynomial) const;
  bool OccursIn(uint32_t atom, Dim dim) const;
  bool MentionsFresh(Dim dim) const;
  bool OlderThan(Dim dim, uint64_t mark) const;
  // Adds the names of symbols that `names` does not have yet.
  void AddSymbols(Dim dim, std::vector<std::string_view>* names) const;

  // --- Text and numbers: print.cc.

  using Binding = std::function<std::optional<int64_t>(std::string_view)>;
  void Print(Dim dim, std::string* out) const;
  void Print(const Polynomial& polynomial, std::string* out) const;
  void PrintOperand(Dim dim, std::string* out) const;
  void PrintAtom(const Atom& atom, std::string* out) const;
  std::optional<int64_t> Evaluate(Dim dim, const Binding& symbol) const;
  std::optional<int64_t> EvaluateAtom(const Atom& atom, const Binding& symbol) const;
};

}  // namespace ascend_fuse
