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
  std::map<std::string, HeadPadding, std::less<>> paddings;  // by the type of the node
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

// Calls `take` with each of the names between spaces.
template <typename Take>
void ForEachName(std::string_view names, const Take& take) {
  while (!names.empty()) {
    const size_t space = std::min(names.find(' '), names.size());
    take(names.substr(0, space));
    names.remove_prefix(std::min(space + 1, names.size()));
  }
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
                               op.one_by_one_on(),
                               op.cube_share().value()};
    ForEachName(op.name(), [&](std::string_view name) {
      if (!table->operators.emplace(std::string(name), work).second) Broken(fmt::format("two rows for {}", name));
    });
  }
  for (const proto::HeadPadding& padding : costs.head_padding()) {
    ForEachName(padding.node(), [&](std::string_view name) {
      table->paddings[std::string(name)] = {padding.multiple_of(), padding.at_most(), padding.because(), padding.source()};
    });
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
    measurements->rows.push_back({row.name(),
                                  row.chip(),
                                  LaunchFrom(row.launch()),
                                  row.before(),
                                  row.after(),
                                  std::max<int64_t>(row.times(), 1),
                                  row.measured_before(),
                                  row.measured_after(),
                                  row.whole(),
                                  row.assumed(),
                                  row.source(),
                                  row.fails(),
                                  row.ai_cpu(),
                                  {row.node().begin(), row.node().end()},
                                  row.opportunity()});
  }
  for (const proto::LeftOut& row : from.left_out()) {
    const bool router = row.where() == proto::ROWS_CHOSEN_BY_ROUTER;
    measurements->left_out.push_back({row.what(),
                                      row.source(),
                                      {row.node().begin(), row.node().end()},
                                      row.measured_before(),
                                      row.measured_after(),
                                      router ? SiteTest::kRowsChosenByRouter : SiteTest::kAny});
  }
  return measurements;
}

using KernelTable = std::map<std::pair<std::string, std::string>, KernelOfNode, std::less<>>;  // by node and chip

const KernelTable* ReadKernels() {
  auto* table = new KernelTable;
  const auto from = ReadMessage<proto::Kernels>("kernels.txtpb");
  for (const proto::Kernel& kernel : from.kernel()) {
    const auto add = [&](const std::string& chips, KernelShapes shapes) {
      ForEachName(chips, [&](std::string_view chip) {
        ForEachName(kernel.op(), [&](std::string_view op) {
          (*table)[{std::string(op), std::string(chip)}] = {kernel.name(), shapes, from.source()};
        });
      });
    };
    add(kernel.dynamic_on(), KernelShapes::kDynamic);
    add(kernel.static_on(), KernelShapes::kStatic);
  }
  return table;
}

}  // namespace

std::string_view WorkKindName(WorkKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::string_view LaunchModeName(LaunchMode mode) { return kLaunchNames[static_cast<size_t>(mode)]; }

const OperatorWork* FindOperatorWork(std::string_view op) {
  const auto& operators = TheTable().operators;
  const auto found = operators.find(op);
  return found != operators.end() ? &found->second : nullptr;
}

const HeadPadding* FindHeadPadding(std::string_view op_type) {
  const auto& paddings = TheTable().paddings;
  const auto found = paddings.find(op_type);
  return found != paddings.end() ? &found->second : nullptr;
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

KernelOfNode FindKernel(std::string_view op, std::string_view chip) {
  static const KernelTable* const table = ReadKernels();
  const auto found = table->find(std::pair(std::string(op), std::string(chip)));
  return found != table->end() ? found->second : KernelOfNode();
}

const Measurements& PublishedMeasurements() {
  static const Measurements* const measurements = ReadMeasurements();
  return *measurements;
}

}  // namespace ascend_fuse
