#include "patterns/functions/refusal.h"

#include <string>

#include "absl/strings/cord.h"

namespace ascend_fuse {
namespace {

constexpr char kFinalWord[] = "ascend_fuse/final_word";

}  // namespace

absl::Status Refuse(std::string_view sentence) {
  return absl::FailedPreconditionError(std::string(sentence));
}

absl::Status FinalWord(std::string_view sentence) {
  absl::Status status = Refuse(sentence);
  status.SetPayload(kFinalWord, absl::Cord());
  return status;
}

bool IsFinalWord(const absl::Status& status) { return status.GetPayload(kFinalWord).has_value(); }

}  // namespace ascend_fuse
