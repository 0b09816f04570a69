// The front door: optimize a model for a target, list what could be fused, expand NPU nodes again. The
// command line, the C functions and the Python package call these and nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ascend_fuse_version.h"
#include "ir/infer/facts.h"
#include "ir/model.h"
#include "passes/core/pass.h"
#include "passes/core/quantised.h"
#include "passes/report/report.h"
#include "patterns/analysis/input_assumption.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

struct OptimizeOptions {  // what Optimize and ListOpportunities are told
  TargetOptions target;
  // What Target::Load made of `target`, where the caller needs it besides: then it is not loaded again.
  std::shared_ptr<const Target> loaded_target;
  InferOptions infer;
  // --rules: path and text of each file; a rule of a built-in name takes its place.
  std::vector<std::pair<std::string, std::string>> rule_files;
  // Refuse a fusion that rests on an assumption, instead of listing the assumption in the report.
  bool strict = false;
  std::vector<InputAssumption> assumptions;  // --assume: what inputs hold
  // --fix: symbolic dims that `infer.dims` binds to one number each, which is written into the model: its inputs and
  // outputs are declared with numbers, and what was computed of them becomes constants.
  std::vector<std::string> fix;
  std::vector<std::string> skip;            // passes or rules that are not run, by name
  std::vector<std::string> prefer;          // nodes to emit although they were measured slower, by name: "NPUSwiGlu"
  bool keep_rest = false;                   // what is not fused stays byte for byte, but for forms that ATC does not read
  std::vector<std::string> tidy;            // the kinds of tidying of the rest, by word (docs/tidy.md); none: all of them
  Quantised quantised = Quantised::kExact;  // --quantised: what quantised operators become (docs/quantised.md)
  int64_t limit = -1;                       // at most so many rewrites; negative: no limit
  std::string dump_directory;               // the model after each pass is written there; empty: nowhere
  std::vector<PlacedPass> passes;           // the user's own, in C++
  ProgressCallback progress;                // told how far the run is; false ends it
};

// Changes the model. On an error, CANCELLED by the progress callback among them, the model may be changed in part and
// should be dropped; so it may when RESOURCE_EXHAUSTED says that memory ran out: no function here throws. There is no global
// state: runs over different models may go on in different threads.
absl::StatusOr<Report> Optimize(Model* model, const OptimizeOptions& options = {});

// What Optimize would do. The model is as before when this returns.
absl::StatusOr<Report> ListOpportunities(Model* model, const OptimizeOptions& options = {});

struct ExpandOptions {  // what Expand is told
  // Path and text of files with reference rules of the user's own nodes.
  std::vector<std::pair<std::string, std::string>> rule_files;
  InferOptions infer;  // dims that were bound when the model was optimized (heads that are a symbol)
  // The ATC as whose reading the standard operators are taken (passes/expand/read_as_atc.h); without it they are ONNX's.
  std::optional<TargetOptions> as_atc;
  ProgressCallback progress;  // as in OptimizeOptions
};

// NPU nodes back to standard operators, from the kernels' documented formulas; calls of local functions become the
// functions' nodes. With as_atc, UNAVAILABLE where that ATC refuses the model.
absl::Status Expand(Model* model, const ExpandOptions& options = {});

// The target of these options: the loaded one, or Target::Shared.
absl::StatusOr<std::shared_ptr<const Target>> TargetOf(const OptimizeOptions& options);

// The rules in force, one line each with what it makes and where it is written: for the command `rules`.
absl::StatusOr<std::string> DescribeRules(const OptimizeOptions& options = {});

}  // namespace ascend_fuse
