// Adapters of Resize. ATC reads neither nearest_mode nor axes nor keep_aspect_ratio_policy, and nearest of four dims only
// (docs/sources/atc-op-audit.md, W12 and R14). By whole factors, the nearest element of half_pixel is that of asymmetric with
// floor, which is read. Of lengths that are known, nearest is a Gather along each axis.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/infer/context.h"
#include "ir/movement/axis.h"
#include "passes/core/node_inserter.h"
#include "passes/legalise/adapters.h"

namespace ascend_fuse {
namespace {

// One axis: its length and that of the result, -1 where that is not known, and what the coordinates are divided by, 0 where
// that is not.
struct Axis {
  int64_t length = -1;
  int64_t result = -1;
  float scale = 1;
};

struct Words {
  std::string mode;
  std::string coordinates;
  std::string nearest;
  std::string policy;
};

Words WordsOf(const Node& node) {
  const auto word = [&](std::string_view name, std::string_view otherwise) {
    return std::string(StringAttribute(node, name).value_or(otherwise));
  };
  return {word("mode", "nearest"), word("coordinate_transformation_mode", "half_pixel"),
          word("nearest_mode", "round_prefer_floor"), word("keep_aspect_ratio_policy", "stretch")};
}

// Opsets before 13 have an empty tensor for what is not given.
bool IsGiven(const Workspace& workspace, const Node& node, size_t i) {
  if (i >= node.input_count || node.input(i) == nullptr) return false;
  const Fact& fact = workspace.facts().Of(node.input(i));
  return !(fact.has_rank && fact.rank() == 1 && fact.shape[0].is(0));
}

// Which axes the scales or sizes are of, from the front. Empty where that is not known.
std::vector<size_t> AxesOf(const Node& node, int64_t rank) {
  std::vector<int64_t> given = IntsAttribute(node, "axes").value_or(std::vector<int64_t>());
  if (!FindAttribute(node, "axes").has_value()) {
    for (int64_t axis = 0; axis < rank; ++axis) given.push_back(axis);
  }
  std::vector<size_t> axes;
  for (const int64_t axis : given) {
    const int64_t place = NormalizeAxis(axis, rank);
    if (place < 0) return {};
    axes.push_back(static_cast<size_t>(place));
  }
  return axes;
}

// Whether all axes are named, in their order.
bool NamesAllAxes(const Workspace& workspace, const Node& node) {
  const Fact& x = workspace.facts().Of(node.input(0));
  const std::vector<size_t> axes = x.has_rank ? AxesOf(node, x.rank()) : std::vector<size_t>();
  return !axes.empty() && axes.size() == x.shape.size() && std::is_sorted(axes.begin(), axes.end());
}

// The length of an axis times a factor; nullopt where no tensor is so long.
std::optional<int64_t> LengthOf(double exact) {
  if (!(exact >= 0 && exact <= static_cast<double>(infer::kLargestSize))) return std::nullopt;
  return static_cast<int64_t>(exact);
}

// Sizes for a factor that keeps the aspect ratio: the smallest or the largest of those that the sizes ask for.
bool KeepAspect(const Words& words, const std::vector<size_t>& axes, const std::vector<int64_t>& sizes, std::vector<Axis>* all) {
  std::vector<float> factors;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t length = (*all)[axes[i]].length;
    if (length < 1) return false;
    factors.push_back(static_cast<float>(sizes[i]) / static_cast<float>(length));
  }
  const bool smaller = words.policy == "not_larger";
  if (!smaller && words.policy != "not_smaller") return false;
  const float factor =
      smaller ? *std::min_element(factors.begin(), factors.end()) : *std::max_element(factors.begin(), factors.end());
  for (const size_t axis : axes) {
    Axis& one = (*all)[axis];
    one.scale = factor;
    const double exact = static_cast<double>(factor) * static_cast<double>(one.length);
    const std::optional<int64_t> result = LengthOf(std::floor(exact + 0.5));
    if (!result.has_value()) return false;
    one.result = *result;
    // Where a rounding decides the length, readers differ.
    if (std::abs(exact - std::floor(exact) - 0.5) < 1e-3) return false;
  }
  return true;
}

// What becomes of each axis; nullopt where neither scales nor sizes are constant.
std::optional<std::vector<Axis>> AxesWithScales(const Workspace& workspace, const Node& node, const Words& words) {
  const Fact& x = workspace.facts().Of(node.input(0));
  if (!x.has_rank) return std::nullopt;
  std::vector<Axis> all;
  for (const Dim dim : x.shape) {
    const Dim known = workspace.facts().dims().Resolve(dim);
    const int64_t length = known.is_number() ? known.number() : -1;
    all.push_back({length, length, 1});
  }
  const std::vector<size_t> axes = AxesOf(node, x.rank());
  const bool by_sizes = IsGiven(workspace, node, 3);
  if (axes.empty() || by_sizes == IsGiven(workspace, node, 2)) return std::nullopt;
  const Fact& factors = workspace.facts().Of(node.input(by_sizes ? 3 : 2));
  if (factors.elements == nullptr) return std::nullopt;
  if ((by_sizes ? factors.elements->integers.size() : factors.elements->floats.size()) != axes.size()) return std::nullopt;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis& axis = all[axes[i]];
    if (!by_sizes) {
      axis.scale = static_cast<float>(factors.elements->floats[i]);
      if (!(axis.scale > 0)) return std::nullopt;
      if (axis.length >= 0) {
        const std::optional<int64_t> result = LengthOf(std::floor(static_cast<float>(axis.length) * axis.scale));
        if (!result.has_value()) return std::nullopt;
        axis.result = *result;
      }
      if (axis.length < 0 && axis.scale != 1) axis.result = -1;
      continue;
    }
    const Dim size = factors.elements->integers[i];
    if (!size.is_number() || size.number() < 1) return std::nullopt;
    sizes.push_back(size.number());
    axis.result = size.number();
    axis.scale = axis.length > 0 ? static_cast<float>(axis.result) / static_cast<float>(axis.length) : 0;
  }
  if (by_sizes && words.policy != "stretch" && !KeepAspect(words, axes, sizes, &all)) return std::nullopt;
  return all;
}

// Where element i of the result lies among those of the axis.
template <typename Float>
std::optional<Float> Coordinate(const Words& words, const Axis& axis, int64_t i) {
  const Float at = static_cast<Float>(i);
  const Float scale = static_cast<Float>(axis.scale);
  const Float half = static_cast<Float>(0.5);
  if (words.coordinates == "asymmetric") return at / scale;
  if (words.coordinates == "half_pixel") return (at + half) / scale - half;
  if (words.coordinates == "pytorch_half_pixel") return axis.result > 1 ? (at + half) / scale - half : static_cast<Float>(0);
  if (words.coordinates == "align_corners") {
    if (axis.result == 1) return static_cast<Float>(0);
    return at * static_cast<Float>(axis.length - 1) / static_cast<Float>(axis.result - 1);
  }
  if (words.coordinates == "half_pixel_symmetric") {
    const Float adjustment = static_cast<Float>(axis.result) / (scale * static_cast<Float>(axis.length));
    const Float center = static_cast<Float>(axis.length) / 2;
    return center * (1 - adjustment) + (at + half) / scale - half;
  }
  return std::nullopt;
}

template <typename Float>
std::optional<int64_t> Nearest(const Words& words, const Axis& axis, int64_t i) {
  const std::optional<Float> at = Coordinate<Float>(words, axis, i);
  if (!at.has_value()) return std::nullopt;
  Float place = 0;
  if (words.nearest == "floor") {
    place = std::floor(*at);
  } else if (words.nearest == "ceil") {
    place = std::ceil(*at);
  } else if (words.nearest == "round_prefer_floor") {
    place = std::ceil(*at - static_cast<Float>(0.5));
  } else if (words.nearest == "round_prefer_ceil") {
    place = std::floor(*at + static_cast<Float>(0.5));
  } else {
    return std::nullopt;
  }
  return std::clamp<int64_t>(static_cast<int64_t>(place), 0, axis.length - 1);
}

// The element of the axis that each of the result is. Empty where a coordinate is so near to where rounding changes that float
// and double disagree.
std::vector<int64_t> Elements(const Words& words, const Axis& axis) {
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < axis.result; ++i) {
    const auto place = Nearest<float>(words, axis, i);
    if (!place.has_value() || place != Nearest<double>(words, axis, i)) return {};
    elements.push_back(*place);
  }
  return elements;
}

bool Changes(const Axis& axis) { return axis.scale != 1 || axis.result != axis.length; }

// Nearest by whole factors.
bool IsWhole(const Words& words, const std::vector<Axis>& axes) {
  const bool centred = words.coordinates == "half_pixel" || words.coordinates == "half_pixel_symmetric" ||
                       words.coordinates == "pytorch_half_pixel";
  const bool rounded = words.nearest == "round_prefer_floor" || words.nearest == "round_prefer_ceil";
  const bool floors = words.coordinates == "asymmetric" && words.nearest == "floor";
  return (floors || (centred && rounded)) && std::all_of(axes.begin(), axes.end(), [](const Axis& axis) {
           return axis.scale >= 1 && axis.scale == std::floor(axis.scale);
         });
}

// Scales or sizes of all axes as an input, those of the axes that stay 1 or their length.
std::vector<const Value*> WholeInputs(Workspace& workspace, const Node& node, const std::vector<Axis>& axes) {
  std::vector<const Value*> inputs = {node.input(0), node.input(1)};
  if (IsGiven(workspace, node, 3)) {
    std::vector<int64_t> sizes;
    for (const Axis& axis : axes) sizes.push_back(axis.result);
    if (std::count(sizes.begin(), sizes.end(), -1) > 0) return {};
    inputs.push_back(node.input(2));
    inputs.push_back(NodeInserter(workspace, node).Numbers(sizes));
    return inputs;
  }
  std::string bytes;
  for (const Axis& axis : axes) bytes.append(reinterpret_cast<const char*>(&axis.scale), sizeof axis.scale);
  const std::vector<int64_t> dims = {static_cast<int64_t>(axes.size())};
  const Value* const scales =
      workspace.rewriter().Constant(node.graph, DataType::kFloat, dims, bytes, std::string(Label(node)) + "_scales");
  InferConstant(scales, &workspace.facts());
  inputs.push_back(scales);
  return inputs;
}

bool WriteNearest(Workspace& workspace, const Node* node, const Words& words, const std::vector<Axis>& axes) {
  constexpr int64_t kMost = 65536;
  if (IsWhole(words, axes) && axes.size() == 4 && words.policy == "stretch") {
    std::vector<const Value*> inputs = WholeInputs(workspace, *node, axes);
    if (inputs.empty()) return false;
    std::vector<Attribute> attributes = {Attribute::String("mode", "nearest"),
                                         Attribute::String("coordinate_transformation_mode", "asymmetric"),
                                         Attribute::String("nearest_mode", "floor")};
    Rewrite(workspace, node, "Resize", std::move(inputs), std::move(attributes));
    return true;
  }
  std::vector<std::vector<int64_t>> elements(axes.size());
  size_t last = axes.size();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!Changes(axes[i])) continue;
    if (axes[i].length < 1 || axes[i].result < 1 || axes[i].result > kMost) return false;
    elements[i] = Elements(words, axes[i]);
    if (elements[i].empty()) return false;
    last = i;
  }
  if (last == axes.size()) {
    Rewrite(workspace, node, "Identity", {node->input(0)}, {});
    return true;
  }
  NodeInserter inserter(workspace, *node);
  const Value* x = node->input(0);
  for (size_t i = 0; i < last; ++i) {
    if (elements[i].empty()) continue;
    x = inserter.Op("Gather", {x, inserter.Numbers(elements[i])}, {Attribute::Int("axis", static_cast<int64_t>(i))});
  }
  Rewrite(workspace, node, "Gather", {x, inserter.Numbers(elements[last])}, {Attribute::Int("axis", static_cast<int64_t>(last))});
  return true;
}

}  // namespace

bool WriteResize(Workspace& workspace, const Node* node) {
  if (workspace.model().OpsetVersion() < 11) return false;
  const Words words = WordsOf(*node);
  if (words.coordinates == "tf_crop_and_resize" || IntAttribute(*node, "antialias").value_or(0) != 0) return false;
  const auto axes = AxesWithScales(workspace, *node, words);
  if (words.mode == "nearest") return axes.has_value() && WriteNearest(workspace, node, words, *axes);
  // Of the others only the axes are written anew: what else is not read has no other spelling.
  const bool some = FindAttribute(*node, "axes").has_value() && words.policy == "stretch";
  const bool unread = words.mode == "cubic" && (FloatAttribute(*node, "cubic_coeff_a").value_or(-0.75F) != -0.75F ||
                                                IntAttribute(*node, "exclude_outside").value_or(0) != 0);
  if (!some || unread) return false;
  std::vector<Attribute> attributes = AttributesWithout(*node, {"axes", "antialias", "keep_aspect_ratio_policy"});
  if (NamesAllAxes(workspace, *node)) {
    Renew(workspace, node, std::move(attributes));
    return true;
  }
  std::vector<const Value*> inputs = axes.has_value() ? WholeInputs(workspace, *node, *axes) : std::vector<const Value*>();
  if (inputs.empty()) return false;
  Rewrite(workspace, node, "Resize", std::move(inputs), std::move(attributes));
  return true;
}

}  // namespace ascend_fuse
