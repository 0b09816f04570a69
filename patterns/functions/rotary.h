// Tables of rotations to be built, which the functions about rotations share.
#pragma once

#include <cstdint>

#include "patterns/terms/term.h"

namespace ascend_fuse {

// Two tables [.., width / 2] of rank `rank` as one [.., width]: side by side or, interleaved, channel by channel.
Term JoinTables(const Term& a, const Term& b, int rank, int64_t width, bool interleaved);

}  // namespace ascend_fuse
