// A concrete graph for one rule. The Builder walks the rule's patterns and decides where they leave a choice
// (pattern.cc), solves what shapes (shapes.cc, relations.cc), sizes (sizes.cc) and types (types.cc) the
// operators and the conditions ask for, builds what only a function of the rule language knows (hints.h), and
// has the result written (writer.cc). Where choices do not fit together there is no graph, and a reason.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/backwards/generator.h"
#include "tools/backwards/graph.h"
#include "tools/backwards/operand_table.h"

namespace ascend_fuse::backwards {

struct FunctionHint;
class Relations;
class Writer;

class Builder {
 public:
  Builder(const RuleSet& library, Random* random, Coverage* coverage, int opset, DataType type)
      : library_(library), random_(*random), coverage_(*coverage), opset_(opset), type_(type) {}
  std::optional<Specimen> Run(const RuleSet& rules, const Rule& rule, std::string* why);

 private:
  bool Fail(const std::string& why);
  Frame* NewFrame(const RuleSet* rules, const Rule* rule, const Scope* scope, const std::string& path);

  // --- choices -----------------------------------------------------------------------------------------
  // possible: options that can lead anywhere here; -1 if there are none.
  int Choose(const std::string& key, const std::vector<std::string>& names, const std::vector<bool>& possible = {});
  static std::string Place(const std::string& path, const SourcePosition& position, const std::string& what);

  // --- patterns ----------------------------------------------------------------------------------------
  int NewValue(const std::string& name);
  bool BuildRule(Frame* frame);
  bool Build(const Pattern& pattern, Frame* frame, Slot* result);
  bool BuildVariable(const Pattern& pattern, Frame* frame, Slot* result);
  bool BuildDefinition(const Pattern& pattern, Frame* frame, Slot* result);
  // let name = expression: a number of the graph, a dim, or a node that the rule only thinks of.
  bool Let(const Condition& condition, Frame* frame);
  // What a name stands for: a definition's parameter may have its term from where the definition is used.
  static const Slot& Named(const Frame* frame, size_t slot);
  Slot OfExpression(const Expression& expression, Frame* frame);
  bool BuildGhost(const Expression& expression, Frame* frame, Slot* result);
  // Gives a definition's parameter its term, which must then fit what the caller wrote there.
  bool Deliver(Frame* frame, size_t slot, const Slot& value);
  bool DeliverTo(const Pattern& pattern, Frame* frame, const Slot& value);
  static void FillParameter(const Result& value, Parameter* parameter);
  int AddNode(GraphNode node, size_t outputs);
  // What hints build with: a node with a new value, and one that computes a value which nothing computed yet.
  int Make(const std::string& op, const std::vector<int>& inputs, std::vector<Parameter> parameters = {});
  GraphNode* Define(const std::vector<int>& outputs, const std::string& op, const std::vector<int>& inputs,
                    std::vector<Parameter> parameters = {});
  int NewConstant(const std::string& name);
  // The node that computes a value; nullptr for one that is absent or a leaf.
  GraphNode* Producer(int value);
  bool IsLeaf(int value) const { return values_[static_cast<size_t>(value)].node == kUnknown; }
  // `parts` as blocks of the last axis of `whole` in their order, or as every so many channels of it.
  void CutInto(int whole, const std::vector<int>& parts, bool strided);
  std::vector<int> Cut(int whole, int count, bool strided);
  int Negative(int value);
  int NewTarget();
  // What an equality wants this call to give.
  std::optional<Result> Wanted(const PendingCondition& pending, const Expression& call);
  // A library rule that makes this operator, so that its own pattern can stand here.
  bool Makes(const Rule& rule, const Pattern& pattern, const Expression** emission);
  bool BuildOperator(const Pattern& pattern, Frame* frame, const MatchStatement* line, Slot* result);
  bool BuildAttributes(const Pattern& pattern, Frame* frame, GraphNode* node);
  // An attribute that the rule reads and does not prescribe.
  void Sample(const Schema& schema, Parameter* parameter, Slot* bound);
  // The node that an emission writes for a name, where it is not the last one.
  static const Expression* Emitted(const Rule& rule, const Expression& name);
  // A node that an emission writes, where a line of the rule wants that very operator: s = Add (a, b).
  bool DeliverNode(const Pattern& pattern, Frame* frame, const Slot& value, const Expression& node, Frame* inner);
  // What gives its first operand in the graphs made here, and what gives the value that its operands are cut
  // from.
  static bool GivesOperand(const Expression* call);
  static bool GivesWhole(const Expression* call);
  // The call that a rule binds a name to.
  static const Expression* LetCall(const Rule& rule, int slot);
  bool BuildMade(const Pattern& pattern, Frame* frame, const Rule& rule, const Expression& emission, const std::string& path,
                 Slot* result);

  // --- expressions -------------------------------------------------------------------------------------
  int ValueOf(const Expression& expression, Frame* frame);
  static bool Calls(const Expression& expression, std::string_view name);
  // value (u): u is a constant number.
  void NoteScalars(const Expression& expression, Frame* frame);
  std::optional<Result> Evaluate(const Slot& slot);
  std::optional<Result> Evaluate(const Expression& expression, Frame* frame);
  std::optional<Result> EvaluateCall(const Expression& call, Frame* frame);
  // Of functions over several arguments; `value`: the first one, where it is a value.
  std::optional<Result> EvaluateArithmetic(const Expression& call, Frame* frame, int value);
  // Axes of a value of a rank, counted from the front, in order; none where one is beyond the rank.
  std::optional<std::vector<int64_t>> AxesOf(const Expression& expression, Frame* frame, size_t rank);
  // The number of a constant that the rule reads: small where something is added, a factor elsewhere.
  double NumberOf(int value);

  // --- dims --------------------------------------------------------------------------------------------
  int NewDim(int64_t number = -1);
  int Root(int dim) const;
  int64_t NumberOfDim(int dim) const { return dims_[static_cast<size_t>(Root(dim))].number; }
  bool Join(int a, int b);
  bool Assign(int dim, int64_t number);
  bool SetShape(int value, const std::vector<int>& dims);
  bool Shaped(int value) const { return value != kUnknown && values_[static_cast<size_t>(value)].shaped; }
  std::vector<int> DimsOf(int value) const { return values_[static_cast<size_t>(value)].dims; }
  // An element of a shape list as a dim.
  int DimOf(const Expression& element, Frame* frame);
  // shape (x) = [..., D]; waits for x's rank where there is an ellipsis, unless `force`.
  bool ShapeCondition(PendingCondition* pending, bool force);
  // The largest rank among what an elementwise operator combines to a value, 0 where none is known.
  size_t RankOf(int value) const;
  // A value of the rule that must have a shape of the same description.
  int Alike(const PendingCondition& pending, const Expression& list);
  static bool IsShapeCondition(const Condition& condition);
  bool Shape();
  bool Guess();
  // No condition speaks of the value's shape any more.
  bool Waits(int value);

  // --- numbers for dims --------------------------------------------------------------------------------
  // Makes `expression` equal `target` where one name in it has no number yet. Sets *moved.
  bool Solve(const Expression& expression, Frame* frame, double target, bool* moved);
  bool Solve(Slot* slot, double target, bool* moved);
  // left = right * factor, products of dims.
  bool SolveProduct(const std::vector<int>& left, const std::vector<int>& right, double factor, bool* moved);
  bool Number();
  void LockNames(const Expression& expression, Frame* frame);
  // Dims that a function reads as numbers: number (product (shape (x))), size (x, axes), dim (x, i).
  void LockCalls(const Expression& expression, Frame* frame, bool all);
  // One number, where a result is one.
  static std::optional<double> OneNumber(const std::optional<Result>& result);
  // What an equality says about the side that is not known yet.
  bool SolveEqualities(bool* moved);
  bool TryNumbers();

  // --- types -------------------------------------------------------------------------------------------
  int TypeRoot(int value) const;
  bool JoinTypes(int a, int b);
  bool SetType(int value, DataType type);
  bool Type();
  // Numbers as the type of the constant keeps them.
  bool Round();

  // --- conditions --------------------------------------------------------------------------------------
  // What only a comparison of numbers says is checked, what only the matcher knows is left to it.
  bool CheckConditions();
  bool ByFunction(PendingCondition* pending);
  bool ByFunction(PendingCondition* pending, const Expression& expression);
  std::optional<Specimen> Write(Frame* frame);
  struct Dimension {
    int parent = 0;
    int64_t number = -1;
    bool locked = false;  // in an equation: its number may not change from run to run
  };
  struct ProductEquation {
    std::vector<int> left;
    std::vector<int> right;
    double factor = 1;
  };
  friend class Relations;
  friend class Writer;
  friend struct FunctionHint;
  const RuleSet& library_;
  Random& random_;
  const bool islands_ = random_.Chance(25);  // whether operands may stand in an island of a wider type
  Coverage& coverage_;
  int opset_;
  DataType type_;
  std::string failure_;
  std::deque<Frame> frames_;
  std::deque<GraphNode> nodes_;
  std::vector<GraphValue> values_;
  std::vector<int> types_;
  std::vector<DataType> known_types_;
  std::vector<Dimension> dims_;
  std::vector<PendingCondition> conditions_;
  std::vector<std::pair<Slot, Slot>> equal_;
  std::vector<ProductEquation> equations_;
  std::vector<std::pair<int, int>> same_shapes_;
  std::vector<int> rows_;      // of a rank above 1
  std::vector<int> channels_;  // whose last axis is more than one channel: of one, halves and pairs are the
                               // same and norms nothing
  std::vector<std::pair<std::vector<int>, int>> sums_;
  std::set<const GraphNode*> equations_of_;
  std::set<std::pair<const PendingCondition*, const Expression*>> hinted_;
  std::map<std::pair<const Expression*, Frame*>, Result> called_;  // what calls give, where a hint decided it
  std::vector<std::pair<std::string, int>> choices_;
  std::vector<const Rule*> stack_;
  int depth_ = 0;
  bool changed_ = false;
};

}  // namespace ascend_fuse::backwards
