// libFuzzer: whatever model is loaded, a run over it ends with a sentence or with a model that protobuf parses and that loads,
// and with reports that can be read back and shown. Which chip it is for, with which options, depends on the bytes; one model in
// eight is checked or analyzed instead.
#include <cstdint>
#include <string>

#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/text/visible.h"
#include "passes/analyze/page.h"
#include "passes/analyze_model.h"
#include "passes/check_model.h"
#include "passes/optimize.h"
#include "passes/report/report_html.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate_model.h"

namespace ascend_fuse::fuzz {
namespace {

constexpr const char* kChips[] = {"ascend910b", "ascend310p", "ascend910_93", "ascend950"};

// So many bits of a hash, as a number.
uint32_t Bits(uint32_t hash, int first, int count) { return hash >> first & ((1u << count) - 1); }

OptimizeOptions OptionsFor(uint32_t hash) {
  OptimizeOptions options;
  options.target.chip = kChips[Bits(hash, 8, 2)];
  options.target.plugin = Bits(hash, 10, 1) == 1;
  options.strict = Bits(hash, 11, 3) == 0;
  if (Bits(hash, 14, 2) == 0) options.tidy = {"exact", "affines"};  // which nobody gets who does not ask for it
  options.quantised = static_cast<Quantised>(Bits(hash, 16, 2));
  if (Bits(hash, 18, 2) == 0) options.target.precision_mode = "must_keep_origin_dtype";
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
  const uint32_t hash = HashOf(bytes);
  const OptimizeOptions options = OptionsFor(hash);
  const uint32_t other = Bits(hash, 20, 4);
  if (other == 0) {
    const auto analysis = AnalyzeModel(model->get(), options);
    if (!analysis.ok()) return Require(!analysis.status().message().empty(), "a refusal has a sentence");
    const std::string text = AnalysisToText(*analysis, {.verbose = true}) + AnalysisToHtml(*analysis);
    return Require(Visible(text, true) == text, "what an analysis shows is visible");
  }
  if (other == 1) {
    const auto checked = CheckModel(model->get(), options);
    return Require(checked.ok() || !checked.status().message().empty(), "a refusal has a sentence");
  }
  const auto report = Optimize(model->get(), options);
  if (!report.ok()) return Require(!report.status().message().empty(), "a refusal has a sentence");
  if (Bits(hash, 0, 3) == 0) CheckReport(*report);  // as long as all the rest; report_fuzz looks at more of them
  const auto saved = SaveModelToBytes(**model);
  if (!saved.ok()) return Require(!saved.status().message().empty(), "a refusal has a sentence");
  Require(ProtobufParses(*saved) != nullptr, "protobuf parses the result");
  auto again = LoadModelFromBytes(*saved);
  Require(again.ok(), "the result is loaded");
  ExpandOptions expand;
  if (Bits(hash, 24, 2) == 0) expand.as_atc = options.target;
  const absl::Status expanded = Expand(again->get(), expand);
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
