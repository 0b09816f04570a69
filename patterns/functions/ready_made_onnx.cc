// ONNX's Attention of opset 23 and 24, taken apart.
#include <limits>
#include <optional>

#include "fmt/format.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/functions/ready_made_operator.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class OnnxAttention : public ReadyMadeOperator {
 public:
  OnnxAttention(const FunctionContext& context, const Node& node) : ReadyMadeOperator(context, node) {}

  // (Q, K, V, attn_mask, past_key, past_value, nonpad_kv_seqlen), opset 23 and 24 (onnx/defs/nn/defs.cc).
  absl::StatusOr<TakenApart> Read() {
    const int rank = FactOf(0).rank();
    if ((rank != 3 && rank != 4) || FactOf(1).rank() != rank || FactOf(2).rank() != rank) {
      return Refuse("the ranks of query, key and value are not known to be 3 or 4", "shape-not-known");
    }
    PartsOfAttention parts;
    parts.type = FactOf(0).type;
    parts.flat = rank == 3;
    const absl::Span<const Dim> q = FactOf(0).shape;
    Dim width = q[static_cast<size_t>(rank) - 1];
    if (rank == 3) {
      parts.heads = IntAttribute(node_, "q_num_heads").value_or(0);
      parts.key_heads = IntAttribute(node_, "kv_num_heads").value_or(0);
      if (parts.heads < 1 || parts.key_heads < 1) return NotTakenApart("the numbers of heads are not written");
      width = context_.dims->ExactDiv(width, Dim::Of(parts.heads));
      parts.query = build::Heads(In(0), parts.heads);
      parts.key = build::Heads(In(1), parts.key_heads);
      parts.value = build::Heads(In(2), parts.key_heads);
      plain_ = false;
    } else {
      ASSIGN_OR_RETURN(const int64_t heads, Number(q[1], "the number of heads"));
      ASSIGN_OR_RETURN(const int64_t key_heads, Number(FactOf(1).shape[1], "the number of heads of the key"));
      parts.heads = heads;
      parts.key_heads = key_heads;
      parts.query = In(0);
      parts.key = In(1);
      parts.value = In(2);
    }
    if (parts.heads % parts.key_heads != 0) return NotTakenApart("the heads of the query are not a multiple of those of the key");
    ASSIGN_OR_RETURN(parts.scale, Scale(width));
    parts.softcap = static_cast<double>(FloatAttribute(node_, "softcap").value_or(0));
    if (parts.softcap != 0) plain_ = false;
    if (const auto precision = IntAttribute(node_, "softmax_precision"); precision.has_value()) {
      parts.softmax = static_cast<DataType>(*precision);
    }
    AddCache(4, 5, &parts);
    RETURN_IF_ERROR(AddOnnxMasks(&parts));
    const int64_t mode = IntAttribute(node_, "qk_matmul_output_mode").value_or(0);
    if (!Asks(3)) return TakenApart{AttentionOutputs(parts), plain_};
    plain_ = false;
    if (mode < 0 || mode > 3) return NotTakenApart(fmt::format("qk_matmul_output_mode {} is not supported", mode));
    const AttentionOutcome outcome = ComputeAttention(parts);
    return TakenApart{
        {outcome.y, parts.present_key, parts.present_value, build::Op("Identity", {outcome.scores[static_cast<size_t>(mode)]})},
        plain_};
  }

 private:
  absl::Status AddOnnxMasks(PartsOfAttention* parts) {
    const int64_t written = IntAttribute(node_, "is_causal").value_or(0);
    if (written != 0 && written != 1) return NotTakenApart(fmt::format("is_causal {} is not 0 or 1", written));
    const bool causal = written == 1;
    if (causal) parts->keep = Causal(*parts, In(4));
    if (Has(6)) {  // where the cache is outside: how many keys of each batch there are
      if (causal) return NotTakenApart("what is_causal means beside nonpad_kv_seqlen differs from release to release of ONNX");
      const Term keys = build::Unsqueeze(build::Range(build::Length(parts->key, 2)), {0, 1, 2});
      parts->keep = build::Op("Less", {keys, build::Unsqueeze(In(6), {1, 2, 3})});
    }
    if (causal || Has(6)) plain_ = false;
    parts->guard = Has(3) || Has(6);
    if (!Has(3)) return absl::OkStatus();
    const Fact& mask = FactOf(3);
    ASSIGN_OR_RETURN(Term whole, WholeMask(*parts));
    if (mask.type == DataType::kBool) {
      parts->keep = build::And(parts->keep, whole);
      return absl::OkStatus();
    }
    if (mask.type != parts->type) return NotTakenApart("the mask is of another type than the query");
    parts->added = whole;
    return absl::OkStatus();
  }

  // The mask as it is broadcast to the scores. At opset 23 it is as it is given; from opset 24 on one that may have fewer
  // keys than there are is padded, the others being left out: so says the function body of the operator in ONNX.
  absl::StatusOr<Term> WholeMask(const PartsOfAttention& parts) {
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
};

}  // namespace

absl::StatusOr<TakenApart> OnnxAttentionApart(const FunctionContext& context, const Node& node) {
  return OnnxAttention(context, node).Read();
}

}  // namespace ascend_fuse
