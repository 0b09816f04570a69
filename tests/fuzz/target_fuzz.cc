// libFuzzer: any file of a target either gives a sentence or a target that can be described and asked.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "ir/onnx/whole_file.h"
#include "patterns/target/target.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ascend_fuse;  // NOLINT
  static const std::string path = "/tmp/ascend-fuse-target-fuzz-" + std::to_string(getpid()) + ".txtpb";
  static const int remover = std::atexit([] { std::remove(path.c_str()); });
  (void)remover;
  const google::protobuf::LogSilencer silence;
  if (!WriteWholeFile(path, std::string(reinterpret_cast<const char*>(data), size)).ok()) return 0;
  TargetOptions options;
  (size % 2 == 0 ? options.chip : options.cann) = path;
  const auto target = Target::Load(options);
  if (!target.ok()) {
    fuzz::Require(!target.status().message().empty(), "a refusal has a sentence");
    return 0;
  }
  (void)target->Describe();
  for (const char* op : {"npu.NPURmsNorm", "HardSwish", "ReduceMean"}) (void)target->DescribeOperator(op);
  return 0;
}
