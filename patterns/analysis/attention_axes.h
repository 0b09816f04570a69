// The axes of an attention by what they mean, and what can be its heads.
#pragma once

#include <vector>

#include "patterns/analysis/attention_operands.h"
#include "patterns/analysis/axis_map.h"
#include "patterns/analysis/scores.h"

namespace ascend_fuse {

struct AttentionAxes {
  Atoms leading;  // batch and heads
  Atoms queries;
  Atoms keys;
  Atoms channels;  // of the value
  Atoms width;     // the channels of query and key
  // What is known once the heads are chosen.
  Atoms batch;
  Atoms heads;
  Atoms shared;  // heads that are not an axis of key and value, but rows of the query in its product
};

bool HasAll(const Atoms& all, const Atoms& some);
bool HasAny(const Atoms& all, const Atoms& some);
Atoms Without(const Atoms& all, const Atoms& some);

// What the heads can be, what says most first. `axes` has no heads yet; `output`: the axes of the attention's result.
std::vector<Atoms> PossibleHeads(const AtomTable& atoms, const AttentionAxes& axes, const AttentionOperands& operands,
                                 const ScorePath& path, const AxisList& output);

// The same axes with these heads.
AttentionAxes WithHeads(AttentionAxes axes, const Atoms& heads);

}  // namespace ascend_fuse
