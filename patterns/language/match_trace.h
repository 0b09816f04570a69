// The steps of a search for a pattern, for a person who asks why a rule matches or not: what each part of the rule met.
#pragma once

#include <string>
#include <vector>

#include "patterns/language/pattern.h"

namespace ascend_fuse {

struct MatchTrace {
  // A part of the rule that found what it stands for: "ReduceMean" met `mean`, computed by ReduceMean.
  struct Step {
    SourcePosition position;
    std::string wanted;
    std::string met;
  };
  // What ended an attempt.
  struct Ending {
    SourcePosition position;
    std::string expected;  // empty: `found` says all there is to say
    std::string found;
    friend bool operator==(const Ending& a, const Ending& b) {
      return a.position.line == b.position.line && a.position.column == b.position.column && a.position.file == b.position.file &&
             a.found == b.found;
    }
  };

  std::vector<Step> now;        // of the attempt that goes on
  std::vector<Step> farthest;   // of the match, or of the attempt that got farthest
  std::vector<Ending> endings;  // of all attempts, each once, in their order

  void End(Ending ending);
};

}  // namespace ascend_fuse
