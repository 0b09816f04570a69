// What a user says of an input of the graph (--assume), which its type does not say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ascend_fuse {

// What a user says of an input of the graph (--assume).
struct InputAssumption {
  enum class Kind : uint8_t { kOnes, kBinary, kLeftPadded, kRightPadded };
  std::string input;
  Kind kind = Kind::kBinary;
};

// "ones", "binary", "left-padded", "right-padded"; nullopt for any other word.
std::optional<InputAssumption::Kind> AssumptionFromName(std::string_view name);

}  // namespace ascend_fuse
