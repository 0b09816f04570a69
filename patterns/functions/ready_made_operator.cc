#include "patterns/functions/ready_made_operator.h"

#include <cmath>
#include <optional>

#include "fmt/format.h"
#include "ir/status_macros.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {

absl::Status NotTakenApart(std::string_view sentence) { return Refuse(sentence, "operator-not-taken-apart"); }

Term ReadyMadeOperator::Extreme(const std::string& op, const Term& a, const Term& b) const {
  if (context_.model->OpsetVersion() >= 12) return build::Op(op, {a, b});
  return build::Op("Where", {build::Op(op == "Max" ? "Greater" : "Less", {a, b}), a, b});
}

absl::StatusOr<int64_t> ReadyMadeOperator::Number(Dim dim, std::string_view what) {
  if (dim.is_number() && dim.number() > 0) return dim.number();
  return Refuse(fmt::format("{} is not known", what), "needs-dim");
}

absl::StatusOr<double> ReadyMadeOperator::Scale(Dim width) const {
  const std::optional<float> scale = FloatAttribute(node_, "scale");
  if (scale.has_value() && *scale < 0) return NotTakenApart("its scale is negative");
  if (scale.has_value() && *scale != 0) return static_cast<double>(*scale);
  if (scale.has_value() && node_.domain == NameId::kEmpty) return NotTakenApart("its scale is written as 0");
  ASSIGN_OR_RETURN(const int64_t known, Number(width, "the head_dim"));
  return 1 / std::sqrt(static_cast<double>(known));
}

void ReadyMadeOperator::AddCache(size_t past_key, size_t past_value, PartsOfAttention* parts) {
  if (Has(past_key)) {
    parts->key = build::Concat({In(past_key), parts->key}, 2);
    parts->value = build::Concat({In(past_value), parts->value}, 2);
    plain_ = false;
  }
  // The output is a copy of what the attention reads, so that the cache is joined once.
  if (Asks(1)) parts->present_key = build::Op("Identity", {parts->key});
  if (Asks(2)) parts->present_value = build::Op("Identity", {parts->value});
  if (Asks(1) || Asks(2)) plain_ = false;
}

Term ReadyMadeOperator::Causal(const PartsOfAttention& parts, const Term& past_key) {
  const Term keys = build::Unsqueeze(build::Range(build::Length(parts.key, 2)), {0});
  Term queries = build::Unsqueeze(build::Range(build::Length(parts.query, 2)), {1});
  if (IsGiven(past_key)) queries = build::Op("Add", {queries, build::Length(past_key, 2)});
  return build::Op("Not", {build::Op("Greater", {keys, queries})});
}

}  // namespace ascend_fuse
