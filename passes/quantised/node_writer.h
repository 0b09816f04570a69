// Nodes and constants of standard operators that take the place of quantised ones, and what is known of scales and zero points.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "passes/core/node_inserter.h"
#include "passes/core/workspace.h"

namespace ascend_fuse {

class NodeWriter {
 public:
  explicit NodeWriter(Workspace& workspace) : workspace_(&workspace) {}

  Workspace& workspace() const { return *workspace_; }
  // Lets an operator of the default domain compute a value.
  const Node* TakeOver(const Value* value, std::string op_type, std::vector<const Value*> inputs,
                       std::vector<Attribute> attributes = {});
  // The same of a node of one output, under its name.
  const Node* Replace(const Node* node, std::string op_type, std::vector<const Value*> inputs,
                      std::vector<Attribute> attributes = {});
  const Value* Op(const Node& at, std::string op_type, std::vector<const Value*> inputs, std::vector<Attribute> attributes = {}) {
    return NodeInserter(*workspace_, at).Op(std::move(op_type), std::move(inputs), std::move(attributes));
  }
  // A scalar constant.
  const Value* Number(const Node& at, double number, DataType type = DataType::kFloat);
  const Value* Cast(const Node& at, const Value* x, DataType type);
  // The one number of a constant of one element.
  std::optional<double> OneNumber(const Value* value) const;
  // Provably the same scale or zero point; nullptr is 0.
  bool SameFactor(const Value* a, const Value* b) const;
  const Fact& Of(const Value* value) const { return workspace_->facts().Of(value); }
  int64_t Rank(const Value* value) const { return Of(value).rank(); }

 private:
  Workspace* workspace_;
};

}  // namespace ascend_fuse
