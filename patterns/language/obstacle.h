// Why nodes that a rule matched may not be replaced: something else needs what is costly to compute, or the new node would read
// what it computes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "patterns/language/match_cache.h"
#include "patterns/language/rule_set.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

struct Obstacle {
  const Node* node = nullptr;
  // Where somebody asks: what was expected of the node, and what is there.
  std::string expected;
  std::string found;
};

// Of a match that bound these terms and covers these nodes; nullopt where they may be replaced, or are not.
std::optional<Obstacle> FindObstacle(const Rule& rule, const std::vector<Term>& terms, const std::vector<const Node*>& covered,
                                     MatchCache& cache, bool explain);

}  // namespace ascend_fuse
