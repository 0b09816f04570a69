#include "patterns/language/rule_parser.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "absl/container/node_hash_set.h"
#include "fmt/format.h"
#include "ir/text/lexer.h"

namespace ascend_fuse {

std::string SourcePosition::ToString() const { return fmt::format("{}:{}:{}", file, line, column); }

namespace {

// The comment block right above `line` (from 1): a rule's comment is its documentation.
std::string CommentAbove(const std::vector<std::string_view>& lines, uint32_t line) {
  std::vector<std::string_view> block;
  for (size_t at = line - 1; at > 0; --at) {
    std::string_view text = lines[at - 1];
    const size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos || text[first] != '#') break;
    text.remove_prefix(first + 1);
    if (!text.empty() && text[0] == ' ') text.remove_prefix(1);
    block.push_back(text);
  }
  std::string comment;
  for (auto text = block.rbegin(); text != block.rend(); ++text) {
    if (!comment.empty()) comment += '\n';
    comment += *text;
  }
  return comment;
}

// Recursive descent; `Parser::error_` holds the first error and everything after it is skipped.
class Parser {
 public:
  Parser(std::string_view file, std::string_view text, const std::vector<Token>& tokens)
      : file_(file), text_(text), tokens_(tokens) {
    size_t start = 0;
    while (true) {
      const size_t end = text_.find('\n', start);
      lines_.push_back(text_.substr(start, end == std::string_view::npos ? end : end - start));
      if (end == std::string_view::npos) break;
      start = end + 1;
    }
  }

  absl::StatusOr<RuleText> Run() {
    RuleText parsed;
    parsed.file = file_;
    while (ok() && Current().kind != TokenKind::kEnd) {
      if (AcceptName("def")) {
        ParseDefinitionOrFormula(&parsed);
      } else if (AcceptName("table")) {
        parsed.vocabulary.tables.push_back(ParseTable());
      } else if (AcceptName("rule")) {
        parsed.rules.push_back(ParseRule());
      } else {
        Fail("'def', 'table' or 'rule'");
      }
    }
    if (!ok()) return error_;
    return parsed;
  }

 private:
  bool ok() const { return error_.ok(); }
  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead(size_t count) const { return tokens_[std::min(at_ + count, tokens_.size() - 1)]; }
  const Token& Previous() const { return tokens_[at_ - 1]; }
  void Step() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  SourcePosition PositionOf(const Token& token) const {
    return {file_, static_cast<int>(token.line), static_cast<int>(token.column)};
  }
  bool AtSymbol(std::string_view text) const { return Current().Is(text); }
  bool AtName(std::string_view text) const { return Current().IsWord(text); }
  bool AtNumber() const { return Current().kind == TokenKind::kInteger || Current().kind == TokenKind::kFloat; }
  bool AcceptSymbol(std::string_view text) {
    if (!ok() || !AtSymbol(text)) return false;
    Step();
    return true;
  }
  bool AcceptName(std::string_view text) {
    if (!ok() || !AtName(text)) return false;
    Step();
    return true;
  }
  void Fail(std::string_view expected) {
    if (!ok()) return;
    const Token& token = Current();
    const std::string found = token.kind == TokenKind::kEnd ? "the end of the file" : fmt::format("'{}'", token.text);
    error_ = absl::InvalidArgumentError(fmt::format("{}: expected {}, found {}", PositionOf(token).ToString(), expected, found));
  }
  void ExpectSymbol(std::string_view text) {
    if (!AcceptSymbol(text)) Fail(fmt::format("'{}'", text));
  }
  std::string ExpectName(std::string_view what) {
    if (!ok() || Current().kind != TokenKind::kIdentifier) {
      Fail(what);
      return {};
    }
    std::string text(Current().text);
    Step();
    return text;
  }

  // The source between two tokens, in one line, for messages.
  std::string SourceBetween(size_t first, size_t last) const {
    // Tokens are views of the text.
    auto offset = [&](const Token& token) { return static_cast<size_t>(token.text.data() - text_.data()); };
    const size_t begin = offset(tokens_[first]);
    const size_t end = last < tokens_.size() && tokens_[last].kind != TokenKind::kEnd ? offset(tokens_[last]) : text_.size();
    std::string_view raw = text_.substr(begin, end - begin);
    std::string line;
    bool comment = false;
    for (char c : raw) {
      if (c == '#') comment = true;
      if (c == '\n') comment = false;
      if (comment) continue;
      if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        if (!line.empty() && line.back() != ' ') line += ' ';
      } else {
        line += c;
      }
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
  }

  std::vector<Parameter> ParseParameters() {
    std::vector<Parameter> parameters;
    ExpectSymbol("(");
    while (ok() && !AtSymbol(")")) {
      Parameter parameter;
      parameter.name = ExpectName("a parameter name");
      if (AcceptSymbol("?")) parameter.optional = true;
      if (AcceptSymbol("=")) {
        parameter.has_default = true;
        parameter.default_value = ParseExpression();
      }
      parameters.push_back(std::move(parameter));
      if (!AcceptSymbol(",")) break;
    }
    ExpectSymbol(")");
    return parameters;
  }

  void ParseDefinitionOrFormula(RuleText* parsed) {
    Definition definition;
    definition.doc = CommentAbove(lines_, Previous().line);
    definition.position = PositionOf(Current());
    definition.name = ExpectName("the definition's name");
    definition.parameters = ParseParameters();
    if (AcceptSymbol("=")) {
      parsed->vocabulary.formulas.push_back({std::move(definition.name), std::move(definition.doc), definition.position,
                                             std::move(definition.parameters), ParseExpression()});
      return;
    }
    while (AcceptSymbol("|")) {
      Definition::Alternative alternative;
      alternative.pattern = ParsePrimary();
      while (ok() && (AtName("let") || AtName("where"))) {
        const bool let = AtName("let");
        Step();
        do {
          alternative.conditions.push_back(ParseCondition(let));
        } while (AcceptSymbol(","));
      }
      definition.alternatives.push_back(std::move(alternative));
    }
    if (definition.alternatives.empty()) Fail("'|' and an alternative, or '=' and an expression");
    parsed->definitions.push_back(std::move(definition));
  }

  WordTable ParseTable() {
    WordTable table;
    table.doc = CommentAbove(lines_, Previous().line);
    table.position = PositionOf(Current());
    table.name = ExpectName("the table's name");
    ExpectSymbol("{");
    while (ok() && !AtSymbol("}")) {
      const Token word = Current();
      if (word.kind != TokenKind::kString) {
        Fail("a word in quotes");
        break;
      }
      Step();
      ExpectSymbol("-");
      ExpectSymbol(">");
      const Token meaning = Current();
      if (!AtNumber() && !AtSymbol("-") && meaning.kind != TokenKind::kString) {
        Fail("a word in quotes or a number");
        break;
      }
      std::string key = Unquote(word);
      if (std::any_of(table.words.begin(), table.words.end(), [&](const auto& row) { return row.first == key; })) {
        error_ = absl::InvalidArgumentError(fmt::format("{}: the table has {} twice", PositionOf(word).ToString(), word.text));
        break;
      }
      table.words.emplace_back(std::move(key), ParseUnary());
      if (!AcceptSymbol(",")) break;
    }
    ExpectSymbol("}");
    return table;
  }

  Rule ParseRule() {
    Rule rule;
    rule.doc = CommentAbove(lines_, Previous().line);
    rule.position = PositionOf(Current());
    rule.name = ExpectName("the rule's name");
    rule.kind = rule.name;
    rule.precision = "exact";
    if (AcceptSymbol("<")) ParseAnnotations(&rule);
    rule.inputs = ParseParameters();
    ExpectSymbol("=>");
    ExpectSymbol("(");
    while (ok() && !AtSymbol(")")) {
      rule.outputs.push_back(ExpectName("an output's name"));
      if (!AcceptSymbol(",")) break;
    }
    ExpectSymbol(")");
    if (!AcceptName("match")) Fail("'match'");
    ExpectSymbol("{");
    while (ok() && !AtSymbol("}")) rule.match.push_back(ParseMatchStatement());
    ExpectSymbol("}");
    if (AcceptName("where")) {
      ExpectSymbol("{");
      while (ok() && !AtSymbol("}")) {
        const bool let = AcceptName("let");
        rule.where.push_back(ParseCondition(let));
        AcceptSymbol(",");
      }
      ExpectSymbol("}");
    }
    if (AcceptName("emit")) {
      ExpectSymbol("{");
      while (ok() && !AtSymbol("}")) rule.emit.push_back(ParseEmitStatement());
      ExpectSymbol("}");
    }
    return rule;
  }

  void ParseAnnotations(Rule* rule) {
    while (ok() && !AtSymbol(">")) {
      const Token key_token = Current();
      const std::string key = ExpectName("an annotation's name");
      if (key == "no_ge_pass") {
        rule->no_ge_pass = true;
      } else if (key == "yields_to_ge") {
        rule->yields_to_ge = true;
      } else if (key == "differs") {
        rule->differs = true;
      } else {
        ExpectSymbol("=");
        const Token value_token = Current();
        if (key == "fixes") {
          rule->fixes = ParseCode();
        } else if (key == "assumes") {
          rule->assumes = ParseSentence();
        } else {
          ParseAnnotation(key, key_token, ExpectName("the annotation's value"), PositionOf(value_token), rule);
        }
      }
      if (!AcceptSymbol(",")) break;
    }
    ExpectSymbol(">");
  }

  // Words with hyphens between them.
  std::string ParseCode() {
    std::string code = ExpectName("a code");
    while (ok() && AcceptSymbol("-")) code += "-" + ExpectName("the rest of the code");
    return code;
  }

  std::string ParseSentence() {
    const Token token = Current();
    if (token.kind != TokenKind::kString) {
      Fail("a sentence in quotes");
      return {};
    }
    Step();
    return Unquote(token);
  }

  void ParseAnnotation(const std::string& key, const Token& key_token, std::string value, SourcePosition position, Rule* rule) {
    if (!ok()) return;
    if (key == "kind") {
      rule->kind = std::move(value);
      rule->kind_position = position;
    } else if (key == "precision") {
      if (value != "exact" && value != "reassociated" && value != "approximate") {
        error_ = absl::InvalidArgumentError(
            fmt::format("{}: expected a precision (exact, reassociated or approximate), found '{}'", position.ToString(), value));
      }
      rule->precision = std::move(value);
    } else if (key == "ge_construct") {
      rule->ge_construct = std::move(value);
      rule->ge_construct_position = position;
    } else if (key == "joined_by_ge") {
      rule->joined_by_ge = std::move(value);
      rule->joined_by_ge_position = position;
    } else if (key == "preferred_over") {
      rule->preferred_over = std::move(value);
    } else {
      error_ = absl::InvalidArgumentError(
          fmt::format("{}: unknown annotation '{}'; known are kind, precision, ge_construct, "
                      "joined_by_ge, yields_to_ge, no_ge_pass, preferred_over, fixes, assumes, differs",
                      PositionOf(key_token).ToString(), key));
    }
  }

  std::vector<std::string> ParseNames() {
    std::vector<std::string> names;
    do {
      names.push_back(ExpectName("an output's name"));
    } while (AcceptSymbol(","));
    ExpectSymbol("=");
    return names;
  }

  MatchStatement ParseMatchStatement() {
    MatchStatement statement;
    statement.position = PositionOf(Current());
    statement.names = ParseNames();
    statement.pattern = ParsePattern();
    return statement;
  }

  EmitStatement ParseEmitStatement() {
    EmitStatement statement;
    statement.position = PositionOf(Current());
    statement.names = ParseNames();
    statement.value = ParseExpression();
    return statement;
  }

  // pattern | pattern ...
  PatternPointer ParsePattern() {
    PatternPointer first = ParsePrimary();
    if (!AtSymbol("|")) return first;
    PatternPointer alternatives(std::make_unique<Pattern>());
    alternatives->kind = Pattern::Kind::kAlternatives;
    alternatives->position = first->position;
    alternatives->arguments.push_back(std::move(first));
    while (AcceptSymbol("|")) alternatives->arguments.push_back(ParsePrimary());
    return alternatives;
  }

  PatternPointer ParsePrimary() {
    PatternPointer pattern(std::make_unique<Pattern>());
    pattern->position = PositionOf(Current());
    if (++depth_ > 100) Fail("fewer nested patterns (at most 100)");
    if (ok() && Current().kind == TokenKind::kIdentifier) {
      pattern->name = Current().text;
      Step();
      while (ok() && AtSymbol(".") && Ahead(1).kind == TokenKind::kIdentifier) {
        Step();
        if (!pattern->domain.empty()) pattern->domain += '.';
        pattern->domain += pattern->name;
        pattern->name = ExpectName("an operator's name");
      }
      if (AcceptSymbol("?")) pattern->optional = true;
      bool attributes = false;
      if (AcceptSymbol("<")) {
        attributes = true;
        ParseAttributePatterns(pattern.get());
      }
      if (AcceptSymbol("(")) {
        // The checker tells operators from definitions; both are written alike.
        pattern->kind = Pattern::Kind::kOperator;
        while (ok() && !AtSymbol(")")) {
          pattern->arguments.push_back(ParsePattern());
          if (!AcceptSymbol(",")) break;
        }
        ExpectSymbol(")");
      } else if (attributes || pattern->optional || !pattern->domain.empty()) {
        Fail("'('");
      } else {
        pattern->kind = pattern->name == "_" ? Pattern::Kind::kWildcard : Pattern::Kind::kVariable;
      }
    } else if (ok() && Current().kind == TokenKind::kString && Unquote(Current()).empty()) {
      pattern->kind = Pattern::Kind::kAbsent;
      Step();
    } else if (ok() && (AtNumber() || AtSymbol("-"))) {
      const bool negative = AcceptSymbol("-");
      if (!AtNumber()) Fail("a number");
      pattern->kind = Pattern::Kind::kLiteral;
      pattern->number = negative ? -NumberOf(Current()) : NumberOf(Current());
      Step();
    } else if (AcceptSymbol("(")) {
      pattern = ParsePattern();
      ExpectSymbol(")");
    } else {
      Fail("a pattern");
    }
    --depth_;
    return pattern;
  }

  void ParseAttributePatterns(Pattern* pattern) {
    while (ok() && !AtSymbol(">")) {
      AttributePattern attribute;
      attribute.position = PositionOf(Current());
      attribute.name = ExpectName("an attribute's name");
      if (AcceptSymbol("=")) {
        attribute.value = ParseExpression();
      } else {  // <scale> is short for <scale = scale>
        attribute.value.kind = Expression::Kind::kName;
        attribute.value.text = attribute.name;
        attribute.value.position = attribute.position;
      }
      pattern->attributes.push_back(std::move(attribute));
      if (!AcceptSymbol(",")) break;
    }
    ExpectSymbol(">");
  }

  Condition ParseCondition(bool let) {
    Condition condition;
    const size_t first = at_;
    condition.position = PositionOf(Current());
    condition.left = ParseExpression();
    static const std::pair<std::string_view, Condition::Relation> kRelations[] = {
        {"=", Condition::Relation::kEqual},      {"!=", Condition::Relation::kNotEqual},
        {"<=", Condition::Relation::kLessEqual}, {">=", Condition::Relation::kGreaterEqual},
        {"<", Condition::Relation::kLess},       {">", Condition::Relation::kGreater},
    };
    for (const auto& [symbol, relation] : kRelations) {
      if (!AcceptSymbol(symbol)) continue;
      condition.relation = relation;
      condition.right = ParseExpression();
      break;
    }
    if (let) {
      if (condition.relation != Condition::Relation::kEqual || condition.left.kind != Expression::Kind::kName) {
        Fail("let name = expression");
      }
      condition.relation = Condition::Relation::kLet;
    }
    condition.source = SourceBetween(first, at_);
    if (!condition.source.empty() && condition.source.back() == ',') condition.source.pop_back();
    return condition;
  }

  Expression ParseExpression() { return ParseSum(); }

  Expression Binary(Expression left, std::string op, Expression right) {
    Expression binary;
    binary.kind = Expression::Kind::kBinary;
    binary.position = left.position;
    binary.text = std::move(op);
    binary.arguments.push_back(std::move(left));
    binary.arguments.push_back(std::move(right));
    return binary;
  }

  Expression ParseSum() {
    Expression left = ParseProduct();
    while (ok() && (AtSymbol("+") || AtSymbol("-"))) {
      std::string op(Current().text);
      Step();
      left = Binary(std::move(left), std::move(op), ParseProduct());
    }
    return left;
  }

  Expression ParseProduct() {
    Expression left = ParseUnary();
    while (ok() && (AtSymbol("*") || AtSymbol("/"))) {
      std::string op(Current().text);
      Step();
      left = Binary(std::move(left), std::move(op), ParseUnary());
    }
    return left;
  }

  Expression ParseUnary() {
    if (!AtSymbol("-")) return ParseAtom();
    Expression unary;
    unary.position = PositionOf(Current());
    Step();
    unary.kind = Expression::Kind::kUnary;
    if (++depth_ > 100) Fail("a less deeply nested expression (at most 100)");
    if (!ok()) return unary;
    unary.arguments.push_back(ParseUnary());
    --depth_;
    if (unary.arguments[0].kind == Expression::Kind::kNumber) {
      Expression number = unary.arguments[0];
      number.number = -number.number;
      number.position = unary.position;
      return number;
    }
    return unary;
  }

  Expression ParseAtom() {
    Expression atom;
    atom.position = PositionOf(Current());
    if (++depth_ > 100) Fail("a less deeply nested expression (at most 100)");
    if (!ok()) return atom;
    const Token& token = Current();
    if (AtNumber()) {
      atom.kind = Expression::Kind::kNumber;
      atom.number = NumberOf(token);
      atom.is_integer = token.kind == TokenKind::kInteger;
      atom.text = std::string(token.text);
      Step();
    } else if (token.kind == TokenKind::kString) {
      atom.kind = Expression::Kind::kString;
      atom.text = Unquote(token);
      Step();
    } else if (AcceptSymbol("...")) {
      atom.kind = Expression::Kind::kEllipsis;
    } else if (AcceptSymbol("[")) {
      atom.kind = Expression::Kind::kList;
      while (ok() && !AtSymbol("]")) {
        atom.arguments.push_back(ParseExpression());
        if (!AcceptSymbol(",")) break;
      }
      ExpectSymbol("]");
    } else if (AcceptSymbol("(")) {
      atom = ParseExpression();
      ExpectSymbol(")");
    } else if (token.kind == TokenKind::kIdentifier) {
      ParseNamedAtom(&atom);
    } else {
      Fail("an expression");
    }
    --depth_;
    return atom;
  }

  void ParseNamedAtom(Expression* atom) {
    atom->text = Current().text;
    Step();
    if (atom->text == "_") {
      atom->kind = Expression::Kind::kWildcard;
      return;
    }
    while (ok() && AtSymbol(".") && Ahead(1).kind == TokenKind::kIdentifier) {
      Step();
      if (!atom->domain.empty()) atom->domain += '.';
      atom->domain += atom->text;
      atom->text = ExpectName("an operator's name");
    }
    if (AtSymbol("?") && (Ahead(1).Is("(") || Ahead(1).Is("<"))) {
      atom->optional = true;
      Step();
    }
    // Operators start with a capital letter, C++ functions do not. "D < 5" is a comparison, "Op <a = 1>" is
    // an operator with attributes.
    const bool capital = std::isupper(static_cast<unsigned char>(atom->text[0])) != 0;
    const bool attributes = capital && AtSymbol("<") && Ahead(1).kind == TokenKind::kIdentifier &&
                            (Ahead(2).Is("=") || Ahead(2).Is(",") || Ahead(2).Is(">"));
    if (attributes || (capital && AtSymbol("(")) || !atom->domain.empty()) {
      atom->kind = Expression::Kind::kOperator;
      if (attributes) {
        Step();
        while (ok() && !AtSymbol(">")) {
          Expression::NamedExpression attribute;
          attribute.value.position = PositionOf(Current());
          attribute.name = ExpectName("an attribute's name");
          if (AcceptSymbol("=")) {
            attribute.value = ParseExpression();
          } else {
            attribute.value.kind = Expression::Kind::kName;
            attribute.value.text = attribute.name;
          }
          atom->attributes.push_back(std::move(attribute));
          if (!AcceptSymbol(",")) break;
        }
        ExpectSymbol(">");
      }
      ParseArguments(atom);
    } else if (AtSymbol("(")) {
      atom->kind = Expression::Kind::kCall;
      ParseArguments(atom);
    } else {
      atom->kind = Expression::Kind::kName;
    }
  }

  void ParseArguments(Expression* atom) {
    ExpectSymbol("(");
    while (ok() && !AtSymbol(")")) {
      atom->arguments.push_back(ParseExpression());
      if (!AcceptSymbol(",")) break;
    }
    ExpectSymbol(")");
  }

  static double NumberOf(const Token& token) {
    double number = 0;
    const auto read = std::from_chars(token.text.data(), token.text.data() + token.text.size(), number);
    // Beyond the range of doubles it is infinite or zero.
    return read.ec == std::errc() ? number : std::strtod(std::string(token.text).c_str(), nullptr);
  }

  std::string_view file_;  // interned
  std::string_view text_;
  const std::vector<Token>& tokens_;
  std::vector<std::string_view> lines_;
  size_t at_ = 0;
  int depth_ = 0;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<RuleText> ParseRules(std::string_view file, std::string_view text) {
  const absl::StatusOr<std::vector<Token>> tokens = Lex(text);
  if (!tokens.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}:{}", file, std::string(tokens.status().message())));
  }
  return Parser(InternFileName(file), text, *tokens).Run();
}

std::string_view InternFileName(std::string_view name) {
  static auto* const kMutex = new std::mutex;
  static auto* const kNames = new absl::node_hash_set<std::string>;
  const std::lock_guard<std::mutex> lock(*kMutex);
  return *kNames->emplace(name).first;
}

}  // namespace ascend_fuse
