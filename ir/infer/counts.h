// What integers count: element p of a tensor of indices is a start plus so much for each place along its axes, as Range, Mul, Add
// and constants make it. The indices that pick rows in order are such sums, whatever an exporter wrote for them.
#pragma once

#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ir/dim.h"
#include "ir/graph.h"
#include "ir/infer/facts.h"

namespace ascend_fuse {

// So much for each place along one axis.
struct CountStep {
  int axis = 0;
  Dim each;
  // A vector of the places themselves, 0, 1 ...; nullptr where no value is that.
  const Value* places = nullptr;
};

// Along axes without a step all elements are equal.
struct Count {
  Dim start;
  std::vector<CountStep> steps;  // by axis, each axis once

  // Whether the elements count 0, 1 ... from a number on along one axis, or are one number.
  bool IsRun() const { return start.is_number() && (steps.empty() || (steps.size() == 1 && steps[0].each.is(1))); }
};

// Where integers are looked at.
struct CountContext {
  const Model& model;
  Facts& facts;                                           // sums and products of dims are made in its table
  absl::FunctionRef<bool(const Value&)> fits_in_32_bits;  // asked of what is cast to other integers
};

// What the elements of integers count; nullopt where that is not known.
std::optional<Count> CountOf(const CountContext& context, const Value& value);

// The same of each component of `indices`, which stand along its last axis, where every one of them is a run; else empty.
std::vector<Count> RunsOf(const CountContext& context, const Value* indices);

}  // namespace ascend_fuse
