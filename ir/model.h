// A loaded model: one graph with its nested graphs, opset imports, names, and the file its weights stay in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/arena.h"
#include "ir/graph.h"
#include "ir/string_pool.h"

namespace ascend_fuse {

class ModelFile;  // ir/onnx/model_file.h: the open file and its structural bytes

struct OpsetImport {
  NameId domain = NameId::kEmpty;  // "" also when the file writes "ai.onnx"
  int64_t version = 0;
  bool operator==(const OpsetImport&) const = default;
};

// A local function: kept as its bytes; a node that calls one is an operator of its domain.
struct LocalFunction {
  NameId name = NameId::kEmpty;
  NameId domain = NameId::kEmpty;
  NameId overload = NameId::kEmpty;
  EncodedSpan encoded;
};

// How the default domain is spelled when saving.
enum class DefaultDomain : uint8_t {
  kAsWritten,  // as the file has it, node by node
  kEmpty,      // "" everywhere
  kExplicit,   // "ai.onnx" on every standard node and in the import (emission style X)
};

class Model {
 public:
  Model();
  ~Model();
  Model(const Model&) = delete;  // nodes point into it: passed around as unique_ptr
  Model& operator=(const Model&) = delete;

  const Graph& graph() const { return *graph_; }
  // The main graph first, then nested graphs, outer before inner.
  const std::vector<std::unique_ptr<Graph>>& graphs() const { return graphs_; }

  int64_t ir_version() const { return ir_version_; }
  std::string_view producer_name() const { return producer_name_; }
  std::string_view producer_version() const { return producer_version_; }
  const std::vector<OpsetImport>& opset_imports() const { return opset_imports_; }
  const std::vector<LocalFunction>& functions() const { return functions_; }
  // The imported version of a domain, 0 if it is not imported.
  int64_t OpsetVersion(NameId domain) const;
  int64_t OpsetVersion() const { return OpsetVersion(NameId::kEmpty); }

  StringPool& names() { return names_; }
  const StringPool& names() const { return names_; }
  std::string_view Text(NameId id) const { return names_.Text(id); }
  Arena& arena() { return arena_; }

  // `dims` at an address that lives as long as the model; equal dims share one. A model has few shapes and
  // many tensors, and an attribute may be decoded any number of times.
  absl::Span<const int64_t> InternDims(absl::Span<const int64_t> dims);

  // Upper bounds of Value::id and Node::id: the sizes of side tables.
  uint32_t value_count() const { return value_count_; }
  uint32_t node_count() const { return node_count_; }

  // Files beside the model that its tensors lie in, as written in the model; each once.
  const std::vector<std::string>& external_locations() const { return external_locations_; }

  // The model file's path; empty for a model built in memory. External data lies in its directory.
  const std::string& path() const { return path_; }
  const ModelFile* model_file() const { return model_file_.get(); }

 private:
  friend class GraphBuilder;
  friend class Inliner;
  friend class Rewriter;
  friend class ModelWriter;

  absl::Span<const int64_t>* DimsSlot(absl::Span<const int64_t> dims);

  std::vector<std::unique_ptr<Graph>> graphs_;
  Graph* graph_ = nullptr;
  int64_t ir_version_ = 0;
  std::string_view producer_name_;
  std::string_view producer_version_;
  std::vector<OpsetImport> opset_imports_;
  bool opset_imports_changed_ = false;
  DefaultDomain default_domain_ = DefaultDomain::kAsWritten;
  std::vector<LocalFunction> functions_;
  bool functions_changed_ = false;  // some of the file's functions are gone
  StringPool names_;
  Arena arena_;
  std::vector<absl::Span<const int64_t>> dims_slots_;  // open addressing; an empty span is a free slot
  size_t dims_count_ = 0;
  uint32_t value_count_ = 0;
  uint32_t node_count_ = 0;
  std::string path_;
  std::vector<std::string> external_locations_;
  std::unique_ptr<ModelFile> model_file_;
};

// Builds graphs while loading or parsing; after that graphs change through Rewriter only. What it makes it gives to be
// filled in; what it is given it may change, because it is of its model.
class GraphBuilder {
 public:
  explicit GraphBuilder(Model* model) : model_(model) {}

  Graph* NewGraph(const Node* owner, NameId name, const EncodedSpan& encoded);
  Value* NewValue(const Graph* graph, NameId name);
  // A node with room for the given numbers of inputs, outputs and bodies, appended to `graph`.
  Node* NewNode(const Graph* graph, size_t inputs, size_t outputs, size_t subgraphs);
  void SetInput(const Node* node, size_t index, const Value* value);   // links the use
  void SetOutput(const Node* node, size_t index, const Value* value);  // sets the producer
  void SetSubgraph(const Node* node, size_t index, const Graph* body);
  void AddInput(const Graph* graph, const Value* value);
  void AddOutput(const Graph* graph, const Value* value);
  void AddInitializer(const Graph* graph, const Value* value, const Tensor* tensor);
  // `value` has an entry in the graph's value_info: value->value_info, or for a graph in memory
  // declared_type.
  void AddValueInfo(const Graph* graph, const Value* value);
  // The same nodes in another order: sets Node::order. `sorted` tells that the file's order was not this one.
  void SetNodes(const Graph* graph, std::vector<const Node*> nodes, bool sorted);

  Model& model() { return *model_; }
  void SetGraphName(const Graph* graph, NameId name);
  void SetHeader(int64_t ir_version, std::string_view producer_name, std::string_view producer_version);
  void AddOpsetImport(OpsetImport import);
  void AddFunction(const LocalFunction& function);
  void AddExternalLocation(std::string_view location);
  void SetSource(std::string path, std::unique_ptr<ModelFile> model_file);

 private:
  Model* model_;
};

// Small constants as numbers. `limit` caps the number of elements read (a larger tensor: RESOURCE_EXHAUSTED).
// Implemented in ir/onnx/tensor_data.cc; weights in files are read with pread, external data after the checks
// of ir/onnx/external_data.h. Integers and bool widen to int64, float types to double. INVALID_ARGUMENT when
// the type does not fit the function, DATA_LOSS when bytes are missing.
absl::StatusOr<std::vector<int64_t>> ReadIntegers(const Model& model, const Tensor& tensor, int64_t limit);
absl::StatusOr<std::vector<double>> ReadFloats(const Model& model, const Tensor& tensor, int64_t limit);
// All element bytes, little-endian packed, at most `limit` bytes.
absl::StatusOr<std::string> ReadBytes(const Model& model, const Tensor& tensor, int64_t limit);

// The element bytes of a tensor (not Storage::kTyped) from the first to the last, without ever holding more
// of them than a block per part.
class ElementReader {
 public:
  ElementReader(const Model& model, const Tensor& tensor);
  ~ElementReader();
  ElementReader(const ElementReader&) = delete;
  ElementReader& operator=(const ElementReader&) = delete;

  // The next `count` bytes. DATA_LOSS when a file has become shorter, and the errors of ExternalData.
  absl::Status Next(int64_t count, char* to);

 private:
  struct Part;
  absl::Status NextOfParts(int64_t count, char* to);
  absl::Status ReadPart(Part* part, int64_t size, char* to);
  absl::Status NextOrdered();
  absl::Status ReadUpTo(int64_t place, int64_t wanted, size_t width);

  const Model& model_;
  const Tensor& tensor_;
  std::vector<Part> parts_;
  size_t part_ = 0;     // which part comes next ...
  int64_t in_row_ = 0;  // ... and how far into its row
  std::unique_ptr<class ExternalData> external_;
  // Of a tensor with an order of its own:
  std::string ready_;            // elements that are being given out ...
  size_t ready_used_ = 0;        // ... and how many bytes of them were
  size_t place_ = 0;             // the next place of its row
  std::vector<int64_t> wanted_;  // by place, the first place of the parts' row that it or a later one takes
  int64_t row_places_ = 0;       // the places of the parts' row ...
  std::string window_;           // ... of which these were read and may be wanted yet ...
  int64_t window_begin_ = 0;     // ... from this one on ...
  int64_t window_end_ = 0;       // ... to before this one
};

}  // namespace ascend_fuse
