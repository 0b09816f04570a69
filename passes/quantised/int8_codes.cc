#include "passes/quantised/int8_codes.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/call_of.h"

namespace ascend_fuse {
namespace {

constexpr char kQuantize[] = "npu.NPUQuantize";
constexpr int64_t kHalf = 128;  // how far codes of uint8 lie above those of int8

// The scale and the zero point of NPUQuantize, [1] each: constants, or computed of what is quantised.
std::vector<const Value*> FactorsOf(CodeWriter& writer, const Node& at, const KeptCodes& kept, int64_t zero) {
  Workspace& workspace = writer.workspace();
  if (kept.source_zero != nullptr) {
    NodeInserter inserter(workspace, at);
    const Value* const lower = writer.Op(at, "Sub", {kept.source_zero, writer.Number(at, static_cast<double>(kHalf))});
    return {inserter.Unsqueeze(kept.source_scale, {0}), inserter.Unsqueeze(writer.Cast(at, lower, DataType::kInt8), {0})};
  }
  const auto scale = static_cast<float>(writer.OneNumber(kept.source_scale).value_or(0));
  const auto zero_byte = static_cast<int8_t>(zero);
  return {RowOfNumbers(workspace, at, DataType::kFloat, {reinterpret_cast<const char*>(&scale), sizeof scale}, "scale"),
          RowOfNumbers(workspace, at, DataType::kInt8, {reinterpret_cast<const char*>(&zero_byte), 1}, "zero")};
}

// NPUQuantize of what was quantised; nullptr where the target does not take it.
const Value* QuantizedByNode(CodeWriter& writer, const Node& at, const KeptCodes& kept, int64_t zero) {
  Workspace& workspace = writer.workspace();
  const Rewriter::Mark before = workspace.rewriter().Now();
  NewNode plan;
  plan.domain = "npu";
  plan.op_type = "NPUQuantize";
  plan.name = fmt::format("{}_quantize", Label(at));
  plan.inputs = FactorsOf(writer, at, kept, zero);
  plan.inputs.insert(plan.inputs.begin(), kept.source);
  plan.attributes = {Attribute::Int("dtype", 2), Attribute::Int("axis", 1)};
  const Value* const codes = NodeInserter(workspace, at).Insert(plan);
  const Call call = CallOf(*codes->producer, workspace.facts(), kQuantize);
  if (workspace.target()->Check(call, &workspace.facts().dims()).legal) return codes;
  workspace.rewriter().RollBack(before);
  return nullptr;
}

// A zero point that is computed, less `middle`, int32 [1].
absl::StatusOr<const Value*> ComputedZero(CodeWriter& writer, const Node& at, const Value* zero, int64_t middle) {
  const Fact fact = writer.Of(zero);
  const bool one = fact.has_rank && (fact.rank() == 0 || (fact.rank() == 1 && fact.shape[0].is(1)));
  if (!one) return NotWritten("the zero point of its activation differs along an axis, or its shape is not known");
  ASSIGN_OR_RETURN(const Value* number, writer.FloatOf(at, zero));
  if (middle != 0) number = writer.Op(at, "Sub", {number, writer.Number(at, static_cast<double>(middle))});
  const Value* const integer = writer.Cast(at, number, DataType::kInt32);
  return fact.rank() == 1 ? integer : NodeInserter(writer.workspace(), at).Unsqueeze(integer, {0});
}

// The codes of a tensor less `middle`.
absl::StatusOr<const Value*> MadeInt8(CodeWriter& writer, const Node& at, const Value* codes, int64_t middle) {
  KeptCodes* const kept = writer.FindKept(codes);
  if (kept == nullptr || kept->centered == nullptr) {
    if (middle == 0) return codes;
    ASSIGN_OR_RETURN(const Value* numbers, writer.FloatOf(at, codes));
    return writer.Cast(at, writer.Op(at, "Sub", {numbers, writer.Number(at, static_cast<double>(middle))}), DataType::kInt8);
  }
  if (kept->int8 != nullptr) return kept->int8;
  const auto zero = kept->zero == nullptr ? std::optional<double>(0) : writer.OneNumber(kept->zero);
  if (!zero.has_value()) return NotWritten("the zero point of its activation differs along an axis");
  const int64_t lifted = static_cast<int64_t>(*zero) - middle;  // what numbers less their zero point lack to be codes of int8
  const bool rounds_in_float32 = writer.workspace().target()->KeepsRange();
  if (kept->source != nullptr && !rounds_in_float32) kept->int8 = QuantizedByNode(writer, at, *kept, lifted);
  kept->by_node = kept->int8 != nullptr;
  if (kept->int8 == nullptr) {
    const Value* numbers = kept->centered;
    if (lifted != 0) numbers = writer.Op(at, "Add", {numbers, writer.Number(at, static_cast<double>(lifted))});
    kept->int8 = writer.Cast(at, numbers, DataType::kInt8);
  }
  writer.with_int8.push_back(codes);
  return kept->int8;
}

}  // namespace

absl::StatusOr<Int8Codes> AsInt8(CodeWriter& writer, const Node& at, const QuantisedTensor& of) {
  const DataType type = writer.Of(of.codes).type;
  if (type != DataType::kInt8 && type != DataType::kUint8) {
    return NotWritten(fmt::format("its activation is quantised to {}", DataTypeName(type)));
  }
  const int64_t middle = type == DataType::kUint8 ? kHalf : 0;
  const auto zero = of.zero == nullptr ? std::optional<double>(0) : writer.OneNumber(of.zero);
  Int8Codes made;
  if (zero.has_value()) {
    made.zero = static_cast<int64_t>(*zero) - middle;
  } else {
    ASSIGN_OR_RETURN(made.computed_zero, ComputedZero(writer, at, of.zero, middle));
  }
  ASSIGN_OR_RETURN(made.codes, MadeInt8(writer, at, of.codes, middle));
  return made;
}

void ForgetInt8(CodeWriter& writer, size_t since) {
  for (size_t i = since; i < writer.with_int8.size(); ++i) {
    if (KeptCodes* kept = writer.FindKept(writer.with_int8[i]); kept != nullptr) kept->int8 = kept->deployed = nullptr;
  }
  writer.with_int8.resize(since);
}

void ReadNumbersOfInt8(CodeWriter& writer) {
  for (const Value* value : writer.with_int8) {
    const KeptCodes* kept = writer.FindKept(value);
    if (kept == nullptr || !kept->by_node || kept->int8 == nullptr) continue;
    const Node* const clip = kept->centered->producer;
    if (clip->dead || LiveUses(*kept->centered).empty() || kept->int8->producer->dead) continue;
    const int64_t middle = writer.Of(value).type == DataType::kUint8 ? kHalf : 0;
    const double zero = kept->zero == nullptr ? 0 : writer.OneNumber(kept->zero).value_or(0);
    const Value* const numbers = writer.Cast(*clip, kept->int8, DataType::kFloat);
    writer.TakeOver(kept->centered, "Sub", {numbers, writer.Number(*clip, zero - static_cast<double>(middle))});
  }
}

}  // namespace ascend_fuse
