// The catalogue of codes: what each code of a report means and what can be done about it (patterns/codes.txtpb).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ascend_fuse {

// A kind of refusal or warning. Its name never changes its meaning, so that scripts can rely on it.
struct Code {
  std::string name;  // "mask-per-head"
  std::string title;
  std::string explanation;
  std::string example;  // a sentence of a report
  std::string way_out;
};

struct CodeGroup {  // codes that one heading is about
  std::string title;
  std::string introduction;
  std::vector<Code> codes;
};

// All codes, in the order of the catalogue.
const std::vector<CodeGroup>& CodeGroups();
// The code of this name, or nullptr.
const Code* FindCode(std::string_view name);
// The names that are nearest to one that does not exist, best first, at most three; none where nothing is near.
std::vector<std::string_view> NearestCodes(std::string_view name);

// What `ascend-fuse explain` prints: one code, all of them with their titles, and docs/codes.md.
std::string DescribeCode(const Code& code);
std::string ListCodes();
std::string CodesDocument();

}  // namespace ascend_fuse
