// Small files read and written whole: rules, targets, reports.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ascend_fuse {

// NOT_FOUND with the reason when it cannot be opened or read to its end; a directory cannot.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// A file appears whole or not at all; a device or a pipe stays what it is.
absl::Status WriteWholeFile(const std::string& path, const std::string& text);

}  // namespace ascend_fuse
