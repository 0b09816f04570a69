// What an inference function sees of its node: facts of the inputs, attributes, and places for the facts of
// the outputs. For ir/infer and for who implements OperatorInference (facts.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "ir/infer/facts.h"
#include "ir/movement/axis.h"
#include "ir/movement/movement.h"

namespace ascend_fuse::infer {

using Shape = absl::InlinedVector<Dim, 6>;
using Dims = absl::InlinedVector<Dim, 8>;  // integer elements

// One node being inferred. Nothing here fails: what is not known stays unknown.
class NodeContext {
 public:
  NodeContext(const Node& node, Facts* facts);

  const Node& node() const { return node_; }
  Facts& facts() { return *facts_; }
  DimTable& dims() { return facts_->dims(); }
  const Model& model() const { return node_.graph->model(); }
  int64_t opset() const { return model().OpsetVersion(node_.domain); }
  std::string_view op_type() const { return OpType(node_); }

  // --- inputs ---
  size_t input_count() const { return node_.input_count; }
  bool has(size_t i) const { return node_.input(i) != nullptr; }
  const Fact& in(size_t i) const;  // an empty fact for an absent input
  DataType type(size_t i) const { return in(i).type; }
  int rank(size_t i) const { return in(i).rank(); }
  Shape shape(size_t i) const { return {in(i).shape.begin(), in(i).shape.end()}; }
  // Integer elements of input i; false when they are not known (single ones may be unknown Dims).
  bool Integers(size_t i, absl::Span<const Dim>* elements) const;
  // All integer elements as numbers.
  std::optional<std::vector<int64_t>> Numbers(size_t i) const;
  // The only element of input i.
  Dim Scalar(size_t i) const;
  std::optional<double> FloatScalar(size_t i) const;

  // --- attributes ---
  int64_t Int(std::string_view name, int64_t otherwise) const;
  double Float(std::string_view name, double otherwise) const;
  std::string_view String(std::string_view name, std::string_view otherwise) const;
  std::optional<std::vector<int64_t>> Ints(std::string_view name) const;
  // The attribute `name` or else the elements of input i (axes, sizes: attributes of older opsets).
  std::optional<std::vector<int64_t>> IntsOrInput(std::string_view name, size_t i, bool* given) const;

  // --- outputs ---
  size_t output_count() const { return node_.output_count; }
  // What is written to an output that the node does not have is lost.
  Fact& out(size_t i) { return i < outputs_.size() ? outputs_[i] : beyond_; }
  void Set(size_t i, DataType type, absl::Span<const Dim> shape);
  void SetType(size_t i, DataType type) { out(i).type = type; }
  void SetShape(size_t i, absl::Span<const Dim> shape);
  // A shape of that rank whose dims are not known.
  void SetRank(size_t i, size_t rank);
  // The elements, if there are not too many; type and shape must be set.
  void SetIntegers(size_t i, absl::Span<const Dim> elements);
  void SetFloats(size_t i, absl::Span<const double> elements);
  void SetSplat(size_t i, double value);
  void CopyElements(size_t i, const Fact& from);
  // The number of elements of the output's shape if it is a known number of at most kMaxElements.
  std::optional<int64_t> SmallCount(size_t i) { return SmallCountOf(out(i)); }
  static std::optional<int64_t> SmallCountOf(const Fact& fact);
  // A symbol for dim `axis` of output i, the same in every pass.
  Dim Fresh(size_t i, size_t axis);

  // In every run without an error a and b are equal.
  void Require(Dim a, Dim b);
  // Dims of a and b broadcast together.
  Shape Broadcast(absl::Span<const Dim> a, absl::Span<const Dim> b);
  // The product; unknown if an entry is.
  Dim Product(absl::Span<const Dim> shape);

  // What the node does to positions, for output i. Its spans lie in the arena of the facts.
  void Move(size_t i, Movement movement);

  // Hands the outputs over to the facts, merged with what is declared.
  void Commit();

 private:
  const Node& node_;
  Facts* facts_;
  absl::InlinedVector<Fact, 2> outputs_;
  absl::InlinedVector<const Movement*, 2> movements_;  // empty: it moves nothing
  Fact beyond_;
};

using Handler = void (*)(NodeContext&);

struct Entry {
  std::string_view domain;
  std::string_view op_type;
  Handler handler;
};

// The tables of the operator families, one a file.
absl::Span<const Entry> ElementwiseOps();
absl::Span<const Entry> ReductionOps();
absl::Span<const Entry> ShapeOps();
absl::Span<const Entry> MoveOps();
absl::Span<const Entry> MatMulOps();
absl::Span<const Entry> NnOps();
absl::Span<const Entry> ControlFlowOps();
absl::Span<const Entry> VisionOps();
absl::Span<const Entry> SignalOps();
absl::Span<const Entry> TextOps();
absl::Span<const Entry> SequenceOps();
absl::Span<const Entry> ContribOps();

// --- helpers ---

// No tensor has a dim of more elements than this: a number above is a mistake of whoever wrote it. Below it, products and sums of
// two dims fit into 64 bits.
constexpr int64_t kLargestSize = (int64_t{1} << 31) - 1;
// The dim of so many elements; unknown where no tensor has so many, or the number is negative.
inline Dim DimOfSize(int64_t size) { return size >= 0 && size <= kLargestSize ? Dim::Of(size) : Dim(); }

// What was told of dim `axis` of `value` (Facts::ToldDim), else a new symbol.
Dim FreshDim(const Value& value, size_t axis, Facts* facts);
// The type and shape a file declares for a value, as facts of `facts` (dim_param text is parsed). An empty
// fact when nothing is declared.
Fact DeclaredFact(const Value& value, Facts* facts);
// The same for the tensors in a declared sequence or optional.
Fact DeclaredItems(const Value& value, Facts* facts);
bool DeclaresOptionalTensor(const Value& value);
// Type, shape and, if it is small, elements of a constant.
Fact ConstantFact(const Model& model, const Tensor& tensor, Facts* facts);
// Merges what was computed for a value with what is declared and stores it.
void Store(const Value& value, Fact computed, const Node* by, Facts* facts);

// Symbols of a body may be unified by what the body does; symbols from outside may not: the body may not run.
uint64_t ScopeOf(const Graph& graph, const Facts* facts);

// Facts of all nodes of `graph`, whose inputs have facts already or are declared.
void InferGraph(const Graph& graph, Facts* facts);

// Types of two operands agree: the one that is known.
DataType EitherType(const NodeContext& c, size_t a, size_t b);
// Of a product or convolution of inputs 0 and 1. ONNX has none of int8; in the files of AMCT they are sums of int32.
DataType ProductType(const NodeContext& c);

}  // namespace ascend_fuse::infer
