// The interface in C over the front door: handles hold the C++ objects, a status becomes a code and a sentence.
#include "tools/c/ascend_fuse.h"

#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/status_macros.h"
#include "passes/analyze_model.h"
#include "passes/check/check.h"
#include "passes/check_model.h"
#include "passes/optimize.h"
#include "passes/option_names.h"
#include "passes/report/report.h"

struct ascend_fuse_model {
  std::unique_ptr<ascend_fuse::Model> model;
  std::string bytes;    // of the last ascend_fuse_save_bytes
  bool broken = false;  // a run failed half way
};

struct ascend_fuse_options {
  ascend_fuse::OptimizeOptions options;
  bool force = false;  // a model that ATC refuses or misreads may be saved
};

struct ascend_fuse_report {
  std::string json;
  std::string text;
};

namespace ascend_fuse {
namespace {

// A text that needs no memory to be set to a literal: it must also be there when there is no memory.
struct LastError {
  std::string sentence;
  const char* text = "";
};
thread_local LastError last_error;

ascend_fuse_code Fail(ascend_fuse_code code, std::string sentence) {
  last_error.sentence = std::move(sentence);
  last_error.text = last_error.sentence.c_str();
  return code;
}

ascend_fuse_code CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return ASCEND_FUSE_OK;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kDataLoss:
      return ASCEND_FUSE_INVALID;
    case absl::StatusCode::kNotFound:
      return ASCEND_FUSE_NOT_FOUND;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return ASCEND_FUSE_REFUSED;
    case absl::StatusCode::kCancelled:
      return ASCEND_FUSE_CANCELLED;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return ASCEND_FUSE_SYSTEM;
    default:
      return ASCEND_FUSE_INTERNAL;
  }
}

// Runs a function that gives a status. No exception gets out: the standard library throws without memory.
template <typename Function>
ascend_fuse_code Guarded(Function function) noexcept {
  try {
    const absl::Status status = function();
    if (status.ok()) return ASCEND_FUSE_OK;
    return Fail(CodeOf(status.code()), std::string(status.message()));
  } catch (const std::bad_alloc&) {
    last_error.text = "there is not enough memory";
    return ASCEND_FUSE_SYSTEM;
  } catch (const std::exception&) {
    last_error.text = "an exception of the standard library";
    return ASCEND_FUSE_INTERNAL;
  }
}

absl::Status NeedNotNull(std::string_view name) { return absl::InvalidArgumentError(std::string(name) + " is NULL"); }

// A model that can be worked on.
absl::Status NeedWhole(const ascend_fuse_model* model) {
  if (model == nullptr) return NeedNotNull("model");
  if (!model->broken) return absl::OkStatus();
  return absl::FailedPreconditionError("a run over this model failed, or checked it: it is to be dropped");
}

absl::Status Give(absl::StatusOr<std::unique_ptr<Model>> loaded, ascend_fuse_model** model) {
  if (!loaded.ok()) return loaded.status();
  *model = new ascend_fuse_model{*std::move(loaded), "", false};
  return absl::OkStatus();
}

// Both texts are made at once, so that asking for them cannot fail.
void Give(const Report& made, const ReportTextOptions* text, ascend_fuse_report** report) {
  if (report == nullptr) return;
  *report = new ascend_fuse_report{ReportToJson(made), text == nullptr ? FindingsToText(made) : ReportToText(made, *text)};
}

using RunFunction = absl::StatusOr<Report> (*)(Model*, const OptimizeOptions&);

ascend_fuse_code Run(RunFunction run, const ReportTextOptions* text, ascend_fuse_model* model, const ascend_fuse_options* options,
                     ascend_fuse_report** report) {
  if (report != nullptr) *report = nullptr;
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(NeedWhole(model));
    model->broken = run != ListOpportunities;  // until it is done
    const auto made = run(model->model.get(), options == nullptr ? OptimizeOptions() : options->options);
    model->broken = run == CheckModel || (run == Optimize && !made.ok());
    if (!made.ok()) return made.status();
    Give(*made, text, report);
    if (run != Optimize || (options != nullptr && options->force)) return absl::OkStatus();
    const std::vector<std::string> why = WhyNotWritten(*made);
    if (why.empty()) return absl::OkStatus();
    model->broken = true;
    return absl::FailedPreconditionError(
        fmt::format("ATC of CANN {} refuses or misreads the model: {}", made->target.cann, fmt::join(why, "; ")));
  });
}

}  // namespace
}  // namespace ascend_fuse

using namespace ascend_fuse;

int ascend_fuse_abi(void) { return ASCEND_FUSE_ABI; }
const char* ascend_fuse_version(void) { return ASCEND_FUSE_VERSION; }
const char* ascend_fuse_error(void) { return last_error.text; }

ascend_fuse_options* ascend_fuse_options_new(void) {
  ascend_fuse_options* options = nullptr;
  Guarded([&] {
    options = new ascend_fuse_options;
    return absl::OkStatus();
  });
  return options;
}

ascend_fuse_code ascend_fuse_options_set(ascend_fuse_options* options, const char* name, const char* value) {
  return Guarded([&] {
    if (options == nullptr || name == nullptr || value == nullptr) return NeedNotNull("options, name or value");
    if (std::string_view(name) == "force") {
      options->force = std::string_view(value) != "false";
      return absl::OkStatus();
    }
    return SetOption(&options->options, name, value);
  });
}

void ascend_fuse_options_progress(ascend_fuse_options* options,
                                  int (*progress)(void* user, const char* pass, size_t number, size_t count), void* user) {
  if (options == nullptr) return;
  if (progress == nullptr) {
    options->options.progress = nullptr;
    return;
  }
  Guarded([&] {
    options->options.progress = [progress, user](const Progress& at) {
      return progress(user, std::string(at.pass).c_str(), at.number, at.count) == 0;
    };
    return absl::OkStatus();
  });
}

void ascend_fuse_options_free(ascend_fuse_options* options) { delete options; }

ascend_fuse_code ascend_fuse_load(const char* path, ascend_fuse_model** model) {
  return Guarded([&] {
    if (path == nullptr || model == nullptr) return NeedNotNull("path or model");
    *model = nullptr;
    return Give(LoadModel(path), model);
  });
}

ascend_fuse_code ascend_fuse_load_bytes(const void* bytes, size_t size, const char* path, ascend_fuse_model** model) {
  return Guarded([&] {
    if ((bytes == nullptr && size != 0) || model == nullptr) return NeedNotNull("bytes or model");
    *model = nullptr;
    const std::string_view text(static_cast<const char*>(bytes), size);
    return Give(LoadModelFromBytes(text, path == nullptr ? "" : path), model);
  });
}

ascend_fuse_code ascend_fuse_save(const ascend_fuse_model* model, const char* path) {
  return Guarded([&] {
    if (path == nullptr) return NeedNotNull("path");
    RETURN_IF_ERROR(NeedWhole(model));
    return SaveModel(*model->model, path);
  });
}

ascend_fuse_code ascend_fuse_save_bytes(ascend_fuse_model* model, const void** bytes, size_t* size) {
  return Guarded([&]() -> absl::Status {
    if (bytes == nullptr || size == nullptr) return NeedNotNull("bytes or size");
    RETURN_IF_ERROR(NeedWhole(model));
    auto saved = SaveModelToBytes(*model->model);
    if (!saved.ok()) return saved.status();
    model->bytes = *std::move(saved);
    *bytes = model->bytes.data();
    *size = model->bytes.size();
    return absl::OkStatus();
  });
}

void ascend_fuse_model_free(ascend_fuse_model* model) { delete model; }

ascend_fuse_code ascend_fuse_optimize(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report) {
  const ReportTextOptions text;
  return Run(Optimize, &text, model, options, report);
}

ascend_fuse_code ascend_fuse_list(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report) {
  ReportTextOptions text;
  text.changed = false;
  return Run(ListOpportunities, &text, model, options, report);
}

ascend_fuse_code ascend_fuse_check(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report) {
  return Run(CheckModel, nullptr, model, options, report);
}

ascend_fuse_code ascend_fuse_analyze(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report) {
  if (report != nullptr) *report = nullptr;
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(NeedWhole(model));
    const auto made = AnalyzeModel(model->model.get(), options == nullptr ? OptimizeOptions() : options->options);
    if (!made.ok()) return made.status();
    if (report != nullptr) *report = new ascend_fuse_report{AnalysisToJson(*made), AnalysisToText(*made)};
    return absl::OkStatus();
  });
}

ascend_fuse_code ascend_fuse_expand(ascend_fuse_model* model, const ascend_fuse_options* options) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(NeedWhole(model));
    ExpandOptions of_run;
    if (options != nullptr) {
      of_run.rule_files = options->options.rule_files;
      of_run.infer = options->options.infer;
      of_run.progress = options->options.progress;
    }
    model->broken = true;
    const absl::Status status = Expand(model->model.get(), of_run);
    model->broken = !status.ok();
    return status;
  });
}

const char* ascend_fuse_report_json(const ascend_fuse_report* report) { return report == nullptr ? "" : report->json.c_str(); }
const char* ascend_fuse_report_text(const ascend_fuse_report* report) { return report == nullptr ? "" : report->text.c_str(); }
void ascend_fuse_report_free(ascend_fuse_report* report) { delete report; }
