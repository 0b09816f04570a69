#include "patterns/analysis/score_bias.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/constant_tensor.h"
#include "ir/infer/movement_of.h"
#include "ir/one_of.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/analysis/mask.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

constexpr int kMostNodes = 256;
// Constants with more elements than this are not read.
constexpr int64_t kMostElements = int64_t{1} << 24;

const Value* BehindCopies(const FunctionContext& context, const Value* value) {
  while (const Value* source = context.numbering->Source(value)) value = source;
  return value;
}

bool TakesOut(const FunctionContext& context, const Value* value) {
  double number = 0;
  return value != nullptr && ConstantNumber(*context.facts, value, &number) && number <= kMaskThreshold;
}

// Proves that no element of what is added takes a key out, whatever its program: constants are below the threshold in
// magnitude, and what is computed from the network's own values (a product, a sigmoid) is an ordinary number.
class OrdinaryNumbers {
 public:
  explicit OrdinaryNumbers(const FunctionContext& context) : context_(context) {}

  bool Has(const Value* value) {
    if (value == nullptr) return true;
    if (!seen_.insert(value).second) return true;
    if (seen_.size() > kMostNodes) return false;
    const Fact& fact = context_.facts->Of(value);
    if (!IsFloat(fact.type)) return IsInteger(fact.type) || fact.type == DataType::kBool;
    if (fact.is_splat) return IsOrdinary(fact.splat);
    if (const std::optional<Tensor> constant = ConstantTensor(*value); constant.has_value()) return HasTensor(*constant);
    const Node* node = value->producer;
    if (node == nullptr || node->domain != NameId::kEmpty) return false;
    const std::string_view op = OpType(*node);
    if (IsOneOf(op, {"MatMul", "Gemm", "Einsum", "Conv", "LayerNormalization", "Sigmoid", "Tanh", "Softmax"})) return true;
    if (const Movement* movement = context_.facts->MovementOf(value); movement != nullptr) return HasMoved(*movement);
    if (op == "Where") return Has(node->input(1)) && Has(node->input(2));
    if (op == "Div") {
      double divisor = 0;
      return ConstantNumber(*context_.facts, node->input(1), &divisor) && std::fabs(divisor) >= 1 && Has(node->input(0));
    }
    if (op == "Clip") return IsCutToOrdinary(*node);
    if (op == "Resize") return IsAverage(*node) && Has(node->input(0));
    if (!IsOneOf(op, {"Add", "Sub", "Mul", "Neg", "Abs", "Cast", "Relu", "Min", "Max", "Sum", "CumSum", "Trilu"})) {
      return false;
    }
    return std::all_of(node->inputs().begin(), node->inputs().end(), [&](const Use& use) { return Has(use.value); });
  }

 private:
  // Elements of operands, and the number around them (the shift of relative positions).
  bool HasMoved(const Movement& movement) {
    const bool pads = movement.kind == MovementKind::kPads;
    if (pads && (movement.fill_operand != 0 ? !Has(movement.node->input(movement.fill_operand)) : !IsOrdinary(movement.fill))) {
      return false;
    }
    return std::all_of(movement.parts.begin(), movement.parts.end(),
                       [&](const MovedPart& part) { return Has(movement.node->input(part.operand)); });
  }

  static bool IsOrdinary(double number) { return std::fabs(number) < -kMaskThreshold; }
  static bool AreOrdinary(absl::Span<const double> numbers) { return std::all_of(numbers.begin(), numbers.end(), IsOrdinary); }

  // A Resize whose numbers lie between those that it is given: cubic ones overshoot, and a crop fills in a number.
  static bool IsAverage(const Node& resize) {
    const std::optional<Attribute> mode = FindAttribute(resize, "mode");
    const std::optional<Attribute> places = FindAttribute(resize, "coordinate_transformation_mode");
    return (!mode.has_value() || mode->s != "cubic") && (!places.has_value() || places->s != "tf_crop_and_resize");
  }

  // A Clip with two bounds; before opset 11 they are attributes.
  bool IsCutToOrdinary(const Node& clip) const {
    double low = 0;
    double high = 0;
    return clip.input_count == 3 && clip.input(1) != nullptr && clip.input(2) != nullptr &&
           ConstantNumber(*context_.facts, clip.input(1), &low) && ConstantNumber(*context_.facts, clip.input(2), &high) &&
           IsOrdinary(low) && IsOrdinary(high);
  }

  bool HasTensor(const Tensor& tensor) {
    const auto numbers = ReadFloats(*context_.model, tensor, kMostElements);
    return numbers.ok() && AreOrdinary(*numbers);
  }

  const FunctionContext& context_;
  absl::flat_hash_set<const Value*> seen_;
};

class Splitter {
 public:
  Splitter(const FunctionContext& context, ScoreParts* parts) : context_(context), parts_(*parts) {}

  absl::Status Split(const Value* added) {
    if (++steps_ > kMostNodes) return NotProved(*added);
    if (OnlyMasks(context_, added)) {
      parts_.masks.push_back(added);
      return absl::OkStatus();
    }
    const Node* node = BehindCopies(context_, added)->producer;
    if (node != nullptr && IsOp(*node, "Add")) {
      RETURN_IF_ERROR(Split(node->input(0)));
      return Split(node->input(1));
    }
    if (node != nullptr && IsOp(*node, "Where") && node->input(0) != nullptr) {
      if (TakesOut(context_, node->input(2))) {
        parts_.masks.push_back(node->input(0));
        return Split(node->input(1));
      }
      if (TakesOut(context_, node->input(1))) {
        parts_.drops.push_back(node->input(0));
        return Split(node->input(2));
      }
    }
    if (!OrdinaryNumbers(context_).Has(added)) return NotProved(*added);
    parts_.biases.push_back(added);
    return absl::OkStatus();
  }

 private:
  absl::Status NotProved(const Value& value) const {
    return Refuse(fmt::format("{} is added to the scores, and is proved neither to hold only 0 and minus infinity, which is a "
                              "mask, nor to hold neither, which is a bias",
                              NameInModel(*context_.facts, value)),
                  "mask-is-bias");
  }

  const FunctionContext& context_;
  ScoreParts& parts_;
  int steps_ = 0;
};

// A bias in the query's type: from before it was widened where it was.
absl::StatusOr<const Value*> InTypeOf(const FunctionContext& context, const Value* bias, const Value* query) {
  const DataType wanted = context.facts->Of(query).type;
  const Value* value = bias;
  if (context.facts->Of(value).type == wanted) return value;
  const Node* node = BehindCopies(context, value)->producer;
  if (node != nullptr && IsOp(*node, "Cast") && context.facts->Of(node->input(0)).type == wanted) return node->input(0);
  return Refuse(fmt::format("the bias {} is {} beside a query of {}, and the kernel adds it in the query's type",
                            ValueName(*bias), DataTypeName(context.facts->Of(bias).type), DataTypeName(wanted)),
                "operand-refused");
}

}  // namespace

absl::StatusOr<ScoreParts> SplitScores(const FunctionContext& context, absl::Span<const Value* const> added) {
  ScoreParts parts;
  Splitter splitter(context, &parts);
  for (const Value* value : added) {
    RETURN_IF_ERROR(splitter.Split(value));
  }
  return parts;
}

absl::StatusOr<Term> SumOfBiases(const FunctionContext& context, const ScoreParts& parts, const Value* query) {
  Term sum = Term::Absent();
  for (const Value* bias : parts.biases) {
    ASSIGN_OR_RETURN(const Value* const value, InTypeOf(context, bias, query));
    sum = sum.kind == Term::Kind::kAbsent ? Term::Of(value) : build::Op("Add", {std::move(sum), Term::Of(value)});
  }
  return sum;
}

absl::StatusOr<Term> WholeBias(const FunctionContext& context, const ScoreParts& parts, const Value* query, const Value* key) {
  if (parts.biases.empty()) return Term::Absent();
  const Fact& q = context.facts->Of(query);
  const Fact& k = context.facts->Of(key);
  if (q.rank() != 4 || k.rank() != 4) return Refuse("the ranks of query and key are not known to be 4", "shape-not-known");
  for (const Value* bias : parts.biases) {
    RETURN_IF_ERROR(CheckMaskShape(context, *bias, q));
  }
  ASSIGN_OR_RETURN(Term sum, SumOfBiases(context, parts, query));
  const Fact* fact = sum.kind == Term::Kind::kValue ? &context.facts->Of(sum.value) : nullptr;
  const bool whole = fact != nullptr && fact->rank() == 4 && context.dims->Equal(fact->shape[1], q.shape[1]) &&
                     context.dims->Equal(fact->shape[2], q.shape[2]) && context.dims->Equal(fact->shape[3], k.shape[2]);
  if (whole) return sum;
  return ExpandedToScores(context, std::move(sum), fact, TermOfDim(q.shape[1]), query, key);
}

}  // namespace ascend_fuse
