// What passes know of a recognised construct beside its record in the report: its places in the graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/core/records.h"
#include "patterns/language/matcher.h"

namespace ascend_fuse {

// How much a refusal to lower says: of several the one that says most is told.
enum class RefusalRank : uint8_t {
  kNothing,          // there is none
  kNoMatch,          // a rule does not match; how far it got says more
  kNotBuilt,         // the rule matched, and its nodes cannot be built here
  kNoSuchNode,       // the target has no such node, or refuses one for a pair
  kMeasuredSlower,   // its node was measured slower than what is there, or the target has no such node
  kRefusedByTarget,  // the nodes were built, and the target refuses one
  kUndecided,        // the same for what a symbolic dim may be: what --dim tells can make it fit
  kSaidByRule,       // the rule itself says why what looks like the construct is not one
};

struct Site {
  SiteRecord record;
  const Value* value = nullptr;                 // what the construct computes
  std::vector<const Value*> others;             // what it computes besides: the sum of a residual
  const Node* node = nullptr;                   // the recognised operator; nullptr for an observation
  std::vector<const Node*> covered;             // the nodes that it replaced; the record names the original ones
  std::vector<const Node*> made;                // all that replaced original nodes together with it, in the order made
  std::vector<const Node*> equals;              // equal operators that nothing reads while what read them is recognised
  int pair = -1;                                // the site that turns the other of query and key with the same cos and sin
  bool no_ge_pass = false;                      // GE's pass for this kind does not find the original nodes, says the recogniser
  std::string assumes;                          // what its recogniser takes for granted, if anything
  std::string ge_construct;                     // the construct as which GE takes the original nodes, of the recogniser
  bool of_numbers = false;                      // its recogniser, and so GE's pass, wants dims that are numbers
  std::vector<const Node*> for_ge;              // what a pass of GE was left to take: of `covered`, or what was written for it
  uint64_t order = 0;                           // place of `value` in the original order
  std::string lowered_by;                       // the rule that took it
  std::pair<RefusalRank, FailureRank> refusal;  // of the lowering that `because` tells of

  bool pending() const { return record.state.empty(); }
  bool fused() const { return record.state == "fused"; }
  // What targets' data call what a pass of GE may find in the original nodes; "" where none does.
  std::string_view construct() const {
    if (no_ge_pass) return "";
    return ge_construct.empty() ? record.kind : ge_construct;
  }
  void SetState(std::string_view state) { record.state = state; }
  void Say(std::string code, std::string because, std::string source) {
    record.code = std::move(code);
    record.because = std::move(because);
    record.source = std::move(source);
  }
};

}  // namespace ascend_fuse
