// Turns a report into text and JSON. The text is made to be read in one glance: a table first, then sites
// that share a sentence as one line.
#include "passes/report.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "patterns/operators/declarations.h"
#include "proto/report.pb.h"

namespace ascend_fuse {
namespace {

constexpr const char* kTypePrefix = "type.googleapis.com";

int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max()));
}

proto::Report ToProto(const Report& report) {
  proto::Report out;
  out.set_model(report.model);
  out.mutable_target()->set_chip(report.target.chip);
  out.mutable_target()->set_cann(report.target.cann);
  out.mutable_target()->set_style(report.target.style);
  out.mutable_target()->set_precision_mode(report.target.precision_mode);
  out.mutable_target()->set_opset(Narrow(report.target.opset));
  out.mutable_target()->set_plugin(report.target.plugin);
  out.mutable_summary()->mutable_nodes()->set_before(Narrow(report.nodes_before));
  out.mutable_summary()->mutable_nodes()->set_after(Narrow(report.nodes_after));
  for (const ReportKindCount& count : report.kinds) {
    proto::Report::KindCount& row = (*out.mutable_summary()->mutable_sites())[count.kind];
    row.set_found(Narrow(count.found));
    row.set_fused(Narrow(count.fused));
    row.set_by_ge(Narrow(count.by_ge));
    row.set_left(Narrow(count.left));
    row.set_commonest_reason(count.commonest_reason);
  }
  for (const ReportSite& site : report.sites) {
    proto::Report::Site* row = out.add_sites();
    row->set_kind(site.kind);
    row->set_state(site.state);
    row->set_module(site.module);
    row->set_rule(site.rule);
    row->set_node(site.node);
    row->mutable_covers()->Assign(site.covers.begin(), site.covers.end());
    row->set_precision(site.precision);
    row->set_mask(site.mask);
    row->mutable_assumptions()->Assign(site.assumptions.begin(), site.assumptions.end());
    row->set_because(site.because);
    row->set_source(site.source);
    row->set_name(site.name);
    row->mutable_outputs()->Assign(site.outputs.begin(), site.outputs.end());
    row->set_pair(site.pair);
  }
  for (const ReportNearMiss& miss : report.near_misses) {
    proto::Report::NearMiss* row = out.add_near_misses();
    row->set_rule(miss.rule);
    row->set_at(miss.at);
    row->set_module(miss.module);
    row->set_matched_nodes(Narrow(miss.matched_nodes));
    row->set_stopped_by(miss.stopped_by);
    row->set_expected(miss.expected);
    row->set_found(miss.found);
    row->set_source_position(miss.source_position);
  }
  for (const ReportPass& pass : report.passes) {
    proto::Report::Pass* row = out.add_passes();
    row->set_name(pass.name);
    row->set_milliseconds(pass.milliseconds);
    row->set_changes(Narrow(pass.changes));
  }
  for (const ReportContradiction& contradiction : report.contradictions) {
    proto::Report::Contradiction* row = out.add_contradictions();
    row->set_value(contradiction.value);
    row->set_declared(contradiction.declared);
    row->set_computed(contradiction.computed);
    row->set_where(contradiction.where);
  }
  out.mutable_warnings()->Assign(report.warnings.begin(), report.warnings.end());
  return out;
}

template <typename List>
std::vector<std::string> Strings(const List& list) {
  return std::vector<std::string>(list.begin(), list.end());
}

// "model.layers.12.self_attn" -> "model.layers.*.self_attn", "/layers.3/norm" -> "/layers.*/norm": digits
// that are a whole word of the path.
std::string WithoutNumbers(const std::string& path) {
  std::string result;
  const auto separator = [](char c) { return c == '.' || c == '/' || c == '_' || c == ':'; };
  for (size_t i = 0; i < path.size();) {
    size_t end = i;
    while (end < path.size() && std::isdigit(static_cast<unsigned char>(path[end]))) ++end;
    const bool starts = i == 0 || separator(path[i - 1]);
    const bool ends = end == path.size() || separator(path[end]);
    if (end > i && starts && ends) {
      result += '*';
      i = end;
    } else {
      if (end == i) ++end;
      result.append(path, i, end - i);
      i = end;
    }
  }
  return result;
}

std::string ShortOp(const std::string& op) {
  const size_t dot = op.rfind('.');
  return dot == std::string::npos ? op : op.substr(dot + 1);
}

const std::string& Place(const ReportSite& site) { return site.module.empty() ? site.name : site.module; }

// What is said of a fused site after its place: the mask, and precision if it is not exact.
std::string Notes(const ReportSite& site) {
  std::vector<std::string> notes;
  if (!site.mask.empty()) notes.push_back(fmt::format("mask {}", site.mask));
  if (site.state == "fused" && !site.precision.empty() && site.precision != "exact") notes.push_back(site.precision);
  return notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, ", "));
}

const char* StateWord(const std::string& state, bool changed) {
  if (state == "fused") return changed ? "fused" : "can be fused";
  if (state == "by_ge") return "by GE";
  return "left";
}

class Text {
 public:
  Text(const Report& report, const ReportTextOptions& options) : report_(report), options_(options) {}

  std::string Run() {
    Header();
    Table();
    Sites();
    Assumptions();
    NearMisses();
    Rest();
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
    while (!text_.empty() && text_.back() == ' ') text_.pop_back();
    text_ += '\n';
  }

  void Header() {
    const ReportTarget& target = report_.target;
    if (!report_.model.empty()) Line("{}", report_.model);
    std::string line = fmt::format("target {}, CANN {}", target.chip, target.cann);
    if (target.plugin) line += " with our op plugin";
    if (!target.style.empty()) line += fmt::format(", style {}", target.style);
    if (target.opset > 0) line += fmt::format(", opset {}", target.opset);
    if (!target.precision_mode.empty()) line += fmt::format(", precision mode {}", target.precision_mode);
    Line("{}", line);
    for (const std::string& warning : report_.warnings) Line("warning: {}", warning);
    Line("");
  }

  void Table() {
    int64_t found = 0, fused = 0;
    std::vector<std::string> absent;
    for (const ReportKindCount& count : report_.kinds) {
      if (count.found == 0) {
        absent.push_back(count.kind);
        continue;
      }
      if (found == 0) {
        Line("{:<18}{:>6}{:>7}{:>7}{:>6}  {}", "", "found", options_.changed ? "fused" : "can be", "by GE",
             "left", "commonest reason");
      }
      found += count.found;
      fused += count.fused;
      Line("{:<18}{:>6}{:>7}{:>7}{:>6}  {}", count.kind, count.found, count.fused, count.by_ge, count.left,
           count.commonest_reason);
    }
    if (found == 0) {
      Line("No site of any kind was found ({}): nothing was fused.", fmt::join(absent, ", "));
      Line("Near misses below, if any, say where a pattern stopped; `ascend-fuse print` shows the graph.");
    } else if (fused == 0) {
      Line("{} found, none {} fused: the reasons are below.",
           found == 1 ? "1 site was" : fmt::format("{} sites were", found),
           options_.changed ? "was" : "can be");
    } else if (!absent.empty()) {
      Line("none found: {}", fmt::join(absent, ", "));
    }
    if (options_.changed) {
      Line("nodes {} -> {}", report_.nodes_before, report_.nodes_after);
    } else {
      Line("nodes {} (nothing was changed)", report_.nodes_before);
    }
  }

  std::vector<std::string> KindsOfSites() const {
    std::vector<std::string> kinds = ReportKinds();
    for (const ReportSite& site : report_.sites) {
      if (std::find(kinds.begin(), kinds.end(), site.kind) == kinds.end()) kinds.push_back(site.kind);
    }
    return kinds;
  }

  void Sites() {
    for (const std::string& kind : KindsOfSites()) {
      // Groups in the order of their first site.
      using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;
      std::map<Key, size_t> index;
      std::vector<std::vector<const ReportSite*>> groups;
      for (const ReportSite& site : report_.sites) {
        if (site.kind != kind) continue;
        const Key key(site.state, site.node, Notes(site), site.because, site.source,
                      WithoutNumbers(Place(site)));
        const auto [it, inserted] = index.emplace(key, groups.size());
        if (inserted || options_.verbose) {
          groups.push_back({&site});
        } else {
          groups[it->second].push_back(&site);
        }
      }
      if (groups.empty()) continue;
      Line("");
      Line("{}", kind);
      // Groups with one reason stand together, and the reason once below them.
      auto reason = [](const std::vector<const ReportSite*>& group) {
        return std::tie(group[0]->state, group[0]->because, group[0]->source);
      };
      if (!options_.verbose) {
        std::vector<std::vector<const ReportSite*>> sorted;
        for (size_t i = 0; i < groups.size(); ++i) {
          if (groups[i].empty()) continue;
          sorted.push_back(groups[i]);
          for (size_t k = i + 1; k < groups.size(); ++k) {
            if (groups[k].empty() || reason(groups[k]) != reason(sorted.back())) continue;
            sorted.push_back(std::move(groups[k]));
            groups[k].clear();
          }
        }
        groups = std::move(sorted);
      }
      for (size_t i = 0; i < groups.size(); ++i) {
        const bool last = options_.verbose || i + 1 == groups.size() || reason(groups[i]) != reason(groups[i + 1]);
        Group(groups[i], last);
      }
    }
  }

  void Group(const std::vector<const ReportSite*>& group, bool with_reason) {
    const ReportSite& site = *group[0];
    const std::string count = group.size() > 1 ? fmt::format("{} x ", group.size()) : "";
    std::string place = group.size() > 1 ? WithoutNumbers(Place(site)) : Place(site);
    if (place == "*") place = fmt::format("{} and {} more", Place(site), group.size() - 1);  // all are numbers
    const std::string node = site.node.empty() ? "" : fmt::format(" -> {}", ShortOp(site.node));
    Line("  {}{}{}  {}{}", count, StateWord(site.state, options_.changed), node, place, Notes(site));
    if (options_.verbose) {
      std::vector<std::string> details;
      if (!site.rule.empty()) details.push_back(fmt::format("rule {}", site.rule));
      if (!site.module.empty() && !site.name.empty()) details.push_back(fmt::format("at {}", site.name));
      if (!details.empty()) Line("      {}", fmt::join(details, ", "));
      if (!site.covers.empty()) Line("      covers {}", fmt::join(site.covers, " "));
      if (!site.outputs.empty()) Line("      gives {}", fmt::join(site.outputs, " "));
      if (!site.pair.empty()) Line("      pair of {}: the same cos and sin", site.pair);
    }
    if (!with_reason) return;
    if (!site.because.empty()) Line("      because {}", site.because);
    if (!site.source.empty() && (site.state != "fused" || options_.verbose))
      Line("      source {}", site.source);
    if (site.state == "left" && site.because.empty()) Line("      because no reason was recorded");
  }

  void Assumptions() {
    std::vector<std::pair<std::string, size_t>> sentences;
    for (const ReportSite& site : report_.sites) {
      for (const std::string& sentence : site.assumptions) {
        const auto it = std::find_if(sentences.begin(), sentences.end(),
                                     [&](const auto& other) { return other.first == sentence; });
        if (it == sentences.end()) {
          sentences.emplace_back(sentence, 1);
        } else {
          ++it->second;
        }
      }
    }
    if (sentences.empty()) return;
    Line("");
    Line("assumptions (--strict refuses instead; --dim decides those about dims)");
    for (const auto& [sentence, count] : sentences) {
      Line("  {}{}", sentence, count > 1 ? fmt::format("  [{} sites]", count) : "");
    }
  }

  void NearMisses() {
    if (report_.near_misses.empty()) return;
    Line("");
    Line("near misses");
    // The same stop in every layer is told once.
    using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
    std::map<Key, size_t> index;
    std::vector<std::pair<const ReportNearMiss*, size_t>> groups;
    for (const ReportNearMiss& miss : report_.near_misses) {
      const Key key(miss.rule, miss.expected, WithoutNumbers(miss.found), miss.source_position,
                    WithoutNumbers(miss.module.empty() ? miss.at : miss.module));
      const auto [it, inserted] = index.emplace(key, groups.size());
      if (inserted || options_.verbose) {
        groups.emplace_back(&miss, 1);
      } else {
        ++groups[it->second].second;
      }
    }
    for (const auto& [first, count] : groups) {
      const ReportNearMiss& miss = *first;
      const std::string place = miss.module.empty() ? miss.at : fmt::format("{} ({})", miss.at, miss.module);
      Line("  {} at {}{}: matched {} node{}, stopped by {}", miss.rule, place,
           count > 1 ? fmt::format(" and {} more like it", count - 1) : "", miss.matched_nodes,
           miss.matched_nodes == 1 ? "" : "s", miss.stopped_by);
      if (!miss.expected.empty()) Line("      expected {}", miss.expected);
      if (!miss.found.empty()) Line("      {} {}", miss.expected.empty() ? "because" : "found", miss.found);
      if (!miss.source_position.empty()) Line("      rule text {}", miss.source_position);
    }
  }

  void Rest() {
    if (!report_.contradictions.empty()) {
      Line("");
      Line("contradictions (the computed shape was believed)");
      for (const ReportContradiction& c : report_.contradictions) {
        Line("  {}: declared {}, computed {} at {}", c.value, c.declared, c.computed, c.where);
      }
    }
    if (options_.verbose && !report_.passes.empty()) {
      Line("");
      Line("passes");
      for (const ReportPass& pass : report_.passes) {
        Line("  {:<18}{:>10.1f} ms  {} change{}", pass.name, pass.milliseconds, pass.changes,
             pass.changes == 1 ? "" : "s");
      }
    }
  }

  const Report& report_;
  const ReportTextOptions& options_;
  std::string text_;
};

}  // namespace

const std::vector<std::string>& ReportKinds() {
  static const auto* const kinds = [] {
    auto* names = new std::vector<std::string>;
    for (const SiteKind& kind : SiteKinds()) names->push_back(kind.name);
    return names;
  }();
  return *kinds;
}

void Report::Summarize() {
  kinds.clear();
  for (const std::string& kind : ReportKinds()) kinds.push_back({kind, 0, 0, 0, 0, ""});
  std::map<std::string, std::vector<std::pair<std::string, int>>> reasons;  // in the order of the sites
  for (const ReportSite& site : sites) {
    auto it =
        std::find_if(kinds.begin(), kinds.end(), [&](const auto& count) { return count.kind == site.kind; });
    if (it == kinds.end()) it = kinds.insert(it, {site.kind, 0, 0, 0, 0, ""});
    ++it->found;
    if (site.state == "fused") {
      ++it->fused;
    } else if (site.state == "by_ge") {
      ++it->by_ge;
    } else {
      ++it->left;
      auto& list = reasons[site.kind];
      auto reason =
          std::find_if(list.begin(), list.end(), [&](const auto& r) { return r.first == site.because; });
      if (reason == list.end()) reason = list.insert(reason, {site.because, 0});
      ++reason->second;
    }
  }
  for (ReportKindCount& count : kinds) {
    int most = 0;
    for (const auto& [because, times] : reasons[count.kind]) {
      if (times <= most || because.empty()) continue;
      most = times;
      count.commonest_reason = because;
    }
  }
}

const ReportKindCount* Report::FindKind(const std::string& kind) const {
  for (const ReportKindCount& count : kinds) {
    if (count.kind == kind) return &count;
  }
  return nullptr;
}

std::string ReportToJson(const Report& report) {
  const proto::Report message = ToProto(report);
  // MessageToJsonString writes maps in any order; from deterministic bytes the order is that of the keys.
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          kTypePrefix, google::protobuf::DescriptorPool::generated_pool()));
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      resolver.get(), fmt::format("{}/{}", kTypePrefix, message.GetDescriptor()->full_name()), bytes, &json,
      options);
  // Every string of a report has passed the loader's UTF-8 check; should one not have, say so in the JSON
  // itself.
  if (!status.ok()) return fmt::format("{{\"warnings\": [\"the report cannot be written as JSON\"]}}\n");
  return json;
}

std::string ReportToText(const Report& report, const ReportTextOptions& options) {
  return Text(report, options).Run();
}

absl::StatusOr<Report> ReportFromJson(const std::string& json) {
  proto::Report message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(fmt::format("not a report: {}", std::string(status.message())));
  }
  Report report;
  report.model = message.model();
  report.target = {message.target().chip(), message.target().cann(), message.target().style(),
                   message.target().precision_mode(), message.target().opset(), message.target().plugin()};
  report.nodes_before = message.summary().nodes().before();
  report.nodes_after = message.summary().nodes().after();
  for (const auto& site : message.sites()) {
    report.sites.push_back({site.kind(), site.state(), site.module(), site.rule(), site.node(),
                            Strings(site.covers()), site.precision(), site.mask(),
                            Strings(site.assumptions()), site.because(), site.source(), site.name(),
                            Strings(site.outputs()), site.pair()});
  }
  for (const auto& miss : message.near_misses()) {
    report.near_misses.push_back({miss.rule(), miss.at(), miss.module(), miss.matched_nodes(),
                                  miss.stopped_by(), miss.expected(), miss.found(), miss.source_position()});
  }
  for (const auto& pass : message.passes()) {
    report.passes.push_back({pass.name(), pass.milliseconds(), pass.changes()});
  }
  for (const auto& c : message.contradictions()) {
    report.contradictions.push_back({c.value(), c.declared(), c.computed(), c.where()});
  }
  report.warnings = Strings(message.warnings());
  report.Summarize();
  return report;
}

}  // namespace ascend_fuse
