#include "passes/analyze/conclude.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/analyze/analysis_details.h"
#include "passes/check/atc_check.h"
#include "passes/report/atc_command.h"
#include "passes/report/report_groups.h"

namespace ascend_fuse {
namespace {

// A share of the time from which what is left is worth a word.
constexpr double kWorthDoing = 0.02;
// A near miss with fewer kernels around it is a coincidence.
constexpr int64_t kManyKernels = 3;

int RankOf(const std::string& level) { return level == "high" ? 0 : level == "medium" ? 1 : 2; }

class Judge {
 public:
  Judge(const MeasuredGraph& after, const Target& target, Analysis* analysis)
      : after_(after), target_(target), analysis_(*analysis) {}

  void Run() {
    JudgeFindings();
    JudgeHost();
    JudgeSites();
    JudgeMemory();
    JudgeShapes();
    auto& reasons = analysis_.complexity.reasons;
    std::stable_sort(reasons.begin(), reasons.end(),
                     [](const auto& a, const auto& b) { return RankOf(a.level) < RankOf(b.level); });
    analysis_.complexity.level = reasons.empty() ? "low" : reasons[0].level;
    Advise();
  }

 private:
  void Reason(const char* level, std::string code, int64_t count, std::string because, std::string way_out = "") {
    analysis_.complexity.reasons.push_back({level, std::move(code), count, std::move(because), std::move(way_out)});
  }

  // What ATC rejects or misreads: high where nothing mends it, low where optimize does.
  void JudgeFindings() {
    struct Count {
      int64_t nodes = 0;
      const FindingRecord* first = nullptr;
    };
    std::map<std::pair<std::string, std::string>, Count> open, possible;
    int64_t fixed = 0;
    for (const FindingRecord& finding : analysis_.report.findings) {
      if (RunsElsewhere(finding) || finding.effect == "precision") continue;
      if (!finding.fixed_by.empty()) {
        ++fixed;
        continue;
      }
      Count& count = (IsFatal(finding) ? open : possible)[{finding.code, finding.op}];
      if (count.first == nullptr) count.first = &finding;
      ++count.nodes;
    }
    for (const auto& [key, count] : open) Reason("high", key.first, count.nodes, count.first->because, count.first->way_out);
    for (const auto& [key, count] : possible)
      Reason("medium", key.first, count.nodes, count.first->because, count.first->way_out);
    if (fixed > 0) {
      Reason("low", "fixed-by-optimize", fixed, "forms that ATC rejects or misreads, which optimize writes in others",
             "ascend-fuse optimize");
    }
  }

  void JudgeHost() {
    for (const HostRecord& host : analysis_.host) {
      const std::string what = host.op.empty() ? host.because : fmt::format("{}: {}", host.op, host.because);
      const bool high = host.code == "data-dependent-shape" || host.code == "control-flow";
      const bool low = host.code == "shape-arithmetic";
      Reason(high ? "high" : low ? "low" : "medium", host.code, host.nodes, what, host.way_out);
    }
  }

  void JudgeSites() {
    for (const char* kind : {"attention", "rotary", "rms_norm", "layer_norm", "group_norm"}) {
      const ReportKindCount* count = analysis_.report.FindKind(kind);
      if (count == nullptr || count->left == 0) continue;
      Reason("medium", "left-unfused", count->left,
             fmt::format("{} of {} {} stay unfused: {}", count->left, count->found, kind, count->commonest_reason));
    }
    // Rows of softmax that no attention covers.
    for (const OpportunityRecord& opportunity : analysis_.opportunities) {
      if (opportunity.kind != "near_miss" || opportunity.gain < kWorthDoing || opportunity.kernels_saved < kManyKernels) continue;
      Reason("medium", "near-miss", opportunity.count, opportunity.because, opportunity.way);
    }
  }

  void JudgeMemory() {
    const auto& fits = analysis_.memory.fits;
    if (fits.empty()) return;
    const bool some = std::any_of(fits.begin(), fits.end(), [](const MemoryFit& fit) { return fit.fits; });
    const bool all = std::all_of(fits.begin(), fits.end(), [](const MemoryFit& fit) { return fit.fits; });
    if (all) return;
    std::vector<std::string> small;
    for (const MemoryFit& fit : fits) {
      if (!fit.fits) small.push_back(fmt::format("{:.0f} GB", fit.bytes / 1e9));
    }
    Reason(some ? "medium" : "high", "memory", 1,
           fmt::format("weights and activations need {:.1f} GB, more than {} of the chip", analysis_.memory.needed / 1e9,
                       fmt::join(small, ", ")),
           "int8 weights, a shorter length, or the model on several chips");
  }

  void JudgeShapes() {
    if (after_.side.unknown > 0) {
      Reason("medium", "unknown-shapes", after_.side.unknown, "shapes that inference cannot tell: they are not counted here",
             "give declared shapes, or --dim for the dims that they depend on");
    }
    if (!after_.is_static) {
      Reason("low", "dynamic-shapes", 1,
             "symbolic dims: kernels are started one by one from the host, and ATC needs --input_shape",
             "--fix NAME=N where one size is enough");
    }
  }

  // --- what to do next ---

  void Step(std::string action, std::string because, std::string command = "") {
    analysis_.next.push_back({std::move(action), std::move(because), std::move(command)});
  }

  std::string Command(std::string_view command, std::string_view more = "") const {
    std::string line = fmt::format("ascend-fuse {} {}", command, ShellWord(analysis_.report.model));
    if (target_.chip() != TargetOptions().chip) line += fmt::format(" --target {}", target_.chip());
    if (target_.cann() != TargetOptions().cann) line += fmt::format(" --cann {}", target_.cann());
    if (target_.options().plugin) line += " --plugin";
    for (const std::string& dim : analysis_.report.target.dims) line += fmt::format(" --dim {}", dim);
    if (!more.empty()) line += fmt::format(" {}", more);
    return line;
  }

  void Advise() {
    AdviseMending();
    std::string more;
    double plugin = 0;
    for (const OpportunityRecord& opportunity : analysis_.opportunities) {
      if (opportunity.way.starts_with("--plugin")) plugin += opportunity.gain;
    }
    if (plugin >= kWorthDoing) more = "--plugin";
    Step("optimize", RatioSentence(), Command("optimize"));
    if (plugin >= kWorthDoing) {
      Step("install the op plugin and optimize with it",
           fmt::format("sites worth {:.0f} % of the time are left without it", plugin * 100), Command("optimize", more));
    }
    AdviseShapes();
    AdviseAffines();
    AdviseOpportunity();
    AdvisePrecision();
    Step("prove the result", "all outputs and every rewritten place are compared in ONNX Runtime",
         fmt::format("ascend-fuse verify {} {}", ShellWord(analysis_.report.model), OutputPath()));
    if (IsLowered()) {
      Step("see which nodes must stay float32",
           "atc computes in float16 here, which ends at 65504: feeds.npz has inputs of yours",
           fmt::format("ascend-fuse precision {} --data feeds.npz", OutputPath()));
    }
    Step("convert with atc and measure",
         "optimize prints the line of atc for this model; the ratio above is a model's, and no measurement");
  }

  std::string RatioSentence() const {
    const RatioRecord& ratio = analysis_.ratio;
    constexpr double kSame = 0.005;  // what would be shown as 1.00
    int64_t mended = 0;
    for (const ReasonRecord& reason : analysis_.complexity.reasons)
      mended += reason.code == "fixed-by-optimize" ? reason.count : 0;
    const bool is_same = analysis_.before.kernels == analysis_.after.kernels && std::abs(ratio.middle - 1) < kSame;
    const std::string kernels =
        is_same ? "by the cost model it is as fast as before"
                : fmt::format("{} kernels become {}; {:.2f} times as fast by the cost model ({:.2f} to {:.2f})",
                              analysis_.before.kernels, analysis_.after.kernels, ratio.middle, ratio.low, ratio.high);
    if (mended == 0 || ratio.middle >= 1 + kSame) return kernels;
    return fmt::format("ATC rejects or misreads {} node(s), which get other forms; {}", mended, kernels);
  }

  std::string OutputPath() const {
    std::string path = analysis_.report.model;
    if (path.ends_with(".onnx")) path.resize(path.size() - 5);
    return ShellWord(fmt::format("{}.{}.onnx", path, target_.chip()));
  }

  // What is done in one way is one step.
  void AdviseMending() {
    std::vector<std::pair<std::string, std::string>> steps;  // each action, and the first reason for it
    std::map<std::string, int64_t> reasons;                  // of each action
    for (const ReasonRecord& reason : analysis_.complexity.reasons) {
      if (reason.level != "high") continue;
      const std::string action = reason.way_out.empty() ? fmt::format("change the model: {}", reason.code) : reason.way_out;
      if (++reasons[action] == 1) steps.emplace_back(action, reason.because);
    }
    for (const auto& [action, because] : steps) {
      const int64_t more = reasons[action] - 1;
      Step(action, more > 0 ? fmt::format("{}; and {} more like it", because, more) : because);
    }
  }

  void AdviseShapes() {
    if (after_.is_static || after_.host_symbols.empty()) return;
    std::string fixes;
    for (const std::string& name : after_.host_symbols) fixes += fmt::format("{}--fix {}=N", fixes.empty() ? "" : " ", name);
    if (fixes.empty()) return;
    int64_t nodes = 0;
    for (const HostRecord& host : analysis_.host) nodes += host.code == "shape-arithmetic" ? host.nodes : 0;
    Step("fix dims that need not vary", fmt::format("{} nodes of shape arithmetic on the host become constants", nodes),
         Command("optimize", fixes));
  }

  void AdviseAffines() {
    int64_t count = 0;
    double gain = 0;
    for (const OpportunityRecord& opportunity : analysis_.opportunities) {
      if (opportunity.kind != "affine") continue;
      count += opportunity.count;
      gain += opportunity.gain;
    }
    if (gain < kWorthDoing) return;
    Step(fmt::format("fold {} factors and summands of channels into the weights before them", count),
         fmt::format("{:.0f} % of the time; results are rounded in another order", gain * 100),
         Command("optimize", "--tidy exact,affines"));
  }

  void AdviseOpportunity() {
    for (const OpportunityRecord& opportunity : analysis_.opportunities) {
      if (opportunity.kind == "affine") continue;                      // a step of its own
      const bool measured = opportunity.kind == "packed_projections";  // to win nothing
      const bool nothing = opportunity.way.empty() || opportunity.way.starts_with("None");
      if (opportunity.state != "left" || opportunity.gain < kWorthDoing || measured || nothing) continue;
      if (opportunity.way.starts_with("--plugin")) continue;  // a step of its own
      Step(fmt::format("look at {} ({} x {})", opportunity.place, opportunity.count, OpportunityName(opportunity.kind)),
           fmt::format("{:.0f} % of the time{}; {}", opportunity.gain * 100, opportunity.at_most ? " at most" : "",
                       opportunity.because));
      return;
    }
  }

  // Whether float32 of the file is computed in less.
  bool IsLowered() const {
    const auto& types = analysis_.precision.types;
    const bool single = std::any_of(types.begin(), types.end(), [](const TypeRecord& type) { return type.type == "float"; });
    return single && target_.options().precision_mode == "force_fp16";
  }

  void AdvisePrecision() {
    const bool beyond = std::any_of(analysis_.report.findings.begin(), analysis_.report.findings.end(),
                                    [](const FindingRecord& finding) { return finding.effect == "precision"; });
    if (!beyond) return;
    Step("look at constants beyond float16", "the precision mode makes half of what is float32", Command("check"));
  }

  const MeasuredGraph& after_;
  const Target& target_;
  Analysis& analysis_;
};

}  // namespace

void Conclude(const MeasuredGraph& after, const Target& target, Analysis* analysis) { Judge(after, target, analysis).Run(); }

}  // namespace ascend_fuse
