// Every C++ function that a rule may call, in one table. A function is pure: it reads facts and returns a
// term, or a sentence that says why it cannot.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "patterns/analysis/value_numbering.h"
#include "patterns/language/term.h"

namespace ascend_fuse {

class MatchCache;
class Target;

struct FunctionContext {
  const Model* model = nullptr;
  const Target* target = nullptr;  // nullptr outside of lowering
  Facts* facts = nullptr;  // the DimTable may get new expressions; facts are not changed
  const ValueNumbering* numbering = nullptr;
  // The opset of the default domain under which nodes are read; 0: the model's import. A pass that takes a model from
  // one opset to another says here which of the two the nodes before it are of.
  int64_t opset = 0;
  // What all matchers of the model share; nullptr: each keeps its own.
  MatchCache* cache = nullptr;
  // Where a function writes what it takes for granted; nullptr while matching.
  std::vector<std::string>* assumptions = nullptr;
  // Where a function notes the nodes it read as part of what is matched; nullptr where nobody asks.
  std::vector<const Node*>* read = nullptr;
};

struct FunctionRow {
  std::string_view name;
  int minimum_arguments = 0;
  int maximum_arguments = 0;
  absl::StatusOr<Term> (*call)(const FunctionContext& context, absl::Span<const Term> arguments);
  std::string_view doc;  // one sentence, printed by `ascend-fuse rules --functions`
  // The operator whose presence says that this function should have held somewhere near: an anchor of near misses.
  std::string_view anchor = {};
};

absl::Span<const FunctionRow> Functions();
int FindFunction(std::string_view name);  // -1 if there is none

// Shared by functions, matcher and explainer.
// The number that all elements of a constant are, if `value` is known to be one.
bool ConstantNumber(const Facts& facts, const Value* value, double* number);
// A parameter that is a list (`axes` of Slice): the attribute `name` or, at newer opsets, input `input`; nullopt where
// there is none or its elements are not known. Ints: the elements are numbers.
std::optional<std::vector<Dim>> ListParameter(const Facts& facts, const Node& node, std::string_view name,
                                              size_t input);
std::optional<std::vector<int64_t>> IntsParameter(const Facts& facts, const Node& node, std::string_view name,
                                                  size_t input);
std::string DescribeTerm(const FunctionContext& context, const Term& term);
// a = b as rules mean it: same value, equal number, provably equal dim, equal list.
bool EqualTerms(const FunctionContext& context, const Term& a, const Term& b);

}  // namespace ascend_fuse
