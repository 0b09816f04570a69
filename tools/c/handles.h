// What the handles of the interface in C hold, and how its functions fail: with a code and a sentence, never with an exception.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "ir/onnx/save.h"
#include "passes/analyze_model.h"
#include "passes/optimize.h"
#include "passes/report/report.h"
#include "tools/c/ascend_fuse.h"

struct ascend_fuse_model {
  std::unique_ptr<ascend_fuse::Model> model;
  std::string bytes;    // of the last ascend_fuse_save_bytes or ascend_fuse_model_text
  bool broken = false;  // a run failed half way
};

struct ascend_fuse_options {
  ascend_fuse::OptimizeOptions options;
  ascend_fuse::SaveOptions save;
  bool force = false;   // a model that ATC refuses or misreads may be saved
  bool as_atc = false;  // expand takes standard operators as ATC reads them
};

struct ascend_fuse_report {
  ascend_fuse::Report report;
  std::string_view command;  // "optimize", "list", "check" or "analyze", of which it is
  std::string json;
  mutable std::string text;                       // made when it is first asked for
  std::string form;                               // of the last ascend_fuse_report_as or ascend_fuse_report_unmet
  std::optional<ascend_fuse::Analysis> analysis;  // of "analyze", in place of a report
};

namespace ascend_fuse::c {

// Keeps the sentence for ascend_fuse_error, and gives the code.
ascend_fuse_code Fail(ascend_fuse_code code, std::string sentence);
// The same where there is no memory for a sentence: of a text that lives for ever.
ascend_fuse_code FailWith(ascend_fuse_code code, const char* sentence);
ascend_fuse_code CodeOf(absl::StatusCode code);
absl::Status NeedNotNull(std::string_view name);

// Runs a function that gives a status. No exception gets out: the standard library throws without memory.
template <typename Function>
ascend_fuse_code Guarded(Function function) noexcept {
  try {
    const absl::Status status = function();
    if (status.ok()) return ASCEND_FUSE_OK;
    return Fail(CodeOf(status.code()), std::string(status.message()));
  } catch (const std::bad_alloc&) {
    return FailWith(ASCEND_FUSE_SYSTEM, "there is not enough memory");
  } catch (const std::exception&) {
    return FailWith(ASCEND_FUSE_INTERNAL, "an exception of the standard library");
  }
}

}  // namespace ascend_fuse::c
