// The kinds of tidying: each is a function that is asked about one node and what is known of it, and answers what the node is to
// be instead, or nothing. It changes nothing itself: the pass (passes/tidy/tidy.cc) does, and asks again until nobody answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "passes/core/workspace.h"
#include "patterns/terms/node_builder.h"

namespace ascend_fuse {

// Which input of the model has a symbolic dim, and where: what any shape arithmetic can be read from.
class InputDims {
 public:
  explicit InputDims(const Workspace& workspace);

  struct Place {
    const Value* input = nullptr;
    int64_t axis = 0;
  };
  // nullptr for a number, and for what no input has as a dim.
  const Place* Of(Dim dim) const;

 private:
  const DimTable& dims_;
  absl::flat_hash_map<int64_t, Place> places_;  // by Dim::id of expressions
};

// Which values have elements that every runtime computes to the bit: none of them came out of a function of floats that runtimes
// round each in its own way (Exp, Sin, MatMul ...). Every value is asked about once.
class ExactValues {
 public:
  bool Has(const Facts& facts, const Value& value);

 private:
  absl::flat_hash_map<const Value*, bool> known_;
};

// Tensors, and axes of theirs, that the Slices of a graph were found not to take apart: not asked again for each Slice.
using Undivided = absl::flat_hash_set<std::tuple<const Graph*, const Value*, int>>;

// What a kind may look at.
struct TidyContext {
  Workspace& workspace;
  const ValueNumbering& numbering;  // of this round
  const InputDims& inputs;
  ExactValues& exact;    // of this round
  Undivided& undivided;  // of this round

  const Facts& facts() const { return workspace.facts(); }
  const DimTable& dims() const { return workspace.facts().dims(); }
};

// What is to be done: `result` in place of the node's only output, or of `parts`, or other inputs of the node.
struct Tidied {
  // The only output that is used: a value that is there already, or a node in place of the old one.
  std::optional<Term> result;
  // The node stays, and reads these.
  std::vector<std::pair<size_t, Term>> inputs;

  // What the outputs of `result`, a node, are in place of, in their order.
  std::vector<const Value*> parts;

  // The same as a `result` that is a node, all of which is said.
  std::optional<NewNode> plan;

  static Tidied Of(Term result) { return {std::move(result), {}, {}, {}}; }
  static Tidied As(NewNode plan) { return {std::nullopt, {}, {}, std::move(plan)}; }
  static Tidied Parts(Term result, std::vector<const Value*> parts) { return {std::move(result), {}, std::move(parts), {}}; }
  static Tidied Reads(size_t index, Term input) { return {std::nullopt, {{index, std::move(input)}}, {}, {}}; }
};

struct TidyKind {
  std::string_view word;              // of --tidy
  std::string_view code;              // of the report
  std::vector<std::string_view> ops;  // none: all
  std::optional<Tidied> (*ask)(TidyContext& context, const Node& node);
  // Whether results are rounded in another order: only where --tidy names it.
  bool reassociates = false;
  std::string_view domain = "";  // of `ops`
};

// All kinds but those that are functions of all nodes: equal computations, word "twins", and the orders of what is computed
// element by element, word "orders".
const std::vector<TidyKind>& TidyKinds();

// Each in a file of its name.
std::optional<Tidied> AskCopies(TidyContext& context, const Node& node);
std::optional<Tidied> AskConstants(TidyContext& context, const Node& node);
std::optional<Tidied> AskShapes(TidyContext& context, const Node& node);
std::optional<Tidied> AskDims(TidyContext& context, const Node& node);
std::optional<Tidied> AskScatters(TidyContext& context, const Node& node);
std::optional<Tidied> AskPads(TidyContext& context, const Node& node);
std::optional<Tidied> AskColumns(TidyContext& context, const Node& node);
std::optional<Tidied> AskKernels(TidyContext& context, const Node& node);
std::optional<Tidied> AskSplits(TidyContext& context, const Node& node);
std::optional<Tidied> AskPlaces(TidyContext& context, const Node& node);
std::optional<Tidied> AskRows(TidyContext& context, const Node& node);
std::optional<Tidied> AskHalfRange(TidyContext& context, const Node& node);
std::optional<Tidied> AskAffines(TidyContext& context, const Node& node);
std::optional<Tidied> AskHeads(TidyContext& context, const Node& node);
std::optional<Tidied> AskNegations(TidyContext& context, const Node& node);
std::optional<Tidied> AskExpands(TidyContext& context, const Node& node);
std::optional<Tidied> AskJoins(TidyContext& context, const Node& node);
std::optional<Tidied> AskCasts(TidyContext& context, const Node& node);
std::optional<Tidied> AskReshapes(TidyContext& context, const Node& node);
std::optional<Tidied> AskTransposes(TidyContext& context, const Node& node);

// --- what several kinds ask ---

// The node that computes input `index`, where it is of that type, alive and in the same graph; else nullptr.
const Node* Before(const Node& node, size_t index, std::string_view op_type);
// A constant of one int64 in the graph of the node, of rank 0 or 1.
Term IndexOf(TidyContext& context, const Node& node, int64_t number, int rank);
// The axes of 1 that `more` has besides those of `fewer`; nullopt where it has others, or as many.
std::optional<std::vector<int64_t>> OnesBesides(const TidyContext& context, const Fact& fewer, const Fact& more);
// `x`, whose shape is that of `from`, as what has that of `to`, where they differ by axes of 1 only, all of which one of them
// has besides: an Unsqueeze or a Squeeze, which ask for no dim.
std::optional<Term> WithOnes(const TidyContext& context, const Term& x, const Fact& from, const Fact& to);
// Whether all elements of an integer value provably fit in 32 bits.
bool FitsIn32Bits(const TidyContext& context, const Value& value);
// Whether no output but the first is used.
bool OnlyFirstIsUsed(const Node& node);

}  // namespace ascend_fuse
