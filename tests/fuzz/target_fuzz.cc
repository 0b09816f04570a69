// libFuzzer: any file of a target either gives a sentence or a target that can be described and asked.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "patterns/target/target.h"
#include "tests/fuzz/fuzz.h"

namespace ascend_fuse::fuzz {
namespace {

// A file in memory with these bytes; its path is the same each time.
const std::string& PathOf(const uint8_t* data, size_t size) {
  static const int file = memfd_create("target", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  Require(file >= 0 && ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size), "a file is written");
  return path;
}

// Says of a file which of the two kinds it wants to be.
bool IsCann(std::string_view text) { return text.find("chip:") > text.find("version:"); }

}  // namespace
}  // namespace ascend_fuse::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ascend_fuse;  // NOLINT
  const google::protobuf::LogSilencer silence;
  TargetOptions options;
  options.plugin = true;
  static const auto* const kept = new auto(Target::Load(options));  // its files are parsed once
  fuzz::Require(kept->ok(), "there is a built-in target");
  const bool is_cann = fuzz::IsCann({reinterpret_cast<const char*>(data), size});
  (is_cann ? options.cann : options.chip) = fuzz::PathOf(data, size);
  options.plugin = size % 2 == 0;
  const auto target = Target::Load(options);
  if (!target.ok()) {
    fuzz::Require(!target.status().message().empty(), "a refusal has a sentence");
    return 0;
  }
  (void)target->Describe();
  for (const char* op : {"npu.NPURmsNorm", "HardSwish", "ReduceMean"}) (void)target->DescribeOperator(op);
  return 0;
}
