// Attentions of ONNX Runtime with as many heads of key and value as of the query, taken apart.
#include <array>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/analysis/mask.h"
#include "patterns/functions/ready_made_operator.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

class RuntimeAttention : public ReadyMadeOperator {
 public:
  RuntimeAttention(const FunctionContext& context, const Node& node) : ReadyMadeOperator(context, node) {}

  // com.microsoft (query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value)
  // (onnxruntime: docs/ContribOperators.md). Packed: query [B, S, N, 3, D], or key [B, T, N, 2, D].
  absl::StatusOr<TakenApart> OfMultiHead() {
    PartsOfAttention parts;
    parts.type = FactOf(0).type;
    parts.heads = IntAttribute(node_, "num_heads").value_or(0);
    parts.key_heads = parts.heads;
    if (parts.heads < 1) return NotTakenApart("the number of heads is not written");
    for (size_t i = 8; i < node_.input_count; ++i) {
      if (Has(i)) return NotTakenApart("a cache that is written in place is taken apart by no rule");
    }
    if (Asks(3)) return NotTakenApart("scores that are an output are taken apart by no rule");
    ASSIGN_OR_RETURN(Dim width, SplitHeads(3, &parts));
    ASSIGN_OR_RETURN(parts.scale, Scale(width));
    AddCache(6, 7, &parts);
    if (IntAttribute(node_, "unidirectional").value_or(0) == 1) parts.keep = Unidirectional(parts);
    RETURN_IF_ERROR(AddRuntimeMasks(4, 5, &parts));
    return TakenApart{AttentionOutputs(parts), plain_};
  }

  // com.microsoft (input, weights, bias, mask_index, past [2, B, N, P, D], attention_bias, past_sequence_length), and y and
  // present [2, B, N, T, D]: the projections of query, key and value are inside.
  absl::StatusOr<TakenApart> OfProjections() {
    PartsOfAttention parts;
    parts.type = FactOf(0).type;
    parts.heads = IntAttribute(node_, "num_heads").value_or(0);
    parts.key_heads = parts.heads;
    if (parts.heads < 1 || !Has(1) || FactOf(0).rank() != 3 || FactOf(1).rank() != 2) {
      return NotTakenApart("input and weights have other ranks than its document says");
    }
    if (Has(6) || IntAttribute(node_, "do_rotary").value_or(0) != 0) {
      return NotTakenApart("a cache that is written in place, and a rotation inside, are taken apart by no rule");
    }
    ASSIGN_OR_RETURN(const int64_t all, Number(FactOf(1).shape[1], "the width of the weights"));
    std::vector<int64_t> widths = IntsAttribute(node_, "qkv_hidden_sizes").value_or(std::vector<int64_t>(3, all / 3));
    if (widths.size() != 3 || widths[0] + widths[1] + widths[2] != all || widths[0] != widths[1]) {
      return NotTakenApart("the widths of query, key and value are not those of the weights");
    }
    plain_ = !IntsAttribute(node_, "qkv_hidden_sizes").has_value();  // which the rule of the library does not know
    if (widths[2] != widths[0] && (Has(4) || Asks(1))) {
      return NotTakenApart(
          fmt::format("past and present of com.microsoft.Attention are one tensor of keys and values, which ONNX Runtime "
                      "defines only where both are as wide: here keys have {} channels and values {}",
                      widths[0], widths[2]));
    }
    Term projected = build::Op("MatMul", {In(0), In(1)});
    if (Has(2)) projected = build::Op("Add", {projected, In(2)});
    std::array<Term, 3> heads;
    int64_t first = 0;
    for (size_t i = 0; i < 3; ++i) {
      heads[i] = build::Heads(build::Slice(projected, first, first + widths[i], 2), parts.heads);
      first += widths[i];
    }
    parts.query = heads[0];
    parts.key = heads[1];
    parts.value = heads[2];
    ASSIGN_OR_RETURN(parts.scale, Scale(Dim::Of(widths[0] / parts.heads)));
    const bool unidirectional = IntAttribute(node_, "unidirectional").value_or(0) == 1;
    Term past = Term::Absent();
    if (Has(4)) {
      plain_ = false;
      past = build::Squeeze(build::Slice(In(4), 0, 1, 0), {0});
      parts.key = build::Concat({past, parts.key}, 2);
      parts.value = build::Concat({build::Squeeze(build::Slice(In(4), 1, 2, 0), {0}), parts.value}, 2);
    }
    if (Asks(1)) {
      plain_ = false;
      parts.present_key = build::Concat({build::Unsqueeze(parts.key, {0}), build::Unsqueeze(parts.value, {0})}, 0);
    }
    if (unidirectional) parts.keep = Causal(parts, past);
    RETURN_IF_ERROR(AddRuntimeMasks(3, 5, &parts));
    return TakenApart{AttentionOutputs(parts), plain_};
  }

  // com.microsoft (query [B, 1, N D], key, value, mask_index, attention_bias, past_key, past_value, past_sequence_length,
  // beam_width, cache_indirection, bias): one query, with a cache in front of the key or, where key and value have their heads
  // in front, across.
  absl::StatusOr<TakenApart> OfDecoderMasked() {
    plain_ = false;
    PartsOfAttention parts;
    parts.type = FactOf(0).type;
    parts.heads = IntAttribute(node_, "num_heads").value_or(0);
    parts.key_heads = parts.heads;
    if (parts.heads < 1) return NotTakenApart("the number of heads is not written");
    if (IntAttribute(node_, "past_present_share_buffer").value_or(0) != 0 || Has(7) || Has(8) || Has(9)) {
      return NotTakenApart("a cache that is written in place, and beams, are taken apart by no rule");
    }
    if (IntAttribute(node_, "output_qk").value_or(0) != 0 || Asks(3)) {
      return NotTakenApart("scores that are an output are taken apart by no rule");
    }
    ASSIGN_OR_RETURN(Dim width, SplitHeads(10, &parts));
    ASSIGN_OR_RETURN(parts.scale, Scale(width));
    AddCache(5, 6, &parts);
    RETURN_IF_ERROR(AddRuntimeMasks(3, 4, &parts));
    return TakenApart{AttentionOutputs(parts), plain_};
  }

 private:
  // Causal, but ONNX Runtime's last query sees all keys: no query is masked that stands last
  // (onnxruntime: contrib_ops/cpu/bert/attention_helper.h, PrepareMask). Where the new keys are no more than the queries,
  // those are the keys that it sees anyway.
  Term Unidirectional(const PartsOfAttention& parts) {
    const Term causal = Causal(parts, In(6));
    if (FactOf(0).rank() == 5) return causal;  // as many keys as queries
    const Fact& key = FactOf(1);
    const Dim keys = key.shape[key.rank() == 4 ? 2 : 1];
    if (context_.dims->AtLeast(FactOf(0).shape[1], keys)) {
      if (key.rank() == 4) plain_ = false;
      return causal;
    }
    plain_ = false;
    const Term length = build::Length(parts.query, 2);
    const Term last = build::Op("Sub", {length, build::Constant(DataType::kInt64, {1}, 1)});
    return build::Op("Or", {causal, build::Unsqueeze(build::Op("Equal", {build::Range(length), last}), {1})});
  }

  // The mask [B, T] or [B, S, T] of integers, 1 where a key is attended to, and what is added to the scores.
  absl::Status AddRuntimeMasks(size_t mask, size_t bias, PartsOfAttention* parts) {
    if (Has(mask)) {
      const Fact& pad = FactOf(mask);
      if (!pad.has_rank || pad.rank() < 1 || pad.rank() > 3) {
        return NotTakenApart(fmt::format("{} has another rank than its document says", ValueName(*node_.input(mask))));
      }
      Term keys = build::Cast(In(mask), DataType::kBool);
      if (pad.rank() == 1) {
        ASSIGN_OR_RETURN(keys, KeysOfLengths(mask, *parts));
      }
      const Term attended = build::Unsqueeze(keys, pad.rank() == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2});
      const double fill = FloatAttribute(node_, "mask_filter_value").value_or(kRuntimeMaskFill);
      if (!(fill <= kMaskThreshold)) plain_ = false;  // keys that are masked take part
      parts->added =
          build::Op("Where", {attended, build::Constant(parts->type, {1}, 0), build::Constant(parts->type, {1}, fill)});
    }
    if (Has(bias)) parts->added = IsGiven(parts->added) ? build::Op("Add", {parts->added, In(bias)}) : In(bias);
    return absl::OkStatus();
  }

  // Which keys [B, T] are attended to: those before the end of each batch [B], of [2B] not before its start. Of [3B + 2],
  // lengths and the starts of rows without padding, ONNX Runtime reads the lengths
  // (onnxruntime: contrib_ops/cpu/bert/attention_helper.h, PrepareMask).
  absl::StatusOr<Term> KeysOfLengths(size_t mask, const PartsOfAttention& parts) {
    plain_ = false;
    const Dim batch = FactOf(0).shape[0];
    const Dim count = FactOf(mask).shape[0];
    const auto is_times = [&](int64_t n, int64_t more) {
      return context_.dims->Equal(count, context_.dims->Add(context_.dims->Mul(batch, Dim::Of(n)), Dim::Of(more)));
    };
    const Term lengths = build::Cast(In(mask), DataType::kInt64);
    const Term places = build::Unsqueeze(build::Range(build::Length(parts.key, 2)), {0});  // [1, T]
    const auto before = [&](const Term& ends) { return build::Op("Less", {places, build::Unsqueeze(ends, {1})}); };
    if (is_times(1, 0)) return before(lengths);
    if (is_times(2, 0)) {
      const Term both = build::Reshape(lengths, {2, -1});
      const auto row = [&](int64_t i) { return build::Squeeze(build::Slice(both, i, i + 1, 0), {0}); };
      return build::Op("And", {before(row(0)), build::Op("Not", {before(row(1))})});
    }
    if (is_times(3, 2) && batch.is_number()) return before(build::Slice(lengths, 0, batch.number(), 0));
    return Refuse(
        fmt::format("whether {} gives an end, or an end and a start, for each batch is not known", ValueName(*node_.input(mask))),
        "shape-not-known");
  }

  // Query, key and value with their heads and biases, which are input `bias`; the head_dim.
  absl::StatusOr<Dim> SplitHeads(size_t bias, PartsOfAttention* parts) {
    const Fact& q = FactOf(0);
    if (Has(0) && q.rank() == 5 && !Has(1) && !Has(2)) {
      plain_ = false;
      if (Has(bias)) return NotTakenApart("a bias of packed heads is taken apart by no rule");
      std::array<Term, 3> packed;
      for (int64_t i = 0; i < 3; ++i) {
        packed[static_cast<size_t>(i)] = build::Transpose(build::Squeeze(build::Slice(In(0), i, i + 1, 3), {3}), {0, 2, 1, 3});
      }
      parts->query = packed[0];
      parts->key = packed[1];
      parts->value = packed[2];
      return q.shape[4];
    }
    if (q.rank() != 3 || !Has(1)) return NotTakenApart("query and key have other ranks than its document says");
    const Dim width = context_.dims->ExactDiv(q.shape[2], Dim::Of(parts->heads));
    std::array<Term, 3> given = {In(0), In(1), In(2)};
    if (FactOf(1).rank() == 5 && !Has(2)) {
      plain_ = false;
      if (Has(bias)) return NotTakenApart("a bias of packed heads is taken apart by no rule");
      parts->query = build::Heads(given[0], parts->heads);
      parts->key = build::Transpose(build::Squeeze(build::Slice(given[1], 0, 1, 3), {3}), {0, 2, 1, 3});
      parts->value = build::Transpose(build::Squeeze(build::Slice(given[1], 1, 2, 3), {3}), {0, 2, 1, 3});
      return width;
    }
    if (!Has(2) || FactOf(1).rank() != FactOf(2).rank())
      return NotTakenApart("key and value have other ranks than its document says");
    if (FactOf(1).rank() == 4) {
      if (Has(bias)) return NotTakenApart("a bias beside key and value with heads is taken apart by no rule");
      parts->query = build::Heads(given[0], parts->heads);
      parts->key = given[1];
      parts->value = given[2];
      return width;
    }
    if (FactOf(1).rank() != 3) return Refuse("the ranks of key and value are not known", "shape-not-known");
    if (Has(bias)) {
      ASSIGN_OR_RETURN(const int64_t w, Number(q.shape[2], "the width of the query"));
      ASSIGN_OR_RETURN(const int64_t v, Number(FactOf(2).shape[2], "the width of the value"));
      given[0] = build::Op("Add", {given[0], build::Slice(In(bias), 0, w, 0)});
      given[1] = build::Op("Add", {given[1], build::Slice(In(bias), w, 2 * w, 0)});
      given[2] = build::Op("Add", {given[2], build::Slice(In(bias), 2 * w, 2 * w + v, 0)});
    }
    parts->query = build::Heads(given[0], parts->heads);
    parts->key = build::Heads(given[1], parts->heads);
    parts->value = build::Heads(given[2], parts->heads);
    return width;
  }
};

}  // namespace

absl::StatusOr<TakenApart> RuntimeAttentionApart(const FunctionContext& context, const Node& node) {
  RuntimeAttention attention(context, node);
  if (OpType(node) == "MultiHeadAttention") return attention.OfMultiHead();
  if (OpType(node) == "Attention") return attention.OfProjections();
  if (OpType(node) == "DecoderMaskedMultiHeadAttention") return attention.OfDecoderMasked();
  return NotTakenApart(fmt::format("com.microsoft.{} is taken apart by no rule", OpType(node)));
}

}  // namespace ascend_fuse
