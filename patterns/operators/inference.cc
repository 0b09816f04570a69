// Reads a signature row as inference: letters and lists of dims are bound by the operands, what is bound twice is equal
// in every run without an error, and the outputs are what the row says of them.
#include "patterns/operators/inference.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/infer/context.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {
namespace {

using infer::NodeContext;
using infer::Shape;

bool IsList(const AxisPattern& axis) { return axis.kind == AxisPattern::Kind::kEllipsis; }

// The attribute of the node, or its default, as text.
std::string AttributeText(const DeclaredOperator& op, const Node& node, const std::string& name) {
  const DeclaredAttribute* declared = op.FindAttribute(name);
  if (declared == nullptr) return "";
  if (declared->type == AttributeType::kInt) {
    if (const auto value = IntAttribute(node, name); value.has_value()) return fmt::format("{}", *value);
  } else if (declared->type == AttributeType::kString) {
    if (const auto value = StringAttribute(node, name); value.has_value()) return std::string(*value);
  }
  return declared->default_text.value_or("");
}

bool Holds(const SignatureRow& row, const DeclaredOperator& op, const Node& node) {
  return std::all_of(row.when.begin(), row.when.end(), [&](const AttributeCondition& when) {
    const std::string text = AttributeText(op, node, when.attribute);
    const auto among = [&](const std::vector<std::string>& words) {
      return std::find(words.begin(), words.end(), text) != words.end();
    };
    return (when.is.empty() || among(when.is)) && !among(when.is_not);
  });
}

// Whether an operand of that rank can have the shape of the pattern.
bool RankFits(const ShapePattern& pattern, size_t rank) {
  const size_t lists = static_cast<size_t>(std::count_if(pattern.axes.begin(), pattern.axes.end(), IsList));
  const size_t single = pattern.axes.size() - lists;
  return lists == 0 ? rank == single : rank >= single;
}

// One row applied to one node.
class Application {
 public:
  Application(const DeclaredOperator& op, const SignaturePattern& signature, NodeContext* context)
      : op_(op), signature_(signature), c_(*context) {}

  void SetTypes() {
    for (size_t i = 0; i < signature_.outputs.size() && i < c_.output_count(); ++i) {
      c_.SetType(i, TypeOf(signature_.outputs[i]));
    }
  }

  void SetShapes() {
    Bind();
    for (size_t i = 0; i < signature_.outputs.size() && i < c_.output_count(); ++i) {
      const OperandPattern& output = signature_.outputs[i];
      if (!output.has_shape || CopyShape(output, i)) continue;
      Shape shape;
      if (Evaluate(output.shape, &shape)) c_.SetShape(i, shape);
    }
  }

 private:
  // A type of an output: its name, or that of the first operand whose type is the same variable.
  DataType TypeOf(const OperandPattern& output) const {
    if (output.types.size() == 1) return output.types[0];
    if (output.type_variable.empty()) return DataType::kUndefined;
    for (size_t i = 0; i < signature_.inputs.size(); ++i) {
      if (signature_.inputs[i].type_variable == output.type_variable && c_.type(i) != DataType::kUndefined) {
        return c_.type(i);
      }
    }
    return DataType::kUndefined;
  }

  // An output with the very shape of an operand.
  bool CopyShape(const OperandPattern& output, size_t i) {
    for (size_t k = 0; k < signature_.inputs.size(); ++k) {
      const OperandPattern& input = signature_.inputs[k];
      if (!input.has_shape || input.shape.text != output.shape.text || !c_.in(k).has_rank) continue;
      c_.SetShape(i, c_.in(k).shape);
      return true;
    }
    return false;
  }

  // A shape with two lists of dims is bound once another operand says what one of them is.
  void Bind() {
    std::vector<bool> bound(signature_.inputs.size(), false);
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t i = 0; i < signature_.inputs.size(); ++i) {
        if (bound[i] || !BindOperand(i)) continue;
        bound[i] = true;
        progress = true;
      }
    }
  }

  // True when nothing is left to learn from operand i.
  bool BindOperand(size_t i) {
    const OperandPattern& operand = signature_.inputs[i];
    if (!operand.has_shape || !c_.has(i) || !c_.in(i).has_rank) return true;
    const absl::Span<const Dim> dims = c_.in(i).shape;
    size_t taken = 0;
    int open = 0;  // lists whose length is not known
    for (const AxisPattern& axis : operand.shape.axes) {
      const auto list = lists_.find(axis.ellipsis);
      if (!IsList(axis)) {
        ++taken;
      } else if (!axis.ellipsis.empty() && list != lists_.end()) {
        taken += list->second.size();
      } else {
        ++open;
      }
    }
    if (open > 1) return false;
    if (taken > dims.size() || (open == 0 && taken != dims.size())) return true;
    size_t at = 0;
    for (const AxisPattern& axis : operand.shape.axes) {
      if (!IsList(axis)) {
        if (axis.kind == AxisPattern::Kind::kOneOf && axis.atoms.size() == 1) BindDim(axis.atoms[0], dims[at]);
        ++at;
        continue;
      }
      const auto list = lists_.find(axis.ellipsis);
      if (!axis.ellipsis.empty() && list != lists_.end()) {
        for (const Dim dim : list->second) c_.Require(dim, dims[at++]);
      } else {
        const size_t length = dims.size() - taken;
        if (!axis.ellipsis.empty()) lists_[axis.ellipsis] = Shape(dims.begin() + at, dims.begin() + at + length);
        at += length;
      }
    }
    return true;
  }

  // A dim that the row calls by an integer attribute is that number.
  void BindDim(const AxisPattern::Atom& atom, Dim dim) {
    if (atom.name.empty()) return;
    if (op_.FindAttribute(atom.name) != nullptr) {
      if (const Dim number = ValueOf(0, atom.name); number.known()) c_.Require(dim, number);
      return;
    }
    const auto [letter, fresh] = letters_.try_emplace(atom.name, dim);
    if (!fresh) c_.Require(letter->second, dim);
  }

  // False when the rank is not known. A dim that is not known is an unknown Dim.
  bool Evaluate(const ShapePattern& pattern, Shape* shape) {
    for (const AxisPattern& axis : pattern.axes) {
      switch (axis.kind) {
        case AxisPattern::Kind::kEllipsis:
        case AxisPattern::Kind::kOnes: {
          const auto list = lists_.find(axis.ellipsis);
          if (list == lists_.end()) return false;
          for (const Dim dim : list->second) {
            shape->push_back(axis.kind == AxisPattern::Kind::kOnes ? Dim::Of(1) : dim);
          }
          break;
        }
        case AxisPattern::Kind::kOneOf:
          shape->push_back(axis.atoms.size() == 1 ? ValueOf(axis.atoms[0].number, axis.atoms[0].name) : Dim());
          break;
        case AxisPattern::Kind::kProduct:
          shape->push_back(ValueOf(axis.product));
          break;
        case AxisPattern::Kind::kAny:
          shape->push_back(Dim());
          break;
      }
    }
    return true;
  }

  Dim ValueOf(const LimitExpression& product) {
    Dim value = Dim::Of(1);
    for (const LimitExpression::Factor& factor : product.factors) {
      const Dim next = ValueOf(factor.number, factor.name);
      if (!value.known() || !next.known() || (factor.divide && next.is(0))) return Dim();
      value = factor.divide ? c_.dims().ExactDiv(value, next) : c_.dims().Mul(value, next);
    }
    return value;
  }

  // A number, a letter, or an integer attribute.
  Dim ValueOf(int64_t number, const std::string& name) const {
    if (name.empty()) return Dim::Of(number);
    if (const auto letter = letters_.find(name); letter != letters_.end()) return letter->second;
    const DeclaredAttribute* attribute = op_.FindAttribute(name);
    if (attribute == nullptr || attribute->type != AttributeType::kInt) return Dim();
    const std::optional<int64_t> value = IntAttribute(c_.node(), name);
    return value.has_value() && *value >= 0 ? Dim::Of(*value) : Dim();
  }

  const DeclaredOperator& op_;
  const SignaturePattern& signature_;
  NodeContext& c_;
  absl::flat_hash_map<std::string, Dim> letters_;
  absl::flat_hash_map<std::string, Shape> lists_;
};

class Inference : public OperatorInference {
 public:
  bool Infer(NodeContext& c) const override {
    const DeclaredOperator* op = FindDeclaredOperator(Domain(c.node()), OpType(c.node()));
    if (op == nullptr || op->rows.empty()) return op != nullptr;
    if (op->keeps_facts && c.node().output(0) != nullptr && c.facts().Of(c.node().output(0)).type != DataType::kUndefined) {
      return true;
    }
    // The row whose ranks fit, or else the first one that holds: it says at least which output has an operand's shape.
    const SignatureRow* chosen = nullptr;
    for (const SignatureRow& row : op->rows) {
      if (!Holds(row, *op, c.node())) continue;
      if (chosen == nullptr) chosen = &row;
      if (!RanksFit(row.signature, c)) continue;
      chosen = &row;
      break;
    }
    Application application(*op, chosen != nullptr ? chosen->signature : op->rows[0].signature, &c);
    application.SetTypes();
    if (chosen != nullptr) application.SetShapes();
    return true;
  }

  std::vector<std::pair<std::string_view, std::string_view>> Operators() const override {
    std::vector<std::pair<std::string_view, std::string_view>> names;
    for (const DeclaredOperator& op : DeclaredOperators()) {
      if (op.rows.empty()) continue;
      names.emplace_back(op.domain, op.op_type);
      if (op.domain == "npu") names.emplace_back("", op.op_type);
    }
    return names;
  }

 private:
  static bool RanksFit(const SignaturePattern& signature, const NodeContext& c) {
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      const OperandPattern& operand = signature.inputs[i];
      if (operand.has_shape && c.has(i) && c.in(i).has_rank && !RankFits(operand.shape, c.in(i).shape.size())) {
        return false;
      }
    }
    return true;
  }
};

}  // namespace

const OperatorInference* DeclaredInference() {
  static const Inference inference;
  return &inference;
}

InferOptions WithDeclaredOperators(InferOptions options) {
  options.operators = DeclaredInference();
  return options;
}

}  // namespace ascend_fuse
