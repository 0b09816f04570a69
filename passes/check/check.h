// What a user must know about the output before ATC sees it: forms that ATC refuses or misreads, nodes that
// need our op plugin, calls of functions that are left, names given with --dim that no input has. Each
// finding has a stable code.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/infer/facts.h"
#include "ir/model.h"
#include "ir/onnx/inline.h"
#include "passes/core/records.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

// The model imports an opset above what the target's ATC reads: "opset-too-high".
std::vector<WarningRecord> CheckOpset(const Model& model, const Target& target);

// Findings of `check` (passes/check/atc_check.h) as warnings, those of one sentence together.
std::vector<WarningRecord> WarningsOf(const std::vector<FindingRecord>& findings);

// What `check` finds in the nodes of a result (FindInNodes of passes/check/atc_check.h) as warnings: operators that the target's
// ATC has no parser for ("no-parser"), forms that it refuses or misreads, with the code of their row in patterns/targets,
// and npu nodes that their contract refuses. What runs elsewhere than on the AI Core is not among them.
std::vector<WarningRecord> CheckForms(const std::vector<FindingRecord>& in_nodes);

// Why a result should not be written: a sentence for each kind of finding of its report that ATC surely refuses or
// misreads, at most `most` of them, and one that counts the others. Empty where there is none.
std::vector<std::string> WhyNotWritten(const Report& report, size_t most = 5);

// Nodes that ATC reads only with our op plugin: "plugin-needed".
std::vector<WarningRecord> CheckPlugin(const Model& model, const Target& target);

// Calls of local functions in the output, which ATC does not know: "function-call-left". `calls_kept`: how
// many calls stayed because nothing was fused; `left`: the functions that were not inlined.
std::vector<WarningRecord> CheckCalls(const Model& model, int64_t calls_kept, absl::Span<const CallsLeft> left);

// The symbolic dims that inputs of a model declare.
class InputSymbols {
 public:
  explicit InputSymbols(const Model& model);
  // The sentence about a name that is not one of them, with those there are; `flag`: what it was given with. "" where it is one.
  std::string WhyNone(std::string_view flag, const std::string& name) const;

 private:
  std::set<std::string> names_;
};

// Names bound with --dim that no input of the model declares: "dim-unknown".
std::vector<WarningRecord> CheckDims(const Model& model, const InferOptions& options);

// Symbolic dims of inputs that are 0 in every run without an error, but for those that --dim gives: "dim-only-zero". The export
// is broken then; `facts`: of the model.
std::vector<WarningRecord> CheckEmptyDims(const Model& model, Facts& facts, const InferOptions& options);

}  // namespace ascend_fuse
