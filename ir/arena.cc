#include "ir/arena.h"

#include <algorithm>

namespace ascend_fuse {

void* Arena::AllocateSlow(size_t size, size_t alignment) {
  // Chunks double from 16 KB to 2 MB: small models stay small, large ones take few page faults.
  size_t chunk = std::min<size_t>(size_t{1} << 21, std::max<size_t>(size_t{1} << 14, reserved_));
  chunk = std::max(chunk, size + alignment);
  chunks_.push_back(std::unique_ptr<uint8_t[]>(new uint8_t[chunk]));  // not zeroed: pages stay untouched
  reserved_ += chunk;
  next_ = reinterpret_cast<uintptr_t>(chunks_.back().get());
  end_ = next_ + chunk;
  return Allocate(size, alignment);
}

}  // namespace ascend_fuse
