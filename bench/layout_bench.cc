// What choosing orders costs: the pass `choose_orders` in a run over exported models, and the graph of choices by itself.
//
//     layout_bench [MODEL.onnx ...] [flags of Google Benchmark]
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "ir/onnx/load.h"
#include "passes/layout/order_graph.h"
#include "passes/optimize.h"

namespace ascend_fuse {
namespace {

// The milliseconds of the pass alone; load, the other passes and the model's end are not counted.
void ChooseOrders(benchmark::State& state, const std::string& path) {
  int64_t changes = 0;
  for ([[maybe_unused]] auto round : state) {
    auto model = LoadModel(path);
    if (!model.ok()) return state.SkipWithError("the model cannot be read");
    const auto report = Optimize(model->get(), OptimizeOptions());
    if (!report.ok()) return state.SkipWithError("the model cannot be optimized");
    for (const auto& pass : report->passes) {
      if (pass.name != "choose_orders") continue;
      state.SetIterationTime(pass.milliseconds / 1e3);
      changes = pass.changes;
    }
  }
  state.counters["changes"] = static_cast<double>(changes);
}

// Layers of seven choices, as attention, rotary embeddings, norms and cache are: each reads what the one before computes, and the
// first two of the layer before.
void Solve(benchmark::State& state) {
  constexpr int64_t kChoices = 7;
  const int64_t layers = state.range(0);
  for ([[maybe_unused]] auto round : state) {
    std::mt19937 random(5);
    OrderGraph graph;
    std::vector<OrderGraph::Choice> choices;
    for (int64_t i = 0; i < kChoices * layers; ++i) {
      choices.push_back(graph.AddChoice());
      graph.Charge(choices.back(), random() % 2 == 0 ? Order::kFirst : Order::kSecond, random() % 50);
      if (i < 2) continue;
      const auto at = static_cast<size_t>(i);
      const OrderGraph::Choice maker = choices[i % kChoices == 0 ? at - 2 : at - 1];
      const OrderGraph::Readers readers = graph.AddReaders({choices[at], choices[at - 1]});
      for (const Order order : {Order::kFirst, Order::kSecond}) graph.ChargeMoving(maker, readers, order, random() % 100);
    }
    graph.Solve();
    benchmark::DoNotOptimize(graph.OrderOf(choices.front()));
  }
  state.counters["us_per_layer"] = benchmark::Counter(
      static_cast<double>(layers) / 1e6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(Solve)->Arg(32)->Arg(320)->Arg(3200)->Unit(benchmark::kMicrosecond);

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    benchmark::RegisterBenchmark(("ChooseOrders/" + std::filesystem::path(path).stem().string()).c_str(), ChooseOrders, path)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace ascend_fuse

int main(int argc, char** argv) { return ascend_fuse::Main(argc, argv); }
