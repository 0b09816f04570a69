// A filter for tests/python: ONNX text on standard input; `encode` writes the model file, `print` our text of
// it with every element. A parse error goes to standard error, exit code 1.
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "ir/onnx/load.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"

int main(int argc, char** argv) {
  ascend_fuse::PrintOptions options;
  options.max_elements = -1;
  if (argc == 3 && std::string(argv[1]) == "show") {
    const absl::StatusOr<std::unique_ptr<ascend_fuse::Model>> model = ascend_fuse::LoadModel(argv[2]);
    if (!model.ok()) {
      std::cerr << model.status().message() << "\n";
      return 1;
    }
    std::cout << ascend_fuse::PrintModelText(**model, options);
    return 0;
  }
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  if (argc == 2 && std::string(argv[1]) == "encode") {
    const absl::StatusOr<std::string> bytes = ascend_fuse::EncodeModelText(text);
    if (bytes.ok()) {
      std::cout << *bytes;
      return 0;
    }
    std::cerr << bytes.status().message() << "\n";
    return 1;
  }
  const absl::StatusOr<std::unique_ptr<ascend_fuse::Model>> model = ascend_fuse::ParseModelText(text);
  if (!model.ok()) {
    std::cerr << model.status().message() << "\n";
    return 1;
  }
  std::cout << ascend_fuse::PrintModelText(**model, options);
  return 0;
}
