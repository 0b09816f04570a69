// The commit that the program was built from, of releases, whose sources have no history beside them; and how it was built.
#pragma once

namespace ascend_fuse {

extern const char kCommit[];  // cmake/commit.cc.in
extern const char kBuild[];   // "Release build, Linux x86_64, GNU 12.2.0"

}  // namespace ascend_fuse
