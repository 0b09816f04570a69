// The name of a place without the number of its layer, so that what happens in every layer is said once.
#pragma once

#include <string>

namespace ascend_fuse {

// "model.layers.12.self_attn" -> "model.layers.*.self_attn", "/layers.3/norm" -> "/layers.*/norm": digits
// that are a whole word of the path.
std::string PlacePattern(const std::string& path);

}  // namespace ascend_fuse
