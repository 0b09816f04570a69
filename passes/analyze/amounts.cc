#include "passes/analyze/amounts.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace ascend_fuse {
namespace {

// A sum of counts: equal ones are counted, so that a layer that stands a hundred times costs one product.
class Sum {
 public:
  void Add(Dim dim, double times) {
    if (dim.is(0)) return;
    if (dim.is_number()) {
      numbers_ += static_cast<double>(dim.number()) * times;
    } else {
      counts_[dim.known() ? dim.id() : -1].first = dim;
      counts_[dim.known() ? dim.id() : -1].second += times;
    }
  }

  Amount Total(Binding* binding, DimTable* dims) const {
    double value = numbers_;
    Dim sum = numbers_ < 9e18 ? Dim::Of(static_cast<int64_t>(numbers_)) : Dim();
    for (const auto& [id, entry] : counts_) {
      if (!entry.first.known()) continue;  // Side::unknown counts them
      value += binding->Evaluate(entry.first, *dims) * entry.second;
      sum = dims->Add(sum, dims->Mul(Dim::Of(static_cast<int64_t>(entry.second)), entry.first));
    }
    return {binding->Of(sum, *dims).formula, value};
  }

 private:
  double numbers_ = 0;
  std::map<int64_t, std::pair<Dim, double>> counts_;  // of expressions, by Dim::id
};

struct Sums {
  Sum flops, bytes;

  void Add(const MeasuredNode& node) {
    flops.Add(node.flops, node.times);
    bytes.Add(node.bytes, node.times);
  }
};

}  // namespace

std::vector<std::string_view> PathsOf(std::string_view module) {
  std::vector<std::string_view> paths = {module};
  for (size_t dot = module.rfind('.'); dot != std::string_view::npos; dot = module.rfind('.')) {
    module = module.substr(0, dot);
    paths.push_back(module);
  }
  return paths;
}

void SumAmounts(Binding* binding, DimTable* dims, MeasuredGraph* graph) {
  Sums whole;
  std::map<std::string, Sums, std::less<>> operators, modules;
  for (const MeasuredNode& node : graph->nodes) {
    whole.Add(node);
    operators[node.op].Add(node);
    for (const std::string_view path : PathsOf(node.module)) {
      const auto known = modules.find(path);
      (known != modules.end() ? known->second : modules[std::string(path)]).Add(node);
    }
  }
  const auto total = [&](const Sums& sums) {
    return AmountsOf{sums.flops.Total(binding, dims), sums.bytes.Total(binding, dims)};
  };
  graph->whole = total(whole);
  for (const auto& [name, sums] : operators) graph->operators[name] = total(sums);
  for (const auto& [name, sums] : modules) graph->modules[name] = total(sums);
}

}  // namespace ascend_fuse
