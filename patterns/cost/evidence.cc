#include "patterns/cost/evidence.h"

#include <algorithm>
#include <map>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/add_once.h"
#include "patterns/cost/compare.h"

namespace ascend_fuse {
namespace {

bool Tells(const std::vector<std::string>& nodes, std::string_view op_type) {
  return std::find(nodes.begin(), nodes.end(), op_type) != nodes.end();
}

// What rows say of one node.
class Collector {
 public:
  explicit Collector(std::string_view op_type) : op_type_(op_type) {}

  SpeedEvidence Run() {
    for (const Measurement& row : PublishedMeasurements().rows) {
      if (!Tells(row.nodes, op_type_)) continue;
      const auto comparison = Compare(row);
      if (comparison.ok()) Add(*comparison);
    }
    for (const LeftOutFigure& figure : PublishedMeasurements().left_out) {
      if (figure.where != SiteTest::kAny || !figure.is_measured() || !Tells(figure.nodes, op_type_)) continue;
      AddMeasured(
          figure.measured_before / figure.measured_after,
          fmt::format("{:.2f} times as fast was measured: {}", figure.measured_before / figure.measured_after, figure.what),
          figure.source);
    }
    if (faster_ + slower_ + ties_ > 0) return Finish(faster_ > 0 ? "measured" : slower_ > 0 ? "loss" : "unknown");
    if (predicted_ > 0) return Finish(likely_ == predicted_ ? "likely" : "unknown");
    return {"unknown", "no measurement was found; `ascend-fuse analyze` says what the cost model predicts in a model",
            "patterns/cost/measurements.txtpb"};
  }

 private:
  void Add(const Comparison& comparison) {
    const Measurement& row = *comparison.row;
    const SpeedRatio& predicted = comparison.predicted;
    if (row.is_measured()) {
      AddMeasured(
          comparison.measured,
          fmt::format("{:.2f} times as fast was measured, {:.2f} predicted: {}", comparison.measured, predicted.middle, row.name),
          row.source);
      return;
    }
    ++predicted_;
    likely_ += predicted.low > 1 ? 1 : 0;
    AddOnce(fmt::format("no measurement was found; the cost model predicts {:.2f} ({:.2f} to {:.2f}) times as fast: {}",
                        predicted.middle, predicted.low, predicted.high, row.name),
            &because_);
    AddOnce(std::string("patterns/cost/measurements.txtpb"), &sources_);
  }

  void AddMeasured(double ratio, const std::string& text, const std::string& source) {
    (ratio > 1 + kTie ? faster_ : ratio < 1 - kTie ? slower_ : ties_) += 1;
    AddOnce(text, &because_);
    AddOnce(source, &sources_);
  }

  SpeedEvidence Finish(const char* evidence) const {
    return {evidence, fmt::format("{}", fmt::join(because_, "; ")), fmt::format("{}", fmt::join(sources_, "; "))};
  }

  const std::string_view op_type_;
  std::vector<std::string> because_, sources_;
  int faster_ = 0, slower_ = 0, ties_ = 0, predicted_ = 0, likely_ = 0;
};

}  // namespace

SpeedEvidence EvidenceOf(std::string_view op_type) { return Collector(op_type).Run(); }

const std::vector<SlowerSites>& SlowerSitesOf(std::string_view op_type) {
  using Sites = std::map<std::string, std::vector<SlowerSites>, std::less<>>;
  static const Sites* const sites = [] {
    auto* of_nodes = new Sites;
    for (const LeftOutFigure& figure : PublishedMeasurements().left_out) {
      const bool slower = figure.is_measured() && figure.measured_before / figure.measured_after < 1 - kTie;
      if (figure.where == SiteTest::kAny || !slower) continue;
      for (const std::string& node : figure.nodes) (*of_nodes)[node].push_back({figure.where, figure.what, figure.source});
    }
    return of_nodes;
  }();
  static const std::vector<SlowerSites>* const kNone = new std::vector<SlowerSites>();
  const auto found = sites->find(op_type);
  return found == sites->end() ? *kNone : found->second;
}

std::string DescribeSpeed(std::string_view op_type) {
  const SpeedEvidence speed = EvidenceOf(op_type);
  std::string text = fmt::format("Speed: {}: {} ({}).\n\n", speed.evidence, speed.because, speed.source);
  for (const SlowerSites& row : SlowerSitesOf(op_type)) {
    text +=
        fmt::format("For rows that a router chose, the experts of a mixture, it is emitted with `--prefer {}` only: {} ({}).\n\n",
                    op_type, row.because, row.source);
  }
  return text;
}

}  // namespace ascend_fuse
