// What is done to the scores of one attention, taken apart once for all functions and rules that ask: masks and biases, and how a
// kernel masks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/analysis/score_bias.h"
#include "patterns/terms/function_context.h"

namespace ascend_fuse {

// What sparse_mode says (mirror-cann/ops-transformer:docs/zh/context/sparse_mode.md).
inline constexpr int64_t kWholeMask = 0;
inline constexpr int64_t kLeftUpCausal = 2;     // j <= i
inline constexpr int64_t kRightDownCausal = 3;  // j <= i + keys - queries
inline constexpr int64_t kBand = 4;             // i + keys - queries - pre_tokens <= j <= i + keys - queries + next_tokens
inline constexpr int64_t kEveryToken = 2147483647;

// How a kernel masks: `masks` false is without a mask.
struct KernelPlan {
  bool masks = true;
  int64_t mode = kWholeMask;
  int64_t pre_tokens = kEveryToken;
  int64_t next_tokens = kEveryToken;
};

struct AttentionMasks {
  absl::StatusOr<ScoreParts> parts;
  KernelPlan plan;                       // where there are parts
  std::vector<std::string> assumptions;  // what the plan takes for granted
};

// A mask of an attention, where it is there.
using MaskOperand = std::optional<const Value*>;

// The masks of the attention that was asked about last: the rules that are tried for one attention ask one after another.
class AttentionMemo {
 public:
  std::shared_ptr<const AttentionMasks> Of(const FunctionContext& context, const Value* q, const Value* k,
                                           const std::vector<MaskOperand>& masks);

 private:
  struct Asked {
    std::vector<const Value*> values;
    std::vector<Dim> dims;  // of the scores, as far as they are known now
    bool operator==(const Asked&) const = default;
  };
  Asked asked_;
  std::shared_ptr<const AttentionMasks> found_;
};

// By the memo of the context, where it has one.
std::shared_ptr<const AttentionMasks> MasksOf(const FunctionContext& context, const Value* q, const Value* k,
                                              const std::vector<MaskOperand>& masks);

// The assumptions of the plan are those of the rule that uses it.
void NoteAssumptions(const FunctionContext& context, const AttentionMasks& masks);

}  // namespace ascend_fuse
