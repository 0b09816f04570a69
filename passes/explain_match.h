// Why a rule matches at a node of a model, or does not: the match step by step.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "ir/model.h"
#include "passes/optimize.h"

namespace ascend_fuse {

// `rule` is the name of a rule in force. `node` is a node's name, or that of a value, which stands for the node that computes
// it. The rule is tried as its pass would, and with it at the nodes after `node` that it can end in; a rule of the library
// also after the others have recognised what they do. The text gives for each part of the rule what it met, in the order in
// which the parts were tried, and where and why that ended. The model may be changed and should be dropped. NOT_FOUND where
// there is no such rule or node; other errors are those of Optimize.
absl::StatusOr<std::string> ExplainMatch(Model* model, const OptimizeOptions& options, const std::string& rule,
                                         const std::string& node);

}  // namespace ascend_fuse
