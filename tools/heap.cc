#include "tools/heap.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace ascend_fuse {

void UseLargePages() {
#ifdef __GLIBC__
  constexpr size_t kReserved = size_t{48} << 20;
  constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
  // In glibc's own heap, which stays when it is free: mappings of their own are given back.
  mallopt(M_MMAP_THRESHOLD, 2 * kReserved);
  mallopt(M_TRIM_THRESHOLD, 4 * kReserved);
  void* const reserved = malloc(kReserved);
  mallopt(M_MMAP_THRESHOLD, size_t{1} << 20);
  if (reserved == nullptr) return;
  const auto begin = (reinterpret_cast<uintptr_t>(reserved) + kLargePage - 1) / kLargePage * kLargePage;
  const auto end = (reinterpret_cast<uintptr_t>(reserved) + kReserved) / kLargePage * kLargePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  free(reserved);
#endif
}

}  // namespace ascend_fuse
