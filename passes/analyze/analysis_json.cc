// An analysis as JSON, by way of proto/analysis.proto.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "passes/analyze/analysis.h"
#include "passes/report/report_message.h"
#include "proto/analysis.pb.h"

namespace ascend_fuse {
namespace {

int32_t Count(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max())); }

void Write(const Amount& from, proto::Analysis::Quantity* to) {
  to->set_formula(JsonText(from.formula));
  to->set_value(from.value);
}

void Write(const SideRecord& from, proto::Analysis::Side* to) {
  to->set_nodes(Count(from.nodes));
  to->set_kernels(Count(from.kernels));
  to->set_ai_cpu(Count(from.ai_cpu));
  to->set_host(Count(from.host));
  to->set_folded(Count(from.folded));
  to->set_unknown(Count(from.unknown));
  Write(from.flops, to->mutable_flops());
  Write(from.bytes, to->mutable_bytes());
  to->set_intensity(from.intensity);
}

void Write(const ShareRecord& from, proto::Analysis::Share* to) {
  to->set_name(JsonText(from.name));
  to->set_kind(from.kind);
  to->set_nodes_before(Count(from.nodes_before));
  to->set_nodes_after(Count(from.nodes_after));
  to->set_kernels_before(Count(from.kernels_before));
  to->set_kernels_after(Count(from.kernels_after));
  Write(from.flops_before, to->mutable_flops_before());
  Write(from.flops_after, to->mutable_flops_after());
  Write(from.bytes_before, to->mutable_bytes_before());
  Write(from.bytes_after, to->mutable_bytes_after());
  to->set_intensity(from.intensity);
  to->set_share_before(from.share_before);
  to->set_share_after(from.share_after);
}

void Write(const HeavyRecord& from, proto::Analysis::Heavy* to) {
  to->set_node(JsonText(from.node));
  to->set_op(JsonText(from.op));
  to->set_module(JsonText(from.module));
  Write(from.flops, to->mutable_flops());
  Write(from.bytes, to->mutable_bytes());
  to->set_share(from.share);
  to->set_bound_by(from.bound_by);
}

void Write(const SupportRecord& from, proto::Analysis::Support* to) {
  to->set_op(JsonText(from.op));
  to->set_engine(from.engine);
  to->set_nodes(Count(from.nodes));
  to->set_after(from.after);
  to->set_because(JsonText(from.because));
  to->set_source(JsonText(from.source));
  to->set_way_out(JsonText(from.way_out));
  to->set_unit(from.unit);
  to->set_kernel(JsonText(from.kernel));
  to->set_shapes(from.shapes);
}

void Write(const OpportunityRecord& from, proto::Analysis::Opportunity* to) {
  to->set_kind(from.kind);
  to->set_state(from.state);
  to->set_count(Count(from.count));
  to->set_place(JsonText(from.place));
  to->set_emitted_op(JsonText(from.emitted_op));
  to->set_gain(from.gain);
  to->set_at_most(from.at_most);
  to->set_kernels_saved(static_cast<int32_t>(from.kernels_saved));
  to->set_bytes_saved(from.bytes_saved);
  to->set_because(JsonText(from.because));
  to->set_code(from.code);
  to->set_source(JsonText(from.source));
  to->set_way(JsonText(from.way));
  for (const std::string& node : from.nodes) to->add_nodes(JsonText(node));
}

void Write(const WeightRecord& from, proto::Analysis::Weights* to) {
  to->set_name(JsonText(from.name));
  to->set_tensors(Count(from.tensors));
  to->set_bytes(from.bytes);
}

void Write(const ActivationRecord& from, proto::Analysis::Activations* to) {
  Write(from.peak, to->mutable_peak());
  to->set_at(JsonText(from.at));
  for (const CurvePoint& point : from.curve) {
    auto* written = to->add_curve();
    written->set_step(Count(point.step));
    written->set_node(JsonText(point.node));
    written->set_bytes(point.bytes);
  }
}

void Write(const MemoryRecord& from, proto::Analysis::Memory* to) {
  to->set_weights(from.weights);
  to->set_weights_shared(from.weights_shared);
  to->set_weights_half(from.weights_half);
  to->set_weights_int8(from.weights_int8);
  for (const WeightRecord& weights : from.by_type) Write(weights, to->add_by_type());
  for (const WeightRecord& weights : from.by_module) Write(weights, to->add_by_module());
  Write(from.before, to->mutable_before());
  Write(from.after, to->mutable_after());
  Write(from.cache, to->mutable_cache());
  for (const CacheRecord& cache : from.caches) {
    auto* written = to->add_caches();
    written->set_input(JsonText(cache.input));
    written->set_output(JsonText(cache.output));
    Write(cache.bytes, written->mutable_bytes());
  }
  to->set_needed(from.needed);
  for (const MemoryFit& fit : from.fits) {
    auto* written = to->add_fits();
    written->set_bytes(fit.bytes);
    written->set_fits(fit.fits);
    written->set_source(JsonText(fit.source));
  }
}

void Write(const HostRecord& from, proto::Analysis::Host* to) {
  to->set_code(from.code);
  to->set_op(JsonText(from.op));
  to->set_nodes(Count(from.nodes));
  to->set_node(JsonText(from.node));
  to->set_module(JsonText(from.module));
  to->set_because(JsonText(from.because));
  to->set_way_out(JsonText(from.way_out));
}

void Write(const PrecisionRecord& from, proto::Analysis::Precision* to) {
  for (const TypeRecord& type : from.types) {
    auto* written = to->add_types();
    written->set_type(type.type);
    written->set_values(Count(type.values));
    written->set_kernels(Count(type.kernels));
    written->set_bytes(type.bytes);
  }
  to->set_casts(Count(from.casts));
  for (const FindingRecord& finding : from.findings) WriteFinding(finding, to->add_findings());
}

void Write(const ComplexityRecord& from, proto::Analysis::Complexity* to) {
  to->set_level(from.level);
  for (const ReasonRecord& reason : from.reasons) {
    auto* written = to->add_reasons();
    written->set_level(reason.level);
    written->set_code(reason.code);
    written->set_count(Count(reason.count));
    written->set_because(JsonText(reason.because));
    written->set_way_out(JsonText(reason.way_out));
  }
}

}  // namespace

std::string AnalysisToJson(const Analysis& analysis) {
  proto::Analysis message;
  message.set_schema(kAnalysisSchema);
  WriteReport(analysis.report, message.mutable_report());
  for (const BoundDim& dim : analysis.dims) {
    auto* written = message.add_dims();
    written->set_name(JsonText(dim.name));
    written->set_value(static_cast<double>(dim.value));
    written->set_origin(dim.origin);
  }
  message.set_precision_bytes(analysis.precision_bytes);
  Write(analysis.before, message.mutable_before());
  Write(analysis.after, message.mutable_after());
  message.mutable_ratio()->set_low(analysis.ratio.low);
  message.mutable_ratio()->set_middle(analysis.ratio.middle);
  message.mutable_ratio()->set_high(analysis.ratio.high);
  message.mutable_ratio()->set_launch(analysis.ratio.launch);
  for (const ShareRecord& share : analysis.operators) Write(share, message.add_operators());
  for (const ShareRecord& share : analysis.modules) Write(share, message.add_modules());
  for (const HeavyRecord& heavy : analysis.heaviest) Write(heavy, message.add_heaviest());
  for (const SupportRecord& support : analysis.support) Write(support, message.add_support());
  for (const OpportunityRecord& opportunity : analysis.opportunities) Write(opportunity, message.add_opportunities());
  Write(analysis.memory, message.mutable_memory());
  for (const HostRecord& host : analysis.host) Write(host, message.add_host());
  Write(analysis.precision, message.mutable_precision());
  Write(analysis.complexity, message.mutable_complexity());
  for (const StepRecord& step : analysis.next) {
    auto* written = message.add_next();
    written->set_action(JsonText(step.action));
    written->set_because(JsonText(step.because));
    written->set_command(JsonText(step.command));
  }
  for (const std::string& op : analysis.uncounted) message.add_uncounted(JsonText(op));
  return MessageToJson(message);
}

}  // namespace ascend_fuse
