#include "ir/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace ascend_fuse {
namespace {
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

void* AllocatePages(size_t size) {
  void* memory;
  if (size < kHugePage) {
    memory = std::malloc(size);
  } else {
    const size_t rounded = (size + kHugePage - 1) & ~(kHugePage - 1);
    memory = std::aligned_alloc(kHugePage, rounded);
    if (memory != nullptr) madvise(memory, rounded, MADV_HUGEPAGE);
  }
  // As new does. The functions that others call turn it into RESOURCE_EXHAUSTED: ir/memory.h.
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void FreePages(void* memory) { std::free(memory); }

void* Arena::AllocateSlow(size_t size, size_t alignment) {
  // Chunks double from 16 KB to 2 MB: small models stay small, large ones take few page faults.
  size_t chunk = std::min<size_t>(size_t{1} << 21, std::max<size_t>(size_t{1} << 14, reserved_));
  chunk = std::max(chunk, size + alignment);
  chunks_.push_back(std::unique_ptr<uint8_t, PagesDeleter>(static_cast<uint8_t*>(AllocatePages(chunk))));  // not zeroed
  reserved_ += chunk;
  next_ = reinterpret_cast<uintptr_t>(chunks_.back().get());
  end_ = next_ + chunk;
  return Allocate(size, alignment);
}

}  // namespace ascend_fuse
