// The commit that the program was built from: of releases, whose sources have no history beside them.
#pragma once

namespace ascend_fuse {

extern const char kCommit[];  // cmake/commit.cc.in

}  // namespace ascend_fuse
