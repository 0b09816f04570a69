// Values that are proved equal although each is computed by itself: a construct among them is recognised once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/infer/value_numbering.h"

namespace ascend_fuse {

// By graph and number, in the order of the graph. Copies of one another are not among them. Of values as they are when
// this is made; linear.
class EqualValues {
 public:
  EqualValues(const Model& model, const ValueNumbering& numbering);

  // All that are equal to `value`, the first one first; empty where nothing computes it.
  const std::vector<Value*>& Of(const Value& value) const;

  // Whether a construct is looked for at `value`. At one of several copies of a value it would be found once for each.
  bool IsLookedAt(const Value& value) const;

 private:
  const ValueNumbering& numbering_;
  absl::flat_hash_map<std::pair<const Graph*, uint32_t>, std::vector<Value*>> members_;
};

}  // namespace ascend_fuse
