#include "passes/quantised/int8_codes.h"

#include <optional>
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/call_of.h"

namespace ascend_fuse {
namespace {

constexpr char kQuantize[] = "npu.NPUQuantize";
constexpr int64_t kHalf = 128;  // how far codes of uint8 lie above those of int8

// NPUQuantize of what was quantised; nullptr where the target does not take it.
const Value* QuantizedByNode(CodeWriter& writer, const Node& at, const KeptCodes& kept, int64_t zero) {
  Workspace& workspace = writer.workspace();
  const auto scale = static_cast<float>(writer.OneNumber(kept.source_scale).value_or(0));
  const Rewriter::Mark before = workspace.rewriter().Now();
  const auto zero_byte = static_cast<int8_t>(zero);
  NewNode plan;
  plan.domain = "npu";
  plan.op_type = "NPUQuantize";
  plan.name = fmt::format("{}_quantize", Label(at));
  plan.inputs = {kept.source,
                 RowOfNumbers(workspace, at, DataType::kFloat, {reinterpret_cast<const char*>(&scale), sizeof scale}, "scale"),
                 RowOfNumbers(workspace, at, DataType::kInt8, {reinterpret_cast<const char*>(&zero_byte), 1}, "zero")};
  plan.attributes = {Attribute::Int("dtype", 2), Attribute::Int("axis", 1)};
  const Value* const codes = NodeInserter(workspace, at).Insert(plan);
  const Call call = CallOf(*codes->producer, workspace.facts(), kQuantize);
  if (workspace.target()->Check(call, &workspace.facts().dims()).legal) return codes;
  workspace.rewriter().RollBack(before);
  return nullptr;
}

}  // namespace

absl::StatusOr<Int8Codes> AsInt8(CodeWriter& writer, const Node& at, const QuantisedTensor& of) {
  const DataType type = writer.Of(of.codes).type;
  const auto zero = of.zero == nullptr ? std::optional<double>(0) : writer.OneNumber(of.zero);
  if (type != DataType::kInt8 && type != DataType::kUint8) {
    return NotWritten(fmt::format("its activation is quantised to {}", DataTypeName(type)));
  }
  if (!zero.has_value()) return NotWritten("the zero point of its activation is computed, or differs along an axis");
  const int64_t middle = type == DataType::kUint8 ? kHalf : 0;
  const int64_t zero_of_int8 = static_cast<int64_t>(*zero) - middle;
  KeptCodes* const kept = writer.FindKept(of.codes);
  if (kept == nullptr || kept->centered == nullptr) {
    if (type == DataType::kInt8) return Int8Codes{of.codes, zero_of_int8};
    ASSIGN_OR_RETURN(const Value* numbers, writer.FloatOf(at, of.codes));
    const Value* const lower = writer.Op(at, "Sub", {numbers, writer.Number(at, static_cast<double>(middle))});
    return Int8Codes{writer.Cast(at, lower, DataType::kInt8), zero_of_int8};
  }
  if (kept->int8 != nullptr) return Int8Codes{kept->int8, zero_of_int8};
  if (!writer.SameFactor(kept->zero, of.zero)) return NotWritten("its activation is dequantised with another zero point");
  const Value* codes = nullptr;
  const bool rounds_in_float32 = writer.workspace().target()->KeepsRange();
  if (kept->source != nullptr && !rounds_in_float32) codes = QuantizedByNode(writer, at, *kept, zero_of_int8);
  kept->by_node = codes != nullptr;
  if (codes == nullptr) {
    const Value* numbers = kept->centered;
    if (zero_of_int8 != 0) {
      numbers = writer.Op(at, "Add", {numbers, writer.Number(at, static_cast<double>(zero_of_int8))});
    }
    codes = writer.Cast(at, numbers, DataType::kInt8);
  }
  kept->int8 = codes;
  writer.with_int8.push_back(of.codes);
  return Int8Codes{codes, zero_of_int8};
}

void ForgetInt8(CodeWriter& writer, size_t since) {
  for (size_t i = since; i < writer.with_int8.size(); ++i) {
    if (KeptCodes* kept = writer.FindKept(writer.with_int8[i]); kept != nullptr) kept->int8 = nullptr;
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
