// Rules as data: an immutable tree that the matcher, the checker, the explainer and the emitter all read.
// docs/rules.md describes the text form.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ascend_fuse {

// Where something is written: "attention.rule:16:7". The file's name is kept until the process ends
// (InternFileName): every part of a rule has a position, and copies of the name would be most of what a rule
// costs to load.
struct SourcePosition {
  std::string_view file;
  int line = 0;
  int column = 0;
  std::string ToString() const;
};

// A value computed from what was matched: shape (x), a * b, [..., D], "tanh", 1e-6.
struct Expression {
  enum class Kind {
    kNumber,    // number
    kString,    // text
    kName,      // text: a variable, a dimension letter, a data type or a keyword value
    kWildcard,  // _
    kEllipsis,  // ... (first element of a shape list)
    kList,      // arguments
    kCall,      // text (arguments): a C++ function of patterns/functions
    kUnary,     // - argument
    kBinary,    // text is one of + - * / ; two arguments
    kOperator,  // text (arguments) <attributes>: builds a node; in emit and let only
  };
  struct NamedExpression;
  Kind kind = Kind::kNumber;
  SourcePosition position;
  double number = 0;
  bool is_integer = false;
  std::string text;
  std::string domain;  // kOperator
  int slot = -1;       // kName: its place in the scope, filled by the checker; -1 for keywords
  int function = -1;   // kCall: index into the function table, filled by the checker
  // kCall, kOperator: written f? (x, ...). Of a function: no value where x is absent. Of an operator: where
  // one of two operands is absent the other one, and no value where all are.
  bool optional = false;
  std::vector<Expression> arguments;
  std::vector<NamedExpression> attributes;  // kOperator
};
struct Expression::NamedExpression {
  std::string name;
  Expression value;
};

// One line of `where`, or a `let`.
struct Condition {
  enum class Relation { kHolds, kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kLet };
  Relation relation = Relation::kHolds;
  SourcePosition position;
  Expression left;
  Expression right;    // not for kHolds
  std::string source;  // the text as written, for messages
};

struct Pattern;

// A pattern inside another one; a copy of it is a copy of the whole tree.
class PatternPointer {
 public:
  PatternPointer() = default;
  explicit PatternPointer(std::unique_ptr<Pattern> pattern);
  PatternPointer(const PatternPointer& other);
  PatternPointer(PatternPointer&& other) noexcept;
  PatternPointer& operator=(PatternPointer other) noexcept;
  ~PatternPointer();

  Pattern* get() const { return pattern_.get(); }
  Pattern* operator->() const { return pattern_.get(); }
  Pattern& operator*() const { return *pattern_; }

 private:
  std::unique_ptr<Pattern> pattern_;
};

// <axes = [-1]>, <scale> (binds), <to = _> (anything, also absent).
struct AttributePattern {
  std::string name;
  Expression value;  // a name that is unbound is bound to the attribute's value
  SourcePosition position;
};

struct Pattern {
  enum class Kind {
    kVariable,      // name
    kWildcard,      // _
    kAbsent,        // an input that must not be given: written ""
    kLiteral,       // a constant all of whose elements are `number`
    kOperator,      // domain.name <attributes> (arguments)
    kDefinition,    // name (arguments), name? (arguments)
    kAlternatives,  // arguments, tried in order
  };
  Kind kind = Kind::kWildcard;
  SourcePosition position;
  std::string name;
  std::string domain;
  double number = 0;
  bool optional = false;         // f? (x, ...): f (x, ...) or just x
  int definition = -1;           // kDefinition: index into RuleSet::definitions, filled by the checker
  int slot = -1;                 // kVariable: its place in the scope, filled by the checker
  uint16_t operator_number = 0;  // kOperator: RuleSet::OperatorNumber, filled by the checker
  std::vector<AttributePattern> attributes;
  std::vector<PatternPointer> arguments;
};

inline PatternPointer::PatternPointer(std::unique_ptr<Pattern> pattern) : pattern_(std::move(pattern)) {}
inline PatternPointer::PatternPointer(const PatternPointer& other)
    : pattern_(other.pattern_ == nullptr ? nullptr : std::make_unique<Pattern>(*other)) {}
inline PatternPointer::PatternPointer(PatternPointer&& other) noexcept = default;
inline PatternPointer& PatternPointer::operator=(PatternPointer other) noexcept {
  pattern_.swap(other.pattern_);
  return *this;
}
inline PatternPointer::~PatternPointer() = default;

// The names of a rule or definition, numbered: what a Frame of the matcher holds one term each for.
// A definition's parameters come first, in order.
struct Scope {
  std::vector<std::string> names;
  // For a rule: the match statement that says what the name is, and which output of it; -1 if none.
  std::vector<int> statement;
  std::vector<int> output;
  int Find(const std::string& name) const {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return static_cast<int>(i);
    }
    return -1;
  }
  int Add(const std::string& name) {
    const int known = Find(name);
    if (known >= 0) return known;
    names.push_back(name);
    statement.push_back(-1);
    output.push_back(0);
    return static_cast<int>(names.size()) - 1;
  }
};

struct Parameter {
  std::string name;
  bool optional = false;     // name?: a rule's input that the match may leave unbound
  bool has_default = false;  // name = expression
  Expression default_value;
};

// def name (parameters) | pattern let ... where ... | ...
struct Definition {
  struct Alternative {
    PatternPointer pattern;
    std::vector<Condition> conditions;  // let and where lines in the order written
  };
  std::string name;
  std::string doc;
  SourcePosition position;
  std::vector<Parameter> parameters;
  std::vector<Alternative> alternatives;
  Scope scope;           // the parameters first
  int result_slot = -1;  // the name `result`: the value that the definition matched
};

// def name (parameters) = expression: what emissions write in one place and use by name. It is written out
// where it is used when the rules are loaded (patterns/language/formula.h): the matcher never sees it.
struct Formula {
  std::string name;
  std::string doc;
  SourcePosition position;
  std::vector<Parameter> parameters;
  Expression value;
};

// table name { "word" -> "other", ... }: a function from text to text or numbers, written out like a formula.
struct WordTable {
  std::string name;
  std::string doc;
  SourcePosition position;
  std::vector<std::pair<std::string, Expression>> words;
};

// a, b = pattern
struct MatchStatement {
  std::vector<std::string> names;  // "_" for an output that does not matter
  PatternPointer pattern;
  SourcePosition position;
};

// y, _ = npu.NPURmsNorm <epsilon = epsilon> (x, gain)
struct EmitStatement {
  std::vector<std::string> names;
  Expression value;  // kOperator or a name
  SourcePosition position;
};

struct Rule {
  std::string name;
  std::string doc;  // the comment above the rule; its first line is the catalogue entry
  SourcePosition position;
  std::string kind;              // site kind; default the rule's name
  std::string precision;         // exact | reassociated | approximate
  std::string ge_construct;      // a construct: where GE builds it itself, the rule is not used
  std::string joined_by_ge;      // a construct: the emission is the form that GE makes it of; not used where no pass of GE does
  bool yields_to_ge = false;     // what it emits is worse than what a pass of GE makes of a site
  bool no_ge_pass = false;       // GE has a pass for constructs of this kind, and it does not find this spelling
  std::string preferred_over;    // the rule that must be tried after this one
  std::string fixes;             // the code of the form that an adapter writes anew (patterns/targets)
  std::string assumes;           // what the fusion takes for granted, a sentence after "that"; empty: nothing
  bool differs = false;          // what it makes is another result, of another shape even: what ATC makes of a node
  SourcePosition kind_position;  // of the annotations, where they are written
  SourcePosition ge_construct_position;
  SourcePosition joined_by_ge_position;
  std::vector<Parameter> inputs;
  std::vector<std::string> outputs;
  std::vector<MatchStatement> match;
  std::vector<Condition> where;
  std::vector<EmitStatement> emit;  // empty: the rule observes and changes nothing
  Scope scope;

  // Filled when the rule set is put together.
  int place = -1;                  // among all rules in the order written, a user's last
  int size = -1;                   // mandatory operators of the largest alternative; larger rules are tried first
  std::vector<std::string> nodes;  // the Ascend nodes it emits ("npu.NPUSwiGlu"), in the order written
  std::vector<std::string> roots;  // RuleSet::RootOperators
  uint32_t root_form = 0;          // Prefilter::FormId of the first output
};

// What conditions and emissions of rules can be written with.
struct RuleVocabulary {
  std::vector<Formula> formulas;
  std::vector<WordTable> tables;
};

// What one file holds, in the order written.
struct RuleText {
  std::string_view file;  // as in SourcePosition
  std::vector<Definition> definitions;
  RuleVocabulary vocabulary;
  std::vector<Rule> rules;
};

// True when `expression` makes a node of `domain`, itself or inside.
bool Mentions(const Expression& expression, std::string_view domain);

}  // namespace ascend_fuse
