#include "passes/layout/row_writer.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/status_macros.h"
#include "passes/core/copy_value.h"
#include "passes/core/node_inserter.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMaximumReshapes = 64;  // of a way: they cost less than one Transpose

}  // namespace

absl::Status RowWriter::Write() {
  std::vector<RowPlace*> changed;
  for (RowPlace& place : places_.all()) {
    if (place.changes) changed.push_back(&place);
  }
  std::sort(changed.begin(), changed.end(),
            [](const RowPlace* a, const RowPlace* b) { return StandsBefore(*a->node, *b->node); });
  std::vector<Way*> to_write = WaysToTidy();
  // Which ways are read by what stays is asked before anything is changed.
  for (const auto& way : ways_.all()) {
    const RowPlace* maker = places_.MakerOf(way->source);
    if (maker == nullptr || !maker->changes || way->end == way->source) continue;
    if (places_.StaysRead(*way)) to_write.push_back(way.get());
  }
  AddOtherWays(&to_write);
  for (RowPlace* place : changed) {
    ASSIGN_OR_RETURN(place->changes, WritePlace(*place, to_write));
  }
  for (Way* way : to_write) WriteWay(way);
  for (size_t i = ways_.all().size(); i-- > 0;) WriteDims(ways_.all()[i].get());
  for (const RowPlace* place : changed) {
    for (const Value* result : place->exchangeable.results) WriteAsItWas(*place, result);
  }
  return absl::OkStatus();
}

// All ways of an attention are written by [B, S, N, D] where one of them is, so that the attention can take that.
void RowWriter::AddOtherWays(std::vector<Way*>* to_write) {
  absl::flat_hash_set<const Way*> written(to_write->begin(), to_write->end());
  for (const std::vector<Way*>& ways : places_.attentions()) {
    const auto is_changed = [&](const Way* way) { return written.contains(way) || !places_.StaysRead(*way); };
    if (std::none_of(ways.begin(), ways.end(), is_changed)) continue;
    for (Way* way : ways) {
      const bool is_here = way->transposes > 0 && !forms_.AsIsIsFree(*way) && places_.StaysRead(*way);
      if (is_here && forms_.CanBeFree(*way) && written.insert(way).second) to_write->push_back(way);
    }
  }
}

// Whether the way, between nodes that stay, needs fewer Transposes than it has.
bool RowWriter::IsBetterWritten(const Way& way) {
  const RowPlace* maker = places_.MakerOf(way.source);
  if (maker != nullptr && maker->changes) return false;
  // Reshapes alone are no reason.
  return forms_.CostOf(way, way.from, way.to) + kReshapeCost * kMaximumReshapes < forms_.CostAsIs(way);
}

// Another way from the same value would keep the Transposes that they share, so that all or none are written.
std::vector<Way*> RowWriter::WaysToTidy() {
  std::vector<Way*> tidied;
  absl::flat_hash_set<const Value*> seen;  // sources
  const size_t count = ways_.all().size();
  for (size_t i = 0; i < count; ++i) {
    const Way& first = *ways_.all()[i];
    if (first.transposes == 0 || !IsBetterWritten(first) || !seen.insert(first.source).second) continue;
    std::vector<Way*> ways = ways_.From(first.source);
    ways.erase(std::remove_if(ways.begin(), ways.end(),
                              [&](const Way* way) { return way->transposes == 0 || !places_.StaysRead(*way); }),
               ways.end());
    if (std::all_of(ways.begin(), ways.end(), [&](const Way* way) { return IsBetterWritten(*way); })) {
      tidied.insert(tidied.end(), ways.begin(), ways.end());
    }
  }
  return tidied;
}

// False where it stays as it is.
absl::StatusOr<bool> RowWriter::WritePlace(const RowPlace& place, const std::vector<Way*>& to_write) {
  const auto& results = place.exchangeable.results;
  std::vector<std::pair<size_t, const Value*>> operands;
  for (const size_t i : place.exchangeable.operands) {
    operands.emplace_back(i, Provide(&ways_.To(place.node->input(i)), place));
    if (operands.back().second == nullptr) return false;
  }
  NewNode plan = Exchanged(*place.node, workspace_, place.axes);
  for (const auto& [i, value] : operands) plan.inputs[i] = value;
  absl::flat_hash_map<const Value*, const Value*> existing;  // what stands in the file and is what the node computes now
  for (const Value* result : results) {
    const auto same = std::find_if(to_write.begin(), to_write.end(), [&](Way* way) {
      return way->source == result && !way->picked.has_value() &&
             BatchFirst(way, way->from, place.rows) == way->atoms.Leaves(way->to);
    });
    if (same != to_write.end()) existing[result] = (*same)->end;
  }
  ASSIGN_OR_RETURN(const auto pairs,
                   WriteExchanged(*place.node, plan, results, existing, fmt::format("{}_batch_first", ValueName(*results[0])),
                                  place.axes, workspace_));
  of_ge_.Turned(*place.node, *pairs.front().now->producer);
  for (const auto& [before, now] : pairs) forms_.SetNow(before, now);
  return true;
}

// What a turned place reads at the end of the way; nullptr where that cannot be written.
const Value* RowWriter::Provide(Way* way, const RowPlace& reader) {
  const Value*& provided = provided_[way->end];
  if (provided != nullptr) return provided;
  const std::optional<Term> term = FromSource(way, BatchFirst(way, way->to, reader.rows));
  if (term.has_value()) provided = NodeInserter(workspace_, *reader.node).Build(*term);
  return provided;
}

// The source, or its part, as it is now, and its axes; no axes where they cannot be told.
std::pair<const Value*, std::optional<AxisList>> RowWriter::SourceOf(Way* way) {
  const RowPlace* maker = places_.MakerOf(way->source);
  const Value* now = maker != nullptr ? forms_.NowOf(way->source) : nullptr;
  const Value* source = now != nullptr ? now : way->source;
  if (way->picked.has_value()) source = PartOf(source, *way);
  return {source, now != nullptr ? BatchFirst(way, way->from, maker->rows) : way->from};
}

std::optional<Term> RowWriter::FromSource(Way* way, const std::optional<AxisList>& to) {
  const auto [source, from] = SourceOf(way);
  return forms_.ArrangedOf(*way, source, from, to);
}

// One of equal parts of the last axis.
const Value* RowWriter::PartOf(const Value* source, const Way& way) {
  std::vector<const Value*>& parts = parts_[{source, way.picked->count}];
  if (parts.empty()) {
    const auto count = static_cast<size_t>(way.picked->count);
    const int64_t width = way.atoms.SizeOf(way.from.back()).number() / way.picked->count;
    const std::vector<int64_t> widths(count, width);
    NodeInserter inserter(workspace_, source->graph, ValueName(*source));
    NewNode split;
    split.op_type = "Split";
    split.name = fmt::format("{}_Split", ValueName(*source));
    split.inputs = {source};
    split.attributes = {Attribute::Int("axis", static_cast<int64_t>(way.from.size()) - 1)};
    inserter.SetLengths(&split, widths);
    const Node* made = workspace_.rewriter().Insert(split, count, source->graph, split.name);
    workspace_.Refresh(made);
    parts.assign(made->outputs().begin(), made->outputs().end());
  }
  return parts[static_cast<size_t>(way.picked->index)];
}

// The end of a way from what its source is now, for those who read it as it was.
void RowWriter::WriteWay(Way* way) {
  if (forms_.NowOf(way->source) == way->end) return;
  const std::optional<Term> term = FromSource(way, way->to);
  if (!term.has_value()) return;
  // Its dims stay those that are known of it. What is written may have others of their names, which are one dim each.
  Facts& facts = workspace_.facts();
  const Fact known = facts.Of(way->end);
  if (term->kind == Term::Kind::kNode) {
    const NewNode plan = NodeInserter(workspace_, *way->end->producer).Plan(*term);
    workspace_.Refresh(workspace_.rewriter().ReplaceValue(way->end, plan));
  } else {
    BecomeCopy(workspace_, way->end, term->value, fmt::format("{}_copy", ValueName(*way->end)));
  }
  const Fact written = facts.Of(way->end);
  const InPlace place(*way->end->graph, &facts);
  for (size_t i = 0; i < std::min(known.shape.size(), written.shape.size()); ++i) {
    if (known.shape[i].known() && written.shape[i].known()) facts.dims().Unify(known.shape[i], written.shape[i]);
  }
  facts.Set(way->end, known);
}

// Who only asks for the dims of what was moved asks where it was moved from.
void RowWriter::WriteDims(Way* way) {
  std::vector<const Node*> readers;
  for (const Use& use : LiveUses(*way->end)) {
    if (!ReadsDims(*use.user)) return;
    if (use.user->graph == way->end->graph) readers.push_back(use.user);
  }
  if (readers.empty() || way->end->is_graph_output) return;
  if (way->transposes == 0 && forms_.NowOf(way->source) == nullptr) return;
  const auto [source, from] = SourceOf(way);
  const std::optional<Term> term = from.has_value() ? forms_.DimsOf(*way, source, *from) : std::nullopt;
  if (!term.has_value()) return;
  for (const Node* reader : readers) {
    workspace_.Refresh(workspace_.rewriter().ReplaceValue(reader->output(), NodeInserter(workspace_, *reader).Plan(*term)));
  }
}

// What a turned place computed, for those who still read it.
void RowWriter::WriteAsItWas(const RowPlace& place, const Value* result) {
  const Value* now = forms_.NowOf(result);
  if (now == nullptr || (!result->is_graph_output && LiveUses(*result).empty())) return;
  Way& way = ways_.To(result);
  const auto term = forms_.ArrangedOf(way, now, BatchFirst(&way, way.from, place.rows), way.from);
  if (!term.has_value() || term->kind != Term::Kind::kNode) return;  // it is still computed as it was
  workspace_.Refresh(workspace_.rewriter().ReplaceValue(result, NodeInserter(workspace_, *place.node).Plan(*term)));
}

}  // namespace ascend_fuse
