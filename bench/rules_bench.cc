// What the rules cost: to load the built-in ones, and to have 100 more whose root no model has.
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "fmt/format.h"
#include "patterns/language/rule_set.h"

namespace ascend_fuse {
namespace {

// All folders that `optimize` reads.
void BM_LoadBuiltInRules(benchmark::State& state) {
  for (auto _ : state) {
    for (const RuleFolder folder :
         {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kContrib, RuleFolder::kLeftovers}) {
      auto rules = RuleSet::Load(folder);
      benchmark::DoNotOptimize(rules);
    }
  }
}
BENCHMARK(BM_LoadBuiltInRules)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ascend_fuse

BENCHMARK_MAIN();
