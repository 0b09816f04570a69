// The graph everyone reads: nodes and values at stable addresses, linked both ways. Whoever reads holds pointers to const,
// and every link leads to const again. Rewriter (ir/rewriter.h) takes such pointers and changes what they point to, before it
// Inliner (ir/onnx/inline.h) and GraphBuilder (ir/model.h): nobody else can.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/attribute.h"
#include "ir/string_pool.h"
#include "ir/tensor.h"

namespace ascend_fuse {

class Graph;
class Model;
struct Node;
struct Value;

// One input slot of a node. A link in the list of its value's uses.
struct Use {
  const Value* value = nullptr;  // nullptr: an absent optional input
  const Node* user = nullptr;
  const Use* next = nullptr;  // next use of the same value
  const Use** previous = nullptr;
  uint32_t index = 0;  // which input of `user`
};

// Bytes of an encoded message. For a message of the loaded file `file.offset` >= 0 and `data` points at
// its in-memory copy, in which payloads of 4 KB and more are left out (ir/onnx/model_file.h); for a new
// message file.offset is -1 and data[0, file.size) is all of it.
struct EncodedSpan {
  const uint8_t* data = nullptr;
  FileRange file;
  bool operator==(const EncodedSpan&) const = default;
};

// A tensor-valued edge: name, producer, uses. Its address and name survive every rewrite.
struct Value {
  NameId name = NameId::kEmpty;
  uint32_t id = 0;  // dense over the whole model, nested graphs included: the index of side tables
  const Graph* graph = nullptr;
  const Node* producer = nullptr;  // nullptr: graph input or initializer
  uint32_t output_index = 0;
  bool is_graph_input = false;
  bool is_graph_output = false;
  const Tensor* initializer = nullptr;  // set together with is_graph_input for overridable initializers
  const Use* uses = nullptr;            // every use, also by dead nodes; see LiveUses
  std::string_view declared_type;       // TypeProto from graph input/output/value_info; data null if none
  int64_t value_info = -1;              // file offset of its ValueInfoProto in value_info; -1 if none

  bool IsConstant() const { return initializer != nullptr && !is_graph_input; }
};

// One operator application.
struct Node {
  NameId op_type = NameId::kEmpty;
  NameId domain = NameId::kEmpty;  // "" for the default domain, also when the file writes "ai.onnx"
  NameId name = NameId::kEmpty;
  uint32_t id = 0;  // dense over the whole model
  const Graph* graph = nullptr;
  const Use* inputs_begin = nullptr;
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  const Value* const* outputs_begin = nullptr;    // an entry is nullptr for an output named ""
  const Graph* const* subgraphs_begin = nullptr;  // bodies of If, Loop, Scan in attribute order
  uint32_t subgraph_count = 0;
  // The attribute fields lie in this part of `encoded` (offsets in the file): the other fields are most of a
  // node (metadata alone is 90 % in dynamo exports), and long gone from the caches when attributes are asked
  // for.
  uint32_t attributes_begin = 0;
  uint32_t attributes_end = kToTheEnd;
  bool is_new = false;   // made by a Rewriter
  bool rewired = false;  // an original node whose inputs or outputs were changed
  bool dead = false;     // replaced: nothing alive reads it; kept so that it can be restored
  uint64_t order = 0;    // sort key of the node list (StandsBefore); a topological order
  EncodedSpan encoded;   // NodeProto body; for a new node only its attribute fields

  static constexpr uint32_t kToTheEnd = ~uint32_t{0};

  absl::Span<const Use> inputs() const { return {inputs_begin, input_count}; }
  absl::Span<const Value* const> outputs() const { return {outputs_begin, output_count}; }
  absl::Span<const Graph* const> subgraphs() const { return {subgraphs_begin, subgraph_count}; }
  // Input i, or nullptr when absent or beyond the last.
  const Value* input(size_t i) const { return i < input_count ? inputs_begin[i].value : nullptr; }
  const Value* output(size_t i = 0) const { return i < output_count ? outputs_begin[i] : nullptr; }
};

// A graph or subgraph: nodes in topological order, inputs, outputs, initializers.
class Graph {
 public:
  Graph(Model* model, const Node* owner) : model_(model), owner_(owner) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Model& model() const { return *model_; }
  const Node* owner() const { return owner_; }  // the If/Loop/Scan node of a body; nullptr for the main graph
  NameId name() const { return name_; }
  const std::vector<const Value*>& inputs() const { return inputs_; }  // overridable initializers included
  const std::vector<const Value*>& outputs() const { return outputs_; }
  const std::vector<const Value*>& initializers() const { return initializers_; }
  // All nodes, dead ones included: skip those with node->dead.
  const std::vector<const Node*>& nodes() const { return nodes_; }
  const EncodedSpan& encoded() const { return encoded_; }  // see encoded_ below

 private:
  friend class GraphBuilder;
  friend class Inliner;
  friend class Rewriter;
  friend class ModelWriter;

  Model* model_;
  const Node* owner_;
  NameId name_ = NameId::kEmpty;
  EncodedSpan encoded_;  // GraphProto body in the file; offset -1 for a graph built in memory
  std::vector<const Value*> inputs_;
  std::vector<const Value*> outputs_;
  std::vector<const Value*> initializers_;
  std::vector<const Node*> nodes_;
  std::vector<const Value*> declared_;  // values with an entry in value_info, in the file's order
  bool reordered_ = false;              // the file's nodes were not in topological order: nodes_ is sorted
  bool value_info_dropped_ = false;     // none of it is written
  bool changed_ = false;                // some node or initializer differs from the file (or in a nested graph)
  bool renamed_ = false;                // some value that it has or reads has another name than in the file
};

// The way from a reader's pointer to what it points to. Every node, value and graph is made by a GraphBuilder, none of them
// const.
class GraphKey {
 private:
  friend class GraphBuilder;
  friend class Inliner;
  friend class Rewriter;

  template <typename T>
  static T* Mutable(const T* of_the_model) {
    return const_cast<T*>(of_the_model);
  }
};

// Iterates the uses of `value` by nodes that are alive:  for (const Use& use : LiveUses(*value)) ...
class LiveUses {
 public:
  explicit LiveUses(const Value& value) : first_(value.uses) {}
  class Iterator {
   public:
    explicit Iterator(const Use* use) : use_(use) { SkipDead(); }
    const Use& operator*() const { return *use_; }
    Iterator& operator++() {
      use_ = use_->next;
      SkipDead();
      return *this;
    }
    bool operator!=(const Iterator& other) const { return use_ != other.use_; }

   private:
    void SkipDead() {
      while (use_ != nullptr && use_->user->dead) use_ = use_->next;
    }
    const Use* use_;
  };
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }
  bool empty() const { return !(begin() != end()); }

 private:
  const Use* first_;
};

// How many inputs of nodes that are alive read `value`; an output of the graph counts as one more.
int64_t CountReaders(const Value& value);
// Whether nothing but one input of one node that is alive reads the value.
inline bool ReadOnce(const Value& value) { return !value.is_graph_output && CountReaders(value) == 1; }

// Names as text.
std::string_view OpType(const Node& node);
std::string_view Domain(const Node& node);
std::string_view NodeName(const Node& node);
std::string_view ValueName(const Value& value);

// Whether `a` stands before `b` in the order of one graph: by Node::order, and by age where two have one order.
inline bool StandsBefore(const Node& a, const Node& b) { return a.order != b.order ? a.order < b.order : a.id < b.id; }

// Sorts nodes of one graph by StandsBefore. The list of a graph mostly is in that order, so that this takes one look at each.
void SortInOrder(std::vector<const Node*>* nodes);

// True when `node` is `op_type` of the default domain.
bool IsOp(const Node& node, std::string_view op_type);

}  // namespace ascend_fuse
