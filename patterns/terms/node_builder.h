// Nodes to be built, each in one line. Parameters that some opsets keep in attributes and others in inputs are given
// as attributes: the emitter puts them where the model's opset has them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "patterns/terms/term.h"

namespace ascend_fuse::build {

// An operator of the default domain with one output.
Term Op(std::string op_type, std::vector<Term> inputs, std::vector<std::pair<std::string, Term>> attributes = {});
// A list of numbers: axes, a perm, the dims of a Reshape (0: as it was).
Term Numbers(const std::vector<int64_t>& numbers);
// A vector of numbers and of nodes that are vectors of one number: a list, such a node, or one Concat.
Term Vector(const std::vector<Term>& elements);
// The numbers of such a list, all of whose items are whole numbers.
std::vector<int64_t> IntegersOf(const std::vector<Term>& items);

Term Cast(Term x, DataType to);
Term Concat(std::vector<Term> parts, int64_t axis);
Term Gather(Term x, Term indices, int64_t axis);
Term Reshape(Term x, Term dims);
Term Reshape(Term x, const std::vector<int64_t>& dims);
Term Shape(Term x);
// The sum over the axes, which stay as 1 where `keepdims` is 1.
Term ReduceSum(Term x, const std::vector<int64_t>& axes, int64_t keepdims);
// Every step-th element from the first to before the last along the axis.
Term Slice(Term x, int64_t first, int64_t last, int64_t axis, int64_t step = 1);
Term Squeeze(Term x, const std::vector<int64_t>& axes);
Term Transpose(Term x, const std::vector<int64_t>& perm);
Term Unsqueeze(Term x, const std::vector<int64_t>& axes);
// Booleans, true above the diagonal.
Term AboveDiagonal(int64_t rows, int64_t columns);
// A constant with these dims, all of whose elements are `fill`.
Term Constant(DataType type, const std::vector<int64_t>& dims, double fill);

// A constant with these dims and elements, whole numbers of type int32 or int64.
Term Elements(DataType type, const std::vector<int64_t>& dims, const std::vector<int64_t>& elements);
// The same of float32.
Term Floats(const std::vector<int64_t>& dims, const std::vector<double>& elements);

}  // namespace ascend_fuse::build
