// What operators that are a whole attention have in common: their inputs, heads, scale, caches and the causal mask.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/functions/attention_parts.h"
#include "patterns/terms/function_context.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {

// From this opset on an Attention pads a mask that has fewer keys than there are.
constexpr int64_t kPadsMasks = 24;

// The outputs of an operator, computed from its parts.
struct TakenApart {
  std::vector<Term> outputs;
  bool plain = true;  // a rule of the library takes the operator as it is: without a cache, and with no mask of its own making
};

// Each for its operators, as their documents say; a refusal says what is not taken apart.
absl::StatusOr<TakenApart> OnnxAttentionApart(const FunctionContext& context, const Node& node);
absl::StatusOr<TakenApart> RuntimeAttentionApart(const FunctionContext& context, const Node& node);
absl::StatusOr<TakenApart> GroupQueryAttentionApart(const FunctionContext& context, const Node& node);

absl::Status NotTakenApart(std::string_view sentence);

class ReadyMadeOperator {
 protected:
  ReadyMadeOperator(const FunctionContext& context, const Node& node) : context_(context), node_(node) {}

  const Fact& FactOf(size_t i) const { return context_.facts->Of(node_.input(i)); }
  bool Has(size_t i) const { return i < node_.input_count && node_.input(i) != nullptr; }
  bool Asks(size_t i) const { return i < node_.output_count && node_.output(i) != nullptr; }
  Term In(size_t i) const { return Has(i) ? Term::Of(node_.input(i)) : Term::Absent(); }
  // Max or Min of int64, which both take from opset 12 on.
  Term Extreme(const std::string& op, const Term& a, const Term& b) const;
  static absl::StatusOr<int64_t> Number(Dim dim, std::string_view what);
  absl::StatusOr<double> Scale(Dim width) const;
  // Key and value with their caches, [B, G, P, D] and [B, G, P, E], in front.
  void AddCache(size_t past_key, size_t past_value, PartsOfAttention* parts);
  // j <= i + the length of the cache [B, G, P, D], if there is one.
  static Term Causal(const PartsOfAttention& parts, const Term& past_key);

  const FunctionContext& context_;
  const Node& node_;
  bool plain_ = true;
};

}  // namespace ascend_fuse
