#include "patterns/how_to_bind.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/add_once.h"

namespace ascend_fuse {
namespace {

// Whether it stands in a command line as it is.
bool IsPlain(std::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; });
}

// The one symbol that a dim is; empty for all others, and for those that --dim cannot say.
std::string_view NameOf(const DimTable& dims, Dim dim) {
  const Dim is = dims.Resolve(dim);
  const auto symbols = dims.Symbols(is);
  const bool one = symbols.size() == 1 && dims.ToString(is) == symbols[0];
  return one && IsPlain(symbols[0]) && dims.CanBeTold(symbols[0]) ? symbols[0] : std::string_view();
}

}  // namespace

std::string HowToBind(const DimTable& dims, absl::Span<const Dim> unknown, std::string_view number) {
  std::vector<std::string> flags;
  std::vector<std::string> computed;
  bool other = false;
  for (const Dim dim : unknown) {
    if (dim.is_number() || !dim.known()) continue;
    for (const std::string_view symbol : dims.Symbols(dims.Resolve(dim))) {
      if (!dims.CanBeTold(symbol)) {
        AddOnce(std::string(symbol), &computed);
      } else if (IsPlain(symbol)) {
        AddOnce(fmt::format("--dim {}={}", symbol, number), &flags);
      } else {
        other = true;
      }
    }
  }
  std::vector<std::string> ways;
  if (!flags.empty()) ways.push_back(fmt::format("bind it with {}", fmt::join(flags, " ")));
  if (flags.empty() && other) ways.push_back("bind the model's symbolic dims with --dim NAME=N");
  if (!computed.empty()) {
    ways.push_back(fmt::format("--dim cannot say {}, which the model computes: declare {} as a number in the model",
                               fmt::join(computed, " and "), computed.size() == 1 ? "it" : "them"));
  }
  return ways.empty() ? "declare the shape in the model" : fmt::format("{}", fmt::join(ways, "; "));
}

std::string HowToEqual(const DimTable& dims, absl::Span<const Dim> compared) {
  std::string flags = HowToBind(dims, compared);
  if (compared.size() != 2) return flags;
  const std::string_view first = NameOf(dims, compared[0]);
  const std::string_view second = NameOf(dims, compared[1]);
  if (first.empty() || second.empty() || first == second) return flags;
  return fmt::format("{}, or say that they are the same with --dim {}={}", flags, first, second);
}

}  // namespace ascend_fuse
