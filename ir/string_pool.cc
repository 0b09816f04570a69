#include "ir/string_pool.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace ascend_fuse {
namespace {

uint64_t ProcessSeed() {
  static const uint64_t seed =
      static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) * 0x9E3779B97F4A7C15ull ^
      reinterpret_cast<uintptr_t>(&ProcessSeed);
  return seed;
}

uint64_t Load(const char* data, size_t size) {
  uint64_t word = 0;
  if (size > 0) std::memcpy(&word, data, size);  // data of an empty name may be null
  return word;
}

uint64_t Mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

StringPool::StringPool() : seed_(ProcessSeed() | 1) {
  texts_.push_back({});
  Grow(256);
}

uint32_t StringPool::Hash(std::string_view text) const {
  const char* data = text.data();
  size_t size = text.size();
  uint64_t hash = seed_ ^ (size * 0xD6E8FEB86659FD93ull);
  while (size >= 16) {
    hash = Mix(hash ^ Load(data, 8), Load(data + 8, 8) ^ 0xA0761D6478BD642Full);
    data += 16;
    size -= 16;
  }
  if (size >= 8) {
    hash = Mix(hash ^ Load(data, 8), Load(data + size - 8, 8) ^ 0xE7037ED1A0B428DBull);
  } else {
    hash = Mix(hash ^ Load(data, size), 0xE7037ED1A0B428DBull);
  }
  hash = Mix(hash, 0x8EBC6AF09C88C6E3ull ^ seed_);
  return static_cast<uint32_t>(hash) | 1u;
}

void StringPool::Grow(size_t slots) {
  auto old = std::move(slots_);
  slots_.assign(slots, Slot{});
  const size_t mask = slots - 1;
  for (const Slot& slot : old) {
    if (slot.id == 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].id != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void StringPool::Reserve(size_t count) {
  size_t slots = slots_.size();
  while (slots < count * 2) slots *= 2;
  if (slots != slots_.size()) Grow(slots);
  texts_.reserve(count + 1);
}

NameId StringPool::Intern(std::string_view text) { return text.empty() ? NameId::kEmpty : Intern(Prepared{text, Hash(text)}); }

NameId StringPool::Intern(const Prepared& name) {
  const auto [text, hash] = name;
  if (text.empty()) return NameId::kEmpty;
  if (texts_.size() * 2 > slots_.size()) Grow(slots_.size() * 2);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    Slot& slot = slots_[at];
    if (slot.id == 0) {
      slot = {hash, static_cast<uint32_t>(texts_.size())};
      texts_.push_back(text);
      return static_cast<NameId>(slot.id);
    }
    if (slot.hash == hash && texts_[slot.id] == text) return static_cast<NameId>(slot.id);
  }
}

NameId StringPool::InternCopy(std::string_view text) {
  NameId known;
  if (Find(text, &known)) return known;
  return Intern(copies_.Copy(text));
}

bool StringPool::Find(std::string_view text, NameId* id) const {
  if (text.empty()) {
    *id = NameId::kEmpty;
    return true;
  }
  const uint32_t hash = Hash(text);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].id != 0; at = (at + 1) & mask) {
    if (slots_[at].hash == hash && texts_[slots_[at].id] == text) {
      *id = static_cast<NameId>(slots_[at].id);
      return true;
    }
  }
  return false;
}

bool StringPool::FindNext(std::string_view text, NameId last, NameId* id) const {
  constexpr size_t kNear = 8;    // a node names itself, its outputs, and now and then weights
  constexpr size_t kAhead = 24;  // about ten nodes: their texts lie apart
  const size_t first = static_cast<size_t>(last) + 1;
  const size_t end = std::min(first + kNear, texts_.size());
  for (size_t at = first; at < end; ++at) {
    if (texts_[at] != text) continue;
    for (size_t next = first + kAhead; next <= at + kAhead && next < texts_.size(); ++next)
      __builtin_prefetch(texts_[next].data());
    *id = static_cast<NameId>(at);
    return true;
  }
  return Find(text, id);
}

}  // namespace ascend_fuse
