// libFuzzer: any text either gives a sentence with line and column, or a model whose text gives the same text again.
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/onnx/load.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ascend_fuse;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto model = ParseModelText(text);
  if (!model.ok()) {
    fuzz::Require(!model.status().message().empty(), "a refusal has a sentence");
    return 0;
  }
  PrintOptions options;
  options.max_elements = -1;
  const std::string printed = PrintModelText(**model, options);
  auto again = ParseModelText(printed);
  fuzz::Require(again.ok(), "what was printed is parsed");
  fuzz::Require(PrintModelText(**again, options) == printed, "and printed the same");
  const auto bytes = EncodeModelText(text);
  fuzz::Require(bytes.ok(), "what is parsed is encoded");
  if (LoadModelFromBytes(*bytes).ok()) fuzz::Require(fuzz::ProtobufParses(*bytes) != nullptr, "protobuf parses it");
  return 0;
}
