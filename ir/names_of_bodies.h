// Values in bodies by their names. The inputs and initializers of a body may have names of values around it (onnx/onnx:
// onnx/checker.cc lets them), and a reader in that body finds the body's own.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph.h"
#include "ir/model.h"

namespace ascend_fuse {

class NamesOfBodies {
 public:
  // All of these know the values that were in bodies when the first question was asked.
  //
  // What a reader in `graph` finds instead of `value`, which is of that graph or of one around it: the innermost that has its
  // name; nullptr where it finds `value`.
  const Value* FoundInstead(const Value& value, const Graph& graph) { return Find(value, graph, false); }
  // The same, and what else `value` may be taken for: ONNX Runtime hands what one body of an If reads from around it to the
  // others by its name, where it takes the place of an initializer.
  const Value* TakenForEachOther(const Value& value, const Graph& graph) { return Find(value, graph, true); }

 private:
  void Read(const Model& model);
  // `beside`: in the bodies beside those between the two as well.
  const Value* Find(const Value& value, const Graph& graph, bool beside);

  bool read_ = false;
  absl::flat_hash_map<std::pair<const Graph*, NameId>, const Value*> values_;
};

// Where the name of a value is written: its graph and those of all that read it.
std::vector<const Graph*> GraphsThatName(const Value& value);

}  // namespace ascend_fuse
