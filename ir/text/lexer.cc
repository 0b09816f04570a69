// One pass over the text; no regular expressions, no locale. Character classes are ASCII's: bytes of UTF-8
// occur in comments and strings only.
#include "ir/text/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Longer symbols before their beginnings.
constexpr std::array<std::string_view, 28> kSymbols = {"...", "=>", "==", "!=", "<=", ">=", "|", "?", "@", ";",
                                                       ":",   "+",  "-",  "*",  "/",  ".",  ",", "(", ")", "[",
                                                       "]",   "{",  "}",  "<",  ">",  "=",  "!", "&"};

// A symbol that no longer one starts with, except for the dots of an ellipsis.
bool IsWholeSymbol(char c) { return std::string_view("()[]{},|?@;:+-*/.&").find(c) != std::string_view::npos; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (true) {
      SkipSpace();
      Token token;
      token.line = line_;
      token.column = static_cast<uint32_t>(at_ - line_start_ + 1);
      const size_t first = at_;
      RETURN_IF_ERROR(Scan(&token));
      token.text = text_.substr(first, at_ - first);
      tokens.push_back(token);
      if (token.kind == TokenKind::kEnd) return tokens;
    }
  }

 private:
  char At(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  void NewLine(size_t next) {
    ++line_;
    line_start_ = next;
  }

  void SkipSpace() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') {
        NewLine(at_ + 1);
      } else if (text_[at_] == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (!IsSpace(text_[at_])) {
        return;
      }
    }
  }

  absl::Status Scan(Token* token) {
    if (at_ >= text_.size()) {
      token->kind = TokenKind::kEnd;
      return absl::OkStatus();
    }
    const char c = text_[at_];
    if (IsLetter(c)) {
      token->kind = TokenKind::kIdentifier;
      while (IsLetter(At(at_)) || IsDigit(At(at_))) ++at_;
      return absl::OkStatus();
    }
    if (IsDigit(c)) return ScanNumber(token);
    if (c == '"') return ScanString(token);
    token->kind = TokenKind::kSymbol;
    if (IsWholeSymbol(c) && !(c == '.' && At(at_ + 1) == '.')) {
      ++at_;
      return absl::OkStatus();
    }
    for (std::string_view symbol : kSymbols) {
      if (text_.compare(at_, symbol.size(), symbol) == 0) {
        at_ += symbol.size();
        return absl::OkStatus();
      }
    }
    if (c > ' ' && c < '\x7f') return ErrorAt(*token, fmt::format("no token starts with '{}'", c));
    return ErrorAt(*token, fmt::format("no token starts with byte 0x{:02x}; quote names that are not "
                                       "made of letters, digits and _",
                                       static_cast<unsigned char>(c)));
  }

  absl::Status ScanNumber(Token* token) {
    token->kind = TokenKind::kInteger;
    while (IsDigit(At(at_))) ++at_;
    // "1..." is the integer 1 and an ellipsis.
    if (At(at_) == '.' && At(at_ + 1) != '.') {
      token->kind = TokenKind::kFloat;
      ++at_;
      while (IsDigit(At(at_))) ++at_;
    }
    if (At(at_) != 'e' && At(at_) != 'E') return absl::OkStatus();
    size_t digits = at_ + 1;
    if (At(digits) == '+' || At(digits) == '-') ++digits;
    if (!IsDigit(At(digits))) return ErrorAt(*token, "the exponent of this number has no digits");
    token->kind = TokenKind::kFloat;
    at_ = digits;
    while (IsDigit(At(at_))) ++at_;
    return absl::OkStatus();
  }

  absl::Status ScanString(Token* token) {
    token->kind = TokenKind::kString;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        return absl::OkStatus();
      }
      if (text_[at_] == '\n') NewLine(at_ + 1);
      if (text_[at_] != '\\') continue;
      ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') NewLine(at_ + 1);
    }
    return ErrorAt(*token, "the string that starts here has no closing quote");
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
};

// The next token for people: 'foo', or "the end of the text". Long tokens are cut.
std::string Describe(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  constexpr size_t kShown = 40;
  if (token.text.size() <= kShown) return fmt::format("'{}'", token.text);
  return fmt::format("'{}...'", token.text.substr(0, kShown));
}

}  // namespace

absl::StatusOr<std::vector<Token>> Lex(std::string_view text) { return Lexer(text).Run(); }

std::string Unquote(const Token& token) {
  std::string value;
  std::string_view inside = token.text;
  if (inside.size() < 2) return value;
  inside = inside.substr(1, inside.size() - 2);
  value.reserve(inside.size());
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '\\' && i + 1 < inside.size()) ++i;
    value.push_back(inside[i]);
  }
  return value;
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  quoted.push_back('"');
  return quoted;
}

bool IsIdentifier(std::string_view text) {
  return !text.empty() && IsLetter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsLetter(c) || IsDigit(c); });
}

absl::Status ErrorAt(const Token& token, std::string_view message) {
  return absl::InvalidArgumentError(fmt::format("{}:{}: {}", token.line, token.column, message));
}

bool IsFloatWord(std::string_view word) {
  if (word.size() != 3 && word.size() != 8) return false;
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower == "inf" || lower == "nan" || lower == "infinity";
}

const Token& TokenReader::Peek(size_t ahead) const { return (*tokens_)[std::min(position_ + ahead, tokens_->size() - 1)]; }

const Token& TokenReader::Next() {
  const Token& token = Peek();
  if (position_ + 1 < tokens_->size()) ++position_;
  return token;
}

bool TokenReader::Accept(std::string_view symbol) {
  if (!Peek().Is(symbol)) return false;
  Next();
  return true;
}

bool TokenReader::AcceptWord(std::string_view word) {
  if (!Peek().IsWord(word)) return false;
  Next();
  return true;
}

absl::Status TokenReader::Expected(std::string_view what) const {
  return ErrorAt(Peek(), fmt::format("expected {}, found {}", what, Describe(Peek())));
}

absl::Status TokenReader::Expect(std::string_view symbol, std::string_view after) {
  if (Accept(symbol)) return absl::OkStatus();
  return Expected(fmt::format("'{}'{}{}", symbol, after.empty() ? "" : " ", after));
}

absl::StatusOr<std::string_view> TokenReader::Identifier(std::string_view what) {
  if (Peek().kind != TokenKind::kIdentifier) return Expected(what);
  return Next().text;
}

absl::StatusOr<std::string> TokenReader::QuotableIdentifier(std::string_view what) {
  if (Peek().kind == TokenKind::kString) return Unquote(Next());
  if (Peek().kind == TokenKind::kIdentifier) return std::string(Next().text);
  return Expected(what);
}

absl::StatusOr<std::string> TokenReader::String(std::string_view what) {
  if (Peek().kind != TokenKind::kString) return Expected(what);
  return Unquote(Next());
}

absl::StatusOr<int64_t> TokenReader::Integer(std::string_view what) {
  const bool negative = Peek().Is("-");
  const Token& token = Peek(negative ? 1 : 0);
  if (token.kind != TokenKind::kInteger) return Expected(what);
  const std::string digits = fmt::format("{}{}", negative ? "-" : "", token.text);
  int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
    return ErrorAt(token, fmt::format("{} does not fit a 64-bit integer", digits));
  }
  if (negative) Next();
  Next();
  return value;
}

absl::StatusOr<uint64_t> TokenReader::Unsigned(std::string_view what) {
  const Token& token = Peek();
  if (token.kind != TokenKind::kInteger) return Expected(what);
  uint64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, value).ec != std::errc()) {
    return ErrorAt(token, fmt::format("{} does not fit an unsigned 64-bit integer", token.text));
  }
  Next();
  return value;
}

template <typename T>
absl::StatusOr<T> TokenReader::Real(std::string_view what) {
  const bool negative = Peek().Is("-");
  const Token& token = Peek(negative ? 1 : 0);
  T value = 0;
  if (token.kind == TokenKind::kIdentifier && IsFloatWord(token.text)) {
    const bool nan = token.text[0] == 'n' || token.text[0] == 'N';
    value = nan ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
  } else if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) {
    const char* first = token.text.data();
    if (std::from_chars(first, first + token.text.size(), value).ec != std::errc()) {
      // Too large or too small. Only the former is an error: what is too small is zero.
      double wide = 0;
      const bool in_range = std::from_chars(first, first + token.text.size(), wide).ec == std::errc();
      // Beyond double too: a mantissa such as 0.000... or a negative exponent means small.
      const bool small = in_range ? std::fabs(wide) < 1
                                  : token.text.find("e-") != std::string_view::npos ||
                                        token.text.find("E-") != std::string_view::npos || token.text[0] == '0';
      if (!small) {
        return ErrorAt(token, fmt::format("{} does not fit a {}-bit float", token.text, 8 * sizeof(T)));
      }
      value = in_range ? static_cast<T>(wide) : T{0};
    }
  } else {
    return Expected(what);
  }
  if (negative) Next();
  Next();
  return negative ? -value : value;
}

absl::StatusOr<float> TokenReader::Float(std::string_view what) { return Real<float>(what); }
absl::StatusOr<double> TokenReader::Double(std::string_view what) { return Real<double>(what); }

}  // namespace ascend_fuse
