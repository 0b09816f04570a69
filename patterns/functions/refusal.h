// Refusals of functions. Most say that a condition does not hold here, and another rule may still apply. A final word
// says that what looks like the construct is none, or that no kernel takes it: it is what the report tells, whatever
// other rules and the target say.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace ascend_fuse {

// The condition does not hold, for the reason that the sentence gives.
absl::Status Refuse(std::string_view sentence);
// The same as a final word.
absl::Status FinalWord(std::string_view sentence);
bool IsFinalWord(const absl::Status& status);

}  // namespace ascend_fuse
