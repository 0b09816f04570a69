// What --require asks of a report.
#include "passes/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "passes/report/number_text.h"

namespace ascend_fuse {

absl::Status CheckRequirements(const std::vector<std::string>& kinds) {
  const auto& all = ReportKinds();
  for (const std::string& kind : kinds) {
    if (std::find(all.begin(), all.end(), kind) != all.end()) continue;
    return absl::InvalidArgumentError(fmt::format("--require {}: the kinds are {}", kind, fmt::join(all, ", ")));
  }
  return absl::OkStatus();
}

std::vector<std::string> UnmetRequirements(const Report& report, const std::vector<std::string>& kinds) {
  std::vector<std::string> sentences;
  for (const std::string& kind : kinds) {
    const ReportKindCount* count = report.FindKind(kind);
    if (count == nullptr || count->found == 0) {
      sentences.push_back(fmt::format("--require {}: no {} was found", kind, kind));
    } else if (count->left > 0) {
      sentences.push_back(fmt::format("--require {}: {} of {} left{}{}", kind, count->left, count->found,
                                      count->commonest_reason.empty() ? "" : ": ", count->commonest_reason));
    }
  }
  return sentences;
}

std::string WeightsInWords(const Report& report) {
  const WeightBytes& before = report.weights_before;
  const WeightBytes& after = report.weights_after;
  constexpr double kSmall = 1e5;  // constants of shapes that went away
  const double more = after.all - before.all;
  if (std::abs(more) * 100 <= before.all || (more < 0 && -more < kSmall)) return "";
  std::string text = fmt::format("weights {} -> {}", ShortBytes(before.all), ShortBytes(after.all));
  if (after.read < after.all || before.read < before.all) {
    text += fmt::format(" (each run reads, without tables of rows: {} -> {})", ShortBytes(before.read), ShortBytes(after.read));
  }
  return text;
}

std::string TidiedInWords(const Report& report) {
  constexpr std::string_view kPrefix = "tidy-";  // of the codes
  std::map<std::string_view, size_t> counts;
  for (const TidiedRecord& record : report.tidied) {
    std::string_view word = record.code;
    if (word.starts_with(kPrefix)) word.remove_prefix(kPrefix.size());
    counts[word] += record.nodes.size();
  }
  std::vector<std::string> words;
  for (const auto& [word, count] : counts) words.push_back(fmt::format("{} {}", count, word));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace ascend_fuse
