// Programs that answer requests of Python tests, one a line on standard input, until there are no more.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ascend_fuse::testing {

std::vector<std::string> Fields(const std::string& line, char separator);

// A sentence as a field of an answer: on one line.
std::string OnOneLine(std::string sentence);

// Calls `answer` with the fields of each line, which tabs separate, and writes `done` after what it wrote.
void ServeRequests(const std::function<void(const std::vector<std::string>& fields)>& answer);

// Files of different contents, numbered: STEM0.onnx, STEM1.onnx ...
class NumberedFiles {
 public:
  explicit NumberedFiles(std::string stem);
  // The number of the file with these contents, which is written the first time.
  size_t Write(const std::string& bytes);

 private:
  std::string stem_;
  std::vector<std::string> contents_;
};

}  // namespace ascend_fuse::testing
