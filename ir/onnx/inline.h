// Calls of local functions replaced by what the functions compute, so that rules see through them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/onnx/function.h"
#include "ir/rewriter.h"

namespace ascend_fuse {

// The first part of the names of what a call becomes: "path/prefix" and then the name in the function.
struct CallScope {
  std::string path;    // the module, "model.layers.0.mlp"
  std::string prefix;  // tells operations of one module apart
};

// `call` is a node of the model or of a function that is called; `outer` the scope of the call that it stands in.
using ScopeOfCall = std::function<CallScope(const Node& call, const CallScope& outer)>;

// Calls of one function that stay calls.
struct CallsLeft {
  std::string function;
  int64_t count = 0;
  std::string because;
};

// Inlines a model that was just loaded: nodes of functions take the places of calls, nested ones too, and compute the
// values that the calls computed. Names of the rest are made unique. Functions that nothing calls any more leave
// the model, and opset imports follow. A constant of 4 KB and more in a function becomes one initializer of the main
// graph for all calls; its elements stay in the file.
//
// A call stays where inlining would not be exact or not end: the function calls itself, imports an opset in which one
// of its operators is another than in the model's, is not a valid graph for the call, or the model would exceed the
// limits below.
class Inliner {
 public:
  static constexpr int kMaxDepth = 64;
  static constexpr int64_t kMaxNodes = 1'000'000;
  static constexpr int64_t kMaxBytes = int64_t{256} << 20;

  // The rewriter must outlive this, and not have been used yet.
  explicit Inliner(Rewriter* rewriter) : rewriter_(rewriter), model_(&rewriter->model()) {}

  void Run(const ScopeOfCall& scope);

  // The calls stand where they stood, and the model is saved as if nothing had happened. Everything that a Rewriter did
  // must have been taken back and swept.
  void Undo();

  // Calls that were inlined, nested ones included.
  int64_t inlined() const { return inlined_; }
  const std::vector<CallsLeft>& left() const { return left_; }

 private:
  // What a function amounts to with everything that it calls.
  struct Total {
    int64_t nodes = 0;
    int64_t bytes = 0;
    int depth = 0;
    std::string because;  // why it is never inlined
  };
  // A graph of the file as it was.
  struct Before {
    const Graph* graph;
    std::vector<const Node*> nodes;
  };
  struct Call {
    const Node* node;
    std::vector<const Value*> inputs;
    std::vector<const Value*> outputs;
  };
  struct Copy;

  void Measure();
  void InlineGraph(const Graph* graph);
  // Appends to `nodes` what computes `outputs` (nullptr: not asked for) in `graph`; false where the call stays.
  bool Inline(const Node& call, const std::vector<const Value*>& inputs, const std::vector<const Value*>& outputs,
              const Graph* graph, const CallScope& outer, std::vector<const Node*>* nodes);
  // A body, or why there is none.
  struct Body {
    std::shared_ptr<const FunctionBody> body;
    std::string because;
  };
  const Body& BodyFor(size_t function, const Node& call);
  std::string WhyNotCopied(const Model& body) const;
  std::string WhyOtherOperators(const Model& body) const;
  void AddImports(const Model& body, bool calls);
  void CopyNode(const Node& node, const Graph* graph, Copy* copy, std::vector<const Node*>* nodes);
  const Graph* CopyGraph(const Graph& from, const Node* owner, Copy* copy);
  const Tensor* CopyTensor(const Model& from, const Tensor& tensor, NameId name);
  const Value* FileConstant(size_t function, const FunctionBody::FileConstant& constant);
  void Leave(size_t function, const std::string& because);
  void DropFunctions();
  void DropImports();

  Rewriter* const rewriter_;
  Model* const model_;
  ScopeOfCall scope_;
  std::unique_ptr<LocalFunctions> functions_;
  std::vector<Total> totals_;  // by function
  int64_t nodes_ = 0;
  int64_t bytes_ = 0;
  int64_t inlined_ = 0;
  std::vector<CallsLeft> left_;
  absl::flat_hash_map<std::string, size_t> left_of_;  // into left_, by function and reason
  absl::flat_hash_map<std::string, Body> bodies_;     // by LocalFunctions::KeyOf
  absl::flat_hash_map<std::pair<size_t, std::string>, const Value*> file_constants_;
  absl::flat_hash_set<size_t> still_called_;

  // For Undo.
  std::vector<Before> before_;
  std::vector<Call> calls_;
  std::vector<const Node*> made_;
  size_t graphs_before_ = 0;
  std::vector<std::unique_ptr<Graph>> retired_;  // nodes still point to them
  std::vector<OpsetImport> imports_before_;
  std::vector<LocalFunction> functions_before_;
};

}  // namespace ascend_fuse
