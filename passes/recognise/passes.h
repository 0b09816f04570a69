// Passes that find constructs: subgraphs become recognised operators, each with a site. The table of docs/passes.md says what
// each takes and gives.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

absl::Status DecomposeContrib(Workspace& workspace);
absl::Status GroupHalves(Workspace& workspace);
absl::Status StraightenNorms(Workspace& workspace);
absl::Status Recognise(Workspace& workspace);
absl::Status PairRotations(Workspace& workspace);
absl::Status DescribeMasks(Workspace& workspace);
absl::Status FindNearMisses(Workspace& workspace);
absl::Status DecomposeLeftovers(Workspace& workspace);

}  // namespace ascend_fuse
