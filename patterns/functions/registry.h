// How a C++ function becomes one that rules call. Its signature says what it takes and gives:
//
//   absl::StatusOr<int64_t> Half(const FunctionContext& context, const Value* part);
//
//   Function<"half (part)", Half>("0 or 1: which half of the last axis a Slice, Split or Gather gives.")
//
// Arguments are counted and checked before the function is called, and a wrong one is named in one place. The context
// may be left out. Arguments:
//   const Value*            a value of the graph
//   int64_t, double   a number
//   Dim               a dim, number or not
//   DataType, std::string_view
//   List              a list, or one number or dim as a list of one
//   Shaped            a value of the graph or a node to be built
//   const Term&       anything, also no value
//   std::optional<T>  T or no value (an input or attribute that is not given)
//   Trailing<T>       T, which a rule may leave out; last, and written with ? in the signature
// Results, alone or as absl::StatusOr: const Value* (nullptr: the value is missing), int64_t, double, Dim, DataType, std::string,
// std::vector<Term>, Term (anything, often a node to be built), and Holds, a condition.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/status_macros.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// A set of the kinds below: what an argument may be, or what a term or an expression can be read as. A number is a
// list of one, and a whole one also a dim.
using TermKinds = uint32_t;
inline constexpr TermKinds kValueTerm = 1u << 0;
inline constexpr TermKinds kNodeTerm = 1u << 1;
inline constexpr TermKinds kNumberTerm = 1u << 2;
inline constexpr TermKinds kIntegerTerm = 1u << 3;
inline constexpr TermKinds kDimTerm = 1u << 4;
inline constexpr TermKinds kListTerm = 1u << 5;
inline constexpr TermKinds kTypeTerm = 1u << 6;
inline constexpr TermKinds kTextTerm = 1u << 7;
inline constexpr TermKinds kAbsentTerm = 1u << 8;
inline constexpr TermKinds kAnyTerm = (1u << 9) - 1;
inline constexpr TermKinds kNumericTerms = kNumberTerm | kIntegerTerm | kDimTerm | kListTerm;

// "a value of the graph or a number"
std::string DescribeKinds(TermKinds kinds);
// "half: part must be a value of the graph, found 3". `signature` is FunctionRow::signature.
std::string WrongArgument(std::string_view signature, size_t index, TermKinds wanted, std::string_view found);

struct FunctionRow {
  std::string_view name;
  std::string_view signature;  // "rotation (r, x, sign, signs?)"
  int minimum_arguments = 0;
  int maximum_arguments = 0;
  // INVALID_ARGUMENT for a wrong argument, FAILED_PRECONDITION with a sentence where there is no result.
  absl::StatusOr<Term> (*call)(const FunctionContext& context, absl::Span<const Term> arguments);
  std::string_view doc;  // one sentence, printed by `ascend-fuse rules --functions`
  // The operator whose presence says that this function should have held somewhere near, or several with a space between: an
  // anchor of near misses, where `begins` is true of the node. nullptr: of each.
  std::string_view anchor = {};
  bool (*begins)(const FunctionContext& context, const Node& anchor) = nullptr;
  absl::Span<const TermKinds> arguments;  // what each may be
  TermKinds result = kAnyTerm;            // what it can be
  std::string_view result_name;           // "number", "condition", ...
};

// A condition: OK where it holds, otherwise the sentence that says why it does not (refusal.h).
using Holds = absl::Status;
using List = absl::Span<const Term>;
// A term of one of these kinds, as it is.
template <TermKinds kKinds>
struct AnyOf {
  const Term& term;
};
using Shaped = AnyOf<kValueTerm | kNodeTerm>;
template <typename T>
struct Trailing : std::optional<T> {
  using std::optional<T>::optional;
};

namespace registry {

// A text as a template argument.
template <size_t kSize>
struct FixedText {
  constexpr FixedText(const char (&given)[kSize]) { std::copy_n(given, kSize, text); }  // NOLINT: implicit
  constexpr std::string_view view() const { return {text, kSize - 1}; }
  char text[kSize];
};

// What stands in front of the first blank. Not by string_view::find: GCC 12 cannot evaluate its check for a null pointer
// under UBSan (GCC bug 71962).
constexpr std::string_view NameOf(std::string_view signature) {
  const auto end = std::find(signature.begin(), signature.end(), ' ');
  return signature.substr(0, static_cast<size_t>(end - signature.begin()));
}

constexpr size_t CountParameters(std::string_view signature) {
  if (signature.ends_with("()")) return 0;
  return 1 + static_cast<size_t>(std::count(signature.begin(), signature.end(), ','));
}

// OK if the number of arguments fits and each is of one of the kinds that its place takes.
absl::Status CheckArguments(std::string_view signature, absl::Span<const TermKinds> wanted, size_t minimum,
                            const FunctionContext& context, absl::Span<const Term> arguments);

// How each type of argument is read from a term of its kinds.
template <typename T>
struct Argument;
template <>
struct Argument<const Value*> {
  static constexpr TermKinds kKinds = kValueTerm;
  static const Value* Read(const Term& term) { return term.value; }
};
template <>
struct Argument<int64_t> {
  static constexpr TermKinds kKinds = kIntegerTerm;
  static int64_t Read(const Term& term) { return IntegerOf(term).value_or(0); }
};
template <>
struct Argument<double> {
  static constexpr TermKinds kKinds = kNumberTerm;
  static double Read(const Term& term) {
    return term.kind == Term::Kind::kDim ? static_cast<double>(term.dim.number()) : term.number;
  }
};
template <>
struct Argument<Dim> {
  static constexpr TermKinds kKinds = kDimTerm;
  static Dim Read(const Term& term) { return DimOf(term); }
};
template <>
struct Argument<DataType> {
  static constexpr TermKinds kKinds = kTypeTerm;
  static DataType Read(const Term& term) { return term.type; }
};
template <>
struct Argument<std::string_view> {
  static constexpr TermKinds kKinds = kTextTerm;
  static std::string_view Read(const Term& term) { return term.text; }
};
template <>
struct Argument<List> {
  static constexpr TermKinds kKinds = kListTerm;
  static List Read(const Term& term) { return term.kind == Term::Kind::kList ? List(*term.list) : List(&term, 1); }
};
template <>
struct Argument<Term> {
  static constexpr TermKinds kKinds = kAnyTerm;
  static const Term& Read(const Term& term) { return term; }
};
template <TermKinds kWanted>
struct Argument<AnyOf<kWanted>> {
  static constexpr TermKinds kKinds = kWanted;
  static AnyOf<kWanted> Read(const Term& term) { return {term}; }
};
template <typename T>
struct Argument<std::optional<T>> {
  static constexpr TermKinds kKinds = Argument<T>::kKinds | kAbsentTerm;
  static std::optional<T> Read(const Term& term) {
    if (term.kind == Term::Kind::kAbsent) return std::nullopt;
    return Argument<T>::Read(term);
  }
};
template <typename T>
struct Argument<Trailing<T>> {
  static constexpr TermKinds kKinds = Argument<T>::kKinds;
  static Trailing<T> Read(const Term& term) { return Trailing<T>(Argument<T>::Read(term)); }
};

template <typename T>
inline constexpr bool kIsTrailing = false;
template <typename T>
inline constexpr bool kIsTrailing<Trailing<T>> = true;

template <typename T>
decltype(auto) ReadArgument(absl::Span<const Term> arguments, size_t index) {
  if constexpr (kIsTrailing<T>) {
    return index < arguments.size() ? Argument<T>::Read(arguments[index]) : T();
  } else {
    return Argument<T>::Read(arguments[index]);
  }
}

// What each type of result is as a term.
template <typename T>
struct Result;
template <>
struct Result<const Value*> {
  static constexpr std::string_view kName = "value";
  static constexpr TermKinds kKinds = kValueTerm | kAbsentTerm;
  static Term ToTerm(const Value* value) { return Term::Of(value); }
};
template <>
struct Result<int64_t> {
  static constexpr std::string_view kName = "number";
  static constexpr TermKinds kKinds = kNumericTerms;
  static Term ToTerm(int64_t number) { return Term::Integer(number); }
};
template <>
struct Result<double> {
  static constexpr std::string_view kName = "number";
  static constexpr TermKinds kKinds = kNumericTerms;
  static Term ToTerm(double number) { return Term::Number(number); }
};
template <>
struct Result<Dim> {
  static constexpr std::string_view kName = "dim";
  static constexpr TermKinds kKinds = kNumericTerms;
  static Term ToTerm(Dim dim) { return TermOfDim(dim); }
};
template <>
struct Result<DataType> {
  static constexpr std::string_view kName = "type";
  static constexpr TermKinds kKinds = kTypeTerm;
  static Term ToTerm(DataType type) { return Term::Of(type); }
};
template <>
struct Result<std::string> {
  static constexpr std::string_view kName = "text";
  static constexpr TermKinds kKinds = kTextTerm;
  static Term ToTerm(std::string text) { return Term::Text(std::move(text)); }
};
template <>
struct Result<std::vector<Term>> {
  static constexpr std::string_view kName = "list";
  static constexpr TermKinds kKinds = kListTerm;
  static Term ToTerm(std::vector<Term> items) { return Term::List(std::move(items)); }
};
template <>
struct Result<Term> {
  static constexpr std::string_view kName = "operand";
  static constexpr TermKinds kKinds = kAnyTerm;
  static Term ToTerm(Term term) { return term; }
};
template <>
struct Result<Holds> {
  static constexpr std::string_view kName = "condition";
  static constexpr TermKinds kKinds = kNumericTerms;
  static absl::StatusOr<Term> ToTerm(Holds holds) {
    if (!holds.ok()) return holds;
    return Term::Integer(1);
  }
};
template <typename T>
struct Result<absl::StatusOr<T>> {
  static constexpr std::string_view kName = Result<T>::kName;
  static constexpr TermKinds kKinds = Result<T>::kKinds;
  static absl::StatusOr<Term> ToTerm(absl::StatusOr<T> result) {
    if (!result.ok()) return result.status();
    return Result<T>::ToTerm(*std::move(result));
  }
};

// The function as the matcher calls it: terms in, a term or a sentence out.
template <FixedText kSignature, auto kFunction, bool kTakesContext, typename R, typename... T>
struct Typed {
  using ResultType = Result<R>;
  static constexpr size_t kCount = sizeof...(T);
  static constexpr size_t kMinimum = (size_t{0} + ... + (kIsTrailing<T> ? 0 : 1));
  static constexpr TermKinds kKinds[kCount + 1] = {Argument<T>::kKinds..., 0};  // no array is empty
  static_assert(CountParameters(kSignature.view()) == kCount, "the signature names every parameter");

  static absl::StatusOr<Term> Call(const FunctionContext& context, absl::Span<const Term> arguments) {
    RETURN_IF_ERROR(CheckArguments(kSignature.view(), absl::MakeConstSpan(kKinds, kCount), kMinimum, context, arguments));
    return Apply(context, arguments, std::index_sequence_for<T...>());
  }

  template <size_t... kIndex>
  static absl::StatusOr<Term> Apply(const FunctionContext& context, absl::Span<const Term> arguments,
                                    std::index_sequence<kIndex...>) {
    if constexpr (kTakesContext) {
      return ResultType::ToTerm(kFunction(context, ReadArgument<T>(arguments, kIndex)...));
    } else {
      return ResultType::ToTerm(kFunction(ReadArgument<T>(arguments, kIndex)...));
    }
  }
};

// The result and the arguments of a function's type, with or without the context in front.
template <typename F>
struct Signature;
template <typename R, typename... T>
struct Signature<R (*)(T...)> {
  template <FixedText kSignature, auto kFunction>
  using Function = Typed<kSignature, kFunction, false, R, std::remove_cvref_t<T>...>;
};
template <typename R, typename... T>
struct Signature<R (*)(const FunctionContext&, T...)> {
  template <FixedText kSignature, auto kFunction>
  using Function = Typed<kSignature, kFunction, true, R, std::remove_cvref_t<T>...>;
};

}  // namespace registry

// The row of a function. doc: one sentence, which may mention the parameters by name.
template <registry::FixedText kSignature, auto kFunction>
constexpr FunctionRow Function(std::string_view doc, std::string_view anchor = {},
                               bool (*begins)(const FunctionContext& context, const Node& anchor) = nullptr) {
  using Typed = typename registry::Signature<decltype(kFunction)>::template Function<kSignature, kFunction>;
  FunctionRow row;
  row.name = registry::NameOf(kSignature.view());
  row.signature = kSignature.view();
  row.minimum_arguments = static_cast<int>(Typed::kMinimum);
  row.maximum_arguments = static_cast<int>(Typed::kCount);
  row.call = Typed::Call;
  row.doc = doc;
  row.anchor = anchor;
  row.begins = begins;
  row.arguments = absl::Span<const TermKinds>(Typed::kKinds, Typed::kCount);
  row.result = Typed::ResultType::kKinds;
  row.result_name = Typed::ResultType::kName;
  return row;
}

}  // namespace ascend_fuse
