// A recognised operator whose lowering is looked for: the sites that it computes, and what was said of the rules that were
// tried there.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "passes/core/site.h"
#include "patterns/language/pattern.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

// Why a rule that goes before another one was not used: what the other one emits has its form because of this.
struct WhyThisForm {
  std::string code;
  std::string because;
  std::string source;
};

struct Attempt {
  const Node* node = nullptr;
  Site* main = nullptr;
  Site* partner = nullptr;   // the other of a pair, where it is not decided
  bool padded = false;       // zeros were put after the channels of its heads
  std::vector<Site*> sites;  // all that are not decided and computed by this operator
  absl::flat_hash_map<std::pair<std::string, std::string>, WhyThisForm> why_this_form;  // by kind and name of the other rule

  // A rule's refusal is told where its kind is counted; of several the one that says most.
  void Refuse(const Rule& rule, std::string_view code, const std::string& because, const std::string& source, RefusalRank kind,
              const FailureRank& how_far = {}) const;
};

// What the target says of the first node of a rule that it does not accept in any form; nullopt if it has them all.
std::optional<Answer> WhyNoSuchNode(const Rule& rule, const Target& target, DimTable* dims);

}  // namespace ascend_fuse
