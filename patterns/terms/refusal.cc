#include "patterns/terms/refusal.h"

#include "absl/strings/cord.h"

namespace ascend_fuse {
namespace {

constexpr char kFinalWord[] = "ascend_fuse/final_word";
constexpr char kCode[] = "ascend_fuse/code";

}  // namespace

absl::Status Refuse(std::string_view sentence, std::string_view code) {
  absl::Status status = absl::FailedPreconditionError(std::string(sentence));
  if (!code.empty()) status.SetPayload(kCode, absl::Cord(std::string(code)));
  return status;
}

absl::Status FinalWord(std::string_view sentence, std::string_view code) {
  absl::Status status = Refuse(sentence, code);
  status.SetPayload(kFinalWord, absl::Cord());
  return status;
}

bool IsFinalWord(const absl::Status& status) { return status.GetPayload(kFinalWord).has_value(); }

std::string CodeOf(const absl::Status& status) {
  const auto code = status.GetPayload(kCode);
  return code.has_value() ? std::string(*code) : "";
}

}  // namespace ascend_fuse
