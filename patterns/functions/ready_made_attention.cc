// Operators that are a whole attention (ONNX's own, those of ONNX Runtime), taken apart into heads, cache, products, masks
// and softmax as their documents say, whatever is made of the parts afterwards.
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/analysis/mask.h"
#include "patterns/functions/constructs.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// From this opset on an Attention pads a mask that has fewer keys than there are.
constexpr int64_t kPadsMasks = 24;

absl::Status No(std::string_view sentence) { return Refuse(sentence, "operator-not-taken-apart"); }

bool Given(const Term& term) { return term.bound() && term.kind != Term::Kind::kAbsent; }

// The length of axis `axis` of x, a scalar.
Term Length(const Term& x, int64_t axis) {
  return build::Squeeze(build::Gather(build::Shape(x), build::Numbers({axis}), 0), {0});
}

// 0, 1, ... length - 1, a vector.
Term Range(const Term& length) {
  const Term zero = build::Squeeze(build::Constant(DataType::kInt64, {1}, 0), {0});
  const Term one = build::Squeeze(build::Constant(DataType::kInt64, {1}, 1), {0});
  return build::Op("Range", {zero, length, one});
}

Term And(const Term& a, const Term& b) { return Given(a) ? build::Op("And", {a, b}) : b; }

// x [B, S, N D] as [B, N, S, D].
Term Heads(const Term& x, int64_t heads) { return build::Transpose(build::Reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3}); }

Term Or(const Term& a, const Term& b) { return build::Op("Or", {a, b}); }

// An attention in parts. H heads of the query, G of key and value.
struct Parts {
  Term query;                         // [B, H, S, D]
  Term key;                           // [B, G, T, D], the cache in front
  Term value;                         // [B, G, T, E]
  Term present_key = Term::Absent();  // as outputs have them; absent: none is asked for
  Term present_value = Term::Absent();
  int64_t heads = 0;
  int64_t key_heads = 0;
  double scale = 0;
  double softcap = 0;
  Term added = Term::Absent();              // to the scores
  Term keep = Term::Absent();               // boolean, true = attend
  bool guard = false;                       // rows without any key are 0
  DataType softmax = DataType::kUndefined;  // the type that the softmax is computed in, if another
  DataType type = DataType::kUndefined;
  bool flat = true;  // the output is [B, S, H E]
};

// Every head of x [B, G, T, D] n times in a row.
Term Repeated(const Term& x, int64_t heads, int64_t n) {
  if (n == 1) return x;
  const Term copies = build::Op("Expand", {build::Unsqueeze(x, {2}), build::Numbers({1, 1, n, 1, 1})});
  // [B, G, n, T, D]: what is behind the heads is counted from the copies' own dims.
  const Term shape = build::Shape(x);
  const Term behind = build::Slice(shape, 2, 4, 0);
  const Term before = build::Slice(shape, 0, 1, 0);
  return build::Reshape(copies, build::Concat({before, build::Numbers({heads}), behind}, 0));
}

struct Outcome {
  Term y;
  std::array<Term, 4> scores;  // after the product, the cap, the mask, the softmax
};

Outcome Computed(const Parts& parts) {
  Outcome outcome;
  const int64_t n = parts.heads / parts.key_heads;
  Term s = build::Op("MatMul", {build::Op("Mul", {parts.query, Term::Number(parts.scale)}),
                                build::Transpose(Repeated(parts.key, parts.heads, n), {0, 1, 3, 2})});
  outcome.scores[0] = s;
  if (parts.softcap != 0) {
    s = build::Op("Mul", {build::Op("Tanh", {build::Op("Div", {s, Term::Number(parts.softcap)})}), Term::Number(parts.softcap)});
  }
  outcome.scores[1] = s;
  if (Given(parts.added)) s = build::Op("Add", {s, parts.added});
  if (Given(parts.keep)) s = build::Op("Where", {parts.keep, s, build::Constant(parts.type, {1}, -kInfinity)});
  outcome.scores[2] = s;
  const bool other = parts.softmax != DataType::kUndefined && parts.softmax != parts.type;
  Term p = build::Op("Softmax", {other ? build::Cast(s, parts.softmax) : s}, {{"axis", Term::Integer(-1)}});
  if (other) p = build::Cast(p, parts.type);
  if (parts.guard) p = build::Op("Where", {build::Op("IsNaN", {p}), build::Constant(parts.type, {1}, 0), p});
  outcome.scores[3] = p;
  Term y = build::Op("MatMul", {p, Repeated(parts.value, parts.heads, n)});
  if (parts.flat) y = build::Reshape(build::Transpose(y, {0, 2, 1, 3}), {0, 0, -1});
  outcome.y = y;
  return outcome;
}

// What an operator gives: y, present_key, present_value and the scores of a mode, none where it is not asked for.
std::vector<Term> Outputs(const Parts& parts, const Term& scores) {
  const Outcome outcome = Computed(parts);
  return {outcome.y, parts.present_key, parts.present_value, scores};
}

class ReadyMade {
 public:
  ReadyMade(const FunctionContext& context, const Node& node) : context_(context), node_(node) {}

  // Whether a rule of the library takes the operator as it is: without a cache, and with no mask of its own making.
  bool IsPlain() const { return plain_; }

  absl::StatusOr<std::vector<Term>> Read() {
    if (IsOp(node_, "Attention")) return OfOnnx();
    if (node_.domain == NameId::kEmpty || Domain(node_) != "com.microsoft") return No("no operator that is an attention");
    if (OpType(node_) == "MultiHeadAttention") return OfMultiHead();
    if (OpType(node_) == "Attention") return OfProjections();
    if (OpType(node_) == "DecoderMaskedMultiHeadAttention") return OfDecoderMasked();
    if (OpType(node_) == "GroupQueryAttention") return OfGroupQuery();
    return No(fmt::format("com.microsoft.{} is taken apart by no rule", OpType(node_)));
  }

 private:
  const Fact& FactOf(size_t i) const { return context_.facts->Of(node_.input(i)); }
  bool Has(size_t i) const { return i < node_.input_count && node_.input(i) != nullptr; }
  bool Asks(size_t i) const { return i < node_.output_count && node_.output(i) != nullptr; }
  Term In(size_t i) const { return Has(i) ? Term::Of(node_.input(i)) : Term::Absent(); }

  // Max or Min of int64, which both take from opset 12 on.
  Term Extreme(const std::string& op, const Term& a, const Term& b) const {
    if (context_.model->OpsetVersion() >= 12) return build::Op(op, {a, b});
    return build::Op("Where", {build::Op(op == "Max" ? "Greater" : "Less", {a, b}), a, b});
  }

  static absl::StatusOr<int64_t> Number(Dim dim, std::string_view what) {
    if (dim.is_number() && dim.number() > 0) return dim.number();
    return Refuse(fmt::format("{} is not known", what), "needs-dim");
  }

  absl::StatusOr<double> Scale(Dim width) const {
    const std::optional<float> scale = FloatAttribute(node_, "scale");
    if (scale.has_value() && *scale < 0) return No("its scale is negative");
    if (scale.has_value() && *scale != 0) return static_cast<double>(*scale);
    if (scale.has_value() && node_.domain == NameId::kEmpty) return No("its scale is written as 0");
    const absl::StatusOr<int64_t> known = Number(width, "the head_dim");
    if (!known.ok()) return known.status();
    return 1 / std::sqrt(static_cast<double>(*known));
  }

  // Key and value with their caches, [B, G, P, D] and [B, G, P, E], in front.
  void AddCache(size_t past_key, size_t past_value, Parts* parts) {
    if (Has(past_key)) {
      parts->key = build::Concat({In(past_key), parts->key}, 2);
      parts->value = build::Concat({In(past_value), parts->value}, 2);
      plain_ = false;
    }
    // The output is a copy of what the attention reads, so that the cache is joined once.
    if (Asks(1)) parts->present_key = build::Op("Identity", {parts->key});
    if (Asks(2)) parts->present_value = build::Op("Identity", {parts->value});
    if (Asks(1) || Asks(2)) plain_ = false;
  }

  // j <= i + the length of the cache [B, G, P, D], if there is one.
  static Term Causal(const Parts& parts, const Term& past_key) {
    const Term keys = build::Unsqueeze(Range(Length(parts.key, 2)), {0});
    Term queries = build::Unsqueeze(Range(Length(parts.query, 2)), {1});
    if (Given(past_key)) queries = build::Op("Add", {queries, Length(past_key, 2)});
    return build::Op("Not", {build::Op("Greater", {keys, queries})});
  }

  // (Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen), opset 23 and 24 (onnx/defs/nn/defs.cc).
  absl::StatusOr<std::vector<Term>> OfOnnx() {
    const int rank = FactOf(0).rank();
    if ((rank != 3 && rank != 4) || FactOf(1).rank() != rank || FactOf(2).rank() != rank) {
      return Refuse("the ranks of query, key and value are not known to be 3 or 4", "shape-not-known");
    }
    Parts parts;
    parts.type = FactOf(0).type;
    parts.flat = rank == 3;
    const absl::Span<const Dim> q = FactOf(0).shape;
    Dim width = q[static_cast<size_t>(rank) - 1];
    if (rank == 3) {
      parts.heads = IntAttribute(node_, "q_num_heads").value_or(0);
      parts.key_heads = IntAttribute(node_, "kv_num_heads").value_or(0);
      if (parts.heads < 1 || parts.key_heads < 1) return No("the numbers of heads are not written");
      width = context_.dims->ExactDiv(width, Dim::Of(parts.heads));
      parts.query = Heads(In(0), parts.heads);
      parts.key = Heads(In(1), parts.key_heads);
      parts.value = Heads(In(2), parts.key_heads);
      plain_ = false;
    } else {
      const absl::StatusOr<int64_t> heads = Number(q[1], "the number of heads");
      const absl::StatusOr<int64_t> key_heads = Number(FactOf(1).shape[1], "the number of heads of the key");
      if (!heads.ok()) return heads.status();
      if (!key_heads.ok()) return key_heads.status();
      parts.heads = *heads;
      parts.key_heads = *key_heads;
      parts.query = In(0);
      parts.key = In(1);
      parts.value = In(2);
    }
    if (parts.heads % parts.key_heads != 0) return No("the heads of the query are not a multiple of those of the key");
    const absl::StatusOr<double> scale = Scale(width);
    if (!scale.ok()) return scale.status();
    parts.scale = *scale;
    parts.softcap = static_cast<double>(FloatAttribute(node_, "softcap").value_or(0));
    if (parts.softcap != 0) plain_ = false;
    if (const auto precision = IntAttribute(node_, "softmax_precision"); precision.has_value()) {
      parts.softmax = static_cast<DataType>(*precision);
    }
    AddCache(4, 5, &parts);
    RETURN_IF_ERROR(AddOnnxMasks(&parts));
    const int64_t mode = IntAttribute(node_, "qk_matmul_output_mode").value_or(0);
    if (!Asks(3)) return Outputs(parts, Term::Absent());
    plain_ = false;
    if (mode < 0 || mode > 3) return No(fmt::format("qk_matmul_output_mode {} is not supported", mode));
    const Outcome outcome = Computed(parts);
    return std::vector<Term>{outcome.y, parts.present_key, parts.present_value,
                             build::Op("Identity", {outcome.scores[static_cast<size_t>(mode)]})};
  }

  absl::Status AddOnnxMasks(Parts* parts) {
    const int64_t written = IntAttribute(node_, "is_causal").value_or(0);
    if (written != 0 && written != 1) return No(fmt::format("is_causal {} is not 0 or 1", written));
    const bool causal = written == 1;
    if (causal) parts->keep = Causal(*parts, In(4));
    if (Has(6)) {  // where the cache is outside: how many keys of each batch there are
      if (causal) return No("what is_causal means beside nonpad_kv_seqlen differs from release to release of ONNX");
      const Term keys = build::Unsqueeze(Range(Length(parts->key, 2)), {0, 1, 2});
      parts->keep = build::Op("Less", {keys, build::Unsqueeze(In(6), {1, 2, 3})});
    }
    if (causal || Has(6)) plain_ = false;
    parts->guard = Has(3) || Has(6);
    if (!Has(3)) return absl::OkStatus();
    const Fact& mask = FactOf(3);
    absl::StatusOr<Term> whole = WholeMask(*parts);
    if (!whole.ok()) return whole.status();
    if (mask.type == DataType::kBool) {
      parts->keep = And(parts->keep, *whole);
      return absl::OkStatus();
    }
    if (mask.type != parts->type) return No("the mask is of another type than the query");
    parts->added = *whole;
    return absl::OkStatus();
  }

  // The mask as it is broadcast to the scores. At opset 23 it is as it is given; from opset 24 on one that may have fewer
  // keys than there are is padded, the others being left out: so says the function body of the operator in ONNX.
  absl::StatusOr<Term> WholeMask(const Parts& parts) {
    const Fact& mask = FactOf(3);
    const std::string_view name = ValueName(*node_.input(3));
    if (mask.rank() < 1) return Refuse(fmt::format("the rank of the mask {} is not known", name), "mask-shape");
    const size_t last = static_cast<size_t>(mask.rank()) - 1;
    const Dim length = context_.dims->Resolve(mask.shape[last]);
    Dim total = FactOf(1).shape[static_cast<size_t>(FactOf(1).rank()) - 2];
    if (Has(4) && FactOf(4).rank() == 4) total = context_.dims->Add(total, FactOf(4).shape[2]);
    total = context_.dims->Resolve(total);
    if (context_.dims->Equal(length, total)) return In(3);
    const bool known = length.is_number() && total.is_number();
    if (context_.model->OpsetVersion() < kPadsMasks || (known && length.number() > total.number())) {
      if (!known) return In(3);
      return Refuse(fmt::format("the mask {} has {} keys and the attention {}", name, length.number(), total.number()),
                    "mask-shape");
    }
    plain_ = false;
    const bool keeps = mask.type == DataType::kBool;
    const auto keys = [](const Term& x, size_t axis) {
      return build::Gather(build::Shape(x), build::Numbers({static_cast<int64_t>(axis)}), 0);
    };
    const Term missing =
        known ? build::Numbers({total.number() - length.number()}) : build::Op("Sub", {keys(parts.key, 2), keys(In(3), last)});
    const Term pads = build::Concat({build::Numbers(std::vector<int64_t>(2 * last + 1, 0)), missing}, 0);
    // Kernels of Pad take no booleans.
    const DataType type = keeps ? DataType::kInt32 : mask.type;
    const Term fill = build::Constant(type, {}, keeps ? 0 : -kInfinity);
    const Term padded = build::Op("Pad", {keeps ? build::Cast(In(3), type) : In(3), pads, fill});
    return keeps ? build::Cast(padded, DataType::kBool) : padded;
  }

  // com.microsoft (query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value)
  // (onnxruntime: docs/ContribOperators.md). Packed: query [B, S, N, 3, D], or key [B, T, N, 2, D].
  absl::StatusOr<std::vector<Term>> OfMultiHead() {
    Parts parts;
    parts.type = FactOf(0).type;
    parts.heads = IntAttribute(node_, "num_heads").value_or(0);
    parts.key_heads = parts.heads;
    if (parts.heads < 1) return No("the number of heads is not written");
    for (size_t i = 8; i < node_.input_count; ++i) {
      if (Has(i)) return No("a cache that is written in place is taken apart by no rule");
    }
    if (Asks(3)) return No("scores that are an output are taken apart by no rule");
    absl::StatusOr<Dim> width = SplitHeads(3, &parts);
    if (!width.ok()) return width.status();
    const absl::StatusOr<double> scale = Scale(*width);
    if (!scale.ok()) return scale.status();
    parts.scale = *scale;
    AddCache(6, 7, &parts);
    if (IntAttribute(node_, "unidirectional").value_or(0) == 1) parts.keep = Unidirectional(parts);
    RETURN_IF_ERROR(AddRuntimeMasks(4, 5, &parts));
    return Outputs(parts, Term::Absent());
  }

  // Causal, but ONNX Runtime's last query sees all keys: no query is masked that stands last
  // (onnxruntime: contrib_ops/cpu/bert/attention_helper.h, PrepareMask). Where the new keys are no more than the queries,
  // those are the keys that it sees anyway.
  Term Unidirectional(const Parts& parts) {
    const Term causal = Causal(parts, In(6));
    if (FactOf(0).rank() == 5) return causal;  // as many keys as queries
    const Fact& key = FactOf(1);
    const Dim keys = key.shape[key.rank() == 4 ? 2 : 1];
    if (context_.dims->AtLeast(FactOf(0).shape[1], keys)) {
      if (key.rank() == 4) plain_ = false;
      return causal;
    }
    plain_ = false;
    const Term length = Length(parts.query, 2);
    const Term last = build::Op("Sub", {length, build::Constant(DataType::kInt64, {1}, 1)});
    return Or(causal, build::Unsqueeze(build::Op("Equal", {Range(length), last}), {1}));
  }

  // The mask [B, T] or [B, S, T] of integers, 1 where a key is attended to, and what is added to the scores.
  absl::Status AddRuntimeMasks(size_t mask, size_t bias, Parts* parts) {
    if (Has(mask)) {
      const Fact& pad = FactOf(mask);
      if (pad.rank() != 2 && pad.rank() != 3)
        return No(fmt::format("{} gives lengths, not a mask", ValueName(*node_.input(mask))));
      const Term attended = build::Unsqueeze(build::Cast(In(mask), DataType::kBool),
                                             pad.rank() == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1});
      const double fill = FloatAttribute(node_, "mask_filter_value").value_or(kRuntimeMaskFill);
      if (!(fill <= kMaskThreshold)) plain_ = false;  // keys that are masked take part
      parts->added =
          build::Op("Where", {attended, build::Constant(parts->type, {1}, 0), build::Constant(parts->type, {1}, fill)});
    }
    if (Has(bias)) parts->added = Given(parts->added) ? build::Op("Add", {parts->added, In(bias)}) : In(bias);
    return absl::OkStatus();
  }

  // com.microsoft (input, weights, bias, mask_index, past [2, B, N, P, D], attention_bias, past_sequence_length), and y and
  // present [2, B, N, T, D]: the projections of query, key and value are inside.
  absl::StatusOr<std::vector<Term>> OfProjections() {
    Parts parts;
    parts.type = FactOf(0).type;
    parts.heads = IntAttribute(node_, "num_heads").value_or(0);
    parts.key_heads = parts.heads;
    if (parts.heads < 1 || !Has(1) || FactOf(0).rank() != 3 || FactOf(1).rank() != 2) {
      return No("input and weights have other ranks than its document says");
    }
    if (Has(6) || IntAttribute(node_, "do_rotary").value_or(0) != 0) {
      return No("a cache that is written in place, and a rotation inside, are taken apart by no rule");
    }
    const absl::StatusOr<int64_t> all = Number(FactOf(1).shape[1], "the width of the weights");
    if (!all.ok()) return all.status();
    std::vector<int64_t> widths = IntsAttribute(node_, "qkv_hidden_sizes").value_or(std::vector<int64_t>(3, *all / 3));
    if (widths.size() != 3 || widths[0] + widths[1] + widths[2] != *all || widths[0] != widths[1]) {
      return No("the widths of query, key and value are not those of the weights");
    }
    plain_ = !IntsAttribute(node_, "qkv_hidden_sizes").has_value();  // which the rule of the library does not know
    if (widths[2] != widths[0] && (Has(4) || Asks(1))) {
      return No(
          fmt::format("past and present of com.microsoft.Attention are one tensor of keys and values, which ONNX Runtime "
                      "defines only where both are as wide: here keys have {} channels and values {}",
                      widths[0], widths[2]));
    }
    Term projected = build::Op("MatMul", {In(0), In(1)});
    if (Has(2)) projected = build::Op("Add", {projected, In(2)});
    std::array<Term, 3> heads;
    int64_t first = 0;
    for (size_t i = 0; i < 3; ++i) {
      heads[i] = Heads(build::Slice(projected, first, first + widths[i], 2), parts.heads);
      first += widths[i];
    }
    parts.query = heads[0];
    parts.key = heads[1];
    parts.value = heads[2];
    const absl::StatusOr<double> scale = Scale(Dim::Of(widths[0] / parts.heads));
    if (!scale.ok()) return scale.status();
    parts.scale = *scale;
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
    return Outputs(parts, Term::Absent());
  }

  // com.microsoft (query [B, 1, N D], key, value, mask_index, attention_bias, past_key, past_value, past_sequence_length,
  // beam_width, cache_indirection, bias): one query, with a cache in front of the key or, where key and value have their heads
  // in front, across.
  absl::StatusOr<std::vector<Term>> OfDecoderMasked() {
    plain_ = false;
    Parts parts;
    parts.type = FactOf(0).type;
    parts.heads = IntAttribute(node_, "num_heads").value_or(0);
    parts.key_heads = parts.heads;
    if (parts.heads < 1) return No("the number of heads is not written");
    if (IntAttribute(node_, "past_present_share_buffer").value_or(0) != 0 || Has(7) || Has(8) || Has(9)) {
      return No("a cache that is written in place, and beams, are taken apart by no rule");
    }
    if (IntAttribute(node_, "output_qk").value_or(0) != 0 || Asks(3)) {
      return No("scores that are an output are taken apart by no rule");
    }
    absl::StatusOr<Dim> width = SplitHeads(10, &parts);
    if (!width.ok()) return width.status();
    const absl::StatusOr<double> scale = Scale(*width);
    if (!scale.ok()) return scale.status();
    parts.scale = *scale;
    AddCache(5, 6, &parts);
    RETURN_IF_ERROR(AddRuntimeMasks(3, 4, &parts));
    return Outputs(parts, Term::Absent());
  }

  // com.microsoft (query [B, S, H D], key [B, S, G D], value, past_key [B, G, P, D], past_value, seqlens_k [B],
  // total_sequence_length, cos_cache [M, D / 2], sin_cache, ...). Packed: query [B, S, (H + 2 G) D]. seqlens_k is how many
  // keys of a batch there are, less one; the new keys go behind those of the cache that this leaves: so ONNX Runtime has it
  // (onnxruntime: contrib_ops/cpu/bert/gqa_attention_base.h), and tests/python/test_ready_made_attention.py runs it.
  absl::StatusOr<std::vector<Term>> OfGroupQuery() {
    plain_ = false;
    Parts parts;
    RETURN_IF_ERROR(ReadGroups(&parts));
    const Term queries = Length(parts.query, 2);
    // [B, 1]: how many keys of the cache are those of the batch. A first prompt may be shorter than its queries are.
    const Term zero = build::Constant(DataType::kInt64, {1}, 0);
    const Term lengths = build::Unsqueeze(build::Cast(In(5), DataType::kInt64), {1});
    const Term total = build::Op("Add", {lengths, build::Numbers({1})});
    const Term past = Extreme("Max", build::Op("Sub", {total, queries}), zero);
    const Term steps = build::Unsqueeze(Range(queries), {0});  // [1, S]
    const Term places = build::Op("Add", {past, steps});       // [B, S]
    if (IntAttribute(node_, "do_rotary").value_or(0) != 0) {
      RETURN_IF_ERROR(Rotate(places, &parts));
    }
    if (!Has(3)) {
      if (Asks(1)) parts.present_key = build::Op("Identity", {parts.key});
      if (Asks(2)) parts.present_value = build::Op("Identity", {parts.value});
    } else {
      const Term cached = Length(In(3), 2);
      if (Asks(1)) parts.present_key = Appended(In(3), parts.key, past, cached);
      if (Asks(2)) parts.present_value = Appended(In(4), parts.value, past, cached);
      parts.key = build::Concat({In(3), parts.key}, 2);
      parts.value = build::Concat({In(4), parts.value}, 2);
    }
    parts.keep = KeptByPlace(parts, past, places, steps);
    return Outputs(parts, Term::Absent());
  }

  // Heads, scale and cap; what is not taken apart is refused.
  absl::Status ReadGroups(Parts* parts) {
    parts->type = FactOf(0).type;
    parts->heads = IntAttribute(node_, "num_heads").value_or(0);
    parts->key_heads = IntAttribute(node_, "kv_num_heads").value_or(0);
    if (parts->heads < 1 || parts->key_heads < 1 || parts->heads % parts->key_heads != 0) {
      return No("the heads of the query are not a multiple of those of the key");
    }
    for (const char* name : {"kv_cache_bit_width", "qk_output", "sliding_window_cache", "smooth_softmax"}) {
      if (IntAttribute(node_, name).value_or(0) <= 0) continue;
      return No(fmt::format("GroupQueryAttention with {} is taken apart by no rule", name));
    }
    if (IntAttribute(node_, "causal").value_or(1) != 1) {
      return No("GroupQueryAttention that is not causal is taken apart by no rule");
    }
    for (size_t i = 9; i < node_.input_count; ++i) {
      if (!Has(i)) continue;
      const std::string_view name = ValueName(*node_.input(i));
      return No(fmt::format("input {} of GroupQueryAttention, {}, is taken apart by no rule", i, name));
    }
    if (Asks(3)) return No("scores that are an output are taken apart by no rule");
    if (Has(3) && FactOf(6).rank() != 0 && FactOf(6).rank() != 1) {
      return Refuse("the rank of total_sequence_length is not known to be 0 or 1", "shape-not-known");
    }
    if (!Has(5) || Has(3) != Has(4) || Has(1) != Has(2)) {
      return No("GroupQueryAttention without lengths, or with half a cache");
    }
    for (size_t i : {size_t{3}, size_t{4}}) {
      if (Has(i) && FactOf(i).type != parts->type) return No("a cache that is quantized is taken apart by no rule");
    }
    const Fact& q = FactOf(0);
    if (q.rank() != 3) return Refuse("the rank of the query is not known to be 3", "shape-not-known");
    const int64_t all = parts->heads + (Has(1) ? 0 : 2 * parts->key_heads);
    const absl::StatusOr<int64_t> width = Number(context_.dims->ExactDiv(q.shape[2], Dim::Of(all)), "the head_dim");
    if (!width.ok()) return width.status();
    const absl::StatusOr<double> scale = Scale(Dim::Of(*width));
    if (!scale.ok()) return scale.status();
    parts->scale = *scale;
    parts->softcap = static_cast<double>(FloatAttribute(node_, "softcap").value_or(0));
    const int64_t end = parts->heads * *width;
    const int64_t step = parts->key_heads * *width;
    parts->query = Heads(Has(1) ? In(0) : build::Slice(In(0), 0, end, 2), parts->heads);
    parts->key = Heads(Has(1) ? In(1) : build::Slice(In(0), end, end + step, 2), parts->key_heads);
    parts->value = Heads(Has(1) ? In(2) : build::Slice(In(0), end + step, end + 2 * step, 2), parts->key_heads);
    head_dim_ = *width;
    return absl::OkStatus();
  }

  // Query and key turned by the tables' rows at `places` [B, S].
  absl::Status Rotate(const Term& places, Parts* parts) const {
    if (!Has(7) || !Has(8)) return No("a rotation without tables");
    for (size_t i : {size_t{7}, size_t{8}}) {
      const Fact& table = FactOf(i);
      if (table.rank() != 2 || !context_.dims->Equal(table.shape[1], Dim::Of(head_dim_ / 2))) {
        return No("a rotation of a part of each head is taken apart by no rule");
      }
    }
    const bool pairs = IntAttribute(node_, "rotary_interleaved").value_or(0) != 0;
    const Term cos = build::Unsqueeze(build::Gather(In(7), places, 0), {1});  // [B, 1, S, D / 2]
    const Term sin = build::Unsqueeze(build::Gather(In(8), places, 0), {1});
    for (Term* x : {&parts->query, &parts->key}) {
      const int64_t half = head_dim_ / 2;
      const Term split = pairs ? build::Reshape(*x, {0, 0, -1, half, 2}) : *x;
      const auto part = [&](int64_t i) {
        return pairs ? build::Squeeze(build::Slice(split, i, i + 1, 4), {4}) : build::Slice(split, i * half, (i + 1) * half, 3);
      };
      const Term first = build::Op("Sub", {build::Op("Mul", {part(0), cos}), build::Op("Mul", {part(1), sin})});
      const Term second = build::Op("Add", {build::Op("Mul", {part(1), cos}), build::Op("Mul", {part(0), sin})});
      *x = pairs ? build::Reshape(build::Concat({build::Unsqueeze(first, {4}), build::Unsqueeze(second, {4})}, 4),
                                  {0, 0, -1, head_dim_})
                 : build::Concat({first, second}, 3);
    }
    return absl::OkStatus();
  }

  // The cache [B, G, P, D] with the new rows [B, G, S, D] behind the first `past` [B, 1] ones of each batch, as long as
  // total_sequence_length says and not shorter than the cache. What is behind the new rows may be anything.
  Term Appended(const Term& cache, const Term& rows, const Term& past, const Term& cached) const {
    const Term both = build::Concat({cache, rows}, 2);
    const Term total = build::Cast(In(6), DataType::kInt64);
    const Term length = Extreme("Max", FactOf(6).rank() == 0 ? total : build::Squeeze(total, {0}), cached);
    const Term place = build::Unsqueeze(Range(length), {0});  // [1, L]
    const Term last = build::Op("Sub", {Length(both, 2), build::Constant(DataType::kInt64, {1}, 1)});
    const Term moved = Extreme("Min", build::Op("Add", {build::Op("Sub", {place, past}), cached}), last);
    const Term source = build::Op("Where", {build::Op("Less", {place, past}), place, moved});  // [B, L]
    const Term shape = build::Shape(both);
    const Term dims =
        build::Concat({build::Slice(shape, 0, 2, 0), build::Unsqueeze(length, {0}), build::Slice(shape, 3, 4, 0)}, 0);
    return build::Op("GatherElements", {both, build::Op("Expand", {build::Unsqueeze(source, {1, 3}), dims})},
                     {{"axis", Term::Integer(2)}});
  }

  // Which keys, those of the cache and the new ones behind it, are before each query, and in its window. past [B, 1],
  // places [B, S] of the queries, steps [1, S].
  Term KeptByPlace(const Parts& parts, const Term& past, const Term& places, const Term& steps) const {
    const int64_t window = IntAttribute(node_, "local_window_size").value_or(-1);
    const auto within = [&](const Term& of_keys, const Term& of_queries) {
      const Term edge = build::Op("Sub", {build::Unsqueeze(of_queries, {1, 3}), build::Numbers({window})});
      return build::Op("Greater", {build::Unsqueeze(of_keys, {1, 2}), edge});
    };
    // Among the new ones: key j and query i.
    const Term later = build::Op("Greater", {build::Unsqueeze(steps, {1, 2}), build::Unsqueeze(steps, {1, 3})});
    Term new_keys = build::Op("Not", {later});
    if (window > 0) new_keys = And(new_keys, within(steps, steps));
    if (!Has(3)) return new_keys;
    const Term cached = build::Unsqueeze(Range(Length(In(3), 2)), {0});  // [1, P]
    // [B, 1, 1, P]
    Term old_keys = build::Op("Less", {build::Unsqueeze(cached, {1, 2}), build::Unsqueeze(past, {1, 2})});
    if (window > 0) old_keys = And(old_keys, within(cached, places));
    const Term batch = build::Slice(build::Shape(parts.query), 0, 1, 0);
    const Term queries = build::Unsqueeze(Length(parts.query, 2), {0});
    const auto whole = [&](const Term& keys, const Term& of) {
      const Term dims = build::Concat({batch, build::Numbers({1}), queries, build::Unsqueeze(Length(of, 1), {0})}, 0);
      return build::Op("Expand", {keys, dims});
    };
    return build::Concat({whole(old_keys, cached), whole(new_keys, steps)}, 3);
  }

  // Query, key and value with their heads and biases, which are input `bias`; the head_dim.
  absl::StatusOr<Dim> SplitHeads(size_t bias, Parts* parts) {
    const Fact& q = FactOf(0);
    if (Has(0) && q.rank() == 5 && !Has(1) && !Has(2)) {
      plain_ = false;
      if (Has(bias)) return No("a bias of packed heads is taken apart by no rule");
      std::array<Term, 3> packed;
      for (int64_t i = 0; i < 3; ++i) {
        packed[static_cast<size_t>(i)] = build::Transpose(build::Squeeze(build::Slice(In(0), i, i + 1, 3), {3}), {0, 2, 1, 3});
      }
      parts->query = packed[0];
      parts->key = packed[1];
      parts->value = packed[2];
      return q.shape[4];
    }
    if (q.rank() != 3 || !Has(1)) return No("query and key have other ranks than its document says");
    const Dim width = context_.dims->ExactDiv(q.shape[2], Dim::Of(parts->heads));
    std::array<Term, 3> given = {In(0), In(1), In(2)};
    if (FactOf(1).rank() == 5 && !Has(2)) {
      plain_ = false;
      if (Has(bias)) return No("a bias of packed heads is taken apart by no rule");
      parts->query = Heads(given[0], parts->heads);
      parts->key = build::Transpose(build::Squeeze(build::Slice(given[1], 0, 1, 3), {3}), {0, 2, 1, 3});
      parts->value = build::Transpose(build::Squeeze(build::Slice(given[1], 1, 2, 3), {3}), {0, 2, 1, 3});
      return width;
    }
    if (!Has(2) || FactOf(1).rank() != FactOf(2).rank()) return No("key and value have other ranks than its document says");
    if (FactOf(1).rank() == 4) {
      if (Has(bias)) return No("a bias beside key and value with heads is taken apart by no rule");
      parts->query = Heads(given[0], parts->heads);
      parts->key = given[1];
      parts->value = given[2];
      return width;
    }
    if (FactOf(1).rank() != 3) return Refuse("the ranks of key and value are not known", "shape-not-known");
    if (Has(bias)) {
      const absl::StatusOr<int64_t> w = Number(q.shape[2], "the width of the query");
      const absl::StatusOr<int64_t> v = Number(FactOf(2).shape[2], "the width of the value");
      if (!w.ok()) return w.status();
      if (!v.ok()) return v.status();
      given[0] = build::Op("Add", {given[0], build::Slice(In(bias), 0, *w, 0)});
      given[1] = build::Op("Add", {given[1], build::Slice(In(bias), *w, 2 * *w, 0)});
      given[2] = build::Op("Add", {given[2], build::Slice(In(bias), 2 * *w, 2 * *w + *v, 0)});
    }
    parts->query = Heads(given[0], parts->heads);
    parts->key = Heads(given[1], parts->heads);
    parts->value = Heads(given[2], parts->heads);
    return width;
  }

  const FunctionContext& context_;
  const Node& node_;
  bool plain_ = true;
  int64_t head_dim_ = 0;  // of GroupQueryAttention
};

absl::StatusOr<std::vector<Term>> AttentionApart(const FunctionContext& context, Value* y, int64_t plain) {
  if (y->producer == nullptr) return No("nothing computes it");
  ReadyMade attention(context, *y->producer);
  absl::StatusOr<std::vector<Term>> parts = attention.Read();
  if (parts.ok() && plain == 0 && attention.IsPlain()) return No("a rule of the library takes it as it is");
  return parts;
}

Holds MaskOfAllKeys(const FunctionContext& context, const Term& mask, Dim keys) {
  if (!Given(mask) || context.model->OpsetVersion() < kPadsMasks) return absl::OkStatus();
  const Fact& fact = context.facts->Of(mask.value);
  if (fact.rank() > 0 && context.dims->Equal(fact.shape[static_cast<size_t>(fact.rank()) - 1], keys)) return absl::OkStatus();
  return Refuse(fmt::format("whether the mask {} is as long as the keys is not known", ValueName(*mask.value)), "mask-shape");
}

constexpr std::array kRows = {
    Function<"mask_of_all_keys (mask, keys)", MaskOfAllKeys>(
        "Holds where an Attention of ONNX broadcasts its mask and does not pad it to the number of keys."),
    Function<"attention_apart (y, plain)", AttentionApart>(
        "The outputs of the operator that computes y, an attention as a whole, from its parts; those without a cache or a mask "
        "of its own making where plain is 1 only."),
};

}  // namespace

absl::Span<const FunctionRow> ReadyMadeAttentionFunctions() { return kRows; }

}  // namespace ascend_fuse
