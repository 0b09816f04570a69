// Decides whether one planned node fits one row of a contract. Used by target.cc only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/attribute.h"
#include "ir/data_type.h"
#include "ir/dim.h"
#include "patterns/target/compile.h"
#include "patterns/target/target.h"

namespace ascend_fuse::proto {
class PrecisionMode_View;
}  // namespace ascend_fuse::proto

namespace ascend_fuse::contract {

enum class Truth { kNo, kUnknown, kYes };

// A value of an expression: a fraction of numbers times dims that are not numbers.
struct Quantity {
  bool defined = false;  // every name has a value (which may be an unknown dim)
  int64_t numerator = 1;
  int64_t denominator = 1;
  std::vector<Dim> dims;
  std::vector<Dim> divisors;

  bool is_number() const { return defined && dims.empty() && divisors.empty(); }
};

using Bound = std::optional<int64_t>;

// Where a row failed: of several refusals the one with the highest stage came nearest to fitting, and its
// sentence is told. Between kAxis and kInput the number of axes that did fit decides.
enum Stage { kType, kRank, kAxis = 100, kUndecided = 100, kInput = 10000, kLimit };

struct Refusal {
  int stage = -1;
  std::string code;  // of patterns/codes.txtpb
  bool undecided = false;
  // Whether some form or row could not be decided: the call may be legal although another one refuses it for sure.
  bool any_undecided = false;
  std::string because;
  std::string source;
};

// A map of a few names, which must outlive it: those of a contract are looked for one by one faster than in a tree.
template <typename T>
class NameMap {
 public:
  const T* Find(std::string_view name) const {
    for (const auto& [other, value] : entries_) {
      if (other == name) return &value;
    }
    return nullptr;
  }
  T* Find(std::string_view name) { return const_cast<T*>(std::as_const(*this).Find(name)); }
  // The value of the name, a new one where it has none.
  T& operator[](std::string_view name) {
    if (T* value = Find(name)) return *value;
    entries_.emplace_back(name, T());
    return entries_.back().second;
  }
  void Clear() { entries_.clear(); }

 private:
  absl::InlinedVector<std::pair<std::string_view, T>, 8> entries_;
};

// "a, b or c".
std::string JoinOr(const std::vector<std::string>& words);

// The sentence, and the reason in parentheses where there is one.
std::string WithReason(std::string sentence, const std::string& because);

// Whether a value in the data's words is that of the attribute: "0" equals INT 0 and FLOAT 0, "1e-6" the
// float32 nearest to it, "BSH" the STRING.
bool SameValue(const std::string& text, const Attribute& attribute);

// The type that a kernel sees under a view of the precision mode.
DataType Viewed(DataType type, const proto::PrecisionMode_View& view);

// One call judged by one row under one view of the types.
class Judge {
 public:
  // `growing` is `dims` when it may be added to, or nullptr.
  Judge(const Call& call, const CompiledNode& node, const DimTable& dims, DimTable* growing, const std::string& cann)
      : call_(call), node_(node), dims_(dims), growing_(growing), cann_(cann) {}

  // The rules that do not depend on a row. False: refused, and `refusal` says why.
  bool CheckAttributesAndPresence(Refusal* refusal);
  // Whether the row takes the call. After false, `refusal` holds the best sentence so far.
  bool CheckRow(const CompiledRow& row, const proto::PrecisionMode_View& view, Refusal* refusal,
                std::vector<std::string>* assumptions);
  // Whether some row took the types so far.
  bool types_fit() const { return types_fit_; }

 private:
  bool Refuse(Refusal* refusal, int stage, std::string_view code, std::string because, const std::string& source,
              bool undecided = false) const;
  const std::string& FirstSource() const;
  const proto::AttributeRule* Rule(const std::string& name) const;
  const Attribute* Find(const std::string& name) const;
  const CallInput* InputOf(const std::string& name) const;
  bool CheckAttribute(const proto::AttributeRule& rule, Refusal* refusal);
  // The value of an integer attribute, or its default.
  std::optional<int64_t> IntOf(const std::string& name) const;
  bool Holds(const std::vector<CompiledWhen>& conditions) const;
  bool Holds(const CompiledWhen& when) const;
  bool MatchOneOf(const CompiledInput& rule, const CallInput& input, Refusal* refusal);
  std::string ShapeText(const CallInput& input) const;
  bool MatchShape(const std::string& name, const ShapePattern& pattern, const CallInput& input, const std::string& because,
                  const std::string& source, Refusal* refusal);
  bool MatchEllipsis(const std::string& name, const AxisPattern& axis, const std::vector<Dim>& dims, const std::string& source,
                     Refusal* refusal);
  bool MatchAxis(const std::string& name, const AxisPattern& pattern, size_t axis, const CallInput& input,
                 const std::string& because, const std::string& source, Refusal* refusal);
  // What an alternative of an axis stands for; nullopt: a letter that stands for nothing so far.
  std::optional<Dim> DimOf(const AxisPattern::Atom& atom) const;
  // After no alternative fitted: true where the kernel may be left to find out which of them it is.
  bool RefuseAxis(const std::string& name, const AxisPattern& pattern, size_t axis, Dim dim, const std::string& because,
                  const std::string& source, Refusal* refusal);
  Quantity Value(const LimitExpression& expression) const;
  Bound Lower(const Quantity& quantity) const;
  Bound Upper(const Quantity& quantity) const;
  // True when the quantity is whole and `by` divides it.
  Truth IsMultiple(const Quantity& quantity, int64_t by) const;
  Truth AreEqual(const Quantity& a, const Quantity& b) const;
  std::string Text(const Quantity& quantity) const;
  void Assume(const std::string& sentence);
  bool CheckLimit(const CompiledLimit& limit, Refusal* refusal);
  // With one symbol the bound is said of the symbol itself: "`batch` is at most 31".
  std::string BoundText(const Quantity& of, const Quantity& bound, const char* word, const std::string& label) const;
  bool RefuseUndecided(const std::string& claim, const std::string& label, const Quantity& of, std::vector<Dim> dims,
                       const proto::Limit& data, Refusal* refusal);

  const Call& call_;
  const CompiledNode& node_;
  const DimTable& dims_;
  DimTable* growing_;
  const std::string& cann_;
  size_t input_count_ = 0;
  NameMap<size_t> positions_;
  int matched_axes_ = 0;
  std::vector<DataType> types_;
  bool types_fit_ = false;
  // What a letter stands for so far, or the attribute of that name; nullopt where neither is there.
  std::optional<Dim> Named(const std::string& name) const;

  NameMap<Dim> letters_;
  NameMap<std::vector<Dim>> ellipses_;
  std::vector<std::string>* assumptions_ = nullptr;
};

}  // namespace ascend_fuse::contract
