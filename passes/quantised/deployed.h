// Products of int8 as AMCT and msModelSlim write them, in words of ATC already.
#pragma once

namespace ascend_fuse {

class Workspace;

// A site for each AscendDequant of a product: what GE makes of it, or why it computes it otherwise. Nothing is changed.
void FindDeployed(Workspace& workspace);

}  // namespace ascend_fuse
