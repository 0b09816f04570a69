// Refusals of functions. Most say that a condition does not hold here, and another rule may still apply. A final word
// says that what looks like the construct is not one, or that no kernel takes it: it is what the report tells, whatever
// other rules and the target say. A refusal that a user can do something about has a code of patterns/codes.txtpb.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace ascend_fuse {

struct Node;

// The condition does not hold for the reason that the sentence gives.
absl::Status Refuse(std::string_view sentence, std::string_view code = "");
// The same as a final word.
absl::Status FinalWord(std::string_view sentence, std::string_view code = "");
// The same refusal, told of the node that the sentence is about; of one that was told already nothing changes.
absl::Status At(const Node* node, absl::Status refusal);
// The same refusal, where the operands may have been taken the wrong way round: what stopped another way to match says more.
absl::Status Elsewhere(absl::Status refusal);
bool IsElsewhere(const absl::Status& status);
// That node, or nullptr: the rule's own place is as good as any.
const Node* PlaceOf(const absl::Status& status);
bool IsFinalWord(const absl::Status& status);
// The code of a refusal, or "" where it has none of its own.
std::string CodeOf(const absl::Status& status);

}  // namespace ascend_fuse
