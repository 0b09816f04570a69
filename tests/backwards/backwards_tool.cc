// Built-in rules run backwards, for tests/python/test_backwards.py; its head says how to look at one case.
//
//   backwards_tool run --rule NAME [--seed N] [--count N] [--mutants N] [--unreached ALTERNATIVE]... [--trace] [--plain]
#include <cstdlib>
#include <string>

#include "fmt/format.h"
#include "tools/backwards/run.h"

int main(int argc, char** argv) {
  ascend_fuse::backwards::RunOptions options;
  std::string rule;
  for (int i = 2; i < argc; ++i) {
    const std::string flag = argv[i];
    auto next = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (flag == "--rule") {
      rule = next();
    } else if (flag == "--seed") {
      options.seed = std::strtoull(next().c_str(), nullptr, 10);
    } else if (flag == "--count") {
      options.count = std::atoi(next().c_str());
    } else if (flag == "--mutants") {
      options.mutants = std::atoi(next().c_str());
    } else if (flag == "--unreached") {
      options.unreached.insert(next());
    } else if (flag == "--trace") {
      options.trace = true;
    } else if (flag == "--plain") {
      options.plain = true;
    } else {
      fmt::print(stderr, "unknown flag {}\n", flag);
      return 2;
    }
  }
  const auto status = RunRule(options, rule);
  if (!status.ok()) fmt::print(stderr, "{}\n", std::string(status.message()));
  return status.ok() ? 0 : 2;
}
