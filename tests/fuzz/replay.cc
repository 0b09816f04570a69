// A fuzz target as a program of any compiler: runs files, which is how a finding is looked at, or inputs that are made from them
// without looking at coverage.
//   NAME_replay FILE ...                         each file
//   NAME_replay --random COUNT SEED FILE ...     COUNT inputs, each a file that was changed up to ten times
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed);

namespace {

std::mt19937 random_numbers;  // NOLINT

}  // namespace

// Stands in for that of libFuzzer: one byte is changed, added or taken away.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) {
  if (size == 0) return size;
  const size_t at = random_numbers() % size;
  switch (random_numbers() % 3) {
    case 0:
      data[at] = static_cast<uint8_t>(data[at] ^ (1u << random_numbers() % 8));
      return size;
    case 1:
      if (size == most) return size;
      for (size_t i = size; i > at; --i) data[i] = data[i - 1];
      return size + 1;
    default:
      for (size_t i = at; i + 1 < size; ++i) data[i] = data[i + 1];
      return size - 1;
  }
}

int main(int argc, char** argv) {
  const bool random = argc > 4 && std::string(argv[1]) == "--random";
  std::vector<std::string> inputs;
  for (int i = random ? 4 : 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  const auto run = [](const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  };
  if (!random) {
    for (const std::string& input : inputs) run(input);
    std::printf("%zu inputs\n", inputs.size());
    return 0;
  }
  const long count = std::atol(argv[2]);
  const long seed = std::atol(argv[3]);
  constexpr size_t kMost = 65536;
  std::vector<uint8_t> buffer(kMost);
  for (long i = 0; i < count; ++i) {
    random_numbers.seed(static_cast<unsigned>(seed * 1000003 + i));
    const std::string& from = inputs[random_numbers() % inputs.size()];
    if (from.size() > kMost) continue;
    size_t size = from.size();
    std::copy(from.begin(), from.end(), buffer.begin());
    for (unsigned changes = 1 + random_numbers() % 10; changes > 0; --changes) {
      const auto mutate = LLVMFuzzerCustomMutator;
      const auto number = static_cast<unsigned>(random_numbers());
      size = mutate != nullptr ? mutate(buffer.data(), size, kMost, number) : LLVMFuzzerMutate(buffer.data(), size, kMost);
    }
    const std::string input(buffer.begin(), buffer.begin() + static_cast<long>(size));
    // For the next run, should this one not come back.
    if (const char* last = std::getenv("LAST_INPUT")) std::ofstream(last, std::ios::binary) << input;
    run(input);
  }
  std::printf("%ld inputs\n", count);
}
