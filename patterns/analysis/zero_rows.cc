#include "patterns/analysis/zero_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "ir/one_of.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

constexpr float kSmallestHalf = 0x1p-25F;  // up to here, float16 rounds to 0
constexpr size_t kMostValues = 256;        // that are looked at: a sum of a residual is near

// f (0) is 0.
constexpr std::array<std::string_view, 23> kZeroOfZero = {
    "Abs",  "Asinh", "Atan", "Cast",  "Ceil", "Dropout", "Elu", "Erf",      "Floor", "Gelu",  "HardSwish", "LeakyRelu",
    "Mish", "Neg",   "Relu", "Round", "Selu", "Sign",    "Sin", "Softsign", "Sqrt",  "Swish", "Tanh"};
constexpr std::array<std::string_view, 6> kSums = {"ReduceL1",   "ReduceL2",  "ReduceMax",
                                                   "ReduceMean", "ReduceSum", "ReduceSumSquare"};

// An Ascend node that makes rows of zeros of rows of zeros, as rules/reference has it.
struct AscendRows {
  std::string_view op_type;
  size_t operands = 1;          // the first so many inputs are added up
  int shift = -1;               // the input that is added to the result
  std::optional<int> sum = {};  // the output that is the sum of the operands
};
constexpr std::array<AscendRows, 18> kAscendRows = {{{"NPURmsNorm"},
                                                     {"NPURmsNormWithEpsilon"},
                                                     {"NPUAddRmsNorm", 2, -1, 2},
                                                     {"NPUAddRmsNormWithEpsilon", 2, -1, 2},
                                                     {"NPULayerNormV4", 1, 3},
                                                     {"NPUAddLayerNorm", 2, 3, 3},
                                                     {"NPUGelu"},
                                                     {"NPUGeluV2"},
                                                     {"NPUFastGelu"},
                                                     {"NPUMish"},
                                                     {"NPUSwish"},
                                                     {"NPUSwiGlu"},
                                                     {"NPUGeglu"},
                                                     {"NPUGeGluV2"},
                                                     {"NPURotaryMul"},
                                                     {"NPURotaryPositionEmbedding"},
                                                     {"NPUInterleaveRope"},
                                                     {"NPUFusedMatMul", 1, 2}}};

class ZeroRows {
 public:
  explicit ZeroRows(const FunctionContext& context) : facts_(*context.facts) {}

  std::optional<ZeroDivision> Follow(const Value& value) {
    Add(&value);
    for (size_t i = 0; i < values_.size() && values_.size() < kMostValues; ++i) {
      for (const Use& use : LiveUses(*values_[i])) {
        if (use.user->graph != value.graph) continue;
        if (auto division = Look(*use.user, *values_[i]); division.has_value()) return division;
      }
    }
    return std::nullopt;
  }

 private:
  void Add(const Value* value) {
    if (value != nullptr && zero_.insert(value).second) values_.push_back(value);
  }

  bool IsZero(const Value* value) const {
    if (value == nullptr || zero_.contains(value)) return true;
    const Fact& fact = facts_.Of(value);
    return fact.is_splat && std::abs(fact.splat) <= kSmallestHalf;
  }

  // What the node makes of a row of zeros: its outputs are zero too, it divides, or neither.
  std::optional<ZeroDivision> Look(const Node& node, const Value& zero) {
    if (const MovementKind kind = KindOf(facts_, node); kind != MovementKind::kNone) {
      if (node.input(0) == &zero && IsOfOneOperand(kind)) {
        for (const Value* output : node.outputs()) Add(output);
      }
      return std::nullopt;
    }
    // Style D writes them without a domain.
    const bool is_ascend = OpType(node).substr(0, 3) == "NPU" && (node.domain == NameId::kEmpty || Domain(node) == "npu");
    if (is_ascend) return LookAtAscend(node, zero);
    if (node.domain != NameId::kEmpty) {
      if (KeepsOwn(node, zero)) Add(node.output(0));
      return std::nullopt;
    }
    if (auto division = Divides(node, zero); division.has_value()) return division;
    if (Keeps(node, zero)) Add(node.output(0));
    return std::nullopt;
  }

  // Of a node that was there before, of a first run or made by hand.
  std::optional<ZeroDivision> LookAtAscend(const Node& node, const Value& zero) {
    const std::string_view op = OpType(node);
    if (op == "NPUApplyRotaryPosEmb") {
      for (size_t i = 0; i < 2; ++i) {
        if (node.input(i) == &zero) Add(node.output(i));
      }
      return std::nullopt;
    }
    const auto rows =
        std::find_if(kAscendRows.begin(), kAscendRows.end(), [&](const AscendRows& known) { return known.op_type == op; });
    if (rows == kAscendRows.end()) return std::nullopt;
    bool is_operand = false;
    for (size_t i = 0; i < rows->operands; ++i) {
      if (!IsZero(node.input(i))) return std::nullopt;
      is_operand = is_operand || node.input(i) == &zero;
    }
    if (!is_operand) return std::nullopt;
    if (const auto epsilon = FindAttribute(node, "epsilon"); epsilon.has_value()) {
      // Our plugin's nodes have fractions in lists of one, where six digits do not hold them. The stock nodes take 1e-6 whatever
      // is written.
      const float number = epsilon->floats.empty() ? epsilon->f : epsilon->floats[0];
      const bool is_read = op != "NPURmsNorm" && op != "NPUAddRmsNorm";
      if (is_read && number <= kSmallestHalf) return ZeroDivision{&node, fmt::format("has an epsilon of {:g}", number)};
    }
    if (rows->shift < 0 || IsZero(node.input(rows->shift))) Add(node.output(0));
    if (rows->sum.has_value()) Add(node.output(*rows->sum));
    return std::nullopt;
  }

  // Of a construct that was recognised.
  static bool KeepsOwn(const Node& node, const Value& zero) {
    if (Domain(node) != "ascend_fuse") return false;
    const std::string_view op = OpType(node);
    if (op == "Glu") return node.input(1) == &zero || StringAttribute(node, "activation").value_or("") != "sigmoid";
    return (op == "Rotary" || op == "QuickGelu" || op == "DoubledGelu") && node.input(0) == &zero;
  }

  std::optional<ZeroDivision> Divides(const Node& node, const Value& zero) const {
    const std::string_view op = OpType(node);
    const bool first = node.input(0) == &zero;
    if (op == "Div" && node.input(1) == &zero) return ZeroDivision{&node, "divides by them"};
    if ((op == "Reciprocal" || op == "Log") && first) return ZeroDivision{&node, "has no number for 0"};
    if (op == "Pow" && first) {
      const Fact& exponent = facts_.Of(node.input(1));
      if (exponent.is_splat && exponent.splat < 0) return ZeroDivision{&node, "has no number for 0"};
    }
    if ((op == "RMSNormalization" || op == "LayerNormalization") && first) {
      const float epsilon = FloatAttribute(node, "epsilon").value_or(1e-5F);
      if (epsilon <= kSmallestHalf) return ZeroDivision{&node, fmt::format("has an epsilon of {:g}", epsilon)};
    }
    return std::nullopt;
  }

  bool Keeps(const Node& node, const Value& zero) const {
    const std::string_view op = OpType(node);
    const bool first = node.input(0) == &zero;
    if (op == "Mul") return true;
    if (op == "Add" || op == "Sub" || op == "Sum") {
      return std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Use& use) { return IsZero(use.value); });
    }
    if (op == "Where") return !(node.input(0) == &zero) && IsZero(node.input(1)) && IsZero(node.input(2));
    if (!first) return false;
    if (op == "Div" || op == "MatMul" || op == "Einsum" || op == "RMSNormalization") return true;
    if (op == "Pow") return facts_.Of(node.input(1)).is_splat && facts_.Of(node.input(1)).splat > 0;
    if (op == "Gemm" || op == "LayerNormalization") return IsZero(node.input(2));
    if (IsOneOf(op, kSums)) return IsOverChannels(node);
    return IsOneOf(op, kZeroOfZero);
  }

  // Whether a reduction is along rows.
  bool IsOverChannels(const Node& node) const {
    const auto axes = IntsParameter(facts_, node, "axes", 1);
    const Fact& operand = facts_.Of(node.input(0));
    return axes.has_value() && axes->size() == 1 && operand.has_rank &&
           NormalizeAxis((*axes)[0], operand.rank()) == static_cast<int64_t>(operand.rank()) - 1;
  }

  const Facts& facts_;
  std::vector<const Value*> values_;  // zero where the rows are, in the order in which they were found
  absl::flat_hash_set<const Value*> zero_;
};

}  // namespace

std::optional<ZeroDivision> FindZeroDivision(const FunctionContext& context, const Value& value) {
  return ZeroRows(context).Follow(value);
}

}  // namespace ascend_fuse
