#include "patterns/rule_parser.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "fmt/format.h"

namespace ascend_fuse {

std::string SourcePosition::ToString() const { return fmt::format("{}:{}:{}", file, line, column); }

namespace {

struct Token {
  enum class Kind { kEnd, kName, kNumber, kString, kSymbol };
  Kind kind = Kind::kEnd;
  std::string text;
  double number = 0;
  bool is_integer = false;
  SourcePosition position;
  std::string comment;      // the comment block that ends on the line above
  bool line_start = false;  // first token of its line
};

// Splits rule text into tokens. Comments start with # and reach to the end of the line; the block of comment
// lines right above a token is kept with it, because a rule's comment is its documentation.
class Lexer {
 public:
  Lexer(const std::string& file, std::string_view text) : file_(file), text_(text) {}

  absl::Status Run(std::vector<Token>* tokens) {
    std::string comment;
    int comment_line = -2;
    int last_line = 0;
    while (true) {
      SkipSpace();
      if (at_ < text_.size() && text_[at_] == '#') {
        size_t end = text_.find('\n', at_);
        if (end == std::string_view::npos) end = text_.size();
        std::string_view line = text_.substr(at_ + 1, end - at_ - 1);
        if (!line.empty() && line[0] == ' ') line.remove_prefix(1);
        if (line_ != last_line) {  // a comment behind code documents nothing
          if (comment_line + 1 != line_) comment.clear();
          if (!comment.empty()) comment += '\n';
          comment += line;
          comment_line = line_;
        }
        Advance(end - at_);
        continue;
      }
      Token token;
      token.position = {file_, line_, column_};
      token.line_start = line_ != last_line;
      if (comment_line + 1 == line_) token.comment = std::move(comment);
      comment.clear();
      if (at_ >= text_.size()) {
        tokens->push_back(std::move(token));
        return absl::OkStatus();
      }
      absl::Status status = Next(&token);
      if (!status.ok()) return status;
      last_line = token.position.line;
      tokens->push_back(std::move(token));
    }
  }

 private:
  void Advance(size_t count) {
    for (size_t i = 0; i < count; ++i, ++at_) {
      if (text_[at_] == '\n') {
        ++line_;
        column_ = 1;
      } else {
        ++column_;
      }
    }
  }
  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) Advance(1);
  }
  char Peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  absl::Status Next(Token* token) {
    const char c = text_[at_];
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      size_t length = 1;
      while (std::isalnum(static_cast<unsigned char>(Peek(length))) != 0 || Peek(length) == '_') ++length;
      token->kind = Token::Kind::kName;
      token->text = text_.substr(at_, length);
      Advance(length);
      return absl::OkStatus();
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(Peek(1))) != 0)) {
      size_t length = 0;
      bool integer = true;
      while (true) {
        const char d = Peek(length);
        if (std::isdigit(static_cast<unsigned char>(d)) != 0) {
          ++length;
        } else if (d == '.' || d == 'e' || d == 'E') {
          integer = false;
          ++length;
          if (d != '.' && (Peek(length) == '-' || Peek(length) == '+')) ++length;
        } else {
          break;
        }
      }
      token->kind = Token::Kind::kNumber;
      token->text = text_.substr(at_, length);
      token->number = std::strtod(token->text.c_str(), nullptr);
      token->is_integer = integer;
      Advance(length);
      return absl::OkStatus();
    }
    if (c == '"') {
      size_t length = 1;
      while (Peek(length) != '"') {
        if (Peek(length) == '\0' || Peek(length) == '\n') {
          return absl::InvalidArgumentError(
              fmt::format("{}: this text has no closing quote", token->position.ToString()));
        }
        ++length;
      }
      token->kind = Token::Kind::kString;
      token->text = text_.substr(at_ + 1, length - 1);
      Advance(length + 1);
      return absl::OkStatus();
    }
    static constexpr std::string_view kLong[] = {"...", "=>", "!=", "<=", ">="};
    for (std::string_view symbol : kLong) {
      if (text_.substr(at_, symbol.size()) == symbol) {
        token->kind = Token::Kind::kSymbol;
        token->text = symbol;
        Advance(symbol.size());
        return absl::OkStatus();
      }
    }
    if (std::string_view("()[]{}<>=|?,.+-*/").find(c) != std::string_view::npos) {
      token->kind = Token::Kind::kSymbol;
      token->text = std::string(1, c);
      Advance(1);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        fmt::format("{}: unexpected character '{}'", token->position.ToString(), c));
  }

  std::string file_;
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

// Recursive descent; `Parser::error_` holds the first error and everything after it is skipped.
class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view text) : tokens_(std::move(tokens)), text_(text) {
    size_t start = 0;
    while (start <= text_.size()) {
      lines_.push_back(start);
      const size_t end = text_.find('\n', start);
      if (end == std::string_view::npos) break;
      start = end + 1;
    }
  }

  absl::Status Run(std::vector<Definition>* definitions, std::vector<Rule>* rules) {
    while (ok() && Current().kind != Token::Kind::kEnd) {
      if (AcceptName("def")) {
        definitions->push_back(ParseDefinition());
      } else if (AcceptName("rule")) {
        rules->push_back(ParseRule());
      } else {
        Fail("'def' or 'rule'");
      }
    }
    return error_;
  }

 private:
  bool ok() const { return error_.ok(); }
  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead(size_t count) const { return tokens_[std::min(at_ + count, tokens_.size() - 1)]; }
  const Token& Previous() const { return tokens_[at_ - 1]; }
  void Step() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  static bool IsSymbol(const Token& token, std::string_view text) {
    return token.kind == Token::Kind::kSymbol && token.text == text;
  }
  bool AtSymbol(std::string_view text) const { return IsSymbol(Current(), text); }
  bool AtName(std::string_view text) const {
    return Current().kind == Token::Kind::kName && Current().text == text;
  }
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
    const std::string found = token.kind == Token::Kind::kEnd ? "the end of the file"
                              : token.kind == Token::Kind::kString
                                  ? fmt::format("\"{}\"", token.text)
                                  : fmt::format("'{}'", token.text);
    error_ = absl::InvalidArgumentError(
        fmt::format("{}: expected {}, found {}", token.position.ToString(), expected, found));
  }
  void ExpectSymbol(std::string_view text) {
    if (!AcceptSymbol(text)) Fail(fmt::format("'{}'", text));
  }
  std::string ExpectName(std::string_view what) {
    if (!ok() || Current().kind != Token::Kind::kName) {
      Fail(what);
      return {};
    }
    std::string text = Current().text;
    Step();
    return text;
  }

  // The source between two tokens, in one line, for messages.
  std::string SourceBetween(size_t first, size_t last) const {
    auto offset = [&](const Token& token) { return lines_[token.position.line - 1] + token.position.column - 1; };
    const size_t begin = offset(tokens_[first]);
    size_t end = last < tokens_.size() && tokens_[last].kind != Token::Kind::kEnd ? offset(tokens_[last])
                                                                                  : text_.size();
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

  Definition ParseDefinition() {
    Definition definition;
    definition.doc = Previous().comment;
    definition.position = Current().position;
    definition.name = ExpectName("the definition's name");
    definition.parameters = ParseParameters();
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
    if (definition.alternatives.empty()) Fail("'|' and an alternative");
    return definition;
  }

  Rule ParseRule() {
    Rule rule;
    rule.doc = Previous().comment;
    rule.position = Current().position;
    rule.name = ExpectName("the rule's name");
    rule.kind = rule.name;
    rule.precision = "exact";
    if (AcceptSymbol("<")) {
      while (ok() && !AtSymbol(">")) {
        const Token key_token = Current();
        const std::string key = ExpectName("an annotation's name");
        ExpectSymbol("=");
        std::string value = ExpectName("the annotation's value");
        if (key == "kind") {
          rule.kind = value;
        } else if (key == "precision") {
          rule.precision = value;
        } else if (key == "by_ge") {
          rule.by_ge = value;
        } else if (key == "before") {
          rule.before = value;
        } else if (ok()) {
          error_ = absl::InvalidArgumentError(
              fmt::format("{}: unknown annotation '{}'; known are kind, precision, by_ge, before",
                          key_token.position.ToString(), key));
        }
        if (!AcceptSymbol(",")) break;
      }
      ExpectSymbol(">");
    }
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
    statement.position = Current().position;
    statement.names = ParseNames();
    statement.pattern = ParsePattern();
    return statement;
  }

  EmitStatement ParseEmitStatement() {
    EmitStatement statement;
    statement.position = Current().position;
    statement.names = ParseNames();
    statement.value = ParseExpression();
    return statement;
  }

  // pattern | pattern ...
  PatternPointer ParsePattern() {
    PatternPointer first = ParsePrimary();
    if (!AtSymbol("|")) return first;
    auto alternatives = std::make_unique<Pattern>();
    alternatives->kind = Pattern::Kind::kAlternatives;
    alternatives->position = first->position;
    alternatives->arguments.push_back(std::move(first));
    while (AcceptSymbol("|")) alternatives->arguments.push_back(ParsePrimary());
    return alternatives;
  }

  PatternPointer ParsePrimary() {
    auto pattern = std::make_unique<Pattern>();
    pattern->position = Current().position;
    if (++depth_ > 100) Fail("fewer nested patterns (at most 100)");
    if (ok() && Current().kind == Token::Kind::kName) {
      pattern->name = Current().text;
      Step();
      while (ok() && AtSymbol(".") && Ahead(1).kind == Token::Kind::kName) {
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
    } else if (ok() && Current().kind == Token::Kind::kString && Current().text.empty()) {
      pattern->kind = Pattern::Kind::kAbsent;
      Step();
    } else if (ok() && (Current().kind == Token::Kind::kNumber || AtSymbol("-"))) {
      const bool negative = AcceptSymbol("-");
      if (Current().kind != Token::Kind::kNumber) Fail("a number");
      pattern->kind = Pattern::Kind::kLiteral;
      pattern->number = negative ? -Current().number : Current().number;
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
      attribute.position = Current().position;
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
    condition.position = Current().position;
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
      if (condition.relation != Condition::Relation::kEqual ||
          condition.left.kind != Expression::Kind::kName) {
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
      std::string op = Current().text;
      Step();
      left = Binary(std::move(left), std::move(op), ParseProduct());
    }
    return left;
  }

  Expression ParseProduct() {
    Expression left = ParseUnary();
    while (ok() && (AtSymbol("*") || AtSymbol("/"))) {
      std::string op = Current().text;
      Step();
      left = Binary(std::move(left), std::move(op), ParseUnary());
    }
    return left;
  }

  Expression ParseUnary() {
    if (!AtSymbol("-")) return ParseAtom();
    Expression unary;
    unary.position = Current().position;
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
    atom.position = Current().position;
    if (++depth_ > 100) Fail("a less deeply nested expression (at most 100)");
    if (!ok()) return atom;
    const Token& token = Current();
    if (token.kind == Token::Kind::kNumber) {
      atom.kind = Expression::Kind::kNumber;
      atom.number = token.number;
      atom.is_integer = token.is_integer;
      atom.text = token.text;
      Step();
    } else if (token.kind == Token::Kind::kString) {
      atom.kind = Expression::Kind::kString;
      atom.text = token.text;
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
    } else if (token.kind == Token::Kind::kName) {
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
    while (ok() && AtSymbol(".") && Ahead(1).kind == Token::Kind::kName) {
      Step();
      if (!atom->domain.empty()) atom->domain += '.';
      atom->domain += atom->text;
      atom->text = ExpectName("an operator's name");
    }
    // Operators start with a capital letter, C++ functions do not. "D < 5" is a comparison, "Op <a = 1>" is
    // an operator with attributes.
    const bool capital = std::isupper(static_cast<unsigned char>(atom->text[0])) != 0;
    const bool attributes = capital && AtSymbol("<") && Ahead(1).kind == Token::Kind::kName &&
                            (IsSymbol(Ahead(2), "=") || IsSymbol(Ahead(2), ",") || IsSymbol(Ahead(2), ">"));
    if (attributes || (capital && AtSymbol("(")) || !atom->domain.empty()) {
      atom->kind = Expression::Kind::kOperator;
      if (attributes) {
        Step();
        while (ok() && !AtSymbol(">")) {
          Expression::NamedExpression attribute;
          attribute.value.position = Current().position;
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

  std::vector<Token> tokens_;
  std::string_view text_;
  std::vector<size_t> lines_;  // offset of each line
  size_t at_ = 0;
  int depth_ = 0;
  absl::Status error_;
};

}  // namespace

absl::Status ParseRules(const std::string& file, std::string_view text, std::vector<Definition>* definitions,
                        std::vector<Rule>* rules) {
  std::vector<Token> tokens;
  absl::Status status = Lexer(file, text).Run(&tokens);
  if (!status.ok()) return status;
  return Parser(std::move(tokens), text).Run(definitions, rules);
}

}  // namespace ascend_fuse
