#include "patterns/functions/registry.h"

#include "fmt/format.h"

namespace ascend_fuse {
namespace {

// What `term` can be read as.
TermKinds KindsOf(const Term& term) {
  switch (term.kind) {
    case Term::Kind::kUnbound:
      return 0;
    case Term::Kind::kAbsent:
      return kAbsentTerm;
    case Term::Kind::kValue:
      return kValueTerm;
    case Term::Kind::kNumber:
      return kNumberTerm | kListTerm | (IntegerOf(term).has_value() ? kIntegerTerm | kDimTerm : 0);
    case Term::Kind::kDim:
      return kDimTerm | kListTerm | (term.dim.is_number() ? kIntegerTerm | kNumberTerm : 0);
    case Term::Kind::kList:
      return kListTerm;
    case Term::Kind::kType:
      return kTypeTerm;
    case Term::Kind::kText:
      return kTextTerm;
    case Term::Kind::kNode:
      return kNodeTerm;
  }
  return 0;
}

// The name of a parameter: "x" of "shape (x)".
std::string_view ParameterName(std::string_view signature, size_t index) {
  size_t begin = signature.find('(') + 1;
  for (size_t i = 0; i < index; ++i) begin = signature.find(',', begin) + 2;
  return signature.substr(begin, signature.find_first_of("?,)", begin) - begin);
}

}  // namespace

std::string DescribeKinds(TermKinds kinds) {
  if (kinds == kAnyTerm) return "anything";
  constexpr std::pair<TermKinds, std::string_view> kNames[] = {{kValueTerm, "a value of the graph"},
                                                               {kNodeTerm, "a node to be built"},
                                                               {kNumberTerm, "a number"},
                                                               {kIntegerTerm, "a whole number"},
                                                               {kDimTerm, "a dim"},
                                                               {kListTerm, "a list"},
                                                               {kTypeTerm, "an element type"},
                                                               {kTextTerm, "a text"},
                                                               {kAbsentTerm, "no value"}};
  std::string text;
  for (const auto& [kind, name] : kNames) {
    if ((kinds & kind) != 0) text += fmt::format("{}{}", text.empty() ? "" : " or ", name);
  }
  return text;
}

std::string WrongArgument(std::string_view signature, size_t index, TermKinds wanted, std::string_view found) {
  return fmt::format("{}: {} must be {}, found {}", registry::NameOf(signature), ParameterName(signature, index),
                     DescribeKinds(wanted), found);
}

absl::Status registry::CheckArguments(std::string_view signature, absl::Span<const TermKinds> wanted, size_t minimum,
                                      const FunctionContext& context, absl::Span<const Term> arguments) {
  if (arguments.size() < minimum || arguments.size() > wanted.size()) {
    return absl::InvalidArgumentError(fmt::format("{} is called with {} arguments", signature, arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (wanted[i] == kAnyTerm || (KindsOf(arguments[i]) & wanted[i]) != 0) continue;
    return absl::InvalidArgumentError(WrongArgument(signature, i, wanted[i], DescribeTerm(context, arguments[i])));
  }
  return absl::OkStatus();
}

}  // namespace ascend_fuse
