#include "tests/fuzz/mutate_text.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace ascend_fuse::fuzz {
namespace {

constexpr const char* kNumbers[] = {"0",
                                    "1",
                                    "-1",
                                    "2",
                                    "8",
                                    "13",
                                    "17",
                                    "0.5",
                                    "-0.0",
                                    "1e400",
                                    "1e-400",
                                    "nan",
                                    "inf",
                                    "255",
                                    "65536",
                                    "2147483647",
                                    "2147483648",
                                    "-2147483648",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "-9223372036854775808",
                                    "18446744073709551616",
                                    "00000000000000000000000000000001"};
constexpr const char* kInStrings[] = {"\\n",  "\\\"",    "\\u202e",  "\\ud800", "\xe2\x80\xae",
                                      "\xff", "\x1b[2J", "<script>", "{}",      "\\x"};

enum class Kind { kWord, kNumber, kString, kSpace, kOther };

struct Token {
  Kind kind;
  std::string text;
};

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }
bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

Kind KindOf(std::string_view rest) {
  if (rest[0] == '"') return Kind::kString;
  if (IsSpace(rest[0])) return Kind::kSpace;
  if (IsDigit(rest[0]) || (rest[0] == '-' && rest.size() > 1 && IsDigit(rest[1]))) return Kind::kNumber;
  return IsWord(rest[0]) ? Kind::kWord : Kind::kOther;
}

size_t LengthOf(std::string_view rest, Kind kind) {
  size_t end = 1;
  switch (kind) {
    case Kind::kString:
      while (end < rest.size() && rest[end] != '"' && rest[end] != '\n') end += rest[end] == '\\' ? 2 : 1;
      return std::min(end + 1, rest.size());
    case Kind::kSpace:
      while (end < rest.size() && IsSpace(rest[end])) ++end;
      return end;
    case Kind::kOther:
      return end;
    default:
      while (end < rest.size() && IsWord(rest[end])) ++end;
      return end;
  }
}

std::vector<Token> Split(std::string_view text) {
  std::vector<Token> tokens;
  while (!text.empty()) {
    const Kind kind = KindOf(text);
    const size_t length = LengthOf(text, kind);
    tokens.push_back({kind, std::string(text.substr(0, length))});
    text.remove_prefix(length);
  }
  return tokens;
}

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  size_t Below(size_t count) { return count == 0 ? 0 : random_() % count; }

  void Change(std::vector<Token>* tokens) {
    const size_t at = Below(tokens->size());
    switch (Below(8)) {
      case 0:
        return Replace(tokens, at);
      case 1:
        return Renew(&(*tokens)[NextThatIsNoSpace(*tokens, at)]);
      case 2:
        return std::swap((*tokens)[NextThatIsNoSpace(*tokens, at)].text,
                         (*tokens)[NextThatIsNoSpace(*tokens, Below(tokens->size()))].text);
      case 3:
        return Copy(tokens, at, std::min(at + 1 + Below(12), tokens->size()));
      case 4:
        return Copy(tokens, at, EndOfBrackets(*tokens, at));
      case 5:
        return Erase(tokens, at, std::min(at + 1 + Below(6), tokens->size()));
      case 6:
        return Erase(tokens, at, EndOfBrackets(*tokens, at));
      default:
        return Copy(tokens, at, EndOfLine(*tokens, at));
    }
  }

 private:
  static size_t NextThatIsNoSpace(const std::vector<Token>& tokens, size_t at) {
    for (size_t i = at; i < tokens.size(); ++i) {
      if (tokens[i].kind != Kind::kSpace) return i;
    }
    return at;
  }

  // After the bracket that closes the next one that opens, or of some tokens where none does.
  static size_t EndOfBrackets(const std::vector<Token>& tokens, size_t at) {
    int depth = 0;
    for (size_t i = at; i < tokens.size(); ++i) {
      const char c = tokens[i].text[0];
      if (c == '{' || c == '(' || c == '[' || c == '<') ++depth;
      if ((c == '}' || c == ')' || c == ']' || c == '>') && --depth <= 0) return i + 1;
    }
    return std::min(at + 4, tokens.size());
  }

  static size_t EndOfLine(const std::vector<Token>& tokens, size_t at) {
    for (size_t i = at; i < tokens.size(); ++i) {
      if (tokens[i].text.find('\n') != std::string::npos) return i + 1;
    }
    return tokens.size();
  }

  // Another token of the same kind.
  void Replace(std::vector<Token>* tokens, size_t at) {
    Token& token = (*tokens)[NextThatIsNoSpace(*tokens, at)];
    for (size_t tries = 0; tries < 16; ++tries) {
      const Token& other = (*tokens)[Below(tokens->size())];
      if (other.kind != token.kind || other.text == token.text) continue;
      token.text = other.text;
      return;
    }
    Renew(&token);
  }

  // Another number, another string, or what one would mistype.
  void Renew(Token* token) {
    std::string& text = token->text;
    if (token->kind == Kind::kNumber) {
      text = kNumbers[Below(std::size(kNumbers))];
    } else if (token->kind == Kind::kString && text.size() > 1) {
      text.insert(1 + Below(text.size() - 1), kInStrings[Below(std::size(kInStrings))]);
    } else {
      text[Below(text.size())] = static_cast<char>(32 + Below(95));
    }
  }

  void Copy(std::vector<Token>* tokens, size_t begin, size_t end) {
    const std::vector<Token> copy(tokens->begin() + static_cast<long>(begin), tokens->begin() + static_cast<long>(end));
    const size_t to = Below(4) == 0 ? begin : Below(tokens->size() + 1);  // besides itself, or anywhere
    tokens->insert(tokens->begin() + static_cast<long>(to), copy.begin(), copy.end());
  }

  void Erase(std::vector<Token>* tokens, size_t begin, size_t end) {
    if (end - begin >= tokens->size()) return;  // not all there is
    tokens->erase(tokens->begin() + static_cast<long>(begin), tokens->begin() + static_cast<long>(end));
  }

  std::mt19937 random_;
};

size_t Write(const std::string& text, uint8_t* data, size_t most) {
  if (text.empty() || text.size() > most) return 0;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

}  // namespace

size_t MutateText(uint8_t* data, size_t size, size_t most, unsigned seed, unsigned bytes_in) {
  if (size == 0 || seed % bytes_in == 0) return LLVMFuzzerMutate(data, size, most);
  std::vector<Token> tokens = Split(std::string_view(reinterpret_cast<const char*>(data), size));
  Mutator mutator(seed);
  for (size_t changes = 1 + mutator.Below(4); changes > 0; --changes) mutator.Change(&tokens);
  std::string text;
  for (const Token& token : tokens) text += token.text;
  const size_t written = Write(text, data, most);
  return written > 0 ? written : LLVMFuzzerMutate(data, size, most);
}

size_t CrossTexts(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out, size_t most, unsigned seed) {
  Mutator mutator(seed);
  std::string text(reinterpret_cast<const char*>(a), a_size);
  const std::string other(reinterpret_cast<const char*>(b), b_size);
  // Some whole lines of the other one, before a line of this one.
  const size_t from = other.find('\n', mutator.Below(other.size())) + 1;  // 0 where there is none
  size_t to = from;
  for (size_t lines = 1 + mutator.Below(8); lines > 0 && to < other.size(); --lines) {
    to = std::min(other.find('\n', to), other.size() - 1) + 1;
  }
  text.insert(text.find('\n', mutator.Below(text.size())) + 1, other, from, to - from);
  return Write(text, out, most);
}

}  // namespace ascend_fuse::fuzz
