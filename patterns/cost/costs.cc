// patterns/cost/*.txtpb at run time. The build encodes them.
#include "patterns/cost/costs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "embedded/cost_data.h"
#include "fmt/format.h"
#include "proto/costs.pb.h"

namespace ascend_fuse {
namespace {

constexpr std::array<std::string_view, kWorkKinds> kKindNames = {"unknown", "matrix", "attention", "vector",
                                                                 "move",    "view",   "control"};
constexpr std::array<std::string_view, 3> kLaunchNames = {"static", "dynamic", "single"};

// Data that cannot be read are a broken build, which no caller could do anything about.
[[noreturn]] void Broken(const std::string& sentence) {
  std::fprintf(stderr, "patterns/cost, built into this program: %s\n", sentence.c_str());
  std::abort();
}

CostFigure FigureFrom(const proto::Figure& from) { return {from.value(), from.source()}; }

LaunchMode LaunchFrom(const std::string& name) {
  for (size_t i = 0; i < kLaunchNames.size(); ++i) {
    if (kLaunchNames[i] == name) return static_cast<LaunchMode>(i);
  }
  Broken(fmt::format("'{}' is not a way to start kernels", name));
}

struct Table {
  CostParameters parameters;
  std::vector<ChipCost> chips;
  std::map<std::string, OperatorWork, std::less<>> operators;
};

template <typename Message>
Message ReadMessage(std::string_view file) {
  Message message;
  for (size_t i = 0; i < embedded::cost_data_count; ++i) {
    const embedded::File& data = embedded::cost_data[i];
    if (!data.path.ends_with(file)) continue;
    if (!message.ParseFromArray(data.text.data(), static_cast<int>(data.text.size()))) Broken("does not parse");
    return message;
  }
  Broken(fmt::format("{} is missing", file));
}

void ReadParameters(const proto::CostParameters& from, CostParameters* to) {
  for (const proto::FixedCost& fixed : from.fixed()) {
    to->fixed[static_cast<size_t>(fixed.kind())] = {fixed.microseconds(), fixed.source()};
  }
  for (const proto::Launch& launch : from.launch()) {
    to->launch[static_cast<size_t>(LaunchFrom(launch.name()))] = {launch.microseconds(), launch.source()};
  }
  to->cube_share = FigureFrom(from.cube_share());
  to->bandwidth_share = FigureFrom(from.bandwidth_share());
  to->ai_cpu_fixed = FigureFrom(from.ai_cpu_fixed());
  to->ai_cpu_rate = FigureFrom(from.ai_cpu_rate());
  to->scalar_rate = FigureFrom(from.scalar_rate());
  to->tokens_first_from = FigureFrom(from.tokens_first_from());
  to->tokens_first = FigureFrom(from.tokens_first());
  to->uncertainty = FigureFrom(from.uncertainty());
}

const Table* ReadTable() {
  auto* table = new Table;
  const auto costs = ReadMessage<proto::Costs>("costs.txtpb");
  ReadParameters(costs.parameters(), &table->parameters);
  for (const proto::ChipCost& chip : costs.chip()) {
    ChipCost cost = {chip.name(), FigureFrom(chip.cube()),   FigureFrom(chip.bandwidth()),
                     {},          FigureFrom(chip.scores()), FigureFrom(chip.vector())};
    for (const proto::Figure& memory : chip.memory()) cost.memory.push_back(FigureFrom(memory));
    table->chips.push_back(std::move(cost));
  }
  for (const proto::OperatorWork& op : costs.op()) {
    const OperatorWork work = {static_cast<WorkKind>(op.kind()),
                               static_cast<WorkFormula>(op.formula()),
                               op.per_output(),
                               op.per_input(),
                               op.reads_what_it_writes(),
                               op.scatters(),
                               op.instructions(),
                               op.one_by_one_on()};
    std::string_view names = op.name();
    while (!names.empty()) {
      const size_t space = std::min(names.find(' '), names.size());
      if (!table->operators.emplace(std::string(names.substr(0, space)), work).second) {
        Broken(fmt::format("two rows for {}", names.substr(0, space)));
      }
      names.remove_prefix(std::min(space + 1, names.size()));
    }
  }
  return table;
}

const Table& TheTable() {
  static const Table* const table = ReadTable();
  return *table;
}

const Measurements* ReadMeasurements() {
  auto* measurements = new Measurements;
  const auto from = ReadMessage<proto::Measurements>("measurements.txtpb");
  for (const proto::Measurement& row : from.measurement()) {
    measurements->rows.push_back({row.name(), row.chip(), LaunchFrom(row.launch()), row.before(), row.after(),
                                  std::max<int64_t>(row.times(), 1), row.measured_before(), row.measured_after(), row.whole(),
                                  row.assumed(), row.source(), row.fails(), row.ai_cpu()});
  }
  measurements->left_out.assign(from.left_out().begin(), from.left_out().end());
  return measurements;
}

}  // namespace

std::string_view WorkKindName(WorkKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::string_view LaunchModeName(LaunchMode mode) { return kLaunchNames[static_cast<size_t>(mode)]; }

const OperatorWork* FindOperatorWork(std::string_view op) {
  const auto& operators = TheTable().operators;
  const auto found = operators.find(op);
  return found != operators.end() ? &found->second : nullptr;
}

const CostParameters& CostModelParameters() { return TheTable().parameters; }

const ChipCost& FindChipCost(std::string_view chip, bool* known) {
  const std::vector<ChipCost>& chips = TheTable().chips;
  for (const ChipCost& cost : chips) {
    if (cost.name != chip) continue;
    if (known != nullptr) *known = true;
    return cost;
  }
  if (known != nullptr) *known = false;
  return chips.front();
}

const Measurements& PublishedMeasurements() {
  static const Measurements* const measurements = ReadMeasurements();
  return *measurements;
}

}  // namespace ascend_fuse
