// Which nodes compute the same with two axes of their tensors exchanged, [B, N, S, D] as [B, S, N, D] or [S, B, E] as
// [B, S, E], and how they are written then.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

// The two axes that are exchanged in tensors of this rank. Where both are the same one, that axis is both in row-major order,
// and what is exchanged is which of them is the outer one: [S * B, E] as [B * S, E].
struct ExchangedAxes {
  int rank = 0;
  int first = 0;
  int second = 0;  // not before `first`

  bool merged() const { return first == second; }
  bool Has(int64_t axis) const { return axis == first || axis == second; }
  // Where an axis, which may be counted from the end, stands then.
  int64_t Exchanged(int64_t axis) const;
};

// Heads and tokens of [B, N, S, D] and [B, S, N, D].
inline constexpr ExchangedAxes kHeadsAndTokens = {4, 1, 2};

// A node that computes the same with the axes of its tensors exchanged.
struct Exchangeable {
  std::vector<size_t> operands;       // its inputs with axes that are exchanged, each of that rank
  std::vector<const Value*> results;  // likewise its outputs, all of those that are read; some outputs may be left out
};

// nullopt for a node that computes another thing when its tensors are turned, or whose dims are not known enough.
// Attentions are not among them: their layout is an attribute.
std::optional<Exchangeable> HowToExchange(const Node& node, const Facts& facts, const ExchangedAxes& axes);

// The node with axes that are turned; inputs are still those of `node`, but for those that name axes or dims. What it makes
// for those stands in front of it.
NewNode Exchanged(const Node& node, Workspace& workspace, const ExchangedAxes& axes);

// A result of a node, and what the turned node computes in its place.
struct ExchangedResult {
  const Value* before = nullptr;
  const Value* now = nullptr;
};

// Writes `plan` in place of `node`: each of `results` by the output of the same number, and as the value of the graph that
// `existing` names for it, where there is one; the others are new values, called `name`. `axes`: those that are exchanged in the
// results; none where they stay as they are. INTERNAL where a result has not the type and the shape that it should have then.
absl::StatusOr<std::vector<ExchangedResult>> WriteExchanged(const Node& node, const NewNode& plan,
                                                            absl::Span<const Value* const> results,
                                                            const absl::flat_hash_map<const Value*, const Value*>& existing,
                                                            std::string_view name, const std::optional<ExchangedAxes>& axes,
                                                            Workspace& workspace);

// A reader of the dims alone, of whichever order.
bool ReadsDims(const Node& node);

// Heads and tokens exchanged by a Transpose.
bool ExchangesHeadsAndTokens(const Facts& facts, const Node& node);

}  // namespace ascend_fuse
