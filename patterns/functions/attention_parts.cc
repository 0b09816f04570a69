#include "patterns/functions/attention_parts.h"

#include <limits>

#include "patterns/terms/node_builder.h"

namespace ascend_fuse {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Every head of x [B, G, T, D] n times in a row.
Term Repeated(const Term& x, int64_t heads, int64_t n) {
  if (n == 1) return x;
  const Term copies = build::Op("Expand", {build::Unsqueeze(x, {2}), build::Numbers({1, 1, n, 1, 1})});
  // [B, G, n, T, D]: what stands after the heads is counted from the copies' own dims.
  const Term shape = build::Shape(x);
  const Term after = build::Slice(shape, 2, 4, 0);
  const Term before = build::Slice(shape, 0, 1, 0);
  return build::Reshape(copies, build::Concat({before, build::Numbers({heads}), after}, 0));
}

// Scores [B, H, S, T] with the sink [1, H, 1, 1] after the keys.
Term WithSink(const Term& scores, const Term& sink) {
  const Term rows = build::Concat({build::Slice(build::Shape(scores), 0, 3, 0), build::Numbers({1})}, 0);
  return build::Concat({scores, build::Op("Expand", {sink, rows})}, 3);
}

}  // namespace

AttentionOutcome ComputeAttention(const PartsOfAttention& parts) {
  AttentionOutcome outcome;
  const int64_t n = parts.heads / parts.key_heads;
  Term s = build::Op("MatMul", {build::Op("Mul", {parts.query, Term::Number(parts.scale)}),
                                build::Transpose(Repeated(parts.key, parts.heads, n), {0, 1, 3, 2})});
  outcome.scores[0] = s;
  if (parts.softcap != 0) {
    s = build::Op("Mul", {build::Op("Tanh", {build::Op("Div", {s, Term::Number(parts.softcap)})}), Term::Number(parts.softcap)});
  }
  outcome.scores[1] = s;
  if (IsGiven(parts.added)) s = build::Op("Add", {s, parts.added});
  if (IsGiven(parts.keep)) s = build::Op("Where", {parts.keep, s, build::Constant(parts.type, {1}, -kInfinity)});
  outcome.scores[2] = s;
  const bool other = parts.softmax != DataType::kUndefined && parts.softmax != parts.type;
  if (IsGiven(parts.sink)) s = WithSink(s, parts.sink);
  Term p = build::Op("Softmax", {other ? build::Cast(s, parts.softmax) : s}, {{"axis", Term::Integer(-1)}});
  if (other) p = build::Cast(p, parts.type);
  if (IsGiven(parts.sink)) p = build::Slice(p, 0, -1, 3);
  if (parts.guard) p = build::Op("Where", {build::Op("IsNaN", {p}), build::Constant(parts.type, {1}, 0), p});
  outcome.scores[3] = p;
  Term y = build::Op("MatMul", {p, Repeated(parts.value, parts.heads, n)});
  if (parts.flat) y = build::Reshape(build::Transpose(y, {0, 2, 1, 3}), {0, 0, -1});
  outcome.y = y;
  return outcome;
}

std::vector<Term> AttentionOutputs(const PartsOfAttention& parts) {
  const AttentionOutcome outcome = ComputeAttention(parts);
  return {outcome.y, parts.present_key, parts.present_value, Term::Absent()};
}

bool IsGiven(const Term& term) { return term.bound() && term.kind != Term::Kind::kAbsent; }

namespace build {

Term Length(const Term& x, int64_t axis) {
  return build::Squeeze(build::Gather(build::Shape(x), build::Numbers({axis}), 0), {0});
}

Term Range(const Term& length) {
  const Term zero = build::Squeeze(build::Constant(DataType::kInt64, {1}, 0), {0});
  const Term one = build::Squeeze(build::Constant(DataType::kInt64, {1}, 1), {0});
  return build::Op("Range", {zero, length, one});
}

Term And(const Term& a, const Term& b) { return IsGiven(a) ? build::Op("And", {a, b}) : b; }

Term Heads(const Term& x, int64_t heads) { return build::Transpose(build::Reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3}); }

}  // namespace build
}  // namespace ascend_fuse
