// What the rules cost: to load the built-in ones, and to have 100 more whose root no model has. The reading
// of the operator table by libprotobuf, 67 KB, is what the others are compared with.
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "embedded/ir_data.h"
#include "fmt/format.h"
#include "patterns/language/rule_set.h"
#include "proto/schema.pb.h"

namespace ascend_fuse {
namespace {

// The folders that `optimize` reads.
void LoadAll(const std::vector<std::pair<std::string, std::string>>& files) {
  const auto user = UserRules::Parse(files);
  if (!user.ok()) std::abort();
  for (const RuleFolder folder :
       {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kContrib, RuleFolder::kLeftovers, RuleFolder::kAdapt}) {
    auto rules = RuleSet::Load(folder, *user);
    if (!rules.ok()) {
      fmt::print(stderr, "{}\n", rules.status().ToString());
      std::abort();
    }
    benchmark::DoNotOptimize(rules);
  }
}

void BM_ProtobufOperatorTable(benchmark::State& state) {
  const std::string_view bytes = embedded::ir_data[0].text;
  for (auto _ : state) {
    proto::OperatorTable table;
    if (!table.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) std::abort();
    benchmark::DoNotOptimize(table);
  }
}
BENCHMARK(BM_ProtobufOperatorTable)->Unit(benchmark::kMillisecond);

void BM_LoadBuiltInRules(benchmark::State& state) {
  for (auto _ : state) LoadAll({});
}
BENCHMARK(BM_LoadBuiltInRules)->Unit(benchmark::kMillisecond);

// The same of their text: what a process would do if the build did not compile them (docs/design-notes.md).
void BM_ReadBuiltInRulesAsText(benchmark::State& state) {
  for (auto _ : state) {
    for (const RuleFolder folder :
         {RuleFolder::kLibrary, RuleFolder::kNpu, RuleFolder::kContrib, RuleFolder::kLeftovers, RuleFolder::kAdapt}) {
      auto rules = RuleSet::FromText(folder);
      if (!rules.ok()) std::abort();
      benchmark::DoNotOptimize(rules);
    }
  }
}
BENCHMARK(BM_ReadBuiltInRulesAsText)->Unit(benchmark::kMillisecond);

// Rules of a user are read and checked in every run: how much 100 of them add.
void BM_LoadWithHundredRules(benchmark::State& state) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += fmt::format(
        "rule extra_{} <kind = mish> (x) => (y)\nmatch {{ y = Hardmax <axis = -1> (Add (Relu (x), Neg (x))) }}\n"
        "where {{ shape (x) = [..., D], D >= {} }}\nemit {{ y = Relu (x) }}\n",
        i, i);
  }
  for (auto _ : state) LoadAll({{"extra.rule", text}});
}
BENCHMARK(BM_LoadWithHundredRules)->Unit(benchmark::kMillisecond);

// Which rules can start from an operator that none starts from.
void BM_RulesOfAnOperator(benchmark::State& state) {
  auto rules = RuleSet::Load(RuleFolder::kNpu);
  for (auto _ : state) benchmark::DoNotOptimize((*rules)->RulesEndingIn("Hardmax"));
}
BENCHMARK(BM_RulesOfAnOperator);

}  // namespace
}  // namespace ascend_fuse

BENCHMARK_MAIN();
