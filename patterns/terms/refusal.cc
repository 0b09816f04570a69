#include "patterns/terms/refusal.h"

#include <cstring>

#include "absl/strings/cord.h"

namespace ascend_fuse {
namespace {

constexpr char kFinalWord[] = "ascend_fuse/final_word";
constexpr char kCode[] = "ascend_fuse/code";
constexpr char kElsewhere[] = "ascend_fuse/elsewhere";
constexpr char kPlace[] = "ascend_fuse/place";  // the bytes of a pointer: a status does not outlive the model that it is about

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

absl::Status At(const Node* node, absl::Status refusal) {
  if (node == nullptr || refusal.ok() || PlaceOf(refusal) != nullptr) return refusal;
  refusal.SetPayload(kPlace, absl::Cord(std::string(reinterpret_cast<const char*>(&node), sizeof(node))));
  return refusal;
}

absl::Status Elsewhere(absl::Status refusal) {
  if (!refusal.ok()) refusal.SetPayload(kElsewhere, absl::Cord());
  return refusal;
}

bool IsElsewhere(const absl::Status& status) { return status.GetPayload(kElsewhere).has_value(); }

const Node* PlaceOf(const absl::Status& status) {
  const auto place = status.GetPayload(kPlace);
  if (!place.has_value()) return nullptr;
  const Node* node = nullptr;
  const std::string bytes(*place);
  std::memcpy(&node, bytes.data(), sizeof(node));
  return node;
}

bool IsFinalWord(const absl::Status& status) { return status.GetPayload(kFinalWord).has_value(); }

std::string CodeOf(const absl::Status& status) {
  const auto code = status.GetPayload(kCode);
  return code.has_value() ? std::string(*code) : "";
}

}  // namespace ascend_fuse
