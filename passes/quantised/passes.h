// What quantised operators become, of which ATC reads none. The table of docs/passes.md says what the pass takes and gives,
// docs/quantised.md what is done with each operator.
#pragma once

#include "absl/status/status.h"

namespace ascend_fuse {

class Workspace;

absl::Status WriteQuantised(Workspace& workspace);
// What makes int8 of a norm becomes one node of our plugin with it.
absl::Status QuantiseNorms(Workspace& workspace);

}  // namespace ascend_fuse
