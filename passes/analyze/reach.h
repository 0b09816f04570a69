// Which nodes the outputs of a model depend on, and which of them compute nothing from its inputs' elements.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/infer/facts.h"
#include "ir/model.h"

namespace ascend_fuse {

class Reach {
 public:
  Reach(const Model& model, const Facts& facts);

  // Some output of the model depends on it.
  bool Needs(const Node& node) const { return needed_[node.id]; }
  // It is a constant, or computed of constants and of shapes alone.
  bool IsDataless(const Value& value) const { return value.IsConstant() || dataless_[value.id]; }
  // The same, and no shape that it is computed of has a symbol: the compiler makes a constant of it.
  bool IsFolded(const Value& value) const { return value.IsConstant() || folded_[value.id]; }
  bool IsFolded(const Node& node) const;
  // A few integers that are computed of shapes.
  bool IsShapeArithmetic(const Node& node) const;
  // How often a node runs: the product of the turns of the loops around it that are known; 1 for those that are not.
  double Times(const Node& node) const { return node.graph->owner() == nullptr ? 1 : times_[node.graph->owner()->id]; }
  int64_t unknown_loops() const { return unknown_loops_; }
  // The graphs in the order of Model::graphs; nodes of the file's order, live ones only.
  const std::vector<const Node*>& nodes() const { return nodes_; }

 private:
  void Mark(const Model& model);
  void Classify();
  void CountTurns(const Model& model);

  const Facts& facts_;
  std::vector<bool> needed_;    // by Node::id
  std::vector<bool> dataless_;  // by Value::id
  std::vector<bool> folded_;    // by Value::id
  std::vector<double> times_;   // by Node::id of the owner of a body
  std::vector<const Node*> nodes_;
  int64_t unknown_loops_ = 0;
};

}  // namespace ascend_fuse
