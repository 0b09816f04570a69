// Negations: a Not of what can say the opposite by itself: a comparison of integers, a Cast to bool, a constant, and what joins
// and moves these. Masks of exports keep where Ascend kernels take out, so that one stands before every attention.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/constant_tensor.h"
#include "ir/movement/movement.h"
#include "passes/tidy/kinds.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;  // of a constant that is negated
constexpr int kDeepest = 12;

class Negation {
 public:
  Negation(TidyContext& context, const Node& node) : context_(context), node_(node) {}

  // The opposite of the value, of which nothing is computed twice; nullopt where another node would be needed.
  std::optional<Term> Of(const Value& value, int depth) {
    const Node* const node = value.producer;
    if (const auto constant = ConstantTensor(value); constant.has_value()) return OfConstant(value, *constant);
    if (node == nullptr || node->dead || node->graph != node_.graph || node->domain != NameId::kEmpty || depth > kDeepest) {
      return std::nullopt;
    }
    if (IsOp(*node, "Not")) return Term::Of(node->input(0));
    if (!ReadOnce(value)) return std::nullopt;
    if (IsOp(*node, "And") || IsOp(*node, "Or")) return OfBoth(*node, depth);
    if (IsOp(*node, "Cast")) return OfCast(*node);
    if (const Movement* const movement = context_.facts().MovementOf(&value); movement != nullptr)
      return OfMoved(*movement, depth);
    return OfComparison(*node);
  }

 private:
  std::optional<Term> OfBoth(const Node& node, int depth) {
    const auto a = Of(*node.input(0), depth + 1);
    const auto b = a.has_value() ? Of(*node.input(1), depth + 1) : std::nullopt;
    if (!b.has_value()) return std::nullopt;
    return build::Op(IsOp(node, "And") ? "Or" : "And", {*a, *b});
  }

  // What is not a number is neither below nor above: integers only.
  std::optional<Term> OfComparison(const Node& node) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOpposites = {
        {{"Less", "GreaterOrEqual"}, {"GreaterOrEqual", "Less"}, {"Greater", "LessOrEqual"}, {"LessOrEqual", "Greater"}}};
    constexpr int64_t kHasAll = 12;
    if (context_.workspace.model().OpsetVersion() < kHasAll || !IsInteger(context_.facts().Of(node.input(0)).type))
      return std::nullopt;
    for (const auto& [op, opposite] : kOpposites) {
      if (IsOp(node, op)) return build::Op(std::string(opposite), {Term::Of(node.input(0)), Term::Of(node.input(1))});
    }
    return std::nullopt;
  }

  std::optional<Term> OfCast(const Node& node) {
    const DataType from = context_.facts().Of(node.input(0)).type;
    if (from != DataType::kInt32 && from != DataType::kInt64) return std::nullopt;
    const Value* const zero = context_.workspace.rewriter().NumberConstant(node_.graph, from, 0, "zero");
    InferConstant(zero, &context_.workspace.facts());
    return build::Op("Equal", {Term::Of(node.input(0)), Term::Of(zero)});
  }

  std::optional<Term> OfConstant(const Value& value, const Tensor& tensor) {
    auto bytes = tensor.type == DataType::kBool ? ReadBytes(context_.workspace.model(), tensor, kMostBytes)
                                                : absl::StatusOr<std::string>(absl::NotFoundError(""));
    if (!bytes.ok()) return std::nullopt;
    for (char& byte : *bytes) byte = byte == 0 ? 1 : 0;
    const Value* const opposite =
        context_.workspace.rewriter().Constant(node_.graph, DataType::kBool, tensor.dims, *bytes, ValueName(value));
    InferConstant(opposite, &context_.workspace.facts());
    return Term::Of(opposite);
  }

  // The same move of the opposite, where the node moves one operand and says how by numbers.
  std::optional<Term> OfMoved(const Movement& movement, int depth) {
    const bool one = movement.only() != nullptr && movement.only()->operand == 0 && movement.kind != MovementKind::kPads;
    const Node& node = *movement.node;
    if (!one || node.output_count != 1) return std::nullopt;
    std::vector<std::pair<std::string, Term>> attributes;
    for (const Attribute& attribute : ReadAttributes(node)) {
      const auto term = TermOfAttribute(attribute);
      if (!term.has_value() || term->kind == Term::Kind::kText) return std::nullopt;
      attributes.emplace_back(std::string(attribute.name), *term);
    }
    const auto moved = Of(*node.input(0), depth + 1);
    if (!moved.has_value()) return std::nullopt;
    std::vector<Term> inputs = {*moved};
    for (size_t i = 1; i < node.input_count; ++i) {
      if (node.input(i) == nullptr) return std::nullopt;
      inputs.push_back(Term::Of(node.input(i)));
    }
    return build::Op(std::string(OpType(node)), std::move(inputs), std::move(attributes));
  }

  TidyContext& context_;
  const Node& node_;
};

}  // namespace

std::optional<Tidied> AskNegations(TidyContext& context, const Node& node) {
  const Value* const x = node.input(0);
  if (x == nullptr || node.output() == nullptr || x->producer == nullptr || ConstantTensor(*x).has_value()) return std::nullopt;
  auto opposite = Negation(context, node).Of(*x, 0);
  return opposite.has_value() ? std::optional(Tidied::Of(*std::move(opposite))) : std::nullopt;
}

}  // namespace ascend_fuse
