// Values that are proved equal although each is computed by itself: a construct among them is recognised once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/infer/value_numbering.h"

namespace ascend_fuse {

// By graph and number, in the order of the graph. Of values as they are when this is made; linear.
class EqualValues {
 public:
  EqualValues(const Model& model, const ValueNumbering& numbering);

  // All that are equal to `value` and no copies of one another, the first one first; empty where nothing computes it.
  const std::vector<const Value*>& Of(const Value& value) const;

  // The copies of those that are products with ones or sums with zeros: what weights of norms do that were never trained.
  const std::vector<const Value*>& Weighted(const Value& value) const;

  // Whether a construct is looked for at `value`. At one of several copies of a value it would be found once for each; where
  // equal values have one copy each, the first copy is that of all.
  bool IsLookedAt(const Value& value) const;

 private:
  using Classes = absl::flat_hash_map<std::pair<const Graph*, uint32_t>, std::vector<const Value*>>;
  const std::vector<const Value*>& In(const Classes& classes, const Value& value) const;

  const ValueNumbering& numbering_;
  Classes members_;
  Classes weighted_;
};

}  // namespace ascend_fuse
