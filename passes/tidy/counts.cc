#include "passes/tidy/counts.h"

namespace ascend_fuse {

std::optional<Count> CountOf(const TidyContext& context, const Value& value) {
  const auto fits = [&context](const Value& number) { return FitsIn32Bits(context, number); };
  return CountOf(CountContext{context.workspace.model(), context.workspace.facts(), fits}, value);
}

std::vector<Count> RunsOf(const TidyContext& context, const Value* indices) {
  const auto fits = [&context](const Value& number) { return FitsIn32Bits(context, number); };
  return RunsOf(CountContext{context.workspace.model(), context.workspace.facts(), fits}, indices);
}

}  // namespace ascend_fuse
