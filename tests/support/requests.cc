#include "tests/support/requests.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "fmt/format.h"

namespace ascend_fuse::testing {

std::vector<std::string> Fields(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  return fields;
}

std::string OnOneLine(std::string sentence) {
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  return sentence;
}

void ServeRequests(const std::function<void(const std::vector<std::string>& fields)>& answer) {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    answer(Fields(line, '\t'));
    std::cout << "done" << std::endl;
  }
}

NumberedFiles::NumberedFiles(std::string stem) : stem_(std::move(stem)) {}

size_t NumberedFiles::Write(const std::string& bytes) {
  const auto known = std::find(contents_.begin(), contents_.end(), bytes);
  if (known != contents_.end()) return static_cast<size_t>(known - contents_.begin());
  contents_.push_back(bytes);
  std::ofstream(fmt::format("{}{}.onnx", stem_, contents_.size() - 1), std::ios::binary) << bytes;
  return contents_.size() - 1;
}

}  // namespace ascend_fuse::testing
