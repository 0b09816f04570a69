#include "passes/lower/attempt.h"

namespace ascend_fuse {

void Attempt::Refuse(const Rule& rule, std::string_view code, const std::string& because, const std::string& source,
                     RefusalRank kind, const FailureRank& how_far) const {
  const std::pair rank(kind, how_far);
  for (Site* site : sites) {
    if (site->record.kind != rule.kind || rank <= site->refusal) continue;
    site->refusal = rank;
    site->Say(std::string(code), because, source);
  }
}

std::optional<Answer> WhyNoSuchNode(const Rule& rule, const Target& target, DimTable* dims) {
  for (const std::string& op : rule.nodes) {
    if (!target.HasNode(op)) return target.Check(Call{op, {}, {}}, dims);
  }
  return std::nullopt;
}

}  // namespace ascend_fuse
