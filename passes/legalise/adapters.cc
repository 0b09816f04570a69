// Adapters that a rule cannot say: Split and Sum have any number of outputs and inputs, Constant holds a tensor, If has
// bodies, a convolution keeps what else it has. Each is for the forms of one code (patterns/targets) and exact. Those of
// operators that take elements by index stand in adapt_indices.cc, those of Resize in adapt_resize.cc.
#include "passes/legalise/adapters.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "fmt/format.h"
#include "ir/infer/context.h"
#include "ir/movement/axis.h"
#include "ir/sparse.h"
#include "passes/core/node_inserter.h"

namespace ascend_fuse {

// The node with other inputs and attributes in its place.
void Rewrite(Workspace& workspace, const Node* node, std::string op_type, std::vector<const Value*> inputs,
             std::vector<Attribute> attributes) {
  NewNode plan;
  plan.op_type = std::move(op_type);
  plan.name = std::string(NodeName(*node));
  plan.keep_name = !plan.name.empty();
  plan.inputs = std::move(inputs);
  plan.attributes = std::move(attributes);
  const Node* const written = workspace.rewriter().ReplaceNode(*node, plan);
  workspace.rewriter().CopyNotes(*node, written);
  workspace.Refresh(written);
}

void RewriteAsConstant(Workspace& workspace, const Node* node, DataType type, absl::Span<const int64_t> dims,
                       std::string_view bytes) {
  Tensor tensor;
  tensor.storage = Storage::kMemory;
  tensor.type = type;
  tensor.dims = dims;
  tensor.memory = bytes;
  Rewrite(workspace, node, "Constant", {}, {Attribute::OfTensor("value", tensor)});
}

// The node as it is, but for inputs or attributes.
void Renew(Workspace& workspace, const Node* node, std::vector<Attribute> attributes) {
  std::vector<const Value*> inputs;
  for (const Use& use : node->inputs()) inputs.push_back(use.value);
  while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
  Rewrite(workspace, node, std::string(OpType(*node)), std::move(inputs), std::move(attributes));
}

std::vector<Attribute> AttributesWithout(const Node& node, std::initializer_list<std::string_view> names) {
  std::vector<Attribute> attributes = ReadAttributes(node);
  std::erase_if(attributes,
                [&](const Attribute& attribute) { return std::find(names.begin(), names.end(), attribute.name) != names.end(); });
  return attributes;
}

namespace {

// The numbers of an attribute, or of its default: as many as there are spatial axes.
std::vector<int64_t> SpatialNumbers(const Node& node, std::string_view name, size_t axes, int64_t otherwise) {
  const auto given = IntsAttribute(node, name);
  return given.has_value() && given->size() == axes ? *given : std::vector<int64_t>(axes, otherwise);
}

// The dims of a value from axis 2 on, where they are numbers; empty where they are not.
std::vector<int64_t> SpatialDims(const Workspace& workspace, const Value* value) {
  const Fact& fact = workspace.facts().Of(value);
  std::vector<int64_t> dims;
  for (size_t i = 2; fact.has_rank && i < fact.shape.size(); ++i) {
    const Dim dim = workspace.facts().dims().Resolve(fact.shape[i]);
    if (!dim.is_number()) return {};
    dims.push_back(dim.number());
  }
  return dims;
}

// The sizes of the parts of an axis of length d: n of ceil (d / n), and the last one has what is left.
const Value* PartSizes(Workspace& workspace, const Node& node, int64_t axis, int64_t n) {
  NodeInserter inserter(workspace, node);
  const Dim d = workspace.facts().Of(node.input(0)).shape[static_cast<size_t>(axis)];
  if (d.is_number()) {
    const int64_t part = (d.number() + n - 1) / n;
    std::vector<int64_t> sizes(static_cast<size_t>(n), part);
    sizes.back() = d.number() - part * (n - 1);
    return sizes.back() < 0 ? nullptr : inserter.Numbers(sizes);
  }
  const bool even = workspace.facts().dims().ExactDiv(d, Dim::Of(n)).known();
  const Value* const count = inserter.Numbers({n});
  const Value* const length = inserter.Op("Gather", {inserter.Op("Shape", {node.input(0)}), inserter.Numbers({axis})});
  const Value* const part = even ? inserter.Op("Div", {length, count})
                                 : inserter.Op("Div", {inserter.Op("Add", {length, inserter.Numbers({n - 1})}), count});
  std::vector<const Value*> sizes(static_cast<size_t>(n), part);
  if (!even) sizes.back() = inserter.Op("Sub", {length, inserter.Op("Mul", {part, inserter.Numbers({n - 1})})});
  return inserter.Op("Concat", sizes, {Attribute::Int("axis", 0)});
}

// Split (x) <num_outputs>: the sizes written out. Where no size stands, ATC looks for the number of outputs in a shape that
// it does not have yet.
bool WriteSplitSizes(Workspace& workspace, const Node* node) {
  const Fact& x = workspace.facts().Of(node->input(0));
  const int64_t axis = IntAttribute(*node, "axis").value_or(0);
  const int64_t n = IntAttribute(*node, "num_outputs").value_or(0);
  const int64_t place = NormalizeAxis(axis, x.rank());
  if (!x.has_rank || place < 0 || node->input(1) != nullptr) return false;
  if (n < 1 || n != static_cast<int64_t>(node->output_count)) return false;
  if (!x.shape[static_cast<size_t>(place)].known()) return false;
  const Value* sizes = PartSizes(workspace, *node, place, n);
  if (sizes == nullptr) return false;
  Rewrite(workspace, node, "Split", {node->input(0), sizes}, {Attribute::Int("axis", axis)});
  return true;
}

// Sum (a, b, c): Add (Add (a, b), c), which broadcasts.
bool WriteSumAsAdds(Workspace& workspace, const Node* node) {
  if (node->input_count < 2) return false;
  const Value* sum = node->input(0);
  NodeInserter inserter(workspace, *node);
  for (size_t i = 1; i + 1 < node->input_count; ++i) sum = inserter.Op("Add", {sum, node->input(i)});
  Rewrite(workspace, node, "Add", {sum, node->input(node->input_count - 1)}, {});
  return true;
}

// Mean (a, b, c): the sum of them divided by their number.
bool WriteMeanAsAdds(Workspace& workspace, const Node* node) {
  const DataType type = workspace.facts().Of(node->input(0)).type;
  if (node->input_count < 2 || !IsFloat(type)) return false;
  const Value* sum = node->input(0);
  NodeInserter inserter(workspace, *node);
  for (size_t i = 1; i < node->input_count; ++i) sum = inserter.Op("Add", {sum, node->input(i)});
  const Value* count = workspace.rewriter().NumberConstant(node->graph, type, static_cast<double>(node->input_count),
                                                           std::string(Label(*node)) + "_count");
  if (count == nullptr) return false;
  InferConstant(count, &workspace.facts());
  Rewrite(workspace, node, "Div", {sum, count}, {});
  return true;
}

// ConstantOfShape <value>: the number as raw bytes.
bool WriteRawValue(Workspace& workspace, const Node* node) {
  const auto given = FindAttribute(*node, "value");
  if (!given.has_value() || given->type != AttributeType::kTensor || given->tensor.ElementCount() != 1) return false;
  const auto bytes = ReadBytes(workspace.model(), given->tensor, 16);
  if (!bytes.ok() || bytes->empty()) return false;
  const std::vector<int64_t> dims = {1};
  Tensor tensor;
  tensor.storage = Storage::kMemory;
  tensor.type = given->tensor.type;
  tensor.memory = *bytes;
  tensor.dims = dims;
  Renew(workspace, node, {Attribute::OfTensor("value", tensor)});
  return true;
}

// Optional inputs at the end that are written as an empty name are left out.
bool DropEmptyInputs(Workspace& workspace, const Node* node) {
  if (node->input_count == 0 || node->input(node->input_count - 1) != nullptr) return false;
  Renew(workspace, node, ReadAttributes(*node));
  return true;
}

// Conv: strides of 1 written out, and pads of auto_pad where all lengths are known.
bool WriteConvAttributes(Workspace& workspace, const Node* node) {
  const Fact& x = workspace.facts().Of(node->input(0));
  if (!x.has_rank || x.rank() < 3) return false;
  const size_t axes = static_cast<size_t>(x.rank() - 2);
  const std::vector<int64_t> strides = SpatialNumbers(*node, "strides", axes, 1);
  const std::string word(StringAttribute(*node, "auto_pad").value_or("NOTSET"));
  std::vector<Attribute> attributes = AttributesWithout(*node, {"strides", "auto_pad", "pads"});
  attributes.push_back(Attribute::Ints("strides", strides));
  if (word == "SAME_UPPER" || word == "SAME_LOWER") {
    const std::vector<int64_t> lengths = SpatialDims(workspace, node->input(0));
    const std::vector<int64_t> kernel = SpatialDims(workspace, node->input(1));
    if (lengths.size() != axes || kernel.size() != axes) return false;
    const std::vector<int64_t> dilations = SpatialNumbers(*node, "dilations", axes, 1);
    std::vector<int64_t> pads(2 * axes, 0);
    for (size_t i = 0; i < axes; ++i) {
      if (strides[i] < 1 || std::max({lengths[i], kernel[i], dilations[i]}) > infer::kLargestSize || dilations[i] < 1)
        return false;
      const int64_t parts = lengths[i] / strides[i] + (lengths[i] % strides[i] != 0 ? 1 : 0);
      const int64_t total = std::max<int64_t>(0, (parts - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - lengths[i]);
      pads[i] = word == "SAME_UPPER" ? total / 2 : total - total / 2;
      pads[i + axes] = total - pads[i];
    }
    attributes.push_back(Attribute::Ints("pads", pads));
  } else {
    if (const auto pads = FindAttribute(*node, "pads"); pads.has_value()) attributes.push_back(*pads);
    if (word != "NOTSET") attributes.push_back(Attribute::String("auto_pad", word));
  }
  Renew(workspace, node, std::move(attributes));
  return true;
}

// ConvTranspose: the lengths of the kernel written out.
bool WriteKernelShape(Workspace& workspace, const Node* node) {
  const std::vector<int64_t> kernel = SpatialDims(workspace, node->input(1));
  if (kernel.empty() || FindAttribute(*node, "kernel_shape").has_value()) return false;
  std::vector<Attribute> attributes = ReadAttributes(*node);
  attributes.push_back(Attribute::Ints("kernel_shape", kernel));
  Renew(workspace, node, std::move(attributes));
  return true;
}

// ConvTranspose <output_shape>: the pads that give it. Where their sum is odd, versions of ONNX differ in where the rest
// goes, and the node stays.
bool WriteTransposedPads(Workspace& workspace, const Node* node) {
  const std::vector<int64_t> lengths = SpatialDims(workspace, node->input(0));
  const std::vector<int64_t> kernel = SpatialDims(workspace, node->input(1));
  const size_t axes = lengths.size();
  const auto wanted = IntsAttribute(*node, "output_shape");
  if (axes == 0 || kernel.size() != axes || !wanted.has_value() || wanted->size() != axes) return false;
  const std::vector<int64_t> strides = SpatialNumbers(*node, "strides", axes, 1);
  const std::vector<int64_t> dilations = SpatialNumbers(*node, "dilations", axes, 1);
  const std::vector<int64_t> more = SpatialNumbers(*node, "output_padding", axes, 0);
  std::vector<int64_t> pads(2 * axes, 0);
  for (size_t i = 0; i < axes; ++i) {
    if (std::max({strides[i], lengths[i], kernel[i], dilations[i], more[i], (*wanted)[i]}) > infer::kLargestSize) return false;
    if (std::min({strides[i], lengths[i], kernel[i], dilations[i], (*wanted)[i]}) < 1 || more[i] < 0) return false;
    const int64_t whole = strides[i] * (lengths[i] - 1) + more[i] + (kernel[i] - 1) * dilations[i] + 1;
    const int64_t total = whole - (*wanted)[i];
    if (total < 0 || total % 2 != 0) return false;
    pads[i] = pads[i + axes] = total / 2;
  }
  std::vector<Attribute> attributes = AttributesWithout(*node, {"output_shape", "auto_pad", "pads"});
  attributes.push_back(Attribute::Ints("pads", pads));
  Renew(workspace, node, std::move(attributes));
  return true;
}

// CenterCropPad (x, lengths): a Slice where an axis is longer than is wanted, a Pad with 0 where it is shorter. The odd element
// goes, or is added, at the end.
bool WriteCropAndPad(Workspace& workspace, const Node* node) {
  const Fact& x = workspace.facts().Of(node->input(0));
  const Fact& lengths = workspace.facts().Of(node->input(1));
  if (!x.has_rank || lengths.elements == nullptr) return false;
  const size_t rank = x.shape.size();
  std::vector<int64_t> axes = IntsAttribute(*node, "axes").value_or(std::vector<int64_t>());
  for (size_t i = axes.size(); i < rank && !FindAttribute(*node, "axes").has_value(); ++i)
    axes.push_back(static_cast<int64_t>(i));
  if (axes.size() != lengths.elements->integers.size()) return false;
  std::vector<int64_t> starts(rank, 0);
  std::vector<int64_t> ends;
  std::vector<int64_t> pads(2 * rank, 0);
  bool cropped = false;
  bool padded = false;
  for (const Dim dim : x.shape) ends.push_back(dim.is_number() ? dim.number() : INT64_MAX);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t place = NormalizeAxis(axes[i], x.rank());
    if (place < 0) return false;
    const size_t axis = static_cast<size_t>(place);
    const Dim wanted = lengths.elements->integers[i];
    if (!x.shape[axis].is_number() || !wanted.is_number() || wanted.number() < 0) return false;
    const int64_t surplus = x.shape[axis].number() - wanted.number();
    cropped = cropped || surplus > 0;
    padded = padded || surplus < 0;
    if (surplus > 0) {
      starts[axis] = surplus / 2;
      ends[axis] = starts[axis] + wanted.number();
    } else {
      pads[axis] = -surplus / 2;
      pads[axis + rank] = -surplus - pads[axis];
    }
  }
  NodeInserter inserter(workspace, *node);
  const Value* part = node->input(0);
  if (cropped && padded) part = inserter.Op("Slice", {part, inserter.Numbers(starts), inserter.Numbers(ends)});
  if (padded) {
    Rewrite(workspace, node, "Pad", {part, inserter.Numbers(pads)}, {});
  } else if (cropped) {
    Rewrite(workspace, node, "Slice", {part, inserter.Numbers(starts), inserter.Numbers(ends)}, {});
  } else {
    Rewrite(workspace, node, "Identity", {part}, {});
  }
  return true;
}

// Constant <sparse_value>: the whole, with zeros where nothing is given.
bool WriteSparseAsTensor(Workspace& workspace, const Node* node) {
  constexpr int64_t kMost = int64_t{1} << 20;  // elements
  const auto sparse = SparseAttribute(*node, "sparse_value");
  if (!sparse.has_value()) return false;
  const int64_t width = BitWidth(sparse->values.type) / 8;
  int64_t count = 1;
  for (const int64_t dim : sparse->dims) {
    if (dim < 0 || dim > kMost || count * dim > kMost) return false;
    count *= dim;
  }
  const auto values = ReadBytes(workspace.model(), sparse->values, kMost * 16);
  const auto places = ReadIntegers(workspace.model(), sparse->indices, kMost);
  if (width < 1 || !values.ok() || !places.ok() || sparse->dims.empty()) return false;
  const size_t given = values->size() / static_cast<size_t>(width);
  const size_t rank = sparse->indices.dims.size() == 2 ? sparse->dims.size() : 1;
  if (places->size() != given * rank) return false;
  std::string bytes(static_cast<size_t>(count * width), '\0');
  for (size_t i = 0; i < given; ++i) {
    int64_t place = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t index = (*places)[i * rank + axis];
      const int64_t length = rank == 1 ? count : sparse->dims[axis];
      if (index < 0 || index >= length) return false;
      place = place * length + index;
    }
    bytes.replace(static_cast<size_t>(place * width), static_cast<size_t>(width), *values, i * static_cast<size_t>(width),
                  static_cast<size_t>(width));
  }
  RewriteAsConstant(workspace, node, sparse->values.type, sparse->dims, bytes);
  return true;
}

// Constant <value_float> and its like: the same as a tensor. Texts stay.
bool WriteConstantAsTensor(Workspace& workspace, const Node* node) {
  const std::vector<Attribute> attributes = ReadAttributes(*node);
  if (attributes.size() != 1) return false;
  const Attribute& given = attributes[0];
  if (given.name == "sparse_value") return WriteSparseAsTensor(workspace, node);
  const auto integers = [](const int64_t* first, size_t count) {
    return std::string(reinterpret_cast<const char*>(first), count * sizeof(int64_t));
  };
  const auto floats = [](const float* first, size_t count) {
    return std::string(reinterpret_cast<const char*>(first), count * sizeof(float));
  };
  std::string bytes;
  std::vector<int64_t> dims;
  DataType type = DataType::kInt64;
  if (given.name == "value_int") {
    bytes = integers(&given.i, 1);
  } else if (given.name == "value_ints") {
    bytes = integers(given.ints.data(), given.ints.size());
    dims = {static_cast<int64_t>(given.ints.size())};
  } else if (given.name == "value_float") {
    type = DataType::kFloat;
    bytes = floats(&given.f, 1);
  } else if (given.name == "value_floats") {
    type = DataType::kFloat;
    bytes = floats(given.floats.data(), given.floats.size());
    dims = {static_cast<int64_t>(given.floats.size())};
  } else {
    return false;
  }
  RewriteAsConstant(workspace, node, type, dims, bytes);
  return true;
}

// If (cond) with a cond of shape [1]: ATC takes the number of its elements for it, and with it always the first branch.
bool WriteScalarCondition(Workspace& workspace, const Node* node) {
  const Fact& condition = workspace.facts().Of(node->input(0));
  if (!condition.has_rank || condition.rank() == 0) return false;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < condition.shape.size(); ++i) {
    if (!condition.shape[i].is(1)) return false;
    axes.push_back(static_cast<int64_t>(i));
  }
  workspace.rewriter().SetInput(node, 0, NodeInserter(workspace, *node).Squeeze(node->input(0), axes));
  return true;
}

}  // namespace

const std::vector<Adapter>& Adapters() {
  static const auto* const kAdapters = new std::vector<Adapter>{
      {"split-num-outputs", "Split", WriteSplitSizes},
      {"sum-broadcast", "Sum", WriteSumAsAdds},
      {"sum-type", "Sum", WriteSumAsAdds},
      {"sum-broadcast", "Mean", WriteMeanAsAdds},
      {"no-parser", "CenterCropPad", WriteCropAndPad},
      {"sum-type", "Mean", WriteMeanAsAdds},
      {"constant-of-shape-field", "ConstantOfShape", WriteRawValue},
      {"empty-optional-input", "LayerNormalization", DropEmptyInputs},
      {"empty-optional-input", "Gemm", DropEmptyInputs},
      {"empty-optional-input", "Conv", DropEmptyInputs},
      {"empty-optional-input", "ConvTranspose", DropEmptyInputs},
      {"conv-attributes", "Conv", WriteConvAttributes},
      {"conv-transpose-kernel", "ConvTranspose", WriteKernelShape},
      {"conv-transpose-shape", "ConvTranspose", WriteTransposedPads},
      {"constant-value-form", "Constant", WriteConstantAsTensor},
      {"if-condition-rank", "If", WriteScalarCondition},
      {"one-hot-depth", "OneHot", WriteOneHotAsComparison},
      {"scatter-reduction", "ScatterND", WriteScatterOfSums},
      {"scatter-reduction", "ScatterElements", WriteScatterOfSums},
      {"resize-nearest", "Resize", WriteResize},
      {"resize-attribute", "Resize", WriteResize},
      {"resize-form", "Resize", WriteResize},
  };
  return *kAdapters;
}

}  // namespace ascend_fuse
