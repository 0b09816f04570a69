// ONNX Runtime's GroupQueryAttention, taken apart.
#include <string_view>

#include "fmt/format.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/functions/ready_made_operator.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

class GroupQueryAttention : public ReadyMadeOperator {
 public:
  GroupQueryAttention(const FunctionContext& context, const Node& node) : ReadyMadeOperator(context, node) {}

  // com.microsoft (query [B, S, H D], key [B, S, G D], value, past_key [B, G, P, D], past_value, seqlens_k [B],
  // total_sequence_length, cos_cache [M, D / 2], sin_cache, ...). Packed: query [B, S, (H + 2 G) D]. seqlens_k is how many
  // keys of a batch there are, less one; the new keys go after those of the cache that this leaves: so ONNX Runtime has it
  // (onnxruntime: contrib_ops/cpu/bert/gqa_attention_base.h), and tests/python/test_ready_made_attention.py runs it.
  absl::StatusOr<TakenApart> Read() {
    plain_ = false;
    PartsOfAttention parts;
    RETURN_IF_ERROR(ReadGroups(&parts));
    const Term queries = build::Length(parts.query, 2);
    // [B, 1]: how many keys of the cache are those of the batch. A first prompt may be shorter than its queries are.
    const Term zero = build::Constant(DataType::kInt64, {1}, 0);
    const Term lengths = build::Unsqueeze(build::Cast(In(5), DataType::kInt64), {1});
    const Term total = build::Op("Add", {lengths, build::Numbers({1})});
    const Term past = Extreme("Max", build::Op("Sub", {total, queries}), zero);
    const Term steps = build::Unsqueeze(build::Range(queries), {0});  // [1, S]
    const Term places = build::Op("Add", {past, steps});              // [B, S]
    if (IntAttribute(node_, "do_rotary").value_or(0) != 0) {
      RETURN_IF_ERROR(Rotate(Has(9) ? build::Cast(In(9), DataType::kInt64) : places, &parts));
    }
    AddSink(&parts);
    if (!Has(3)) {
      if (Asks(1)) parts.present_key = build::Op("Identity", {parts.key});
      if (Asks(2)) parts.present_value = build::Op("Identity", {parts.value});
    } else {
      const Term cached = build::Length(In(3), 2);
      if (Asks(1)) parts.present_key = Appended(In(3), parts.key, past, cached);
      if (Asks(2)) parts.present_value = Appended(In(4), parts.value, past, cached);
      parts.key = build::Concat({In(3), parts.key}, 2);
      parts.value = build::Concat({In(4), parts.value}, 2);
    }
    parts.keep = KeptByPlace(parts, past, places, steps);
    parts.added = In(10);
    return TakenApart{AttentionOutputs(parts), plain_};
  }

 private:
  // Heads, scale and cap; what is not taken apart is refused.
  absl::Status ReadGroups(PartsOfAttention* parts) {
    parts->type = FactOf(0).type;
    parts->heads = IntAttribute(node_, "num_heads").value_or(0);
    parts->key_heads = IntAttribute(node_, "kv_num_heads").value_or(0);
    if (parts->heads < 1 || parts->key_heads < 1 || parts->heads % parts->key_heads != 0) {
      return NotTakenApart("the heads of the query are not a multiple of those of the key");
    }
    for (const char* name : {"kv_cache_bit_width", "qk_output", "sliding_window_cache"}) {
      if (IntAttribute(node_, name).value_or(0) <= 0) continue;
      return NotTakenApart(fmt::format("GroupQueryAttention with {} is taken apart by no rule", name));
    }
    if (IntAttribute(node_, "causal").value_or(1) != 1) {
      return NotTakenApart("GroupQueryAttention that is not causal is taken apart by no rule");
    }
    // Keys of the cache and new ones stand one after another here, and the bias is for keys by their places.
    if (Has(3) && Has(10)) return NotTakenApart("an attention_bias beside a cache is taken apart by no rule");
    for (size_t i = 12; i < node_.input_count; ++i) {
      if (!Has(i)) continue;
      const std::string_view name = ValueName(*node_.input(i));
      return NotTakenApart(fmt::format("input {} of GroupQueryAttention, {}, is taken apart by no rule", i, name));
    }
    if (Asks(3)) return NotTakenApart("scores that are an output are taken apart by no rule");
    if (Has(3) && FactOf(6).rank() != 0 && FactOf(6).rank() != 1) {
      return Refuse("the rank of total_sequence_length is not known to be 0 or 1", "shape-not-known");
    }
    if (!Has(5) || Has(3) != Has(4) || Has(1) != Has(2)) {
      return NotTakenApart("GroupQueryAttention without lengths, or with half a cache");
    }
    for (size_t i : {size_t{3}, size_t{4}}) {
      if (Has(i) && FactOf(i).type != parts->type) return NotTakenApart("a cache that is quantized is taken apart by no rule");
    }
    const Fact& q = FactOf(0);
    if (q.rank() != 3) return Refuse("the rank of the query is not known to be 3", "shape-not-known");
    const int64_t all = parts->heads + (Has(1) ? 0 : 2 * parts->key_heads);
    ASSIGN_OR_RETURN(const int64_t width, Number(context_.dims->ExactDiv(q.shape[2], Dim::Of(all)), "the head_dim"));
    ASSIGN_OR_RETURN(parts->scale, Scale(Dim::Of(width)));
    parts->softcap = static_cast<double>(FloatAttribute(node_, "softcap").value_or(0));
    const int64_t end = parts->heads * width;
    const int64_t step = parts->key_heads * width;
    parts->query = build::Heads(Has(1) ? In(0) : build::Slice(In(0), 0, end, 2), parts->heads);
    parts->key = build::Heads(Has(1) ? In(1) : build::Slice(In(0), end, end + step, 2), parts->key_heads);
    parts->value = build::Heads(Has(1) ? In(2) : build::Slice(In(0), end + step, end + 2 * step, 2), parts->key_heads);
    head_dim_ = width;
    return absl::OkStatus();
  }

  // smooth_softmax adds exp(0) to the sum of the softmax, and head_sink [H] the exponential of a number for each head.
  void AddSink(PartsOfAttention* parts) const {
    if (Has(11)) {
      parts->sink = build::Reshape(In(11), {1, parts->heads, 1, 1});
    } else if (IntAttribute(node_, "smooth_softmax").value_or(0) > 0) {
      parts->sink = build::Constant(parts->type, {1, parts->heads, 1, 1}, 0);
    }
  }

  // Query and key turned by the tables' rows at `places` [B, S]: the first channels of each head, as many as the tables say.
  absl::Status Rotate(const Term& places, PartsOfAttention* parts) const {
    if (!Has(7) || !Has(8)) return NotTakenApart("a rotation without tables");
    if (FactOf(7).rank() != 2 || FactOf(8).rank() != 2) return Refuse("the ranks of the tables are not known", "shape-not-known");
    ASSIGN_OR_RETURN(const int64_t half, Number(FactOf(7).shape[1], "the width of the tables"));
    if (!FactOf(8).shape[1].is(half) || 2 * half > head_dim_) {
      return NotTakenApart("the tables of the rotation have other widths than its document says");
    }
    const bool pairs = IntAttribute(node_, "rotary_interleaved").value_or(0) != 0;
    const Term cos = build::Unsqueeze(build::Gather(In(7), places, 0), {1});  // [B, 1, S, D / 2]
    const Term sin = build::Unsqueeze(build::Gather(In(8), places, 0), {1});
    for (Term* x : {&parts->query, &parts->key}) {
      const bool whole = 2 * half == head_dim_;
      const Term rest = whole ? Term::Absent() : build::Slice(*x, 2 * half, head_dim_, 3);
      if (!whole) *x = build::Slice(*x, 0, 2 * half, 3);
      const Term split = pairs ? build::Reshape(*x, {0, 0, -1, half, 2}) : *x;
      const auto part = [&](int64_t i) {
        return pairs ? build::Squeeze(build::Slice(split, i, i + 1, 4), {4}) : build::Slice(split, i * half, (i + 1) * half, 3);
      };
      const Term first = build::Op("Sub", {build::Op("Mul", {part(0), cos}), build::Op("Mul", {part(1), sin})});
      const Term second = build::Op("Add", {build::Op("Mul", {part(1), cos}), build::Op("Mul", {part(0), sin})});
      *x = pairs ? build::Reshape(build::Concat({build::Unsqueeze(first, {4}), build::Unsqueeze(second, {4})}, 4),
                                  {0, 0, -1, 2 * half})
                 : build::Concat({first, second}, 3);
      if (!whole) *x = build::Concat({*x, rest}, 3);
    }
    return absl::OkStatus();
  }

  // The cache [B, G, P, D] with the new rows [B, G, S, D] after the first `past` [B, 1] ones of each batch, as long as
  // total_sequence_length says and not shorter than the cache. What is after the new rows may be anything.
  Term Appended(const Term& cache, const Term& rows, const Term& past, const Term& cached) const {
    const Term both = build::Concat({cache, rows}, 2);
    const Term total = build::Cast(In(6), DataType::kInt64);
    const Term length = Extreme("Max", FactOf(6).rank() == 0 ? total : build::Squeeze(total, {0}), cached);
    const Term place = build::Unsqueeze(build::Range(length), {0});  // [1, L]
    const Term last = build::Op("Sub", {build::Length(both, 2), build::Constant(DataType::kInt64, {1}, 1)});
    const Term moved = Extreme("Min", build::Op("Add", {build::Op("Sub", {place, past}), cached}), last);
    const Term source = build::Op("Where", {build::Op("Less", {place, past}), place, moved});  // [B, L]
    const Term shape = build::Shape(both);
    const Term dims =
        build::Concat({build::Slice(shape, 0, 2, 0), build::Unsqueeze(length, {0}), build::Slice(shape, 3, 4, 0)}, 0);
    return build::Op("GatherElements", {both, build::Op("Expand", {build::Unsqueeze(source, {1, 3}), dims})},
                     {{"axis", Term::Integer(2)}});
  }

  // Which keys, those of the cache and the new ones after it, are before each query, and in its window. past [B, 1],
  // places [B, S] of the queries, steps [1, S].
  Term KeptByPlace(const PartsOfAttention& parts, const Term& past, const Term& places, const Term& steps) const {
    const int64_t window = IntAttribute(node_, "local_window_size").value_or(-1);
    const auto within = [&](const Term& of_keys, const Term& of_queries) {
      const Term edge = build::Op("Sub", {build::Unsqueeze(of_queries, {1, 3}), build::Numbers({window})});
      return build::Op("Greater", {build::Unsqueeze(of_keys, {1, 2}), edge});
    };
    // Among the new ones: key j and query i.
    const Term later = build::Op("Greater", {build::Unsqueeze(steps, {1, 2}), build::Unsqueeze(steps, {1, 3})});
    Term new_keys = build::Op("Not", {later});
    if (window > 0) new_keys = build::And(new_keys, within(steps, steps));
    if (!Has(3)) return new_keys;
    const Term cached = build::Unsqueeze(build::Range(build::Length(In(3), 2)), {0});  // [1, P]
    // [B, 1, 1, P]
    Term old_keys = build::Op("Less", {build::Unsqueeze(cached, {1, 2}), build::Unsqueeze(past, {1, 2})});
    if (window > 0) old_keys = build::And(old_keys, within(cached, places));
    const Term batch = build::Slice(build::Shape(parts.query), 0, 1, 0);
    const Term queries = build::Unsqueeze(build::Length(parts.query, 2), {0});
    const auto whole = [&](const Term& keys, const Term& of) {
      const Term dims = build::Concat({batch, build::Numbers({1}), queries, build::Unsqueeze(build::Length(of, 1), {0})}, 0);
      return build::Op("Expand", {keys, dims});
    };
    return build::Concat({whole(old_keys, cached), whole(new_keys, steps)}, 3);
  }

  int64_t head_dim_ = 0;
};

}  // namespace

absl::StatusOr<TakenApart> GroupQueryAttentionApart(const FunctionContext& context, const Node& node) {
  return GroupQueryAttention(context, node).Read();
}

}  // namespace ascend_fuse
