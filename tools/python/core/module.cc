// The Python module ascend_fuse._core: models and runs over them, with text for options and JSON for reports. What people
// use is written in Python over it (tools/python/ascend_fuse).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/text/printer.h"
#include "passes/analyze_model.h"
#include "passes/check/atc_check.h"
#include "passes/check/check.h"
#include "passes/check_model.h"
#include "passes/optimize.h"
#include "passes/optimize_passes.h"
#include "passes/option_names.h"
#include "passes/report/report_html.h"
#include "patterns/codes.h"
#include "patterns/target/target.h"
#include "tools/python/core/graph_view.h"

namespace nb = nanobind;

namespace ascend_fuse::python {
namespace {

// A status on its way to Python, where it becomes an exception of ascend_fuse.errors.
struct StatusError : std::exception {
  explicit StatusError(absl::Status of) : status(std::move(of)) {}
  absl::Status status;
};

const char* ClassOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kDataLoss:
      return "InvalidError";
    case absl::StatusCode::kNotFound:
      return "NotFoundError";
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return "RefusedError";
    case absl::StatusCode::kCancelled:
      return "CancelledError";
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      return "SystemFault";
    default:
      return "BrokenGraphError";
  }
}

void Translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const StatusError& error) {
    const nb::object type = nb::module_::import_("ascend_fuse.errors").attr(ClassOf(error.status.code()));
    const std::string message(error.status.message());
    PyErr_SetObject(type.ptr(), nb::str(message.c_str(), message.size()).ptr());
  }
}

void Check(const absl::Status& status) {
  if (!status.ok()) throw StatusError(status);
}

template <typename T>
T Take(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;
// before or after, the stage, the name, the function.
using PythonPass = std::tuple<std::string, std::string, std::string, nb::object>;

// What Python raises inside of a run that holds no GIL, on its way around the C++ in between.
class Raised {
 public:
  ~Raised() {
    if (error_ == nullptr) return;
    nb::gil_scoped_acquire gil;
    error_ = nullptr;
  }
  // Runs `function` with the GIL; false when it raised.
  template <typename Function>
  bool Run(Function function) {
    if (error_ != nullptr) return false;
    nb::gil_scoped_acquire gil;
    try {
      function();
    } catch (...) {
      error_ = std::current_exception();
    }
    return error_ == nullptr;
  }
  // Needs the GIL.
  void Throw() {
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::exception_ptr error_;
};

// Control-C ends the run also where nobody asked to be told of progress.
void CheckSignals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

ProgressCallback CallbackOf(const nb::object& progress, Raised* raised) {
  return [&progress, raised](const Progress& at) {
    return raised->Run([&] {
      CheckSignals();
      if (!progress.is_none()) progress(nb::str(at.pass.data(), at.pass.size()), at.number, at.count);
    });
  };
}

OptimizeOptions OptionsOf(const Pairs& named, const Pairs& rules) {
  OptimizeOptions options;
  for (const auto& [name, value] : named) Check(SetOption(&options, name, value));
  options.rule_files.insert(options.rule_files.end(), rules.begin(), rules.end());
  return options;
}

class PythonModel {
 public:
  explicit PythonModel(std::unique_ptr<Model> model) : model_(std::move(model)) {}

  static std::unique_ptr<PythonModel> Load(const std::string& path) {
    nb::gil_scoped_release nogil;
    return std::make_unique<PythonModel>(Take(LoadModel(path)));
  }
  static std::unique_ptr<PythonModel> FromBytes(const nb::bytes& bytes, const std::string& path) {
    const std::string_view view(bytes.c_str(), bytes.size());
    nb::gil_scoped_release nogil;
    return std::make_unique<PythonModel>(Take(LoadModelFromBytes(view, path)));
  }

  // What another thread does with the model meanwhile is refused: a model is for one at a time.
  class Use {
   public:
    explicit Use(PythonModel* model) : model_(model) {
      if (model->broken_)
        throw StatusError(absl::FailedPreconditionError("a run over this model failed, so it cannot be used any more"));
      if (model->busy_) throw StatusError(absl::FailedPreconditionError("another thread works on this model"));
      model->busy_ = true;
    }
    ~Use() { model_->busy_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    PythonModel* model_;
  };

  void Save(const std::string& path, const std::string& weights, bool copy_data, const nb::object& progress) {
    const Use use(this);
    Raised raised;
    SaveOptions options;
    SetWeights(&options, weights);
    options.copy_data = copy_data;
    bool go_on = true;
    options.progress = [&](int64_t written, int64_t total) {
      go_on = raised.Run([&] {
        CheckSignals();
        if (!progress.is_none()) progress("save", written, total);
      });
    };
    options.go_on = [&] { return go_on; };
    absl::Status status;
    {
      nb::gil_scoped_release nogil;
      status = SaveModel(*model_, path, options);
    }
    raised.Throw();
    Check(status);
  }

  nb::bytes ToBytes() {
    const Use use(this);
    std::string bytes;
    {
      nb::gil_scoped_release nogil;
      bytes = Take(SaveModelToBytes(*model_));
    }
    return nb::bytes(bytes.data(), bytes.size());
  }

  std::string Text(int64_t most_elements) {
    const Use use(this);
    PrintOptions options;
    options.max_elements = most_elements;
    return PrintModelText(*model_, options);
  }

  // `command`: optimize, list or check. Returns the report as JSON.
  std::string Run(const std::string& command, const Pairs& named, const Pairs& rules, const std::vector<PythonPass>& passes,
                  const nb::object& progress) {
    const Use use(this);
    Raised raised;
    OptimizeOptions options = OptionsOf(named, rules);
    options.progress = CallbackOf(progress, &raised);
    for (const PythonPass& pass : passes) options.passes.push_back(Placed(pass, &raised));
    absl::StatusOr<Report> report;
    {
      nb::gil_scoped_release nogil;
      report = command == "optimize" ? Optimize(model_.get(), options)
               : command == "list"   ? ListOpportunities(model_.get(), options)
                                     : CheckModel(model_.get(), options);
      if (report.ok()) AddTargetWarnings(options, command, &*report);
    }
    broken_ = command == "check" || (!report.ok() && command != "list");
    raised.Throw();
    return ReportToJson(Take(std::move(report)));
  }

  // The analysis as JSON, as the text of one screen, and as the whole text.
  std::tuple<std::string, std::string, std::string> Analyze(const Pairs& named, const Pairs& rules, const nb::object& progress) {
    const Use use(this);
    Raised raised;
    OptimizeOptions options = OptionsOf(named, rules);
    options.progress = CallbackOf(progress, &raised);
    absl::StatusOr<Analysis> analysis;
    {
      nb::gil_scoped_release nogil;
      analysis = AnalyzeModel(model_.get(), options);
    }
    raised.Throw();
    Check(analysis.status());
    return {AnalysisToJson(*analysis), AnalysisToText(*analysis), AnalysisToText(*analysis, {.verbose = true})};
  }

  void ExpandNodes(const Pairs& named, const Pairs& rules, bool as_atc, const nb::object& progress) {
    const Use use(this);
    Raised raised;
    const OptimizeOptions of_run = OptionsOf(named, rules);
    ExpandOptions options = {of_run.rule_files, of_run.infer, std::nullopt, CallbackOf(progress, &raised)};
    if (as_atc) options.as_atc = of_run.target;
    absl::Status status;
    {
      nb::gil_scoped_release nogil;
      status = Expand(model_.get(), options);
    }
    broken_ = !status.ok();
    raised.Throw();
    Check(status);
  }

 private:
  static PlacedPass Placed(const PythonPass& pass, Raised* raised) {
    const auto& [place, stage, name, function] = pass;
    PlacedPass placed;
    placed.place = place == "before" ? PlacedPass::Place::kBefore : PlacedPass::Place::kAfter;
    placed.stage = stage;
    placed.pass = {name, "what the stage gives", "what the function says", [&function, raised](Workspace& workspace) {
                     return raised->Run([&] { CallPass(function, workspace); }) ? absl::OkStatus()
                                                                                : absl::CancelledError("a pass raised");
                   }};
    return placed;
  }

  static void AddTargetWarnings(const OptimizeOptions& options, const std::string& command, Report* report) {
    const auto target = Target::Load(options.target);
    if (command == "check" || !target.ok()) return;
    for (const std::string& warning : target->warnings()) report->Warn({"chip-not-in-cann", warning});
  }

  std::unique_ptr<Model> model_;
  bool broken_ = false;  // changed in part
  bool busy_ = false;    // only looked at and set with the GIL
};

std::string ReportText(const std::string& json, bool verbose, bool changed) {
  const Report report = Take(ReportFromJson(json));
  ReportTextOptions options;
  options.verbose = verbose;
  options.changed = changed;
  return ReportToText(report, options);
}

std::string ReportHtml(const std::string& json, const std::string& command, bool page) {
  const Report report = Take(ReportFromJson(json));
  const ReportHtmlOptions options = {.changed = command == "optimize", .of_check = command == "check"};
  return page ? ReportToHtml(report, options) : ReportToHtmlPart(report, options);
}

std::vector<std::string> Unmet(const std::string& json, const std::vector<std::string>& kinds) {
  Check(CheckRequirements(kinds));
  return UnmetRequirements(Take(ReportFromJson(json)), kinds);
}

std::string ExplainCode(const std::string& name) {
  const Code* code = FindCode(name);
  if (code != nullptr) return DescribeCode(*code);
  std::string message = name + " is not a code of a report";
  for (const std::string_view near : NearestCodes(name)) message += "; did you mean " + std::string(near) + "?";
  throw StatusError(absl::NotFoundError(message));
}

std::string DescribeTarget(const Pairs& named, const std::string& op) {
  const Target target = Take(Target::Load(OptionsOf(named, {}).target));
  return op.empty() ? target.Describe() : Take(target.DescribeOperator(op));
}

bool IsFatalEffect(bool certain, const std::string& effect) {
  FindingRecord finding;
  finding.certain = certain;
  finding.effect = effect;
  return IsFatal(finding);
}

}  // namespace

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // a traceback that somebody keeps is not a leak of ours
  nb::register_exception_translator(Translate);
  module.attr("version") = ASCEND_FUSE_VERSION;
  AddGraphClasses(module);
  nb::class_<PythonModel>(module, "Model")
      .def_static("load", &PythonModel::Load, nb::arg("path"))
      .def_static("from_bytes", &PythonModel::FromBytes, nb::arg("bytes"), nb::arg("path") = "")
      .def("save", &PythonModel::Save, nb::arg("path"), nb::arg("weights"), nb::arg("copy_data"), nb::arg("progress").none())
      .def("to_bytes", &PythonModel::ToBytes)
      .def("text", &PythonModel::Text, nb::arg("most_elements"))
      .def("run", &PythonModel::Run, nb::arg("command"), nb::arg("options"), nb::arg("rules"), nb::arg("passes"),
           nb::arg("progress").none())
      .def("analyze", &PythonModel::Analyze, nb::arg("options"), nb::arg("rules"), nb::arg("progress").none())
      .def("expand", &PythonModel::ExpandNodes, nb::arg("options"), nb::arg("rules"), nb::arg("as_atc"),
           nb::arg("progress").none());
  module.def("report_text", &ReportText, nb::arg("json"), nb::arg("verbose"), nb::arg("changed"));
  module.def("report_html", &ReportHtml, nb::arg("json"), nb::arg("command"), nb::arg("page"));
  module.def("unmet", &Unmet, nb::arg("json"), nb::arg("kinds"));
  module.def("findings_text", [](const std::string& json) { return FindingsToText(Take(ReportFromJson(json))); });
  module.def("why_not_written", [](const std::string& json) { return WhyNotWritten(Take(ReportFromJson(json))); });
  module.def("is_fatal", &IsFatalEffect, nb::arg("certain"), nb::arg("effect"));
  module.def("explain", &ExplainCode);
  module.def("list_codes", [] { return ListCodes(); });
  module.def("describe_target", &DescribeTarget, nb::arg("options"), nb::arg("operator"));
  module.def("describe_targets", [] { return Target::DescribeAll(); });
  module.def("chips", [] { return Target::Chips(); });
  module.def("cann_versions", [] { return Target::CannVersions(); });
  module.def(
      "stages",
      [] {
        std::vector<std::string> names;
        for (const Pass& pass : OptimizePasses()) names.push_back(pass.name);
        return names;
      },
      "The names of the passes of `optimize`, in their order.");
}

}  // namespace ascend_fuse::python
