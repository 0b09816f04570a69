// Every record of a report lists its fields once, for what walks through all of them.
#pragma once

#include <string>
#include <type_traits>

#include "passes/report/report.h"

namespace ascend_fuse {

template <typename Record, typename Type>
inline constexpr bool kIs = std::is_same_v<std::remove_const_t<Record>, Type>;

// Calls visit (name in the message, field) for every field of a record.
template <typename Record, typename Visit>
void EachField(Record& r, Visit visit) {
  if constexpr (kIs<Record, SiteRecord>) {
    visit("kind", r.kind), visit("state", r.state), visit("module", r.module), visit("rule", r.rule);
    visit("emitted_op", r.emitted_op), visit("covers", r.covers), visit("precision", r.precision);
    visit("mask", r.mask), visit("assumptions", r.assumptions), visit("code", r.code);
    visit("because", r.because), visit("source", r.source), visit("node", r.node);
    visit("outputs", r.outputs), visit("pair", r.pair), visit("mask_offset", r.mask_offset);
    visit("mask_window", r.mask_window), visit("mask_padding", r.mask_padding);
    visit("mask_assumptions", r.mask_assumptions);
  } else if constexpr (kIs<Record, NearMissRecord>) {
    visit("rule", r.rule), visit("node", r.node), visit("module", r.module);
    visit("matched_nodes", r.matched_nodes), visit("stopped_by", r.stopped_by), visit("code", r.code);
    visit("expected", r.expected), visit("found", r.found), visit("source", r.source);
  } else if constexpr (kIs<Record, WarningRecord>) {
    visit("code", r.code), visit("message", r.message);
  } else if constexpr (kIs<Record, FindingRecord>) {
    visit("code", r.code), visit("effect", r.effect), visit("certain", r.certain), visit("op", r.op);
    visit("node", r.node), visit("module", r.module), visit("because", r.because), visit("source", r.source);
    visit("error", r.error), visit("way_out", r.way_out), visit("fixed_by", r.fixed_by);
  } else if constexpr (kIs<Record, AdaptedRecord> || kIs<Record, TidiedRecord>) {
    visit("code", r.code), visit("op", r.op), visit("nodes", r.nodes);
  } else if constexpr (kIs<Record, GainRecord>) {
    visit("node", r.node), visit("evidence", r.evidence), visit("because", r.because), visit("source", r.source);
  } else if constexpr (kIs<Record, PassRecord>) {
    visit("name", r.name), visit("milliseconds", r.milliseconds), visit("changes", r.changes);
  } else if constexpr (kIs<Record, ContradictionRecord>) {
    visit("value", r.value), visit("declared", r.declared), visit("computed", r.computed), visit("node", r.node);
  } else if constexpr (kIs<Record, ReportKindCount>) {
    visit("found", r.found), visit("fused", r.fused), visit("by_ge", r.by_ge), visit("left", r.left);
    visit("commonest_reason", r.commonest_reason);
  } else {
    static_assert(kIs<Record, ReportTarget>);
    visit("chip", r.chip), visit("cann", r.cann), visit("style", r.style);
    visit("precision_mode", r.precision_mode), visit("opset", r.opset), visit("plugin", r.plugin), visit("dims", r.dims);
  }
}

// The report as it is printed: names out of the model cannot forge lines, move the cursor or fill the screen
// (ir/text/visible.h).
Report VisibleReport(const Report& report);

}  // namespace ascend_fuse
