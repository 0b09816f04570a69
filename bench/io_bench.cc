// Reading and writing against libprotobuf in one process; with --copy, --load, --parse or --generate one
// whole-process step for bench/race.py.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "bench/models.h"
#include "benchmark/benchmark.h"
#include "google/protobuf/arena.h"
#include "ir/onnx/load.h"
#include "ir/onnx/model_file.h"
#include "ir/onnx/save.h"
#include "ir/rewriter.h"

namespace ascend_fuse {
namespace {

std::string& Directory() {
  static std::string directory;
  return directory;
}

std::string FileOf(const std::string& letter) {
  const std::string path = Directory() + "/" + letter + ".onnx";
  if (!std::filesystem::exists(path) && !bench::Generate(bench::SizeOf(letter), path)) std::abort();
  return path;
}

std::string ReadWhole(const std::string& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

void ParseOnArena(const std::string& bytes) {
  google::protobuf::ArenaOptions options;
  options.start_block_size = 1 << 20;
  options.max_block_size = 8 << 20;
  google::protobuf::Arena arena(options);
  auto* model = google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
  if (!model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) std::abort();
  benchmark::DoNotOptimize(model->graph().node_size());
}

void Protobuf(benchmark::State& state, const std::string& letter) {
  const std::string bytes = ReadWhole(FileOf(letter));  // in memory already: parsing alone
  for (auto _ : state) ParseOnArena(bytes);
}

void Scan(benchmark::State& state, const std::string& letter) {
  const std::string path = FileOf(letter);
  for (auto _ : state) {
    if (!ModelFile::Read(path).ok()) std::abort();
  }
}

void Load(benchmark::State& state, const std::string& letter) {
  const std::string path = FileOf(letter);  // reading the file included
  for (auto _ : state) {
    auto model = LoadModel(path);
    if (!model.ok()) std::abort();
    benchmark::DoNotOptimize(model);
  }
}

void Save(benchmark::State& state, const std::string& letter) {
  auto model = LoadModel(FileOf(letter));
  if (!model.ok()) std::abort();
  // Something changed, so that the pieces are laid out.
  Rewriter(model->get()).SetOpsetImport("npu", 1);
  const Node* first = (*model)->graph().nodes()[0];
  Rewriter(model->get()).Rename(first, "npu", "Renamed");
  for (auto _ : state) {
    if (!SaveModel(**model, Directory() + "/saved.onnx").ok()) std::abort();
  }
}

void Attributes(benchmark::State& state) {
  auto model = LoadModel(FileOf("D0"));
  if (!model.ok()) std::abort();
  for (auto _ : state) {
    int64_t sum = 0;
    for (const Node* node : (*model)->graph().nodes()) sum += FindAttribute(*node, "perm").has_value() ? 1 : 0;
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>((*model)->graph().nodes().size()));
}

int Step(int argc, char** argv) {
  const std::string mode = argv[1];
  if (mode == "--generate" && argc == 4) return bench::Generate(bench::SizeOf(argv[2]), argv[3]) ? 0 : 1;
  if (mode == "--parse" && argc == 3) {
    ParseOnArena(ReadWhole(argv[2]));
    _exit(0);
  }
  auto model = LoadModel(argv[2]);
  absl::Status status = model.status();
  if (status.ok() && mode == "--copy" && argc == 4) status = SaveModel(**model, argv[3]);
  if (status.ok() && mode == "--change" && argc == 4) {
    Rewriter(model->get()).Rename((*model)->graph().nodes()[0], "npu", "Renamed");
    status = SaveModel(**model, argv[3]);
  }
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::fflush(nullptr);
  _exit(status.ok() ? 0 : 1);  // as the tool ends: nothing is taken down piece by piece
}

BENCHMARK_CAPTURE(Protobuf, D0, "D0")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Scan, D0, "D0")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Load, D0, "D0")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Save, D0, "D0")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Protobuf, D1, "D1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Load, D1, "D1")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Protobuf, C, "C")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Load, C, "C")->Unit(benchmark::kMillisecond);
BENCHMARK(Attributes)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ascend_fuse

int main(int argc, char** argv) {
  if (argc > 1 && std::strncmp(argv[1], "--", 2) == 0 && std::strncmp(argv[1], "--benchmark", 11) != 0) {
    return ascend_fuse::Step(argc, argv);
  }
  std::string pattern = (std::filesystem::temp_directory_path() / "io_bench_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return 1;
  ascend_fuse::Directory() = pattern;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(pattern);
  return 0;
}
