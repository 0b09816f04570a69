// What is known of dims in a body of If, Loop or Scan alone: equalities by scope, and what follows of them while a scope is set.
// Included by ir/dim/*.cc only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/dim.h"

namespace ascend_fuse::dim_algebra {

struct ScopedDims {
  // An atom that has another substitute while the scope is set.
  struct Placed {
    uint32_t atom = 0;
    Dim value;
    Dim otherwise;  // its substitute elsewhere
  };
  static constexpr size_t kMostEqualities = 64;  // of one scope

  absl::flat_hash_map<uint64_t, uint64_t> outer;                               // the scope that a scope lies within
  absl::flat_hash_map<uint64_t, std::vector<std::pair<Dim, Dim>>> equalities;  // by scope
  std::vector<Placed> placed;
  // What expressions are while atoms are placed, by their number: no atom has another value for those outside.
  absl::flat_hash_map<int64_t, Dim> resolved;

  bool AnyPlaced() const { return !placed.empty(); }
};

}  // namespace ascend_fuse::dim_algebra
