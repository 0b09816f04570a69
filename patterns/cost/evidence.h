// What is known of the speed of an Ascend node, against the nodes that it takes the place of: what was measured, and what the
// cost model predicts where nobody measured. All of it follows from patterns/cost/measurements.txtpb and costs.txtpb.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "patterns/cost/costs.h"

namespace ascend_fuse {

struct SpeedEvidence {
  // measured (faster), loss (measured slower), likely (the model predicts a gain at both ends of its interval), unknown
  std::string evidence;
  std::string because;  // figures, with shapes
  std::string source;
};

// Of the node `op_type` ("NPURmsNorm").
SpeedEvidence EvidenceOf(std::string_view op_type);

// Sites at which a node that is faster elsewhere was measured slower than what it takes the place of.
struct SlowerSites {
  SiteTest where = SiteTest::kAny;
  std::string because;  // figures
  std::string source;
};

// Of the node `op_type` ("NPUSwiGlu"); empty for most.
const std::vector<SlowerSites>& SlowerSitesOf(std::string_view op_type);

// What docs/operators.md says of it, as paragraphs.
std::string DescribeSpeed(std::string_view op_type);

}  // namespace ascend_fuse
