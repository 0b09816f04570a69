// Sites at which an Ascend node that is faster elsewhere was measured slower than what it takes the place of: rows of
// patterns/operators.txtpb.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "patterns/operators/declarations.h"

namespace ascend_fuse {

// What a site is: see SiteTest of proto/operators.proto.
enum class SiteTest { kRowsChosenByRouter };

struct SlowerSites {
  SiteTest where = SiteTest::kRowsChosenByRouter;
  std::string because;  // figures
  std::string source;
};

// Of the node `op_type` ("NPUSwiGlu"); empty for most.
const std::vector<SlowerSites>& SlowerSitesOf(std::string_view op_type);

}  // namespace ascend_fuse
