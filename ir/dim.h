// Dimensions as algebra: a Dim is a number, or a sum of products of symbols, kept in one canonical form so
// that equal expressions are equal ids. Divisions that cancel are carried out; floor division, modulo, min
// and max that do not simplify become symbols of their own with a definition.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace ascend_fuse {

// A number, an expression of a DimTable, or unknown. Small and copied freely.
class Dim {
 public:
  constexpr Dim() = default;  // unknown
  static constexpr Dim Of(int64_t number) { return Dim(Kind::kNumber, number); }

  bool known() const { return kind_ != Kind::kUnknown; }
  bool is_number() const { return kind_ == Kind::kNumber; }
  bool is(int64_t number) const { return kind_ == Kind::kNumber && bits_ == number; }
  int64_t number() const { return bits_; }  // only when is_number()
  // Together with is_number() this identifies the representation: the number, or the index of the expression.
  int64_t id() const { return bits_; }

  // The same representation. For "provably equal" ask DimTable::Equal, which also uses what was unified.
  bool operator==(const Dim&) const = default;

 private:
  friend class DimTable;
  enum class Kind : uint8_t { kUnknown, kNumber, kExpression };
  constexpr Dim(Kind kind, int64_t bits) : bits_(bits), kind_(kind) {}
  int64_t bits_ = 0;
  Kind kind_ = Kind::kUnknown;
};

// Owns the expressions of one model. Every operation on an unknown operand, and every one that would
// overflow int64 or exceed the size limit (256 terms), gives unknown. Symbols stand for dims of an error-free
// run: they are >= 0.
class DimTable {
 public:
  DimTable();
  ~DimTable();
  DimTable(DimTable&&) noexcept;
  DimTable& operator=(DimTable&&) noexcept;

  Dim Symbol(std::string_view name);  // the same name gives the same symbol
  // A symbol nobody has yet, named hint, hint'1, hint'2 ... Where Symbol is asked for that name later, this one gets another.
  // is_input: of a dim of an input, which --dim can say.
  Dim FreshSymbol(std::string_view hint, bool is_input = false);
  // The symbol of that name, whoever made it; unknown if there is none.
  Dim Find(std::string_view name) const;
  // Parses a dim_param: a name, or an expression such as "s15 + s70", "2*s3 - 1", "floor(s1/2)",
  // "Max(1, s2)". Text that is not an expression becomes one symbol of that name.
  Dim Parse(std::string_view text);

  Dim Add(Dim a, Dim b);
  Dim Sub(Dim a, Dim b);
  Dim Mul(Dim a, Dim b);
  // a / b where the division is known to have no rest; unknown if it cannot be cancelled.
  Dim ExactDiv(Dim a, Dim b);
  Dim FloorDiv(Dim a, Dim b);  // toward minus infinity
  Dim Mod(Dim a, Dim b);       // sign of the divisor
  Dim Min(Dim a, Dim b);
  Dim Max(Dim a, Dim b);
  // The dim of two that are broadcast together: b where a is 1, else a. Decided by a number above 1, by equal
  // operands, or by what is unified later.
  Dim Broadcast(Dim a, Dim b);

  // The same for two dims that an operator of the model broadcasts. An error-free run also proves that a slice of a
  // buffer of fixed size (a position table, a causal mask) stays inside it, where only its full length fits here.
  Dim Meet(Dim a, Dim b);

  // Records that a and b are equal in every error-free run. False if they are provably different.
  bool Unify(Dim a, Dim b);
  // The canonical form under everything unified so far.
  Dim Resolve(Dim dim) const;

  bool Equal(Dim a, Dim b) const;  // provably equal
  // As many dims, and each provably equal to its counterpart.
  bool Equal(absl::Span<const Dim> a, absl::Span<const Dim> b) const;
  bool NotEqual(Dim a, Dim b) const;  // provably different
  bool AtLeast(Dim a, Dim b) const;   // provably a >= b
  // Known bounds of a dim, from SetRange and from >= 0.
  std::optional<int64_t> LowerBound(Dim dim) const;
  std::optional<int64_t> UpperBound(Dim dim) const;
  // The names of the symbols in `dim` as it was written: before anything was unified or bound. Each once.
  std::vector<std::string_view> Symbols(Dim dim) const;
  // Whether all symbols of `few` are symbols of `many`, which has more.
  bool NamesFewer(Dim few, Dim many) const;
  // True if a symbol that FreshSymbol made occurs in it.
  bool MentionsFresh(Dim dim) const;
  // Whether --dim can say what the symbol of that name is: a declared name, or a dim of an input under its first name.
  bool CanBeTold(std::string_view name) const;
  // True if FreshSymbol made any symbol.
  bool HasFresh() const;
  // What holds only where a body of If, Loop or Scan runs must not be believed outside. In a scope other than 0, Unify
  // replaces symbols that FreshSymbol made in that scope, and what is computed from them; of all others it records what is
  // equal for this scope alone: it is known while this scope or one within it is set. Returns the scope left.
  uint64_t SetScope(uint64_t scope);
  // The same, and says which scope `scope` lies within.
  uint64_t SetScope(uint64_t scope, uint64_t outer);
  uint64_t scope() const;
  // What was recorded for a scope alone: pairs of equal dims.
  std::vector<std::pair<Dim, Dim>> Scoped(uint64_t scope) const;
  // Forgets what was recorded for a scope alone; it is not the one that is set.
  void ForgetScoped(uint64_t scope);
  // Whether Unify and Meet record what they are told; off, they only answer. Off is for speculative inference: what
  // nodes of our own need is not evidence about the model. Returns what it was.
  bool SetUnification(bool on);
  // A dim of a body that is known to hold outside of it too, in terms of the current scope.
  Dim Outside(Dim dim) const;
  // A mark of this moment: OlderThan tells whether all symbols of a dim existed then.
  uint64_t Mark() const;
  bool OlderThan(Dim dim, uint64_t mark) const;
  // Grows with every fact that Unify or SetRange adds for all scopes.
  uint64_t version() const;
  // Binds a symbol to a range (inclusive); equal ends make it a number.
  void SetRange(std::string_view symbol, int64_t low, int64_t high);

  // "batch", "2*past + seq", "7", "?" for unknown.
  std::string ToString(Dim dim) const;
  // The number under a binding of symbols; nullopt for unknown or unbound symbols.
  std::optional<int64_t> Evaluate(Dim dim, const std::function<std::optional<int64_t>(std::string_view)>& symbol) const;

 private:
  struct Impl;
  // ir/dim/scoped_dims.cc: gives an atom another substitute until Leave, and all that is known in a scope theirs.
  static void Place(Impl& table, uint32_t atom, Dim value);
  static void Leave(Impl& table);
  static void Enter(Impl& table, uint64_t scope);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend_fuse
