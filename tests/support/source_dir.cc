// The only object that knows the path of the checkout: all others come out of ccache in another checkout.
#include "tests/support/source_dir.h"

namespace ascend_fuse::testing {

std::filesystem::path SourceDir() { return SOURCE_DIR; }

}  // namespace ascend_fuse::testing
