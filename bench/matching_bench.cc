// What matching costs: an exported decoder of two layers is made deeper, and every rule of the library is tried at every
// node that its pattern can end in, against libprotobuf's parse of the same nodes; then with a hundred rules more whose
// operator does not occur, and as part of a whole `optimize`.
//
//     matching_bench MODEL.onnx [--layers N] [--write OUT.onnx] [flags of Google Benchmark]
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "bench/models.h"
#include "benchmark/benchmark.h"
#include "fmt/format.h"
#include "google/protobuf/arena.h"
#include "ir/onnx/load.h"
#include "passes/optimize.h"
#include "patterns/language/matcher.h"

namespace ascend_fuse {
namespace {

std::string model_path;

using Files = std::vector<std::pair<std::string, std::string>>;

// Rules about an operator that transformers do not have.
Files HundredRules() {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += fmt::format(
        "# Extra\nrule extra_{} (x) => (y)\nmatch {{ y = Det (Add (Mul (x, {}), Sigmoid (x))) }}\n"
        "emit {{ y = Identity (x) }}\n",
        i, i + 2);
  }
  return {{"extra.rule", text}};
}

// libprotobuf's parse of the same nodes: large weights are left out, which no pass reads.
void Parse(benchmark::State& state) {
  onnx::ModelProto model;
  std::ifstream in(model_path, std::ios::binary);
  if (!model.ParseFromIstream(&in)) return state.SkipWithError("the model cannot be parsed");
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.raw_data().size() >= 4096) tensor.clear_raw_data();
  }
  const std::string bytes = model.SerializeAsString();
  const int nodes = model.graph().node_size();
  for ([[maybe_unused]] auto round : state) {
    google::protobuf::Arena arena;
    auto* parsed = google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
    benchmark::DoNotOptimize(parsed->ParseFromString(bytes));
  }
  state.counters["nodes"] = nodes;
  state.counters["us_per_node"] =
      benchmark::Counter(nodes / 1e6, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(Parse)->Unit(benchmark::kMillisecond);

void Match(benchmark::State& state, const Files& more) {
  auto model = LoadModel(model_path);
  auto rules = RuleSet::Load(RuleFolder::kLibrary, more);
  if (!model.ok() || !rules.ok()) return state.SkipWithError("the model or the rules cannot be read");
  Facts facts = Infer(**model);
  const ValueNumbering numbering(**model, facts);
  FunctionContext context;
  context.model = model->get();
  context.facts = &facts;
  context.dims = &facts.dims();
  context.numbering = &numbering;
  absl::flat_hash_map<std::string, std::vector<const Value*>> by_operator;
  int64_t nodes = 0;
  for (const auto& graph : (*model)->graphs()) {
    for (const Node* node : graph->nodes()) {
      ++nodes;
      if (node->domain == NameId::kEmpty) by_operator[std::string(OpType(*node))].push_back(node->output(0));
    }
  }
  int64_t attempts = 0;
  int64_t matches = 0;
  for ([[maybe_unused]] auto round : state) {
    attempts = 0;
    matches = 0;
    Matcher matcher(**rules, context);
    for (size_t r = 0; r < (*rules)->rules().size(); ++r) {
      for (const std::string& root : (*rules)->RootOperators(r)) {
        const auto found = by_operator.find(root);
        if (found == by_operator.end()) continue;
        for (const Value* value : found->second) {
          ++attempts;
          matches += matcher.Run((*rules)->rules()[r], value).has_value() ? 1 : 0;
        }
      }
    }
  }
  state.counters["attempts"] = static_cast<double>(attempts);
  state.counters["matches"] = static_cast<double>(matches);
  state.counters["us_per_node"] = benchmark::Counter(static_cast<double>(nodes) / 1e6,
                                                     benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(Match, built_in, Files())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Match, with_100_more, HundredRules())->Unit(benchmark::kMillisecond);

// Load, optimize and forget the model; the rules and the target are read in the first round. Milliseconds by pass.
void WholeOptimize(benchmark::State& state, const Files& more) {
  OptimizeOptions options;
  options.rule_files = more;
  std::vector<std::pair<std::string, double>> passes;
  for ([[maybe_unused]] auto round : state) {
    auto model = LoadModel(model_path);
    if (!model.ok()) return state.SkipWithError("the model cannot be read");
    const auto report = Optimize(model->get(), options);
    if (!report.ok()) return state.SkipWithError("the model cannot be optimized");
    if (passes.empty()) {
      for (const auto& pass : report->passes) passes.emplace_back(pass.name, 0);
    }
    for (size_t i = 0; i < passes.size(); ++i) passes[i].second += report->passes[i].milliseconds;
  }
  for (const auto& [name, milliseconds] : passes) {
    state.counters[name] = milliseconds / static_cast<double>(state.iterations());
  }
}
BENCHMARK_CAPTURE(WholeOptimize, built_in, Files())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(WholeOptimize, with_100_more, HundredRules())->Unit(benchmark::kMillisecond);

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  int layers = 32;
  std::string from;
  std::string to;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--layers") == 0 && more) {
      layers = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--write") == 0 && more) {
      to = argv[++i];
    } else {
      from = argv[i];
    }
  }
  const bool keep = !to.empty();
  if (!keep) {
    const char* temporary = std::getenv("TMPDIR");
    to = fmt::format("{}/matching_bench.{}.onnx", temporary != nullptr ? temporary : "/tmp", getpid());
  }
  if (!bench::StackLayers(from, layers, to)) {
    std::cerr << "matching_bench MODEL.onnx [--layers N] [--write OUT.onnx]: the model must be a decoder of two layers "
                 "that lie in modules layers.0 and layers.1\n";
    return 2;
  }
  model_path = to;
  if (!keep) benchmark::RunSpecifiedBenchmarks();
  if (!keep) unlink(to.c_str());
  return 0;
}

}  // namespace
}  // namespace ascend_fuse

int main(int argc, char** argv) { return ascend_fuse::Main(argc, argv); }
