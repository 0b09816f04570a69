// Bump allocation for everything a Model owns: nodes, values, uses, names, attribute bytes. Nothing is
// freed one by one and no destructor runs, so a Model of a million nodes goes away at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace ascend_fuse {

// Memory of `size` bytes, in pages of 2 MB where the system has them: a large table then costs one page fault
// instead of hundreds. Freed with FreePages; throws std::bad_alloc like new.
void* AllocatePages(size_t size);
void FreePages(void* memory);

struct PagesDeleter {
  void operator()(uint8_t* memory) const { FreePages(memory); }
};

// For vectors that grow to many megabytes.
template <typename T>
struct PageAllocator {
  using value_type = T;
  PageAllocator() = default;
  template <typename U>
  PageAllocator(const PageAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t count) { return static_cast<T*>(AllocatePages(count * sizeof(T))); }
  void deallocate(T* memory, size_t) { FreePages(memory); }
  bool operator==(const PageAllocator&) const { return true; }
};

class Arena {
 public:
  Arena() = default;
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* Allocate(size_t size, size_t alignment) {
    uintptr_t at = (next_ + alignment - 1) & ~(static_cast<uintptr_t>(alignment) - 1);
    if (at + size > end_ || next_ == 0) return AllocateSlow(size, alignment);
    next_ = at + size;
    return reinterpret_cast<void*>(at);
  }

  // A new T; T must need no destructor.
  template <typename T, typename... Args>
  T* New(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena runs no destructors");
    return new (Allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }

  // `count` value-initialised T; nullptr for 0.
  template <typename T>
  T* NewArray(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena runs no destructors");
    if (count == 0) return nullptr;
    T* first = static_cast<T*>(Allocate(sizeof(T) * count, alignof(T)));
    for (size_t i = 0; i < count; ++i) new (first + i) T{};
    return first;
  }

  // A copy that lives as long as the arena.
  std::string_view Copy(std::string_view text) {
    if (text.empty()) return {};
    char* to = static_cast<char*>(Allocate(text.size(), 1));
    std::memcpy(to, text.data(), text.size());
    return {to, text.size()};
  }
  template <typename T>
  absl::Span<const T> Copy(absl::Span<const T> items) {
    if (items.empty()) return {};
    T* to = static_cast<T*>(Allocate(items.size() * sizeof(T), alignof(T)));
    std::memcpy(to, items.data(), items.size() * sizeof(T));
    return {to, items.size()};
  }

  size_t bytes_reserved() const { return reserved_; }

 private:
  void* AllocateSlow(size_t size, size_t alignment);

  std::vector<std::unique_ptr<uint8_t, PagesDeleter>> chunks_;
  uintptr_t next_ = 0;
  uintptr_t end_ = 0;
  size_t reserved_ = 0;
};

}  // namespace ascend_fuse
