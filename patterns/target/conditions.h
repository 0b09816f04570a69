// Decides what a condition of an `unsupported` row asks of a node: what is written in the node, and what is known of its
// types, shapes and constants. Used by forms.cc only.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ir/graph.h"
#include "ir/infer/facts.h"
#include "ir/schema.h"
#include "patterns/target/judge.h"

namespace ascend_fuse::proto {
class FormCondition;
}  // namespace ascend_fuse::proto

namespace ascend_fuse::contract {

// A sentence about what is wrong with the condition for this operator: not exactly one question, or an input, output or
// attribute that ONNX does not know of it. OK otherwise.
absl::Status CheckCondition(const proto::FormCondition& condition, const std::string& op);

// A node, read as one of `schema` (nullptr: its operator is unknown), and what is known of the model (nullptr: nothing).
struct JudgedNode {
  const Node& node;
  const Schema* schema;
  const Facts* facts;
};

Truth Holds(const proto::FormCondition& condition, const JudgedNode& judged);

}  // namespace ascend_fuse::contract
