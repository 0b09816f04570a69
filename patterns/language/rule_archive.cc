#include "patterns/language/rule_archive.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "patterns/language/rule_parser.h"

namespace ascend_fuse {
namespace {

// One function for each structure names its members for both directions. Structured bindings: a member that is added
// and not named here does not compile.
template <typename T, typename Structure>
concept Is = std::is_same_v<std::remove_const_t<T>, Structure>;

template <typename D>
void Visit(D& d, Is<SourcePosition> auto& x) {
  auto& [file, line, column] = x;
  d.FileName(file);
  d(line, column);
}
template <typename D>
void Visit(D& d, Is<Expression> auto& x) {
  auto& [kind, position, number, is_integer, text, domain, slot, function, optional, arguments, attributes] = x;
  d(kind, position, number, is_integer, text, domain, slot, function, optional, arguments, attributes);
}
template <typename D>
void Visit(D& d, Is<Expression::NamedExpression> auto& x) {
  auto& [name, value] = x;
  d(name, value);
}
template <typename D>
void Visit(D& d, Is<Condition> auto& x) {
  auto& [relation, position, left, right, source] = x;
  d(relation, position, left, right, source);
}
template <typename D>
void Visit(D& d, Is<AttributePattern> auto& x) {
  auto& [name, value, position] = x;
  d(name, value, position);
}
template <typename D>
void Visit(D& d, Is<Pattern> auto& x) {
  auto& [kind, position, name, domain, number, optional, definition, slot, operator_number, attributes, arguments] = x;
  d(kind, position, name, domain, number, optional, definition, slot, operator_number, attributes, arguments);
}
template <typename D>
void Visit(D& d, Is<Scope> auto& x) {
  auto& [names, statement, output] = x;
  d(names, statement, output);
}
template <typename D>
void Visit(D& d, Is<Parameter> auto& x) {
  auto& [name, optional, has_default, default_value] = x;
  d(name, optional, has_default);
  if (has_default) d(default_value);
}
template <typename D>
void Visit(D& d, Is<Definition::Alternative> auto& x) {
  auto& [pattern, conditions] = x;
  d(pattern, conditions);
}
template <typename D>
void Visit(D& d, Is<Definition> auto& x) {
  auto& [name, doc, position, parameters, alternatives, scope, result_slot] = x;
  d(name, doc, position, parameters, alternatives, scope, result_slot);
}
template <typename D>
void Visit(D& d, Is<Formula> auto& x) {
  auto& [name, doc, position, parameters, value] = x;
  d(name, doc, position, parameters, value);
}
template <typename D>
void Visit(D& d, Is<WordTable> auto& x) {
  auto& [name, doc, position, words] = x;
  d(name, doc, position, words);
}
template <typename D>
void Visit(D& d, Is<MatchStatement> auto& x) {
  auto& [names, pattern, position] = x;
  d(names, pattern, position);
}
template <typename D>
void Visit(D& d, Is<EmitStatement> auto& x) {
  auto& [names, value, position] = x;
  d(names, value, position);
}
template <typename D>
void Visit(D& d, Is<Rule> auto& x) {
  auto& [name, doc, position, kind, precision, ge_construct, joined_by_ge, yields_to_ge, no_ge_pass, preferred_over, fixes,
         assumes, differs, kind_position, ge_construct_position, joined_by_ge_position, inputs, outputs, match, where, emit,
         scope, place, size, nodes, roots, root_form] = x;
  d(name, doc, position, kind, precision, ge_construct, joined_by_ge, yields_to_ge, no_ge_pass, preferred_over, fixes, assumes);
  d(differs, kind_position, ge_construct_position, joined_by_ge_position);
  d(inputs, outputs, match, where, emit, scope, place, size, nodes, roots, root_form);
}
template <typename D>
void Visit(D& d, Is<Prefilter::Branch> auto& x) {
  auto& [operator_number, argument_count, first_argument, number] = x;
  d(operator_number, argument_count, first_argument, number);
}
template <typename D>
void Visit(D& d, Is<Prefilter::Form> auto& x) {
  auto& [operators, has_number, first_branch, branch_count] = x;
  d(operators, has_number, first_branch, branch_count);
}
template <typename D>
void Visit(D& d, Is<RuleVocabulary> auto& x) {
  auto& [formulas, tables] = x;
  d(formulas, tables);
}

// A number that is small and not negative takes one byte, any other nine: 255 and its eight bytes.
constexpr uint8_t kLarge = 255;

class Writer {
 public:
  template <typename... T>
  void operator()(const T&... values) {
    (One(values), ...);
  }

  void FileName(std::string_view name) {
    const auto [found, is_new] = files_.try_emplace(std::string(name), files_.size());
    Number(found->second);
    if (is_new) Text(name);
  }

  std::string Bytes() && { return std::move(bytes_); }

 private:
  template <typename T>
  void One(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      Number(static_cast<uint64_t>(static_cast<int64_t>(value)));
    } else if constexpr (std::is_same_v<T, std::string>) {
      Text(value);
    } else {
      Visit(*this, value);
    }
  }
  void One(const PatternPointer& pattern) { One(*pattern); }
  template <typename T>
  void One(const std::vector<T>& values) {
    Number(values.size());
    for (const T& value : values) One(value);
  }
  template <typename A, typename B>
  void One(const std::pair<A, B>& pair) {
    (*this)(pair.first, pair.second);
  }

  void Number(uint64_t number) {
    bytes_ += static_cast<char>(number < kLarge ? number : kLarge);
    if (number >= kLarge) bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_ += text;
  }

  std::string bytes_;
  absl::flat_hash_map<std::string, uint64_t> files_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename... T>
  void operator()(T&... values) {
    (One(values), ...);
  }

  void FileName(std::string_view& name) {
    const uint64_t index = Number();
    if (index == files_.size()) files_.push_back(InternFileName(Text()));
    name = files_[index];
  }

  void ExpectEnd() const {
    if (at_ != bytes_.size()) std::abort();
  }

 private:
  template <typename T>
  void One(T& value) {
    if constexpr (std::is_same_v<T, double>) {
      std::memcpy(&value, Take(sizeof(value)), sizeof(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      value = static_cast<T>(Number());
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = Text();
    } else {
      Visit(*this, value);
    }
  }
  void One(PatternPointer& pattern) {
    pattern = PatternPointer(std::make_unique<Pattern>());
    One(*pattern);
  }
  template <typename T>
  void One(std::vector<T>& values) {
    values.resize(Number());
    for (T& value : values) One(value);
  }
  template <typename A, typename B>
  void One(std::pair<A, B>& pair) {
    (*this)(pair.first, pair.second);
  }

  uint64_t Number() {
    const auto first = static_cast<uint8_t>(*Take(1));
    if (first != kLarge) return first;
    uint64_t number = 0;
    std::memcpy(&number, Take(sizeof(number)), sizeof(number));
    return number;
  }
  std::string_view Text() {
    const size_t size = Number();
    return {Take(size), size};
  }
  const char* Take(size_t count) {
    if (count > bytes_.size() - at_) std::abort();
    at_ += count;
    return bytes_.data() + at_ - count;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  std::vector<std::string_view> files_;
};

}  // namespace

template <typename Direction, typename Rules>
void RuleArchive::Visit(Direction& direction, Rules& rules) {
  auto& filter = rules.prefilter_;
  direction(rules.definitions_, rules.rules_, rules.operators_, filter.forms_, filter.branches_, filter.arguments_);
}

std::string RuleArchive::Write(const RuleSet& rules) {
  Writer writer;
  Visit(writer, rules);
  return std::move(writer).Bytes();
}

std::string RuleArchive::Write(const RuleVocabulary& vocabulary) {
  Writer writer;
  writer(vocabulary);
  return std::move(writer).Bytes();
}

void RuleArchive::Read(std::string_view bytes, RuleSet* rules) {
  Reader reader(bytes);
  Visit(reader, *rules);
  reader.ExpectEnd();
}

void RuleArchive::Read(std::string_view bytes, RuleVocabulary* vocabulary) {
  Reader reader(bytes);
  reader(*vocabulary);
  reader.ExpectEnd();
}

}  // namespace ascend_fuse
