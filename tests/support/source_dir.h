// Where the sources of the project lie, for tests that read files of them.
#pragma once

#include <filesystem>

namespace ascend_fuse::testing {

std::filesystem::path SourceDir();

}  // namespace ascend_fuse::testing
