// What inference costs when a model grows: a real export is repeated (nodes and values renamed in each copy,
// inputs and weights shared) until it has the wanted number of nodes, and each size is loaded and inferred in
// a process of its own.
//   infer_bench MODEL.onnx [NODES...]          (1000 10000 100000 1000000)
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "fmt/format.h"
#include "ir/infer/facts.h"
#include "ir/onnx/load.h"
#include "ir/wire.h"
#include "patterns/operators/inference.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

using Names = absl::flat_hash_set<std::string>;

void Rename(const Names& names, const std::string& suffix, std::string* name) {
  if (names.contains(*name)) name->append(suffix);
}

void RenameNode(const Names& names, const std::string& suffix, onnx::NodeProto* node) {
  if (!node->name().empty()) node->mutable_name()->append(suffix);
  for (std::string& input : *node->mutable_input()) Rename(names, suffix, &input);
  for (std::string& output : *node->mutable_output()) Rename(names, suffix, &output);
  for (onnx::AttributeProto& attribute : *node->mutable_attribute()) {
    if (!attribute.has_g()) continue;
    for (onnx::NodeProto& inner : *attribute.mutable_g()->mutable_node()) RenameNode(names, suffix, &inner);
    for (onnx::ValueInfoProto& output : *attribute.mutable_g()->mutable_output()) {
      Rename(names, suffix, output.mutable_name());
    }
  }
}

// Writes the model repeated to at least `nodes` nodes; the outputs are those of the first copy.
bool Repeat(const std::string& from, int64_t nodes, const std::string& to) {
  onnx::ModelProto model;
  std::ifstream in(from, std::ios::binary);
  if (!model.ParseFromIstream(&in) || model.graph().node_size() == 0) return false;
  onnx::GraphProto* graph = model.mutable_graph();
  Names names;
  for (const onnx::NodeProto& node : graph->node()) {
    for (const std::string& output : node.output()) {
      if (!output.empty()) names.insert(output);
    }
  }
  const int64_t copies = std::max<int64_t>(1, (nodes + graph->node_size() - 1) / graph->node_size());
  std::string more;  // as every writer orders them: all nodes, then all value_info
  std::string more_info;
  for (int64_t copy = 1; copy < copies; ++copy) {
    const std::string suffix = fmt::format("/copy_{}", copy);
    for (onnx::NodeProto node : graph->node()) {
      RenameNode(names, suffix, &node);
      wire::AppendBytes(&more, onnx::GraphProto::kNodeFieldNumber, node.SerializeAsString());
    }
    for (onnx::ValueInfoProto info : graph->value_info()) {
      Rename(names, suffix, info.mutable_name());
      wire::AppendBytes(&more_info, onnx::GraphProto::kValueInfoFieldNumber, info.SerializeAsString());
    }
  }
  const std::string first = graph->SerializeAsString();
  model.clear_graph();
  std::ofstream out(to, std::ios::binary);
  std::string header = model.SerializeAsString();
  wire::AppendTag(&header, onnx::ModelProto::kGraphFieldNumber, wire::kBytes);
  wire::AppendVarint(&header, first.size() + more.size() + more_info.size());
  out << header << first << more << more_info;
  return out.good();
}

double Megabytes() {
  std::ifstream in("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  in >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

// CPU time of this process, so that other work on the machine does not count. Time in the kernel is taken by
// itself: it copies the file and clears new pages.
struct Time {
  double user = 0;
  double kernel = 0;
};
Time Now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

int Measure(const std::string& path) {
  const double before = Megabytes();
  absl::StatusOr<std::unique_ptr<Model>> model = LoadModel(path);
  if (!model.ok()) {
    std::cerr << model.status().message() << "\n";
    return 1;
  }
  double load = 0;
  const double loaded = Megabytes();
  const Facts facts = Infer(**model, WithDeclaredOperators());
  double infer = 0;
  double kernel = 0;
  const double inferred = Megabytes();
  // The clock is coarse: small models are done many times over.
  const int rounds = 3 + 400'000 / static_cast<int>((*model)->node_count() + 1);
  for (int round = 0; round < rounds; ++round) {
    const Time start = Now();
    const absl::StatusOr<std::unique_ptr<Model>> other = LoadModel(path);
    if (!other.ok()) return 1;
    const Time middle = Now();
    const Facts others = Infer(**other, WithDeclaredOperators());
    const Time end = Now();
    load += (middle.user - start.user) / rounds;
    infer += (end.user - middle.user) / rounds;
    kernel += (end.kernel - start.kernel) / rounds;
  }
  double nodes = 0;
  double values = 0;
  double known = 0;
  for (const Node* node : (*model)->graph().nodes()) {
    ++nodes;
    for (const Value* value : node->outputs()) {
      if (value == nullptr) continue;
      ++values;
      const Fact& fact = facts.Of(value);
      bool full = fact.has_rank;
      for (Dim dim : fact.shape) full = full && dim.known() && !facts.dims().MentionsFresh(dim);
      known += full ? 1 : 0;
    }
  }
  fmt::print("| {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.2f} |\n", nodes, load / nodes * 1e9,
             infer / nodes * 1e9, (load + infer) / nodes * 1e9, kernel / nodes * 1e9, (loaded - before) / nodes * 1e6,
             (inferred - loaded) / nodes * 1e6, 100 * known / std::max(1.0, values));
  std::fflush(stdout);
  return 0;
}

// Runs `work` in a child process, so that memory starts afresh.
template <typename Work>
bool InChild(Work work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "infer_bench MODEL.onnx [NODES...]\n";
    return 2;
  }
  std::vector<int64_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  if (sizes.empty()) sizes = {1'000, 10'000, 100'000, 1'000'000};
  const char* temporary = std::getenv("TMPDIR");
  const std::string path = fmt::format("{}/infer_bench.{}.onnx", temporary != nullptr ? temporary : "/tmp", getpid());
  fmt::print(
      "| nodes | load, ns a node | infer, ns a node | both | kernel, ns a node | load, bytes a node "
      "| infer, bytes a node | known, % |\n|---|---|---|---|---|---|---|---|\n");
  bool good = true;
  for (int64_t size : sizes) {
    good = good && InChild([&] { return Repeat(argv[1], size, path) ? 0 : 1; }) && InChild([&] { return Measure(path); });
  }
  if (std::getenv("INFER_BENCH_KEEP") == nullptr) unlink(path.c_str());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace ascend_fuse

int main(int argc, char** argv) { return ascend_fuse::Main(argc, argv); }
