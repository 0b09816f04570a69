// What many targets make of a model, as it is and after `optimize`, in one process: for scripts/last-mile.
//
// A request is a line on standard input, its fields separated by tabs: the model, a folder for results, then for each target
// a name and, after blanks, flags of `ascend-fuse optimize`, and among them `--read` where the model is to be written as that
// ATC reads it. On standard output
//     model NAME WHICH                                       what follows is about this file
//     found NAME WHICH CERTAIN EFFECT CODE OPERATOR COUNT    what `check` finds; CERTAIN: 1 or 0
//     file NAME N                                            what `optimize` made: the N-th different file
//     read NAME WHICH N                                      reading-N.onnx is that model as ATC reads it
//     unread NAME WHICH SENTENCE                             ATC refuses it
//     wrong NAME SENTENCE                                    an error
//     done                                                   the last line of an answer
// with WHICH original or optimized.
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fmt/format.h"
#include "ir/onnx/load.h"
#include "ir/onnx/save.h"
#include "passes/check/atc_check.h"
#include "passes/optimize.h"
#include "patterns/operators/inference.h"
#include "tests/support/requests.h"
#include "tests/support/run_flags.h"

namespace ascend_fuse {
namespace {

void Say(std::string sentence) { std::cout << testing::OnOneLine(std::move(sentence)) << "\n"; }

// A model and its facts, which are the same for all targets.
struct Known {
  size_t number = 0;
  std::unique_ptr<Model> model;
  Facts facts;
};

class Request {
 public:
  Request(const std::string& source, const std::string& folder) : readings_(folder + "/reading-") {
    std::ifstream file(source, std::ios::binary);
    original_ = std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }

  void Run(const std::string& words) {
    std::vector<std::string> flags = testing::Fields(words, ' ');
    const std::string name = flags.front();
    flags.erase(flags.begin());
    const bool read = std::erase(flags, "--read") > 0;
    if (const absl::Status status = Run(name, flags, read); !status.ok()) {
      Say(fmt::format("wrong\t{}\t{}", name, std::string(status.message())));
    }
  }

 private:
  absl::Status Run(const std::string& name, const std::vector<std::string>& flags, bool read) {
    OptimizeOptions options;
    if (auto known = testing::ReadRunFlags(flags, "", &options); !known.ok()) return known;
    const auto target = Target::Load(options.target);
    if (!target.ok()) return target.status();
    if (auto told = Tell(name, "original", original_, *target, options, read); !told.ok()) return told;
    auto model = LoadModelFromBytes(original_);
    if (!model.ok()) return model.status();
    if (const auto report = Optimize(model->get(), options); !report.ok()) return report.status();
    const absl::StatusOr<std::string> written = SaveModelToBytes(**model);
    if (!written.ok()) return written.status();
    return Tell(name, "optimized", *written, *target, options, read);
  }

  absl::StatusOr<Known*> Know(const std::string& bytes) {
    if (const auto found = known_.find(bytes); found != known_.end()) return &found->second;
    auto model = LoadModelFromBytes(bytes);
    if (!model.ok()) return model.status();
    Known known;
    known.number = known_.size();
    known.facts = Infer(**model, WithDeclaredOperators({}));
    known.model = *std::move(model);
    return &(known_[bytes] = std::move(known));
  }

  absl::Status Tell(const std::string& name, const std::string& which, const std::string& bytes, const Target& target,
                    const OptimizeOptions& options, bool read) {
    const absl::StatusOr<Known*> known = Know(bytes);
    if (!known.ok()) return known.status();
    if (which == "optimized") Say(fmt::format("file\t{}\t{}", name, (*known)->number));
    Say(fmt::format("model\t{}\t{}", name, which));
    std::vector<FindingRecord> findings = FindInNodes(*(*known)->model, (*known)->facts, target);
    for (FindingRecord& finding : FindInStructure(*(*known)->model, target)) findings.push_back(std::move(finding));
    std::map<std::tuple<bool, std::string, std::string, std::string>, int> counts;
    for (const FindingRecord& finding : findings) {
      ++counts[{finding.certain, finding.effect, finding.code, finding.op.empty() ? "-" : finding.op}];
    }
    for (const auto& [key, count] : counts) {
      const auto& [certain, effect, code, op] = key;
      Say(fmt::format("found\t{}\t{}\t{}\t{}\t{}\t{}\t{}", name, which, certain ? 1 : 0, effect, code, op, count));
    }
    return read ? Read(name, which, bytes, options.target) : absl::OkStatus();
  }

  absl::Status Read(const std::string& name, const std::string& which, const std::string& bytes, const TargetOptions& target) {
    auto model = LoadModelFromBytes(bytes);
    if (!model.ok()) return model.status();
    ExpandOptions expand;
    expand.as_atc = target;
    if (const absl::Status status = Expand(model->get(), expand); !status.ok()) {
      Say(fmt::format("unread\t{}\t{}\t{}", name, which, std::string(status.message())));
      return absl::OkStatus();
    }
    const absl::StatusOr<std::string> reading = SaveModelToBytes(**model);
    if (!reading.ok()) return reading.status();
    Say(fmt::format("read\t{}\t{}\t{}", name, which, readings_.Write(*reading)));
    return absl::OkStatus();
  }

  std::string original_;  // the file's bytes
  std::map<std::string, Known> known_;
  testing::NumberedFiles readings_;
};

void AnswerRequest(const std::vector<std::string>& fields) {
  if (fields.size() < 2) return;
  Request request(fields[0], fields[1]);
  for (size_t i = 2; i < fields.size(); ++i) request.Run(fields[i]);
}

}  // namespace
}  // namespace ascend_fuse

int main() {
  ascend_fuse::testing::ServeRequests(ascend_fuse::AnswerRequest);
  return 0;
}
