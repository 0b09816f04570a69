#include "patterns/codes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "embedded/codes_data.h"
#include "fmt/format.h"
#include "patterns/edit_distance.h"
#include "proto/codes.pb.h"

namespace ascend_fuse {
namespace {

// A catalogue that cannot be read is a broken build, which no caller could do anything about; a test reads it first.
const std::vector<CodeGroup>* ReadGroups() {
  auto* groups = new std::vector<CodeGroup>;
  proto::CodeCatalogue catalogue;
  const std::string_view bytes = embedded::codes_data[0].text;
  if (!catalogue.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    std::fprintf(stderr, "patterns/codes.txtpb, built into this program: does not parse\n");
    std::abort();
  }
  for (const proto::CodeGroup& from : catalogue.group()) {
    CodeGroup& group = groups->emplace_back(CodeGroup{from.title(), from.introduction(), {}});
    for (const proto::Code& code : from.code()) {
      group.codes.push_back({code.code(), code.title(), code.explanation(), code.example(), code.way_out()});
    }
  }
  return groups;
}

// The text in lines of at most `width` letters, each after `indent`.
std::string Wrapped(std::string_view text, size_t width, std::string_view indent) {
  std::string lines;
  std::string line;
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (!line.empty() && indent.size() + line.size() + 1 + word.size() > width) {
      lines += fmt::format("{}{}\n", indent, line);
      line.clear();
    }
    line += fmt::format("{}{}", line.empty() ? "" : " ", word);
    text = space == std::string_view::npos ? "" : text.substr(space + 1);
  }
  return line.empty() ? lines : lines + fmt::format("{}{}\n", indent, line);
}

}  // namespace

// Read on first use, by one thread; never destroyed, for threads may outlive main's statics.
const std::vector<CodeGroup>& CodeGroups() {
  static const std::vector<CodeGroup>* const groups = ReadGroups();
  return *groups;
}

const Code* FindCode(std::string_view name) {
  for (const CodeGroup& group : CodeGroups()) {
    for (const Code& code : group.codes) {
      if (code.name == name) return &code;
    }
  }
  return nullptr;
}

std::vector<std::string_view> NearestCodes(std::string_view name) {
  constexpr size_t kMost = 3;
  constexpr size_t kLongest = 100;  // of a name that is looked at
  std::vector<std::pair<size_t, std::string_view>> near;
  if (name.size() > kLongest) return {};
  for (const CodeGroup& group : CodeGroups()) {
    for (const Code& code : group.codes) {
      // A word of it, as in "mask", or a name with some letters wrong.
      const bool part = name.size() >= 3 && code.name.find(name) != std::string::npos;
      const size_t distance = part ? 1 : EditDistance(name, code.name);
      if (distance <= 1 + code.name.size() / 4) near.emplace_back(distance, code.name);
    }
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> names;
  for (size_t i = 0; i < near.size() && i < kMost; ++i) names.push_back(near[i].second);
  return names;
}

std::string DescribeCode(const Code& code) {
  constexpr size_t kWidth = 100;
  return fmt::format("{}: {}\n\n{}\nfor example\n{}\nway out\n{}", code.name, code.title, Wrapped(code.explanation, kWidth, ""),
                     Wrapped(code.example, kWidth, "  "), Wrapped(code.way_out, kWidth, "  "));
}

std::string ListCodes() {
  std::string text;
  for (const CodeGroup& group : CodeGroups()) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", group.title);
    for (const Code& code : group.codes) text += fmt::format("  {:<26}{}\n", code.name, code.title);
  }
  return text;
}

std::string CodesDocument() {
  constexpr size_t kWidth = 120;
  std::string text =
      "# Codes of reports\n\n"
      "Written by `ascend-fuse explain --markdown` from `patterns/codes.txtpb`; do not edit. Every reason of a site, every\n"
      "near miss and every warning of [the report](report.md) has one of these codes. The sentence beside it says which\n"
      "node, number or dim it was here; the code says what kind of thing it is, and keeps its meaning from version to\n"
      "version. `ascend-fuse explain CODE` prints one of them. Rule and target files of your own may bring further codes.\n";
  for (const CodeGroup& group : CodeGroups()) {
    text += fmt::format("\n## {}\n\n{}", group.title, Wrapped(group.introduction, kWidth, ""));
    for (const Code& code : group.codes) {
      text += fmt::format("\n### {}\n\n{}\n", code.name,
                          Wrapped(fmt::format("**{}.** {}", code.title, code.explanation), kWidth, ""));
      text += fmt::format("{}\n", Wrapped(code.example, kWidth, "> "));
      text += Wrapped(fmt::format("Way out: {}", code.way_out), kWidth, "");
    }
  }
  return text;
}

}  // namespace ascend_fuse
