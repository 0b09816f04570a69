// Queries that keep no key whatever the inputs of the model are: what can be seen of a mask that is made of constants.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

struct EmptyRow {
  const Value* mask = nullptr;  // of those that are given, the first that has a part in it
  int64_t query = 0;            // of a part of a constant that a run chooses: the row of the constant
};

// The first query that keeps no key. `masks`: additive, of 0 and what takes a key out, or boolean, true = attend; a key takes
// part where each says so. `drops`: boolean, true = taken out. nullopt where none is seen: what depends on an input keeps every
// key, as far as can be seen, and so does a constant of more than a million elements.
std::optional<EmptyRow> FindEmptyRow(const FunctionContext& context, absl::Span<const Value* const> masks,
                                     absl::Span<const Value* const> drops);

}  // namespace ascend_fuse
