// Constants whose elements are made of those of other tensors while the model is saved: what Rewriter checks and makes for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "ir/model.h"

namespace ascend_fuse {

// INVALID_ARGUMENT: why the constant of this name cannot be streamed.
absl::Status NotStreamed(std::string_view name, std::string_view why);

// The tensor as one whose elements can be read one after another; typed fields are packed. The error of NotStreamed where its
// elements are not all there. `of_the_model` lives as long as the model.
absl::StatusOr<const Tensor*> PlainTensor(Model* model, const Tensor& of_the_model, std::string_view name);

// Whether elements are computed while they are read, all or some.
bool HasComputedElements(const Tensor& tensor);

// A tensor that is computed as `how` says, whose parts are copied; where that gives the bytes of the codes, these are its
// elements.
absl::StatusOr<Tensor*> DequantizedTensor(Model* model, DataType type, absl::Span<const int64_t> dims, const Dequantization& how,
                                          std::string_view name);

// Few enough bytes to be held in memory.
inline constexpr int64_t kSmallBytes = int64_t{1} << 14;
inline bool IsSmall(const Tensor& tensor) { return tensor.ElementCount() * BitWidth(tensor.type) / 8 <= kSmallBytes; }

// The same text for the same elements.
std::string DescribeDequantization(DataType type, absl::Span<const int64_t> dims, const Dequantization& how);

// The places of the first axis of `whole` in this order (-1: zeros), each run of neighbours as one part; of a tensor whose
// elements are streamed, all as one. `inner`: the elements at a place. `whole` lives as long as the model.
std::vector<const Tensor*> RunsOf(Model* model, const Tensor& whole, int64_t inner, absl::Span<const int64_t> order);

// What Rewriter::Join gives: the elements of `constants`, at least one, one after another along `axis`.
absl::StatusOr<Tensor*> JoinedTensor(Model* model, absl::Span<const Value* const> constants, int64_t axis);

// What Rewriter::Reorder gives: the elements of `constant` in another order along `axis`.
absl::StatusOr<Tensor*> ReorderedTensor(Model* model, const Value& constant, int64_t axis, absl::Span<const int64_t> order);

}  // namespace ascend_fuse
