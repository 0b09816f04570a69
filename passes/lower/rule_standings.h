// What keeps a rule from being tried at all: another one says more of what the target has not, or its node was measured slower.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "passes/core/workspace.h"
#include "passes/lower/attempt.h"

namespace ascend_fuse {

class RuleStandings {
 public:
  explicit RuleStandings(Workspace& workspace);

  // False where the rule is not to be tried at this operator; what there is to say of it is said of its sites.
  bool MayTry(size_t rule, const Attempt& attempt);

 private:
  // What the target makes of a rule, whatever the site.
  struct Standing {
    bool passed_over = false;
    // The node of it that was measured slower, everywhere or at some sites, and is not preferred.
    const DeclaredOperator* slower = nullptr;
  };

  const Standing& StandingOf(size_t r);
  bool IsPassedOver(const Rule& rule) const;
  bool IsSlowerHere(size_t r, const DeclaredOperator& node, const Attempt& attempt);
  void RefuseSlower(size_t r, const DeclaredOperator& node, const Attempt& attempt, const std::string& where,
                    const std::string& because, const std::string& source);

  Workspace& workspace_;
  const RuleSet& rules_;
  const Target& target_;
  std::vector<std::optional<Standing>> standings_;  // by number of the rule
};

}  // namespace ascend_fuse
