// libFuzzer: whatever model is loaded, a run over it ends with a sentence or with a model that protobuf parses and that loads,
// and with reports that can be read back and shown. Which chip it is for depends on the bytes.
#include <cstdint>
#include <string>

#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/text/visible.h"
#include "passes/optimize.h"
#include "passes/report/report_html.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate_model.h"

namespace ascend_fuse::fuzz {
namespace {

OptimizeOptions OptionsFor(const std::string& bytes) {
  uint32_t hash = 2166136261u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  static constexpr const char* kChips[] = {"ascend910b", "ascend310p", "ascend910_93", "ascend950"};
  OptimizeOptions options;
  options.target.chip = kChips[hash >> 8 & 3];
  options.target.plugin = (hash >> 10 & 1) != 0;
  options.strict = (hash >> 11 & 7) == 0;
  return options;
}

void CheckReport(const Report& report) {
  const std::string json = ReportToJson(report);
  const auto again = ReportFromJson(json);
  Require(again.ok(), "the report is read back");
  Require(ReportToJson(*again) == json, "as it was");
  const std::string text = ReportToText(report, {.verbose = true});
  Require(Visible(text, true) == text, "what the text shows is visible");
  const std::string page = ReportToHtml(report);
  Require(Visible(page, true) == page && page.find("<script") == std::string::npos, "and so is the page");
}

void Run(const std::string& bytes) {
  auto model = LoadModelFromBytes(bytes);
  if (!model.ok()) return;
  const OptimizeOptions options = OptionsFor(bytes);
  const auto report = Optimize(model->get(), options);
  if (!report.ok()) return Require(!report.status().message().empty(), "a refusal has a sentence");
  CheckReport(*report);
  const auto saved = SaveModelToBytes(**model);
  if (!saved.ok()) return Require(!saved.status().message().empty(), "a refusal has a sentence");
  onnx::ModelProto parsed;
  Require(ProtobufParses(*saved, &parsed), "protobuf parses the result");
  auto again = LoadModelFromBytes(*saved);
  Require(again.ok(), "the result is loaded");
  const absl::Status expanded = Expand(again->get());
  Require(expanded.ok() || !expanded.message().empty(), "expanding ends well");
}

}  // namespace
}  // namespace ascend_fuse::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ascend_fuse::fuzz::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return ascend_fuse::fuzz::MutateModel(data, size, most, seed, 20);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out,
                                            size_t most, unsigned seed) {
  return ascend_fuse::fuzz::CrossModels(a, a_size, b, b_size, out, most, seed);
}
