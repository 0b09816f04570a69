// The part of Judge that decides limits: expressions of dims and numbers, their bounds, multiples and
// equality.
#include <algorithm>
#include <limits>
#include <utility>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/add_once.h"
#include "patterns/how_to_bind.h"
#include "patterns/target/judge.h"
#include "proto/contract.pb.h"

namespace ascend_fuse::contract {
namespace {

int64_t SaturatingMul(int64_t a, int64_t b) {
  int64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  return (a < 0) != (b < 0) ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace

Quantity Judge::Value(const LimitExpression& expression) const {
  Quantity quantity;
  quantity.defined = !expression.factors.empty();
  for (const auto& factor : expression.factors) {
    Dim dim = Dim::Of(factor.number);
    if (factor.bytes) {
      const size_t* const position = positions_.Find(factor.name);
      if (position == nullptr || *position >= types_.size()) return {};
      dim = Dim::Of(BitWidth(types_[*position]) / 8);
    } else if (factor.number < 0) {
      const std::optional<Dim> named = Named(factor.name);
      if (!named.has_value()) return {};
      dim = *named;
    }
    if (!dim.is_number()) {
      (factor.divide ? quantity.divisors : quantity.dims).push_back(dim);
    } else if (factor.divide) {
      if (dim.number() == 0) return {};
      quantity.denominator = SaturatingMul(quantity.denominator, dim.number());
    } else {
      quantity.numerator = SaturatingMul(quantity.numerator, dim.number());
    }
  }
  return quantity;
}

Bound Judge::Lower(const Quantity& quantity) const {
  if (!quantity.divisors.empty()) return quantity.numerator >= 0 ? Bound(0) : Bound();
  int64_t value = quantity.numerator;
  for (const Dim dim : quantity.dims) value = SaturatingMul(value, std::max<int64_t>(0, dims_.LowerBound(dim).value_or(0)));
  return value / quantity.denominator + (value % quantity.denominator != 0 ? 1 : 0);
}

Bound Judge::Upper(const Quantity& quantity) const {
  if (!quantity.divisors.empty()) return std::nullopt;
  int64_t value = quantity.numerator;
  for (const Dim dim : quantity.dims) {
    const Bound upper = dims_.UpperBound(dim);
    if (!upper) return std::nullopt;
    value = SaturatingMul(value, *upper);
  }
  return value / quantity.denominator;
}

Truth Judge::IsMultiple(const Quantity& quantity, int64_t by) const {
  const int64_t unit = SaturatingMul(by, quantity.denominator);
  if (quantity.divisors.empty() && quantity.numerator % unit == 0) return Truth::kYes;
  if (quantity.is_number()) return Truth::kNo;
  if (growing_ == nullptr || !quantity.divisors.empty() || quantity.denominator != 1) return Truth::kUnknown;
  Dim product = Dim::Of(quantity.numerator);
  for (const Dim dim : quantity.dims) product = growing_->Mul(product, dim);
  const Dim rest = growing_->Mod(product, Dim::Of(by));
  if (rest.is(0)) return Truth::kYes;
  return growing_->NotEqual(rest, Dim::Of(0)) ? Truth::kNo : Truth::kUnknown;
}

Truth Judge::AreEqual(const Quantity& a, const Quantity& b) const {
  if (!a.divisors.empty() || !b.divisors.empty()) return Truth::kUnknown;
  const bool same_factor = SaturatingMul(a.numerator, b.denominator) == SaturatingMul(b.numerator, a.denominator);
  if (a.dims.empty() && b.dims.empty()) return same_factor ? Truth::kYes : Truth::kNo;
  if (a.dims.size() == 1 && b.dims.size() <= 1 && a.numerator == 1 && a.denominator == 1 && b.denominator == 1 &&
      (b.dims.empty() || b.numerator == 1)) {
    const Dim other = b.dims.empty() ? Dim::Of(b.numerator) : b.dims[0];
    if (dims_.Equal(a.dims[0], other)) return Truth::kYes;
    if (dims_.NotEqual(a.dims[0], other)) return Truth::kNo;
    return Truth::kUnknown;
  }
  if (!same_factor || a.dims.size() != b.dims.size()) return Truth::kUnknown;
  std::vector<Dim> rest = b.dims;
  for (const Dim dim : a.dims) {
    const auto it = std::find_if(rest.begin(), rest.end(), [&](Dim other) { return dims_.Equal(dim, other); });
    if (it == rest.end()) return Truth::kUnknown;
    rest.erase(it);
  }
  return Truth::kYes;
}

std::string Judge::Text(const Quantity& quantity) const {
  std::vector<std::string> words;
  for (const Dim dim : quantity.dims) words.push_back(dims_.ToString(dim));
  if (quantity.numerator % quantity.denominator == 0) {
    const int64_t number = quantity.numerator / quantity.denominator;
    if (number != 1 || words.empty()) words.push_back(fmt::format("{}", number));
    return fmt::format("{}", fmt::join(words, "*"));
  }
  words.push_back(fmt::format("{}/{}", quantity.numerator, quantity.denominator));
  return fmt::format("{}", fmt::join(words, "*"));
}

void Judge::Assume(const std::string& sentence) { AddOnce(sentence, assumptions_); }

bool Judge::CheckLimit(const CompiledLimit& limit, Refusal* refusal) {
  const Quantity of = Value(limit.of);
  if (!of.defined) return true;  // about letters of other rows
  const proto::Limit& data = *limit.data;
  const std::string& label = data.name().empty() ? data.of() : data.name();
  const auto refuse = [&](const std::string& rest) {
    return Refuse(refusal, kLimit, "limit-exceeded",
                  WithReason(fmt::format("{} is {}, {}", label, Text(of), rest), data.because()), data.source());
  };
  for (const bool most : {true, false}) {
    const LimitExpression& expression = most ? limit.at_most : limit.at_least;
    const Quantity bound = Value(expression);
    if (!bound.defined) continue;
    const char* word = most ? "at most" : "at least";
    // of <= bound, or bound <= of.
    const Quantity& small = most ? of : bound;
    const Quantity& large = most ? bound : of;
    const Bound small_upper = Upper(small), small_lower = Lower(small);
    const Bound large_upper = Upper(large), large_lower = Lower(large);
    if (small_upper && large_lower && *small_upper <= *large_lower) continue;
    if (small_lower && large_upper && *small_lower > *large_upper) {
      return refuse(fmt::format("{} {}", word, Text(bound)));
    }
    if (data.proven()) {
      std::vector<Dim> dims = bound.dims;
      dims.insert(dims.end(), bound.divisors.begin(), bound.divisors.end());
      return RefuseUndecided(fmt::format("is {} {}", word, Text(bound)), label, of, std::move(dims), data, refusal);
    }
    Assume(BoundText(of, bound, word, label));
  }
  if (const Quantity divisor = Value(limit.multiple_of); divisor.defined) {
    const Truth truth = !divisor.is_number() || divisor.denominator != 1 ? Truth::kUnknown
                        : divisor.numerator == 0                         ? Truth::kYes
                                                                         : IsMultiple(of, divisor.numerator);
    if (truth == Truth::kNo) return refuse(fmt::format("a multiple of {} is needed", Text(divisor)));
    if (truth == Truth::kUnknown) {
      return RefuseUndecided(fmt::format("is a multiple of {}", Text(divisor)), label, of, {}, data, refusal);
    }
  }
  if (const Quantity other = Value(limit.equals); other.defined) {
    const Truth truth = AreEqual(of, other);
    if (truth == Truth::kNo) return refuse(fmt::format("{} is needed", Text(other)));
    if (truth == Truth::kUnknown) {
      return RefuseUndecided(fmt::format("equals {}", Text(other)), label, of, other.dims, data, refusal);
    }
  }
  return true;
}

std::string Judge::BoundText(const Quantity& of, const Quantity& bound, const char* word, const std::string& label) const {
  const bool most = std::string_view(word) == "at most";
  if (bound.is_number() && of.dims.size() == 1 && of.divisors.empty() && of.numerator > 0) {
    const int64_t scaled = SaturatingMul(bound.numerator / bound.denominator, of.denominator);
    const int64_t value = most ? scaled / of.numerator : (scaled + of.numerator - 1) / of.numerator;
    return fmt::format("`{}` is {} {} ({}, {})", dims_.ToString(of.dims[0]), word, value, label, call_.op);
  }
  return fmt::format("`{}` is {} {} ({}, {})", Text(of), word, Text(bound), label, call_.op);
}

bool Judge::RefuseUndecided(const std::string& claim, const std::string& label, const Quantity& of, std::vector<Dim> dims,
                            const proto::Limit& data, Refusal* refusal) {
  dims.insert(dims.end(), of.dims.begin(), of.dims.end());
  dims.insert(dims.end(), of.divisors.begin(), of.divisors.end());
  std::string what = "an unknown dim";
  if (std::all_of(dims.begin(), dims.end(), [](Dim dim) { return dim.known(); })) {
    what = fmt::format("the symbolic dim `{}`", of.is_number() && !dims.empty() ? dims_.ToString(dims[0]) : Text(of));
  }
  return Refuse(refusal, kLimit, "undecided-dim",
                WithReason(fmt::format("that {} {} cannot be decided for {}; {}", label, claim, what, HowToBind(dims_, dims)),
                           data.because()),
                data.source(), true);
}
}  // namespace ascend_fuse::contract
