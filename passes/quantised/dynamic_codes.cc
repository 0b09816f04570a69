#include "passes/quantised/dynamic_codes.h"

namespace ascend_fuse {

DynamicCodes QuantizeByRange(CodeWriter& writer, const Node& at, const Value* x) {
  const auto over_all = [&](const char* op) { return writer.Op(at, op, {x}, {Attribute::Int("keepdims", 0)}); };
  const Value* nothing = writer.Number(at, 0);
  const Value* most = writer.Number(at, 255);
  const Value* high = writer.Op(at, "Max", {over_all("ReduceMax"), nothing});
  const Value* low = writer.Op(at, "Min", {over_all("ReduceMin"), nothing});
  const Value* range = writer.Op(at, "Sub", {high, low});
  // A tensor of zeros has the scale 1.
  const Value* none = writer.Cast(at, writer.Op(at, "Equal", {range, nothing}), DataType::kFloat);
  const Value* scale = writer.Op(at, "Add", {writer.Op(at, "Div", {range, most}), none});
  const Value* start = writer.Op(at, "Sub", {nothing, writer.Op(at, "Div", {low, scale})});
  const Value* zero = writer.Op(at, "Round", {writer.Op(at, "Clip", {start, nothing, most})});
  const Value* rounded = writer.Op(at, "Round", {writer.Op(at, "Div", {x, scale})});
  return {writer.Op(at, "Clip", {writer.Op(at, "Add", {rounded, zero}), nothing, most}), scale, zero};
}

}  // namespace ascend_fuse
