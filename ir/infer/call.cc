#include "ir/infer/call.h"

#include <algorithm>
#include <utility>

namespace ascend_fuse::infer {

const FunctionBody* Calls::BodyFor(size_t function, const Node& call) {
  std::string key = functions_.KeyOf(function, call);
  const auto found = bodies_.find(key);
  if (found != bodies_.end()) return found->second.get();
  if (bodies_.size() >= kMaxBodies) return nullptr;
  std::unique_ptr<FunctionBody>& body = bodies_[std::move(key)];
  absl::StatusOr<FunctionBody> made = functions_.BodyFor(function, call);
  if (made.ok()) body = std::make_unique<FunctionBody>(*std::move(made));
  return body.get();
}

void Calls::Infer(NodeContext& c) {
  const int64_t function = functions_.Find(c.node());
  if (function < 0 || inferred_.size() >= kMaxDepth || exhausted()) return;
  // No runtime takes a function that calls itself, and two such calls in it would be looked at until there are too many nodes.
  if (std::find(inferred_.begin(), inferred_.end(), static_cast<size_t>(function)) != inferred_.end()) return;
  const FunctionBody* body = BodyFor(static_cast<size_t>(function), c.node());
  if (body == nullptr) return;
  const Graph& graph = body->model->graph();
  inferred_.push_back(static_cast<size_t>(function));
  nodes_ += static_cast<int64_t>(graph.initializers().size()) + 1;
  Facts& facts = c.facts();
  std::vector<Fact> inputs;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.has(i)) inputs.push_back(c.in(i));
  }
  const uint64_t scope = std::exchange(scope_, c.dims().scope());
  const uint64_t frame = std::exchange(frame_, ++frames_);
  Facts::Values outer = facts.SwapValues({});
  for (size_t i = 0; i < std::min(inputs.size(), body->given); ++i) facts.Set(graph.inputs()[i], inputs[i]);
  InferGraph(graph, &facts);
  std::vector<Fact> results;
  for (const Value* value : graph.outputs()) results.push_back(facts.Of(value));
  facts.SwapValues(std::move(outer));
  frame_ = frame;
  scope_ = scope;
  inferred_.pop_back();
  for (size_t i = 0; i < std::min(results.size(), c.output_count()); ++i) c.out(i) = results[i];
}

}  // namespace ascend_fuse::infer
