// What is known about each value without running the model: type, symbolic shape, and the elements of small
// integer, bool and float tensors. Facts live beside the graph; the graph is not changed to be understood.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ir/dim.h"
#include "ir/model.h"

namespace ascend_fuse {

// Elements of a small tensor (at most Facts::kMaxElements) in row-major order. Exactly one of the lists is
// used: `integers` for integer and bool tensors (an unknown Dim for an element that is not known),
// `floats` for floating-point ones (NaN is a value; all elements known).
struct Elements {
  absl::Span<const Dim> integers;
  absl::Span<const double> floats;
};

// Where a fact came from.
enum class Origin : uint8_t {
  kNothing,   // nothing is known
  kInput,     // declared for a graph input
  kConstant,  // an initializer
  kOperator,  // computed by the producer
  kDeclared,  // at least in part from value_info or a graph output
  kUnified,   // computed, and then some dim was found equal to another
};

struct Fact {
  DataType type = DataType::kUndefined;
  bool has_rank = false;
  Origin origin = Origin::kNothing;
  absl::Span<const Dim> shape;         // valid when has_rank
  const Elements* elements = nullptr;  // nullptr: not known, or too many
  // All elements are the one in `splat` (also for large tensors, for example ConstantOfShape of a symbolic
  // shape): floating-point value or integer as double.
  bool is_splat = false;
  double splat = 0;

  int rank() const { return has_rank ? static_cast<int>(shape.size()) : -1; }
};

// Two facts about one value that cannot both hold.
struct Contradiction {
  std::string value;  // name
  std::string declared;
  std::string computed;
  std::string where;  // the node whose semantics gave `computed`
  // Both sides in one sentence: who declares what, and from which inputs the node computes the other.
  std::string sentence;
};

namespace infer {
class Calls;
class NodeContext;
}  // namespace infer

struct Movement;

// Inference of operators that ir does not know. Who has operators of his own brings it with InferOptions.
class OperatorInference {
 public:
  virtual ~OperatorInference() = default;
  // Sets what follows of the outputs (ir/infer/context.h); false if it does not know the operator.
  virtual bool Infer(infer::NodeContext& context) const = 0;
  // Domain and type of every operator it knows.
  virtual std::vector<std::pair<std::string_view, std::string_view>> Operators() const = 0;
};

// What a symbolic dim can be: multiples of `step` from `low` to `high`, both of which are multiples of it.
struct DimRange {
  int64_t low = 0;
  int64_t high = 0;
  int64_t step = 1;

  friend bool operator==(const DimRange&, const DimRange&) = default;
};

// What an earlier run over the same model learned of a name: its number, or another name of the same dim. Dims without a name are
// called NameOfUnnamed.
struct LearnedDim {
  std::string name;
  std::optional<int64_t> number;
  std::string other;  // where there is no number
};

struct InferOptions {
  // --dim, by symbol.
  std::vector<std::pair<std::string, DimRange>> dims;
  // --dim, two symbols that stand for the same dim.
  std::vector<std::pair<std::string, std::string>> equal_dims;
  // Not told by anybody; what is learned again says nothing new.
  std::vector<LearnedDim> learned_dims;
  // Asked for operators that are not in the tables of ir/infer; must outlive the facts. Local functions go before it.
  const OperatorInference* operators = nullptr;
};

// What a dim of a value is called that has no name: x_d0 for the first one of x.
std::string NameOfUnnamed(const Value& value, size_t axis);

class Facts {
 public:
  static constexpr int64_t kMaxElements = 1024;
  static constexpr size_t kMaxStoredElements = size_t{16} << 20;

  Facts();
  ~Facts();
  Facts(Facts&&) noexcept;
  Facts& operator=(Facts&&) noexcept;

  // Never fails: a value nothing is known about has an empty Fact.
  const Fact& Of(const Value* value) const;
  void Set(const Value* value, const Fact& fact);  // spans must come from Copy or live in the model

  // What the node that computes the value does to positions (ir/movement/movement.h); nullptr where it computes, or where too
  // little is known of its parameters. As old as the fact: what a node moves is decoded anew whenever it is inferred.
  const Movement* MovementOf(const Value* value) const;
  void SetMovements(const Node& node, absl::Span<const Movement* const> of_outputs);  // empty: it moves nothing

  DimTable& dims() { return dims_; }
  const DimTable& dims() const { return dims_; }
  Arena& arena() { return arena_; }
  const std::vector<Contradiction>& contradictions() const { return contradictions_; }
  // More than that tell nothing new.
  static constexpr size_t kMaxContradictions = 10'000;
  void AddContradiction(Contradiction contradiction) {
    if (contradictions_.size() < kMaxContradictions) contradictions_.push_back(std::move(contradiction));
  }
  // All but the first `count`.
  void ForgetContradictions(size_t count) {
    if (count < contradictions_.size()) contradictions_.resize(count);
  }

  // Accounts for elements to be stored; false when all facts together hold too many already.
  bool ReserveElements(size_t count) {
    stored_elements_ += count;
    return stored_elements_ <= kMaxStoredElements;
  }

  // Writes what was found of symbols after a shape or an element was computed into it: a dim that is a number is one to everybody
  // who looks at it, whichever node taught it; numbers that hold in a body alone, into what the body computes. Whether one became
  // a number everywhere, by which nodes before that one may compute more.
  bool ResolveDims(const Model& model);
  // The same of what a node of a body computes that was inferred after that.
  void ResolveDims(const Node& node);
  // Of every fact whether dims of it were found equal to others, and the same said of facts that were computed anew since.
  std::vector<bool> UnifiedFacts() const;
  void MarkUnified(const std::vector<bool>& unified);

  // False when some value may have an unknown rank, or a dim made up by inference: then it is worth looking.
  bool AllKnown() const;

  // "float[batch, 4, seq, 64]"
  std::string Describe(const Value* value) const;

  Origin OriginOf(const Value* value) const;
  // "computed by MatMul 'scores'", "declared for a graph input" ...
  std::string ExplainOrigin(const Value* value) const;

  // For inference of local functions: facts of another model's values take the place of these for a while.
  struct Values {
    std::vector<Fact, PageAllocator<Fact>> facts;                                          // by Value::id
    std::vector<const Movement* const*, PageAllocator<const Movement* const*>> movements;  // by Node::id, one for each output
  };
  Values SwapValues(Values values) {
    std::swap(values_, values);
    return values;
  }
  // Bodies of loops are inferred again while it is not settled what every turn keeps. Loops in loops multiply that, so
  // it is bounded: false when this pass has looked at too many nodes of bodies already.
  static constexpr int64_t kMaxLoopNodes = 300'000;
  void StartPass() {
    loop_nodes_ = 0;
    apart_.clear();
  }
  bool CountLoop(size_t nodes) { return (loop_nodes_ += static_cast<int64_t>(nodes)) <= kMaxLoopNodes; }
  // Two dims that a node would have made one, had they been known to be equal; whether some of this pass are by now.
  void NoteApart(Dim a, Dim b) {
    if (a.known() && b.known()) apart_.emplace_back(a, b);
  }
  bool HaveMet() const {
    return std::any_of(apart_.begin(), apart_.end(), [this](const auto& pair) { return dims_.Equal(pair.first, pair.second); });
  }
  // What InferOptions say of a dim that has no name, of an input or of what an If, Loop or Scan gives: they call it
  // NameOfUnnamed. Unknown for all others.
  Dim ToldDim(const Value& value, size_t axis) const {
    if (told_values_.empty()) return Dim();
    const auto named = told_values_.find(NameOfUnnamed(value, 0));
    if (named == told_values_.end() || named->second != &value) return Dim();
    const auto told = told_dims_.find(NameOfUnnamed(value, axis));
    return told == told_dims_.end() ? Dim() : told->second;
  }
  // Of two values whose dims have the same names (x:0 and x/0) neither is told.
  void TellDims(const Value& value) {
    const auto [named, is_new] = told_values_.try_emplace(NameOfUnnamed(value, 0), &value);
    if (!is_new) named->second = nullptr;
  }
  void TellDim(const std::string& name, Dim dim) { told_dims_[name] = dim; }
  // DimTable::Mark at the first visit to the body of that scope: what is older comes from outside.
  uint64_t MarkOf(uint64_t scope) { return marks_.try_emplace(scope, dims_.Mark()).first->second; }

  const OperatorInference* operators() const { return operators_; }
  void SetOperators(const OperatorInference* operators) { operators_ = operators; }

  infer::Calls* calls() { return calls_.get(); }
  const infer::Calls* calls() const { return calls_.get(); }
  void SetCalls(std::shared_ptr<infer::Calls> calls) { calls_ = std::move(calls); }

 private:
  template <typename Resolve>
  void Rewrite(Fact* fact, Resolve resolve);  // each dim of it
  void ResolveHere(const Value* value);       // by what holds in the scope that is set

  Values values_;
  DimTable dims_;
  Arena arena_;
  std::vector<Contradiction> contradictions_;
  size_t stored_elements_ = 0;
  int64_t loop_nodes_ = 0;
  std::vector<std::pair<Dim, Dim>> apart_;         // NoteApart of this pass
  absl::flat_hash_map<uint64_t, uint64_t> marks_;  // by scope
  absl::flat_hash_map<std::string, Dim> told_dims_;
  absl::flat_hash_map<std::string, const Value*> told_values_;
  const OperatorInference* operators_ = nullptr;
  std::shared_ptr<infer::Calls> calls_;  // nullptr without local functions
};

// Sets the scope of dims to the place of a graph: what holds in a body where it runs is known while this lives
// (DimTable::SetScope).
class InPlace {
 public:
  InPlace(const Graph& graph, Facts* facts);
  ~InPlace();
  InPlace(const InPlace&) = delete;
  InPlace& operator=(const InPlace&) = delete;

 private:
  DimTable& dims_;
  const uint64_t outer_;
};

// Facts of every value of the model, nested bodies included. Linear in nodes; never an error: an unknown
// operator gives unknown facts, a wrong declaration gives a Contradiction.
Facts Infer(const Model& model, const InferOptions& options = {});

// The symbols in the declared shape of a value, each once. Read with the dims of `unbound`, to which nothing was told: numbers
// take the place of symbols.
std::vector<std::string> DeclaredSymbols(const Value& value, Facts* unbound);

// The names that --dim and --fix know of an input: its symbols, and of its dims without one NameOfUnnamed.
std::vector<std::string> NamesOfDims(const Value& input, Facts* unbound);

// What each If, Loop and Scan of the model's graph gives.
std::vector<const Value*> ResultsOfBodies(const Model& model);

// Facts of the outputs of one node made by a Rewriter, from the facts of its inputs, with the operators that the facts
// were inferred with.
void InferNode(const Node& node, Facts* facts);

// False where one value cannot have both shapes: another rank, or provably another number along an axis.
bool CanBeOneShape(const Fact& a, const Fact& b, const DimTable& dims);

// Domain and type of every operator that inference knows by itself, sorted.
std::vector<std::pair<std::string_view, std::string_view>> InferredOperators();

// Facts of a constant that a Rewriter made.
void InferConstant(const Value* value, Facts* facts);

}  // namespace ascend_fuse
