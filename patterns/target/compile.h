// The rows of a node in compiled form: signatures, shapes and expressions parsed, and what a rule names
// looked up. Used by target.cc and judge.cc only.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/operators/signature.h"

namespace ascend_fuse::proto {
class AttributeRule;
class InputRule;
class Limit;
class NodeContract;
class When;
}  // namespace ascend_fuse::proto

namespace ascend_fuse::contract {

struct CompiledWhen {
  const proto::When* data;
  LimitExpression multiple;
  LimitExpression not_multiple;
};

struct CompiledLimit {
  const proto::Limit* data;
  LimitExpression of, at_most, at_least, multiple_of, equals;
  std::vector<CompiledWhen> when;
};

struct CompiledRow {
  SignaturePattern signature;
  std::string text;
  std::vector<CompiledWhen> when;
  std::vector<CompiledLimit> limits;
};

struct CompiledAttribute {
  const proto::AttributeRule* data;
  std::vector<CompiledWhen> when;
};

struct CompiledInput {
  const proto::InputRule* data;
  std::vector<ShapePattern> shapes;
  std::vector<CompiledWhen> when;
};

struct CompiledNode {
  const proto::NodeContract* data;
  std::vector<CompiledRow> rows;
  std::vector<CompiledAttribute> attributes;
  std::vector<CompiledInput> inputs;
  std::vector<CompiledLimit> limits;
};

// The compiled node refers to `node`, which must stay where it is. INVALID_ARGUMENT names `path`, the node
// and what is wrong: text that does not parse, a name that nothing has, a condition that lacks a part.
absl::StatusOr<CompiledNode> CompileNode(const std::string& path, const proto::NodeContract& node);

}  // namespace ascend_fuse::contract
