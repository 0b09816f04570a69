// Tables of numbers in a model as functions of places: a triangle of constants is a comparison of two indices, and nobody looks
// at its elements again.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/infer/facts.h"
#include "ir/infer/value_numbering.h"

namespace ascend_fuse {

// What is found out of a table of numbers: its elements as a function of sums of indices.
struct TableForm {
  bool known = false;
  std::vector<int64_t> coefficients;  // by axis: of what is looked up, or of the element itself
  bool affine = false;
  double start = 0;                               // affine: the element is start + sum of coefficients * index
  std::vector<std::pair<int64_t, double>> steps;  // else: up to and including that sum, the element is this
};

// Those of the constants of a model, each found once. All must outlive this.
class TableForms {
 public:
  TableForms(const Model& model, const Facts& facts, const ValueNumbering& numbering)
      : model_(model), facts_(facts), numbering_(numbering) {}

  // Of a constant, or of a value whose elements are known.
  const TableForm& Of(const Value* value);

 private:
  const Model& model_;
  const Facts& facts_;
  const ValueNumbering& numbering_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<TableForm>> forms_;  // by number of the value
  int64_t elements_ = 0;                                             // read so far
};

}  // namespace ascend_fuse
