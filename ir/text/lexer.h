// Tokens of the official ONNX text syntax (onnx/onnx:docs/Syntax.md) and of the rule language, which shares
// it. Every token knows its line and column, so that every later complaint can name a place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ascend_fuse {

enum class TokenKind : uint8_t {
  kEnd,
  kIdentifier,  // letter or _, then letters, digits, _
  kInteger,     // digits; a sign is a symbol of its own
  kFloat,       // digits with a point or an exponent
  kString,      // "..."; a backslash takes the next character as it is
  kSymbol,      // ... => == != <= >= | ? @ ; : + - * / . , ( ) [ ] { } < > = ! &
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  uint32_t line = 1;      // from 1
  uint32_t column = 1;    // from 1, in bytes
  std::string_view text;  // as written, a string with its quotes; a view of the lexed text

  // Asked many times for each token: nearly always the first character says no.
  bool Is(std::string_view symbol) const {
    return kind == TokenKind::kSymbol && text[0] == symbol[0] && text.size() == symbol.size() &&
           (symbol.size() == 1 || text == symbol);
  }
  bool IsWord(std::string_view word) const { return kind == TokenKind::kIdentifier && text == word; }
};

// The tokens of `text`, the last one kEnd. Comments run from # to the end of the line. INVALID_ARGUMENT for a
// character no token starts with, a string without end, an exponent without digits.
absl::StatusOr<std::vector<Token>> Lex(std::string_view text);

// What a kString token stands for.
std::string Unquote(const Token& token);
// `text` as a string token.
std::string Quote(std::string_view text);
// Letter or _, then letters, digits, _.
bool IsIdentifier(std::string_view text);

// INVALID_ARGUMENT "3:14: <message>".
absl::Status ErrorAt(const Token& token, std::string_view message);

// A place in a list of tokens, with what every recursive descent parser needs.
class TokenReader {
 public:
  // `tokens` ends with kEnd and outlives the reader.
  explicit TokenReader(const std::vector<Token>& tokens) : tokens_(&tokens) {}

  // The token `ahead` places further on; kEnd beyond the last.
  const Token& Peek(size_t ahead = 0) const;
  const Token& Next();  // takes it; at the end, kEnd again and again
  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }

  bool Accept(std::string_view symbol);                                  // takes the symbol if it is next
  bool AcceptWord(std::string_view word);                                // takes the identifier if it is next
  absl::Status Expect(std::string_view symbol, std::string_view after);  // `after`: "after the inputs", or ""
  absl::StatusOr<std::string_view> Identifier(std::string_view what);    // "an operator name"
  // An identifier or a quoted one.
  absl::StatusOr<std::string> QuotableIdentifier(std::string_view what);
  absl::StatusOr<std::string> String(std::string_view what);
  // With an optional minus sign.
  absl::StatusOr<int64_t> Integer(std::string_view what);
  absl::StatusOr<uint64_t> Unsigned(std::string_view what);
  // An integer, a float, inf, infinity or nan (in any case), with an optional minus sign.
  absl::StatusOr<float> Float(std::string_view what);
  absl::StatusOr<double> Double(std::string_view what);

  // "3:14: expected <what>, found <the next token>".
  absl::Status Expected(std::string_view what) const;

  size_t position() const { return position_; }
  void Rewind(size_t position) { position_ = position; }

 private:
  template <typename T>
  absl::StatusOr<T> Real(std::string_view what);

  const std::vector<Token>* tokens_;
  size_t position_ = 0;
};

// True for inf, infinity, nan in any case: the words that are floats.
bool IsFloatWord(std::string_view word);

}  // namespace ascend_fuse
