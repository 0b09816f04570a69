// Interned names: equal strings have equal ids, so names are compared and hashed as one number.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/arena.h"

namespace ascend_fuse {

// The number of an interned string in its StringPool. 0 is the empty string in every pool.
enum class NameId : uint32_t { kEmpty = 0 };

class StringPool {
 public:
  StringPool();
  StringPool(StringPool&&) = default;
  StringPool& operator=(StringPool&&) = default;

  // The id of `text`, new or known. The pool keeps a view, not a copy: `text` must outlive the pool
  // (bytes of the loaded file do; for anything else use InternCopy).
  NameId Intern(std::string_view text);
  NameId InternCopy(std::string_view text);

  // The same in two steps, for many names at once: Prepare starts fetching the place of the name from memory,
  // which is most of the time that Intern takes. Intern needs no Prepare to stand right before it.
  struct Prepared {
    std::string_view text;
    uint32_t hash = 0;
  };
  Prepared Prepare(std::string_view text) const {
    if (text.empty()) return {};
    const uint32_t hash = Hash(text);
    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
    return {text, hash};
  }
  NameId Intern(const Prepared& name);

  // The id of `text` if it is known; false otherwise. Never adds.
  bool Find(std::string_view text, NameId* id) const;
  // The same for names that come in about the order in which they were interned: looks at the few ids after
  // `last`, the one found before, and starts fetching those that follow. A hash table scatters such names: of
  // a million, each costs three cache misses.
  bool FindNext(std::string_view text, NameId last, NameId* id) const;

  std::string_view Text(NameId id) const { return texts_[static_cast<uint32_t>(id)]; }
  size_t size() const { return texts_.size(); }
  void Reserve(size_t count);

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t id = 0;  // 0: empty slot (the empty string is never stored in the table)
  };
  uint32_t Hash(std::string_view text) const;
  void Grow(size_t slots);

  std::vector<std::string_view, PageAllocator<std::string_view>> texts_;
  std::vector<Slot, PageAllocator<Slot>> slots_;
  uint64_t seed_;  // per process: names come from untrusted files
  Arena copies_;
};

}  // namespace ascend_fuse
