#include "passes/analyze/page_sketch.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "fmt/format.h"
#include "passes/analyze/groups.h"
#include "passes/analyze/page_table.h"
#include "passes/report/html_text.h"
#include "passes/report/report_groups.h"

namespace ascend_fuse {
namespace {

constexpr size_t kMostSketches = 60;
constexpr size_t kMostNodesOfSketch = 40;
constexpr size_t kLongestOpOfSketch = 26;

std::vector<SketchNode> SketchOf(const MeasuredGraph& graph, const std::set<int>& members) {
  std::vector<SketchNode> sketch;
  std::map<int, int> places;
  for (const int member : members) places.emplace(member, static_cast<int>(places.size()));
  for (const int member : members) {
    SketchNode node{graph.nodes[static_cast<size_t>(member)].op, {}};
    for (const int input : graph.nodes[static_cast<size_t>(member)].inputs) {
      if (const auto place = places.find(input); place != places.end()) node.inputs.push_back(place->second);
    }
    sketch.push_back(std::move(node));
  }
  return sketch;
}

// What was made for a site: from the node that computes its value back to what was there before, or to what another site gives.
std::set<int> MadeFor(const MeasuredGraph& graph, int root) {
  std::set<int> made;
  bool emitted = false;
  std::vector<int> open = {root};
  while (!open.empty() && made.size() <= kMostNodesOfSketch) {
    const int place = open.back();
    open.pop_back();
    if (place < 0 || made.contains(place)) continue;
    const MeasuredNode& node = graph.nodes[static_cast<size_t>(place)];
    const bool ours = node.op.starts_with("npu.");
    if (place != root && (!node.is_new || (ours && emitted))) continue;
    emitted = emitted || ours;
    made.insert(place);
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return made;
}

// Nodes in rows: each above those that read it.
class SketchDrawing {
 public:
  SketchDrawing(const std::vector<SketchNode>& nodes, std::string_view box) : nodes_(nodes), box_(box) {}

  std::string Svg(std::string_view label) {
    PlaceNodes();
    std::string text = fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" role=\"img\" aria-label=\"{}\">", width_,
                                   height_, width_, label);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const int input : nodes_[i].inputs) {
        const Place& from = places_[static_cast<size_t>(input)];
        const double below = from.y + kHeight, bend = (places_[i].y - below) / 2;
        text += fmt::format("<path class=\"edge\" d=\"M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}\"/>", from.x,
                            below, from.x, below + bend, places_[i].x, places_[i].y - bend, places_[i].x, places_[i].y);
      }
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Place& place = places_[i];
      const bool is_new = box_ == "new" && nodes_[i].op.starts_with("npu.");
      text += fmt::format(
          "<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"3\"/><text x=\"{:.0f}\" "
          "y=\"{:.0f}\" text-anchor=\"middle\">{}</text>",
          is_new ? "new" : "node", place.x - place.width / 2, place.y, place.width, kHeight, place.x, place.y + 13,
          HtmlText(ShortOp(nodes_[i].op), kLongestOpOfSketch));
    }
    return text + "</svg>";
  }

 private:
  struct Place {
    double x = 0, y = 0, width = 0;
    size_t row = 0;  // from below
  };
  static constexpr double kHeight = 18, kRow = 32, kGap = 10;

  void PlaceNodes() {
    places_.resize(nodes_.size());
    size_t rows = 1;
    for (size_t round = 0; round < nodes_.size(); ++round) {  // as often as a path is long
      for (size_t i = 0; i < nodes_.size(); ++i) {
        for (const int input : nodes_[i].inputs) {
          size_t& row = places_[static_cast<size_t>(input)].row;
          row = std::min(std::max(row, places_[i].row + 1), nodes_.size() - 1);
          rows = std::max(rows, row + 1);
        }
      }
    }
    std::vector<double> widths(rows, 0);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const size_t letters = std::min(ShortOp(nodes_[i].op).size(), kLongestOpOfSketch + 16);
      places_[i].width = static_cast<double>(letters) * 6.6 + 12;
      widths[places_[i].row] += places_[i].width + kGap;
    }
    width_ = *std::max_element(widths.begin(), widths.end());
    height_ = static_cast<double>(rows) * kRow - (kRow - kHeight) + 4;
    std::vector<double> next(rows);
    for (size_t row = 0; row < rows; ++row) next[row] = (width_ - widths[row] + kGap) / 2;
    for (Place& place : places_) {
      place.x = next[place.row] + place.width / 2;
      place.y = static_cast<double>(rows - 1 - place.row) * kRow + 2;
      next[place.row] += place.width + kGap;
    }
  }

  const std::vector<SketchNode>& nodes_;
  std::string_view box_;
  std::vector<Place> places_;
  double width_ = 0, height_ = 0;
};

std::string SketchFigure(const std::vector<SketchNode>& nodes, std::string_view box, std::string_view words) {
  if (nodes.empty()) return "";
  const std::string label = fmt::format("{}: {} node{}", words, nodes.size(), nodes.size() == 1 ? "" : "s");
  return fmt::format("<figure><figcaption class=\"small\">{}</figcaption>{}</figure>", label,
                     SketchDrawing(nodes, box).Svg(label));
}

}  // namespace

std::vector<SketchRecord> SketchSites(const Report& report, const MeasuredGraph& before, const MeasuredGraph& after) {
  std::vector<SketchRecord> sketches;
  const NodePlaces places_before(before), places_after(after);
  for (const std::string& kind : KindsOfSites(report)) {
    for (const SiteGroup& group : GroupSites(report, kind, false)) {
      const SiteRecord& site = *group[0];
      if (sketches.size() >= kMostSketches) return sketches;
      const std::vector<int> members = MembersOf(site, places_before);
      if (members.empty() || members.size() > kMostNodesOfSketch) continue;
      SketchRecord sketch;
      sketch.kind = site.kind;
      sketch.state = site.state;
      sketch.place = PlaceOf(group);
      sketch.node = site.node;
      sketch.sites = static_cast<int64_t>(group.size());
      sketch.before = SketchOf(before, {members.begin(), members.end()});
      const int root = site.outputs.empty() || site.state != "fused" ? -1 : places_after.OfOutput(site.outputs[0]);
      if (root >= 0) {
        const std::set<int> made = MadeFor(after, root);
        if (made.size() <= kMostNodesOfSketch) sketch.after = SketchOf(after, made);
      }
      sketches.push_back(std::move(sketch));
    }
  }
  return sketches;
}

std::string PageSketches(const Analysis& analysis, bool changed) {
  std::string text;
  for (const SketchRecord& sketch : analysis.sketches) {
    text += fmt::format(
        "<details><summary>{} x {} <span class=\"{}\">{}</span> {}</summary><p class=\"small\">drawn: the one at "
        "{}</p><div class=\"sketch\">{}{}</div></details>\n",
        sketch.sites, HtmlText(sketch.kind), HtmlText(sketch.state), HtmlText(StateWord(sketch.state, changed)),
        PageName(sketch.place), PageName(sketch.node), SketchFigure(sketch.before, "node", "as it is"),
        SketchFigure(sketch.after, "new", "optimized"));
  }
  if (text.empty()) return "";
  return fmt::format("<details class=\"fold\"><summary>drawings: subgraphs of sites before and after</summary>{}</details>\n",
                     text);
}

}  // namespace ascend_fuse
