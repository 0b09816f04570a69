// libFuzzer: any file of a target either gives a sentence or a target that can be described and asked.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// Targets that live as long as the process, so that every built-in file that may be a base is parsed once.
void KeepTargets() {
  static auto* const targets = new std::vector<Target>;
  if (!targets->empty()) return;
  for (const std::string& cann : Target::CannVersions()) {
    for (const std::string& chip : Target::Chips()) {
      TargetOptions options;
      options.chip = chip;
      options.cann = cann;
      options.plugin = true;
      auto target = Target::Load(options);
      Require(target.ok(), "there are built-in targets");
      targets->push_back(*std::move(target));
    }
  }
}

// Says of a file which of the two kinds it wants to be.
bool IsCann(std::string_view text) { return text.find("chip:") > text.find("version:"); }

}  // namespace
}  // namespace ascend_fuse::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ascend_fuse;  // NOLINT
  const google::protobuf::LogSilencer silence;
  fuzz::KeepTargets();
  TargetOptions options;
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
