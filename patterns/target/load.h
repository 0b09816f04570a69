// Opens target files: the built-in ones, encoded when the program is built, and those of users, in text form.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ascend_fuse::proto {
class CannFile;
class TargetFile;
}  // namespace ascend_fuse::proto

namespace ascend_fuse::contract {

// The base of every chip.
inline constexpr char kStock[] = "_stock";

template <typename Message>
struct OpenedFile {
  std::string path;       // as errors name it
  bool is_users = false;  // read from a path; else built in, and proven by the tests
  std::shared_ptr<const Message> data;
};

// Whether a chip or a CANN version is named by the path of a user's file.
bool IsPath(std::string_view name);

// Names of the built-in chips and CANN versions, sorted.
std::vector<std::string> ChipNames();
std::vector<std::string> CannNames();

// The file of a chip and then its bases, in order; `plugin` puts the file of our op plugin before the stock
// base. `name` is a chip, one of ATC's --soc_version (Ascend910B4 is ascend910b), or a path. NOT_FOUND lists
// the names there are or names the path that cannot be opened; INVALID_ARGUMENT names line and column, or the
// base that does not exist.
absl::StatusOr<std::vector<OpenedFile<proto::TargetFile>>> OpenChip(const std::string& name, bool plugin);

// The same of a CANN version; its bases count for their `unsupported` rows only.
absl::StatusOr<std::vector<OpenedFile<proto::CannFile>>> OpenCann(const std::string& name);

}  // namespace ascend_fuse::contract
