// Which nodes compute the same with axes 1 and 2 of their tensors exchanged, [B, N, S, D] as [B, S, N, D], and how they are
// written then.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ir/infer/facts.h"
#include "passes/workspace.h"

namespace ascend_fuse {

// A node that can be turned.
struct Turnable {
  std::vector<size_t> operands;  // its inputs with axes that are exchanged, each of rank 4
  std::vector<Value*> results;   // likewise its outputs, all of those that are read
};

// nullopt for a node that computes another thing when its tensors are turned, or whose dims are not known enough.
// Attentions are not among them: their layout is an attribute.
std::optional<Turnable> HowToTurn(const Node& node, const Facts& facts);

// The node with axes that are turned; inputs are still those of `node`, but for those that name axes or dims. What it makes
// for those stands in front of it.
NewNode Turned(const Node& node, Workspace& workspace);

// Axes 1 and 2 exchanged.
bool IsTurn(const Node& node);

}  // namespace ascend_fuse
