// Passes that take turns: what one writes may be a start for another. They end where all of them have looked at the same graph,
// with the same facts, and none found anything: a second run, which sees that graph, finds nothing either.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace ascend_fuse {

class Workspace;

using PassFunction = absl::Status (*)(Workspace&);

// Runs the passes one after another until a round of them changes nothing, each round with facts and numbers of the graph as it
// is then. Each of them makes the model cheaper or leaves it, so that there is an end; a bound on the rounds is there besides.
absl::Status TakeTurns(Workspace& workspace, absl::Span<const PassFunction> passes);

}  // namespace ascend_fuse
