#include "passes/analyze/host_work.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace ascend_fuse {
namespace {

// Operands that say a shape or a place, which the compiler or the host must know: operator, first and last of them.
struct ReadByHost {
  std::string_view op;
  size_t first;
  size_t last;
};
constexpr ReadByHost kReadByHost[] = {{"Reshape", 1, 1}, {"Expand", 1, 1}, {"Tile", 1, 1},    {"ConstantOfShape", 0, 0},
                                      {"Range", 0, 2},   {"Slice", 1, 4},  {"Pad", 1, 1},     {"TopK", 1, 1},
                                      {"OneHot", 1, 1},  {"Split", 1, 1},  {"Squeeze", 1, 1}, {"Unsqueeze", 1, 1},
                                      {"If", 0, 0},      {"Loop", 0, 1},   {"Resize", 2, 3},  {"Upsample", 1, 1}};

class Finder {
 public:
  Finder(const MeasuredGraph& graph, const Reach& reach, const Facts& facts) : graph_(graph), reach_(reach), facts_(facts) {}

  std::vector<HostRecord> Run(std::vector<std::string>* symbols) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) Look(*reach_.nodes()[i], graph_.nodes[i]);
    symbols->assign(symbols_.begin(), symbols_.end());
    const std::string named = fmt::format("{}", fmt::join(symbols_, ", "));
    for (HostRecord& record : records_) {
      if (record.code != "shape-arithmetic") continue;
      record.because = "integers that are computed of shapes, by the host, before the kernels that wait for them";
      if (!symbols_.empty()) {
        record.because += fmt::format("; they depend on {}", named);
        record.way_out = fmt::format("--fix NAME=N for {} makes constants of them", named);
      }
    }
    return std::move(records_);
  }

 private:
  void Add(const std::string& code, const MeasuredNode& node, std::string because, std::string way_out) {
    const bool one = code == "shape-arithmetic";
    const auto [at, added] = places_.try_emplace({code, one ? "" : node.op}, records_.size());
    if (added) {
      records_.push_back({code, one ? "" : node.op, 0, node.name, node.module, std::move(because), std::move(way_out)});
    }
    ++records_[at->second].nodes;
  }

  void Look(const Node& node, const MeasuredNode& measured) {
    if (measured.engine == "folded") return;
    if (measured.engine == "ai_cpu") {
      Add("ai-cpu", measured, measured.form->because, measured.form->instead);
    } else if (measured.kind == WorkKind::kControl) {
      Add("control-flow", measured, "the host decides which kernels run next", "unroll it, or export without it");
    } else if (measured.engine == "host") {
      Add("shape-arithmetic", measured, "", "");
      AddSymbols(node);
    }
    LookForReads(node, measured);
    LookForData(node, measured);
  }

  void AddSymbols(const Node& node) {
    for (const Value* output : node.outputs()) {
      const Fact* fact = output != nullptr ? &facts_.Of(output) : nullptr;
      if (fact == nullptr || fact->elements == nullptr) continue;
      for (const Dim dim : fact->elements->integers) {
        if (facts_.dims().MentionsFresh(dim)) continue;
        for (const std::string_view symbol : facts_.dims().Symbols(dim)) symbols_.emplace(symbol);
      }
    }
  }

  void LookForReads(const Node& node, const MeasuredNode& measured) {
    if (node.domain != NameId::kEmpty) return;
    for (const ReadByHost& row : kReadByHost) {
      if (measured.op != row.op) continue;
      for (size_t i = row.first; i <= row.last; ++i) {
        const Value* value = node.input(i);
        if (value == nullptr || reach_.IsDataless(*value)) continue;
        Add("reads-back", measured, "the host waits for the chip and copies a value back before it can go on",
            "compute that value from shapes, or give it as an input that the host knows");
        return;
      }
    }
  }

  // A dim that inference had to make up, and that no operand has.
  void LookForData(const Node& node, const MeasuredNode& measured) {
    for (const Use& use : node.inputs()) {
      if (use.value != nullptr && HasFresh(*use.value)) return;
    }
    for (const Value* output : node.outputs()) {
      if (output == nullptr || !HasFresh(*output)) continue;
      Add("data-dependent-shape", measured,
          fmt::format("how many elements it gives is known only after it has run: {}", facts_.Describe(output)),
          "export with an upper bound and a mask, or cut the model there");
      return;
    }
  }

  bool HasFresh(const Value& value) const {
    const Fact& fact = facts_.Of(&value);
    return fact.has_rank &&
           std::any_of(fact.shape.begin(), fact.shape.end(), [&](Dim dim) { return facts_.dims().MentionsFresh(dim); });
  }

  const MeasuredGraph& graph_;
  const Reach& reach_;
  const Facts& facts_;
  std::vector<HostRecord> records_;
  absl::flat_hash_map<std::pair<std::string, std::string>, size_t> places_;  // by code and operator
  std::set<std::string> symbols_;
};

}  // namespace

std::vector<HostRecord> FindHostWork(const MeasuredGraph& graph, const Reach& reach, const Facts& facts,
                                     std::vector<std::string>* symbols) {
  return Finder(graph, reach, facts).Run(symbols);
}

}  // namespace ascend_fuse
