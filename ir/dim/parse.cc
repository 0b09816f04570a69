// Reads dim_param texts: names, and expressions as exporters write them.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "ir/dim.h"

namespace ascend_fuse {
namespace {

// Reads dim_param expressions as sympy prints them. A value is a fraction, so that floor(s0/2 + 1/2) is
// understood; '-' needs a blank before it, since "batch-size" is a name.
class DimParser {
 public:
  DimParser(DimTable* table, std::string_view text) : table_(table), text_(text) {}

  // Unknown when the text is not an expression.
  Dim Parse() {
    const Fraction value = Sum(0);
    Skip();
    if (!value.above.known() || position_ != text_.size()) return Dim();
    // A dim is whole, so the division is; by a symbol only if it can be carried out ("N/A" is a name).
    if (!value.below.is_number()) return table_->ExactDiv(value.above, value.below);
    return table_->FloorDiv(value.above, value.below);
  }

 private:
  struct Fraction {
    Dim above;
    Dim below = Dim::Of(1);
  };
  static constexpr int kMaxDepth = 32;

  void Skip() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool Take(std::string_view token) {
    const size_t start = position_;
    Skip();
    if (text_.substr(position_, token.size()) == token) {
      position_ += token.size();
      return true;
    }
    position_ = start;
    return false;
  }

  Fraction Combine(const Fraction& a, const Fraction& b, bool subtract) {
    Fraction result;
    const Dim left = table_->Mul(a.above, b.below);
    const Dim right = table_->Mul(b.above, a.below);
    result.above = subtract ? table_->Sub(left, right) : table_->Add(left, right);
    result.below = table_->Mul(a.below, b.below);
    return result;
  }

  Fraction Sum(int depth) {
    Fraction value;
    if (depth > kMaxDepth) return value;
    Skip();
    if (position_ < text_.size() && text_[position_] == '-') {
      ++position_;
      value = Combine({Dim::Of(0)}, Product(depth), true);
    } else {
      value = Product(depth);
    }
    while (value.above.known()) {
      const bool blank = position_ < text_.size() && text_[position_] == ' ';
      if (Take("+")) {
        value = Combine(value, Product(depth), false);
      } else if (blank && Take("-")) {
        value = Combine(value, Product(depth), true);
      } else {
        break;
      }
    }
    return value;
  }

  Fraction Product(int depth) {
    Fraction value = Power(depth);
    while (value.above.known()) {
      if (Take("//")) {
        const Fraction by = Power(depth);
        value = {table_->FloorDiv(table_->Mul(value.above, by.below), table_->Mul(value.below, by.above))};
      } else if (Take("/")) {
        const Fraction by = Power(depth);
        if (by.above.is(0)) return {};
        value = {table_->Mul(value.above, by.below), table_->Mul(value.below, by.above)};
        if (!value.below.known()) return {};
      } else if (Take("%")) {
        const Fraction by = Power(depth);
        value = {table_->Mod(Whole(value), Whole(by))};
      } else if (text_.substr(std::min(position_, text_.size()), 2) != "**" && Take("*")) {
        const Fraction by = Power(depth);
        value = {table_->Mul(value.above, by.above), table_->Mul(value.below, by.below)};
      } else {
        break;
      }
    }
    return value;
  }

  Fraction Power(int depth) {
    Fraction base = Factor(depth);
    if (!base.above.known() || !Take("**")) return base;
    const Fraction exponent = Factor(depth);
    if (!exponent.above.is_number() || !exponent.below.is(1) || exponent.above.number() < 0 || exponent.above.number() > 16) {
      return {};
    }
    Fraction value{Dim::Of(1)};
    for (int64_t i = 0; i < exponent.above.number(); ++i) {
      value = {table_->Mul(value.above, base.above), table_->Mul(value.below, base.below)};
    }
    return value;
  }

  Dim Whole(const Fraction& value) { return table_->FloorDiv(value.above, value.below); }

  Fraction Factor(int depth) {
    Skip();
    if (position_ >= text_.size() || depth > kMaxDepth) return {};
    const char first = text_[position_];
    if (first == '(') {
      ++position_;
      const Fraction value = Sum(depth + 1);
      return Take(")") ? value : Fraction{};
    }
    const size_t start = position_;
    const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; };
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (is_digit(first)) {
      int64_t number = 0;
      while (position_ < text_.size() && is_digit(text_[position_])) {
        if (__builtin_mul_overflow(number, int64_t{10}, &number) ||
            __builtin_add_overflow(number, int64_t{text_[position_] - '0'}, &number)) {
          return {};
        }
        ++position_;
      }
      if (position_ < text_.size() && (is_letter(text_[position_]) || text_[position_] == '.')) return {};
      return {Dim::Of(number)};
    }
    if (!is_letter(first)) return {};
    while (position_ < text_.size() && (is_letter(text_[position_]) || is_digit(text_[position_]) || text_[position_] == '.' ||
                                        text_[position_] == ':' || text_[position_] == '\'' || text_[position_] == '$')) {
      ++position_;
    }
    const std::string_view name = text_.substr(start, position_ - start);
    if (position_ >= text_.size() || text_[position_] != '(') {
      // A hyphen or another sign right after it makes it part of a name that is not an identifier.
      if (position_ < text_.size() && std::string_view(" +*/%),").find(text_[position_]) == std::string_view::npos) {
        return {};
      }
      return {table_->Symbol(name)};
    }
    ++position_;
    absl::InlinedVector<Fraction, 4> arguments;
    do {
      arguments.push_back(Sum(depth + 1));
      if (!arguments.back().above.known() || arguments.size() > 64) return {};
    } while (Take(","));
    if (!Take(")")) return {};
    return Call(name, arguments);
  }

  Fraction Call(std::string_view name, const absl::InlinedVector<Fraction, 4>& arguments) {
    const size_t count = arguments.size();
    if ((name == "floor" || name == "Floor" || name == "TruncToInt" || name == "IntTrueDiv") && count == 1) {
      return {Whole(arguments[0])};
    }
    if ((name == "ceiling" || name == "ceil" || name == "CeilToInt") && count == 1) {
      return {table_->Sub(Dim::Of(0), table_->FloorDiv(table_->Sub(Dim::Of(0), arguments[0].above), arguments[0].below))};
    }
    const bool min = name == "Min" || name == "min";
    if (min || name == "Max" || name == "max" || name == "broadcast") {
      Dim value = Whole(arguments[0]);
      for (size_t i = 1; i < count; ++i) {
        const Dim other = Whole(arguments[i]);
        value = min                   ? table_->Min(value, other)
                : name == "broadcast" ? table_->Broadcast(value, other)
                                      : table_->Max(value, other);
      }
      return {value};
    }
    if (count == 2) {
      const Dim a = Whole(arguments[0]);
      const Dim b = Whole(arguments[1]);
      if (name == "FloorDiv" || name == "CleanDiv" || name == "floordiv") return {table_->FloorDiv(a, b)};
      if (name == "Mod" || name == "PythonMod" || name == "mod") return {table_->Mod(a, b)};
      if (name == "CeilDiv" || name == "ceildiv") {
        return {table_->Sub(Dim::Of(0), table_->FloorDiv(table_->Sub(Dim::Of(0), a), b))};
      }
    }
    if (count == 3 && name == "ModularIndexing") {
      return {table_->Mod(table_->FloorDiv(Whole(arguments[0]), Whole(arguments[1])), Whole(arguments[2]))};
    }
    return {};
  }

  DimTable* table_;
  std::string_view text_;
  size_t position_ = 0;
};

bool IsPlainName(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
}

}  // namespace

Dim DimTable::Parse(std::string_view text) {
  if (text.empty()) return Dim();
  const bool starts_with_digit = text[0] >= '0' && text[0] <= '9';
  if (text.size() > 1024 || (IsPlainName(text) && !starts_with_digit)) return Symbol(text);
  const Dim dim = DimParser(this, text).Parse();
  return dim.known() ? dim : Symbol(text);
}

}  // namespace ascend_fuse
