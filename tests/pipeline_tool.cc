// Optimizes a model for many targets in one process, for tests that look at all of them (tests/python/pipeline.py).
//
// A request is a line on standard input, its fields separated by tabs: the model (.onnx, or .onnxtxt), a folder for the
// results, then for each target a name and, after blanks, flags of `ascend-fuse optimize`, and among them `--read` where the
// result is to be written as that ATC reads it, too. In the folder it writes
//     NAME.json            the report
//     optimized-N.onnx     every different result once
//     expanded-N.onnx      every different expansion once
//     reading-N.onnx       every different reading once
//     original.onnx        of a text only
// and on standard output
//     target NAME N M      optimized-N.onnx, expanded-M.onnx
//     read NAME N          reading-N.onnx
//     unread NAME SENTENCE ATC refuses the result, or makes of it what cannot be written
//     wrong NAME SENTENCE  for each of these that does not hold: listing reports the same sites and changes nothing, the
//                          written model loads again, a second run changes no byte of it, it expands, and
//                          the expansion loads, too
//     done                 the last line of an answer
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "ir/text/parser.h"
#include "passes/optimize.h"
#include "tests/support/requests.h"
#include "tests/support/run_flags.h"

namespace ascend_fuse {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// What a report says of the sites, without timings.
std::string SitesOf(Report report) {
  report.passes.clear();
  report.nodes_after = 0;
  report.weights_after = {};
  // A style writes nodes in the domain that it needs, and `list` does not come that far.
  for (FindingRecord& finding : report.findings) {
    if (finding.op.starts_with("npu.")) finding.op.erase(0, 4);
  }
  return ReportToJson(report);
}

class Request {
 public:
  Request(std::string source, std::string folder)
      : source_(std::move(source)),
        folder_(std::move(folder)),
        optimized_(folder_ + "/optimized-"),
        expanded_(folder_ + "/expanded-"),
        readings_(folder_ + "/reading-") {}

  // Reads the model once, for all targets.
  absl::Status Open() {
    std::ifstream file(source_, std::ios::binary);
    bytes_ = std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!EndsWith(source_, ".onnxtxt")) return absl::OkStatus();
    const absl::StatusOr<std::string> bytes = EncodeModelText(bytes_);
    if (!bytes.ok()) return bytes.status();
    bytes_ = *bytes;
    std::ofstream(folder_ + "/original.onnx", std::ios::binary) << bytes_;
    return absl::OkStatus();
  }

  void Run(const std::string& words) {
    std::vector<std::string> flags = testing::Fields(words, ' ');
    const std::string name = flags.front();
    flags.erase(flags.begin());
    const bool read = std::erase(flags, "--read") > 0;
    const absl::Status status = Run(name, flags, read);
    if (!status.ok()) Wrong(name, std::string(status.message()));
  }

 private:
  absl::StatusOr<std::unique_ptr<Model>> Load() const {
    return EndsWith(source_, ".onnxtxt") ? LoadModelFromBytes(bytes_, source_) : LoadModel(source_);
  }

  static void Wrong(const std::string& name, std::string sentence) {
    std::cout << "wrong\t" << name << "\t" << testing::OnOneLine(std::move(sentence)) << "\n";
  }

  absl::Status Run(const std::string& name, const std::vector<std::string>& flags, bool read) {
    OptimizeOptions options;
    if (auto read = testing::ReadRunFlags(flags, source_.substr(0, source_.rfind('/')), &options); !read.ok()) return read;
    auto model = Load();
    if (!model.ok()) return model.status();
    absl::StatusOr<Report> report = Optimize(model->get(), options);
    if (!report.ok()) return report.status();
    if (report->model.empty()) report->model = source_;
    std::ofstream(fmt::format("{}/{}.json", folder_, name), std::ios::binary) << ReportToJson(*report);
    const absl::StatusOr<std::string> written = SaveModelToBytes(**model);
    if (!written.ok()) return written.status();
    const size_t number = optimized_.Write(*written);
    if (auto listed = CheckListing(name, options, *report); !listed.ok()) return listed;
    if (auto again = CheckSecondRun(name, options, *written); !again.ok()) return again;
    const absl::StatusOr<size_t> expanded = WriteExpanded(number, *written, options);
    if (!expanded.ok()) return expanded.status();
    std::cout << fmt::format("target\t{}\t{}\t{}\n", name, number, *expanded);
    return read ? WriteReading(name, *written, options) : absl::OkStatus();
  }

  absl::Status CheckListing(const std::string& name, const OptimizeOptions& options, const Report& report) {
    auto model = Load();
    if (!model.ok()) return model.status();
    absl::StatusOr<Report> listed = ListOpportunities(model->get(), options);
    if (!listed.ok()) return listed.status();
    if (listed->model.empty()) listed->model = source_;
    if (SitesOf(*listed) != SitesOf(report)) Wrong(name, "list reports other sites than optimize");
    const absl::StatusOr<std::string> after = SaveModelToBytes(**model);
    if (!after.ok() || *after != bytes_) Wrong(name, "list changes the model");
    return absl::OkStatus();
  }

  absl::Status CheckSecondRun(const std::string& name, const OptimizeOptions& options, const std::string& written) {
    auto model = LoadModelFromBytes(written);
    if (!model.ok()) return model.status();
    const absl::StatusOr<Report> report = Optimize(model->get(), options);
    if (!report.ok()) return report.status();
    const absl::StatusOr<std::string> again = SaveModelToBytes(**model);
    if (!again.ok()) return again.status();
    if (*again != written) Wrong(name, "a second run changes the optimized model");
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> WriteExpanded(size_t optimized, const std::string& written, const OptimizeOptions& options) {
    if (const auto known = expansions_.find(optimized); known != expansions_.end()) return known->second;
    auto model = LoadModelFromBytes(written);
    if (!model.ok()) return model.status();
    if (auto status = Expand(model->get(), {options.rule_files, options.infer, std::nullopt, {}}); !status.ok()) return status;
    const absl::StatusOr<std::string> bytes = SaveModelToBytes(**model);
    if (!bytes.ok()) return bytes.status();
    if (auto again = LoadModelFromBytes(*bytes); !again.ok()) return again.status();
    return expansions_[optimized] = expanded_.Write(*bytes);
  }

  absl::Status WriteReading(const std::string& name, const std::string& written, const OptimizeOptions& options) {
    auto model = LoadModelFromBytes(written);
    if (!model.ok()) return model.status();
    if (auto status = Expand(model->get(), {options.rule_files, options.infer, options.target, {}}); !status.ok()) {
      std::cout << fmt::format("unread\t{}\t{}\n", name, testing::OnOneLine(std::string(status.message())));
      return absl::OkStatus();
    }
    const absl::StatusOr<std::string> bytes = SaveModelToBytes(**model);
    if (!bytes.ok()) return bytes.status();
    std::cout << fmt::format("read\t{}\t{}\n", name, readings_.Write(*bytes));
    return absl::OkStatus();
  }

  std::string source_;
  std::string folder_;
  std::string bytes_;  // of the model
  testing::NumberedFiles optimized_;
  testing::NumberedFiles expanded_;
  testing::NumberedFiles readings_;
  std::map<size_t, size_t> expansions_;  // by number of the optimized model
};

void AnswerRequest(const std::vector<std::string>& fields) {
  if (fields.size() < 2) {
    std::cout << "wrong\t-\ta request has a model and a folder\n";
    return;
  }
  Request request(fields[0], fields[1]);
  if (const absl::Status opened = request.Open(); !opened.ok()) {
    std::cout << "wrong\t-\t" << opened.message() << "\n";
    return;
  }
  for (size_t i = 2; i < fields.size(); ++i) request.Run(fields[i]);
}

}  // namespace
}  // namespace ascend_fuse

int main() {
  ascend_fuse::testing::ServeRequests(ascend_fuse::AnswerRequest);
  return 0;
}
