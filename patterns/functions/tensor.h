// Shapes, element types and numbers of terms: values of the graph, and nodes to be built as far as their operators
// say. What the functions of rules share.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/functions/registry.h"

namespace ascend_fuse {

// More axes than any tensor has: what lists axes by a number of the model refuses more.
inline constexpr int64_t kMostAxes = 1024;

// The dims of a value, or of a Transpose of one that is not built yet. FAILED_PRECONDITION where they are not known.
absl::StatusOr<std::vector<Term>> ShapeOf(const FunctionContext& context, const Term& term);
// One of them; a negative axis counts from the end. INVALID_ARGUMENT for an axis beyond the rank.
absl::StatusOr<Dim> DimAt(const FunctionContext& context, const Term& term, int64_t axis);
// The element type of a value or of a node to be built, whose operator must say it. FAILED_PRECONDITION where it is
// not known.
absl::StatusOr<DataType> TypeOf(const FunctionContext& context, const Term& term);
// A dim that must be a number in the graph; FAILED_PRECONDITION says how to make it one.
absl::StatusOr<int64_t> PlainNumber(const FunctionContext& context, Dim dim);

// The name of a value, or what else the term is, in a message.
std::string NameOfTerm(const FunctionContext& context, const Term& term);
// "[B, 4]".
std::string DescribeList(const FunctionContext& context, List items);
// Provably equal, one by one.
bool EqualLists(const FunctionContext& context, List a, List b);
// a has no more dims than b, and each is 1 or b's.
bool Broadcasts(const FunctionContext& context, List a, List b);

}  // namespace ascend_fuse
