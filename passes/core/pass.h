// A pass: a name, and a function over the workspace. The pipeline of `optimize` is a list of them, and a user's own pass
// joins it before or after any of them by name. Example in docs/passes.md, built and run by the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/core/given.h"
#include "passes/core/progress.h"

namespace ascend_fuse {

class Workspace;  // passes/core/workspace.h

struct Pass {         // a function over the workspace, with what it relies on and gives
  std::string name;   // small letters and _
  std::string takes;  // what must have been done, one sentence
  std::string gives;  // what is true afterwards, one sentence
  std::function<absl::Status(Workspace&)> run;
  // What it does cannot be taken back, or is about the file only: a dry run (`list`) leaves it out.
  bool final = false;
  // It leaves the graph as it is, so that Verify need not look again.
  bool reads_only = false;
  // It changes the graph by the rewriter alone, so that Verify need not look again where that did nothing.
  bool by_rewriter = false;
  // What passes before it must have given, and what it gives itself: RunPasses holds a list to that before it runs any.
  std::vector<Given> needs = {};
  std::vector<Given> provides = {};
};

// A pass of the user's, and where it stands.
struct PlacedPass {
  enum class Place { kBefore, kAfter };
  Place place = Place::kAfter;
  std::string stage;  // the name of another pass
  Pass pass;
};

// Passes as a table of Markdown, one row each: name, what it takes and gives, and whether `list` runs it.
std::string DescribePasses(const std::vector<Pass>& passes);

// The same list with passes of the user's, in the order given where several stand at one place. A stage may be one of
// those that were given before. INVALID_ARGUMENT with the names there are for a stage that is not one, and for a name that
// is there already.
absl::StatusOr<std::vector<Pass>> WithPasses(std::vector<Pass> passes, const std::vector<PlacedPass>& placed);

struct RunOptions {            // how a list of passes is run
  bool dry = false;            // leaves out the passes that are final
  size_t begin = 0;            // the first of those that are run
  size_t end = SIZE_MAX;       // the first of those that are not, or all
  std::string dump_directory;  // the model after each pass is written there; empty: nowhere
  ProgressCallback progress;   // told before each pass and now and then within one
};

// INVALID_ARGUMENT with a sentence where a pass needs what is not `given` already and no pass before it gives.
absl::Status CheckNeeds(const std::vector<Pass>& passes, std::set<Given> given = {});

// Runs passes one after another, after CheckNeeds, with Verify after each, and notes time and changes of each in Workspace::runs.
// The error of a pass is that of the run; the sentence of Verify names the pass. CANCELLED when the callback says so.
absl::Status RunPasses(const std::vector<Pass>& passes, Workspace& workspace, const RunOptions& options = {});

}  // namespace ascend_fuse
