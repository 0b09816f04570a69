// Adapters of operators that write elements to places that an input names: OneHot and the scatters.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/movement/axis.h"
#include "passes/core/node_inserter.h"
#include "passes/legalise/adapters.h"

namespace ascend_fuse {
namespace {

template <typename Integer>
std::string BytesOf(const std::vector<int64_t>& numbers) {
  std::string bytes;
  for (const int64_t number : numbers) {
    const Integer one = static_cast<Integer>(number);
    bytes.append(reinterpret_cast<const char*>(&one), sizeof one);
  }
  return bytes;
}

// A constant beside the node, of type int32 or int64.
const Value* Integers(Workspace& workspace, const Node& node, DataType type, const std::vector<int64_t>& dims,
                      const std::vector<int64_t>& numbers) {
  const std::string bytes = type == DataType::kInt32 ? BytesOf<int32_t>(numbers) : BytesOf<int64_t>(numbers);
  const Value* const value = workspace.rewriter().Constant(node.graph, type, dims, bytes, std::string(Label(node)) + "_constant");
  InferConstant(value, &workspace.facts());
  return value;
}

// The elements of a constant, and its dims.
struct Table {
  std::vector<int64_t> numbers;
  std::vector<int64_t> dims;
};

std::optional<Table> ConstantOf(const Workspace& workspace, const Value* value) {
  const Fact& fact = workspace.facts().Of(value);
  if (fact.elements == nullptr || !fact.has_rank || !IsInteger(fact.type)) return std::nullopt;
  Table table;
  for (const Dim dim : fact.shape) table.dims.push_back(dim.is_number() ? dim.number() : -1);
  for (const Dim number : fact.elements->integers) {
    if (!number.is_number()) return std::nullopt;
    table.numbers.push_back(number.number());
  }
  return table;
}

// A depth, which ONNX lets be of any type of number.
std::optional<int64_t> DepthOf(const Workspace& workspace, const Value* value) {
  const Fact& fact = workspace.facts().Of(value);
  if (fact.elements == nullptr) return std::nullopt;
  if (fact.elements->floats.size() == 1) return static_cast<int64_t>(std::clamp(fact.elements->floats[0], 0.0, 1e9));
  if (fact.elements->integers.size() != 1 || !fact.elements->integers[0].is_number()) return std::nullopt;
  return fact.elements->integers[0].number();
}

// Counts a place of an axis from the front; false where it is not known to be there.
bool FromFront(const Workspace& workspace, const Fact& data, size_t axis, int64_t* place) {
  const Dim dim = workspace.facts().dims().Resolve(data.shape[axis]);
  if (*place < 0 && !dim.is_number()) return false;
  if (*place < 0) *place += dim.number();
  return *place >= 0 && (!dim.is_number() || *place < dim.number());
}

// The places of data that the indices name: one for each row of them, none twice. Empty where that is not so.
std::vector<int64_t> PlacesOfRows(const Workspace& workspace, const Fact& data, const Table& indices) {
  const int64_t depth = indices.dims.empty() ? 0 : indices.dims.back();
  if (depth < 1 || depth > data.rank()) return {};
  std::set<std::vector<int64_t>> seen;
  std::vector<int64_t> places = indices.numbers;
  for (size_t first = 0; first < places.size(); first += static_cast<size_t>(depth)) {
    for (size_t axis = 0; axis < static_cast<size_t>(depth); ++axis) {
      if (!FromFront(workspace, data, axis, &places[first + axis])) return {};
    }
    const auto begin = places.begin() + static_cast<int64_t>(first);
    if (!seen.insert(std::vector<int64_t>(begin, begin + depth)).second) return {};
  }
  return places;
}

// The same of ScatterElements: an element of the indices names the place along the axis, its own place the others.
std::vector<int64_t> PlacesOfElements(const Workspace& workspace, const Fact& data, const Table& indices, int64_t axis) {
  const int64_t rank = data.rank();
  const int64_t at = NormalizeAxis(axis, rank);
  if (at < 0 || indices.dims.size() != static_cast<size_t>(rank)) return {};
  std::set<std::vector<int64_t>> seen;
  std::vector<int64_t> places = indices.numbers;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!FromFront(workspace, data, static_cast<size_t>(at), &places[i])) return {};
    std::vector<int64_t> place(static_cast<size_t>(rank), 0);
    int64_t left = static_cast<int64_t>(i);
    for (size_t d = place.size(); d > 0; --d) {
      place[d - 1] = left % indices.dims[d - 1];
      left /= indices.dims[d - 1];
    }
    place[static_cast<size_t>(at)] = places[i];
    if (!seen.insert(std::move(place)).second) return {};
  }
  return places;
}

}  // namespace

bool WriteScatterOfSums(Workspace& workspace, const Node* node) {
  const std::string word(StringAttribute(*node, "reduction").value_or("none"));
  const std::string op = word == "add" ? "Add" : word == "mul" ? "Mul" : word == "max" ? "Max" : word == "min" ? "Min" : "";
  const Fact& data = workspace.facts().Of(node->input(0));
  const auto indices = ConstantOf(workspace, node->input(1));
  const DataType type = workspace.facts().Of(node->input(1)).type;
  if (op.empty() || !indices.has_value() || !data.has_rank || (type != DataType::kInt64 && type != DataType::kInt32))
    return false;
  if (!IsFloat(data.type) && data.type != DataType::kInt32 && data.type != DataType::kInt64) return false;
  const bool elements = IsOp(*node, "ScatterElements");
  const int64_t axis = IntAttribute(*node, "axis").value_or(0);
  const std::vector<int64_t> places =
      elements ? PlacesOfElements(workspace, data, *indices, axis) : PlacesOfRows(workspace, data, *indices);
  if (places.empty()) return false;
  const Value* const from_front = Integers(workspace, *node, type, indices->dims, places);
  NodeInserter inserter(workspace, *node);
  std::vector<Attribute> attributes;
  if (elements) attributes.push_back(Attribute::Int("axis", axis));
  const Value* const before = inserter.Op(elements ? "GatherElements" : "GatherND", {node->input(0), from_front}, attributes);
  const Value* const after = inserter.Op(op, {before, node->input(2)});
  Rewrite(workspace, node, std::string(OpType(*node)), {node->input(0), from_front, after}, std::move(attributes));
  return true;
}

bool WriteOneHotAsComparison(Workspace& workspace, const Node* node) {
  constexpr int64_t kMost = 65536;  // places
  const Fact& indices = workspace.facts().Of(node->input(0));
  const std::optional<int64_t> depth = DepthOf(workspace, node->input(1));
  // Of other types they are what a Cast makes of them.
  const DataType type = indices.type == DataType::kInt32 ? DataType::kInt32 : DataType::kInt64;
  if (!indices.has_rank || (!IsFloat(indices.type) && !IsInteger(indices.type))) return false;
  if (!depth.has_value() || *depth < 1 || *depth > kMost) return false;
  if (workspace.facts().Of(node->input(2)).type == DataType::kBool || workspace.model().OpsetVersion() < 11) return false;
  const int64_t n = *depth;
  const int64_t rank = indices.rank();
  const int64_t written = IntAttribute(*node, "axis").value_or(-1);
  const int64_t axis = NormalizeAxis(written, rank + 1);
  if (axis < 0) return false;
  NodeInserter inserter(workspace, *node);
  const auto number = [&](int64_t value) { return Integers(workspace, *node, type, {1}, {value}); };
  const Value* given = node->input(0);
  if (indices.type != type) given = inserter.Op("Cast", {given}, {Attribute::Int("to", static_cast<int64_t>(type))});
  // -1 is the last place, and what is before the first one is nowhere.
  const Value* const below = inserter.Op("Less", {given, number(0)});
  const Value* const front = inserter.Op("Where", {below, inserter.Op("Add", {given, number(n)}), given});
  std::vector<int64_t> places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  std::vector<int64_t> dims(static_cast<size_t>(rank - axis) + 1, 1);
  dims[0] = n;
  const Value* const row = rank == 0 ? front : inserter.Unsqueeze(front, {axis});
  const Value* const hot = inserter.Op("Equal", {row, Integers(workspace, *node, type, dims, places)});
  const Value* const off = inserter.Op("Gather", {node->input(2), inserter.Numbers({0})});
  const Value* const on = inserter.Op("Gather", {node->input(2), inserter.Numbers({1})});
  Rewrite(workspace, node, "Where", {hot, on, off}, {});
  return true;
}

}  // namespace ascend_fuse
