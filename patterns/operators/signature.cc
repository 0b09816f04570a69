// Recursive descent over the row notation; the grammar is in the comments of Row in proto/contract.proto and of
// SignatureRow in proto/operators.proto.
#include "patterns/operators/signature.h"

#include <cctype>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"

namespace ascend_fuse {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text, bool for_inference = false) : text_(text), for_inference_(for_inference) {}

  absl::StatusOr<SignaturePattern> Signature() {
    SignaturePattern signature;
    if (auto status = Operands(&signature.inputs); !status.ok()) return status;
    if (!Take("=>")) return Expected("`=>`");
    if (auto status = Operands(&signature.outputs); !status.ok()) return status;
    if (!AtEnd()) return Expected("the end");
    return signature;
  }

  absl::StatusOr<ShapePattern> WholeShape() {
    ShapePattern shape;
    if (auto status = Shape(&shape); !status.ok()) return status;
    if (!AtEnd()) return Expected("the end");
    return shape;
  }

  absl::StatusOr<LimitExpression> Expression() {
    LimitExpression expression;
    if (auto status = Product(&expression); !status.ok()) return status;
    if (!AtEnd()) return Expected("`*`, `/` or the end");
    return expression;
  }

 private:
  absl::Status Expected(const char* what) const {
    return absl::InvalidArgumentError(fmt::format("`{}`, column {}: {} expected", text_, position_ + 1, what));
  }

  absl::Status Product(LimitExpression* expression) {
    Space();
    const size_t start = position_;
    bool divide = false;
    while (true) {
      LimitExpression::Factor factor;
      factor.divide = divide;
      if (Number(&factor.number)) {
        if (divide && factor.number == 0) return Expected("a number other than 0");
      } else if (Name(&factor.name)) {
        if (factor.name == "bytes" && Take("(")) {
          factor.bytes = true;
          if (!Name(&factor.name)) return Expected("the name of an operand");
          if (!Take(")")) return Expected("`)`");
        }
      } else {
        return Expected("a letter, an attribute, a number or bytes(...)");
      }
      expression->factors.push_back(std::move(factor));
      if (Take("*")) {
        divide = false;
      } else if (Take("/")) {
        divide = true;
      } else {
        break;
      }
    }
    expression->text = std::string(text_.substr(start, position_ - start));
    return absl::OkStatus();
  }

  void Space() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }

  bool AtEnd() {
    Space();
    return position_ == text_.size();
  }

  bool Take(std::string_view token) {
    Space();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }

  bool Name(std::string* name) {
    Space();
    size_t end = position_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_')) {
      ++end;
    }
    if (end == position_ || std::isdigit(static_cast<unsigned char>(text_[position_]))) return false;
    *name = std::string(text_.substr(position_, end - position_));
    position_ = end;
    return true;
  }

  bool Number(int64_t* number) {
    Space();
    size_t end = position_;
    int64_t value = 0;
    while (end < text_.size() && std::isdigit(static_cast<unsigned char>(text_[end])) && end - position_ < 18) {
      value = value * 10 + (text_[end] - '0');
      ++end;
    }
    if (end == position_) return false;
    position_ = end;
    *number = value;
    return true;
  }

  absl::Status Operands(std::vector<OperandPattern>* operands) {
    if (!Take("(")) return Expected("`(`");
    if (Take(")")) return absl::OkStatus();
    do {
      OperandPattern operand;
      if (auto status = Type(&operand); !status.ok()) return status;
      Space();
      if (position_ < text_.size() && text_[position_] == '[') {
        operand.has_shape = true;
        if (auto status = Shape(&operand.shape); !status.ok()) return status;
      }
      if (!Name(&operand.name)) return Expected("the name of an operand");
      operand.optional = Take("?");
      operands->push_back(std::move(operand));
    } while (Take(","));
    if (!Take(")")) return Expected("`,` or `)`");
    return absl::OkStatus();
  }

  absl::Status Type(OperandPattern* operand) {
    do {
      std::string name;
      const size_t start = position_;
      if (!Name(&name)) return Expected("a type");
      if (name == "_") continue;
      const DataType type = DataTypeFromName(name);
      if (type != DataType::kUndefined) {
        operand->types.push_back(type);
      } else if (std::isupper(static_cast<unsigned char>(name[0]))) {
        operand->type_variable = name;
      } else {
        position_ = start;
        return Expected("a type (float16, bool, T, _)");
      }
    } while (Take("|"));
    return absl::OkStatus();
  }

  // Whether the axis that begins here is a product and not a single letter or number.
  bool AtProduct() {
    Space();
    const size_t end = text_.find_first_of("*/|,]", position_);
    return end != std::string_view::npos && (text_[end] == '*' || text_[end] == '/');
  }

  absl::Status Shape(ShapePattern* shape) {
    Space();
    const size_t start = position_;
    if (!Take("[")) return Expected("`[`");
    bool ellipsis = false;
    if (!Take("]")) {
      do {
        AxisPattern axis;
        Space();
        const size_t axis_start = position_;
        if (Take("...")) {
          if (ellipsis && !for_inference_) return Expected("only one `...`");
          ellipsis = true;
          axis.kind = AxisPattern::Kind::kEllipsis;
          Name(&axis.ellipsis);
        } else if (for_inference_ && Take("1...")) {
          axis.kind = AxisPattern::Kind::kOnes;
          if (!Name(&axis.ellipsis)) return Expected("the name of a list of dims");
        } else if (for_inference_ && AtProduct()) {
          axis.kind = AxisPattern::Kind::kProduct;
          if (auto status = Product(&axis.product); !status.ok()) return status;
        } else {
          axis.kind = AxisPattern::Kind::kOneOf;
          do {
            AxisPattern::Atom atom;
            if (!Number(&atom.number) && !Name(&atom.name)) return Expected("a letter, a number, `_` or `...`");
            if (atom.name == "_") axis.kind = AxisPattern::Kind::kAny;
            axis.atoms.push_back(std::move(atom));
          } while (Take("|"));
          axis.or_more = Take("+");
          axis.checked = Take("?");
        }
        axis.text = std::string(text_.substr(axis_start, position_ - axis_start));
        shape->axes.push_back(std::move(axis));
      } while (Take(","));
      if (!Take("]")) return Expected("`,` or `]`");
    }
    shape->text = std::string(text_.substr(start, position_ - start));
    std::erase(shape->text, '?');  // who reads a sentence wants to know what the kernel takes
    return absl::OkStatus();
  }

  std::string_view text_;
  bool for_inference_ = false;
  size_t position_ = 0;
};

}  // namespace

absl::StatusOr<SignaturePattern> ParseSignature(std::string_view text) { return Parser(text).Signature(); }

absl::StatusOr<SignaturePattern> ParseInferenceSignature(std::string_view text) { return Parser(text, true).Signature(); }

absl::StatusOr<ShapePattern> ParseShapePattern(std::string_view text) { return Parser(text).WholeShape(); }

absl::StatusOr<LimitExpression> ParseLimitExpression(std::string_view text) { return Parser(text).Expression(); }

}  // namespace ascend_fuse
