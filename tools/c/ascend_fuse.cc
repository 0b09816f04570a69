// The interface in C over the front door: handles hold the C++ objects, a status becomes a code and a sentence.
#include "tools/c/ascend_fuse.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/status_macros.h"
#include "ir/text/printer.h"
#include "passes/analyze_model.h"
#include "passes/check/check.h"
#include "passes/check_model.h"
#include "passes/optimize.h"
#include "passes/option_names.h"
#include "passes/report/report.h"
#include "patterns/target/target.h"
#include "tools/c/graph.h"
#include "tools/c/handles.h"

namespace ascend_fuse::c {
namespace {

// A text that needs no memory to be set to a literal: it must also be there when there is no memory.
struct LastError {
  std::string sentence;
  const char* text = "";
};
thread_local LastError last_error;

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

void Give(Report made, std::string_view command, ascend_fuse_report** report) {
  if (report == nullptr) return;
  std::string json = ReportToJson(made);
  *report = new ascend_fuse_report{std::move(made), command, std::move(json), "", "", std::nullopt};
}

void WarnOfTarget(const OptimizeOptions& options, Report* report) {
  const auto target = TargetOf(options);
  if (!target.ok()) return;
  for (const std::string& warning : (*target)->warnings()) report->Warn({"chip-not-in-cann", warning});
}

using RunFunction = absl::StatusOr<Report> (*)(Model*, const OptimizeOptions&);

ascend_fuse_code Run(RunFunction run, std::string_view command, ascend_fuse_model* model, const ascend_fuse_options* options,
                     ascend_fuse_report** report) {
  if (report != nullptr) *report = nullptr;
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(NeedWhole(model));
    const OptimizeOptions of_run = options == nullptr ? OptimizeOptions() : options->options;
    model->broken = run != ListOpportunities;  // until it is done
    ASSIGN_OR_RETURN(Report made, run(model->model.get(), of_run));
    model->broken = run == CheckModel;
    if (run != CheckModel) WarnOfTarget(of_run, &made);
    const std::vector<std::string> why =
        run != Optimize || (options != nullptr && options->force) ? std::vector<std::string>() : WhyNotWritten(made);
    const std::string cann = made.target.cann;
    Give(std::move(made), command, report);
    if (why.empty()) return absl::OkStatus();
    model->broken = true;
    return absl::FailedPreconditionError(
        fmt::format("ATC of CANN {} refuses or misreads the model: {}", cann, fmt::join(why, "; ")));
  });
}

bool IsOn(std::string_view value) { return value != "false"; }

}  // namespace

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

ascend_fuse_code FailWith(ascend_fuse_code code, const char* sentence) {
  last_error.text = sentence;
  return code;
}

absl::Status NeedNotNull(std::string_view name) { return absl::InvalidArgumentError(std::string(name) + " is NULL"); }

}  // namespace ascend_fuse::c

using namespace ascend_fuse;
using namespace ascend_fuse::c;

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
    const std::string_view option = name;
    if (option == "force") {
      options->force = IsOn(value);
    } else if (option == "as-atc") {
      options->as_atc = IsOn(value);
    } else if (option == "copy-data") {
      options->save.copy_data = IsOn(value);
    } else if (option == "weights") {
      SetWeights(&options->save, value);
    } else {
      return SetOption(&options->options, option, value);
    }
    return absl::OkStatus();
  });
}

ascend_fuse_code ascend_fuse_options_rules(ascend_fuse_options* options, const char* name, const char* text) {
  return Guarded([&] {
    if (options == nullptr || name == nullptr || text == nullptr) return NeedNotNull("options, name or text");
    options->options.rule_files.emplace_back(name, text);
    return absl::OkStatus();
  });
}

void ascend_fuse_options_progress(ascend_fuse_options* options, int (*progress)(const ascend_fuse_progress* at), void* user) {
  if (options == nullptr) return;
  options->options.progress = nullptr;
  options->save.progress = nullptr;
  options->save.go_on = nullptr;
  if (progress == nullptr) return;
  Guarded([&] {
    options->options.progress = [progress, user](const Progress& at) {
      const std::string pass(at.pass);
      const ascend_fuse_progress told = {user, pass.c_str(), at.number, at.count};
      return progress(&told) == 0;
    };
    const auto go_on = std::make_shared<bool>(true);
    options->save.progress = [progress, user, go_on](int64_t written, int64_t total) {
      const ascend_fuse_progress told = {user, "save", static_cast<size_t>(written), static_cast<size_t>(total)};
      *go_on = progress(&told) == 0;
    };
    options->save.go_on = [go_on] { return *go_on; };
    return absl::OkStatus();
  });
}

ascend_fuse_code ascend_fuse_options_pass(ascend_fuse_options* options, const char* place, const char* stage, const char* name,
                                          int (*run)(ascend_fuse_graph* graph), void* user) {
  return Guarded([&]() -> absl::Status {
    if (options == nullptr || place == nullptr || stage == nullptr || name == nullptr || run == nullptr) {
      return NeedNotNull("options, place, stage, name or run");
    }
    const bool before = std::string_view(place) == "before";
    if (!before && std::string_view(place) != "after") {
      return absl::InvalidArgumentError(fmt::format("a pass stands before or after a stage, not {}", place));
    }
    options->options.passes.push_back({before ? PlacedPass::Place::kBefore : PlacedPass::Place::kAfter,
                                       stage,
                                       {name, "what the stage gives", "what the function says",
                                        [run, user](Workspace& workspace) { return CallPass(run, user, workspace); }}});
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

ascend_fuse_code ascend_fuse_save_as(const ascend_fuse_model* model, const char* path, const ascend_fuse_options* options) {
  return Guarded([&] {
    if (path == nullptr) return NeedNotNull("path");
    RETURN_IF_ERROR(NeedWhole(model));
    return SaveModel(*model->model, path, options == nullptr ? SaveOptions() : options->save);
  });
}

ascend_fuse_code ascend_fuse_model_text(ascend_fuse_model* model, int64_t most_elements, const char** text) {
  return Guarded([&] {
    if (text == nullptr) return NeedNotNull("text");
    RETURN_IF_ERROR(NeedWhole(model));
    PrintOptions options;
    options.max_elements = most_elements;
    model->bytes = PrintModelText(*model->model, options);
    *text = model->bytes.c_str();
    return absl::OkStatus();
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
  return Run(Optimize, "optimize", model, options, report);
}

ascend_fuse_code ascend_fuse_list(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report) {
  return Run(ListOpportunities, "list", model, options, report);
}

ascend_fuse_code ascend_fuse_check(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report) {
  return Run(CheckModel, "check", model, options, report);
}

ascend_fuse_code ascend_fuse_analyze(ascend_fuse_model* model, const ascend_fuse_options* options, ascend_fuse_report** report) {
  if (report != nullptr) *report = nullptr;
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(NeedWhole(model));
    const auto made = AnalyzeModel(model->model.get(), options == nullptr ? OptimizeOptions() : options->options);
    if (!made.ok()) return made.status();
    if (report != nullptr) *report = new ascend_fuse_report{{}, "analyze", AnalysisToJson(*made), "", "", *made};
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
      if (options->as_atc) of_run.as_atc = options->options.target;
    }
    model->broken = true;
    const absl::Status status = Expand(model->model.get(), of_run);
    model->broken = !status.ok();
    return status;
  });
}
