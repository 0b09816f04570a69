#include "patterns/language/match_trace.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "patterns/language/matcher.h"

namespace ascend_fuse {

void MatchTrace::End(Ending ending) {
  constexpr size_t kMost = 500;  // nobody reads more
  if (endings.size() < kMost && std::find(endings.begin(), endings.end(), ending) == endings.end()) {
    endings.push_back(std::move(ending));
  }
}

bool Matcher::Step(const SourcePosition& position, absl::FunctionRef<std::string()> wanted, absl::FunctionRef<std::string()> met,
                   Next next) {
  MatchTrace* trace = failure_ == nullptr ? nullptr : failure_->trace;
  if (trace == nullptr) return next();
  const size_t before = trace->now.size();
  trace->now.push_back({position, wanted(), met()});
  if (next()) return true;
  trace->now.resize(before);
  return false;
}

}  // namespace ascend_fuse
