#include "patterns/analysis/einsum_letters.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

// Dots of an operand as letters of their own, one for each axis that no letter names, counted from the last one.
std::string WithoutDots(std::string_view letters, size_t axes) {
  const size_t dots = letters.find("...");
  if (dots == std::string::npos) return std::string(letters);
  std::string named;
  for (size_t i = axes; i > 0; --i) named += static_cast<char>('0' + i - 1);
  return std::string(letters.substr(0, dots)) + named + std::string(letters.substr(dots + 3));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> EinsumLetters(std::string_view equation, absl::Span<const size_t> ranks) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text), [](char c) { return c != ' '; });
  // Digits stand for the axes of dots below.
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
    return Refuse("an equation of other characters than letters");
  }
  const size_t arrow = text.find("->");
  std::vector<std::string> letters = {""};
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      letters.emplace_back();
    } else {
      letters.back() += c;
    }
  }
  if (letters.size() != ranks.size()) return Refuse("another number of operands than in the equation");
  std::string all;
  size_t most = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    all += letters[i];
    const bool dots = letters[i].find("...") != std::string::npos;
    const size_t named = letters[i].size() - (dots ? 3 : 0);
    if (named > ranks[i] || (!dots && named != ranks[i]) || ranks[i] - named > 9)
      return Refuse("another rank than in the equation");
    letters[i] = WithoutDots(letters[i], ranks[i] - named);
    most = std::max(most, ranks[i] - named);
  }
  std::string out = arrow == std::string::npos ? "" : text.substr(arrow + 2);
  if (arrow == std::string::npos) {
    if (all.find("...") != std::string::npos) out = "...";
    std::sort(all.begin(), all.end());
    const auto once = [&](char c) { return c != '.' && std::count(all.begin(), all.end(), c) == 1; };
    std::copy_if(all.begin(), all.end(), std::back_inserter(out), once);
  } else if (out.find("...") == std::string::npos && most > 0) {
    return Refuse("dots that the result has not");
  }
  letters.push_back(WithoutDots(out, most));
  return letters;
}

}  // namespace ascend_fuse
