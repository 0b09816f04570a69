// Numbers for the symbols of a model, so that counts become numbers: those of --dim, and one default for what it leaves open.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/infer/facts.h"
#include "ir/model.h"
#include "passes/analyze/analysis.h"

namespace ascend_fuse {

// The default: a symbol that stands at the first axis of inputs only is a batch, of which there is one; everything else that is
// open is 128.
inline constexpr int64_t kDefaultBatch = 1;
inline constexpr int64_t kDefaultLength = 128;

class Binding {
 public:
  // Of a range of `dims` the end counts.
  Binding(const Model& model, const std::vector<std::pair<std::string, DimRange>>& dims);

  // From here on dims are those of another table: Dim::id means something else.
  void OfOtherDims() { values_.clear(); }
  // The number of a dim; 0 for one that is not known, and for one that would be negative.
  double Evaluate(Dim dim, const DimTable& dims);
  Amount Of(Dim dim, const DimTable& dims);
  // The symbols that were asked for, with their numbers, and those of inputs that were given.
  std::vector<BoundDim> Used() const;

 private:
  int64_t NumberOf(std::string_view symbol);

  std::map<std::string, int64_t, std::less<>> given_;
  std::map<std::string, bool, std::less<>> batch_;  // symbols of inputs: whether one stands at the first axis only
  std::map<std::string, int64_t, std::less<>> used_;
  absl::flat_hash_map<int64_t, double> values_;  // of expressions, by Dim::id
};

}  // namespace ascend_fuse
