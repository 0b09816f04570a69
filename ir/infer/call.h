// Calls of local functions: the body is inferred with the facts of the call's inputs, as if it stood in place
// of the call. Private to ir/infer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/infer/context.h"
#include "ir/onnx/function.h"

namespace ascend_fuse::infer {

// The functions of one model, their bodies decoded when first called.
class Calls {
 public:
  static constexpr int kMaxDepth = 64;
  // Nodes in bodies that one pass looks at, over all calls. A function that calls another twice, that one the
  // next twice ... has more than any number; beyond the limit outputs of calls are unknown.
  static constexpr int64_t kMaxNodes = 1'000'000;
  static constexpr size_t kMaxBodies = 512;  // each is a file in memory with a descriptor

  explicit Calls(const Model& model) : functions_(model) {}

  // True if the node calls a local function.
  bool IsCall(const Node& node) const { return functions_.Find(node) >= 0; }
  // Sets the outputs of a call.
  void Infer(NodeContext& c);

  // Counts a node of a body; false when there were too many.
  bool CountNode() { return inferred_.empty() || ++nodes_ <= kMaxNodes; }
  void StartPass() { nodes_ = 0; }
  bool exhausted() const { return nodes_ > kMaxNodes; }
  // The scope that a graph without an owner is in, and what tells bodies of different calls apart.
  uint64_t scope() const { return scope_; }
  uint64_t frame() const { return frame_; }

 private:
  // The body for a call with these attributes and inputs; nullptr if it is not a valid graph.
  const FunctionBody* BodyFor(size_t function, const Node& call);

  LocalFunctions functions_;
  absl::flat_hash_map<std::string, std::unique_ptr<FunctionBody>> bodies_;  // by LocalFunctions::KeyOf
  int64_t nodes_ = 0;
  std::vector<size_t> inferred_;  // the functions of the calls that are being inferred, one inside the other
  uint64_t scope_ = 0;
  uint64_t frame_ = 0;
  uint64_t frames_ = 0;
};

}  // namespace ascend_fuse::infer
