#include "passes/layout/zero_padding.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "passes/core/node_inserter.h"
#include "passes/layout/regrouped_padding.h"
#include "patterns/analysis/einsum_letters.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

using Operands = absl::StatusOr<std::vector<PaddedOperand>>;

absl::Status No(std::string_view clause) { return absl::FailedPreconditionError(std::string(clause)); }

std::string Named(const Node& node) { return fmt::format("{} '{}'", OpType(node), Label(node)); }

std::vector<PaddedPart> Whole(const ZeroPadding& padding) {
  std::vector<PaddedPart> parts;
  for (const Places& places : padding) parts.push_back({0, -1, places});
  return parts;
}

std::optional<int64_t> AxisOf(const Node& node, std::string_view name, int64_t fallback, int rank) {
  const int64_t axis = NormalizeAxis(IntAttribute(node, name).value_or(fallback), rank);
  return axis >= 0 ? std::optional(axis) : std::nullopt;
}

// --- one rule for each kind of node ---

// Operands that are broadcast together: one with a dim of 1 along an axis has nothing to be padded there. Zeros may meet such a
// one where it is a factor, and not where it is added.
Operands OfElementwise(const Facts& facts, const Node& node, const ZeroPadding& out) {
  const bool product = IsOp(node, "Mul") || IsOp(node, "Div");
  std::vector<PaddedOperand> operands;
  for (size_t i = 0; i < 2; ++i) {
    const Fact& fact = facts.Of(node.input(i));
    if (!fact.has_rank || fact.rank() > static_cast<int>(out.size()))
      return No(fmt::format("the shape that {} reads is not known", Named(node)));
    const size_t missing = out.size() - fact.shape.size();
    ZeroPadding own(fact.shape.size());
    bool lacks = false;
    for (size_t axis = 0; axis < out.size(); ++axis) {
      if (out[axis].empty()) continue;
      const bool one = axis < missing || facts.dims().Resolve(fact.shape[axis - missing]).is(1);
      lacks = lacks || one;
      if (!one) own[axis - missing] = out[axis];
    }
    if (lacks && !product) return No(fmt::format("{} adds to zeros", Named(node)));
    if (IsOp(node, "Div") && i == 1 && IsPadded(own)) return No(fmt::format("{} would divide by zeros", Named(node)));
    if (IsOp(node, "Div") && i == 0 && lacks) return No(fmt::format("{} would divide by zeros", Named(node)));
    if (IsPadded(own)) operands.push_back({i, Whole(own)});
  }
  return operands;
}

// The axes of what a Transpose gives, by the axes that it reads; none where they are not known.
absl::Span<const AxisSource> TransposedAxes(const Facts& facts, const Node& node, size_t rank) {
  const Movement* movement = facts.MovementOf(node.output());
  if (movement == nullptr || !movement->parts[0].known || movement->parts[0].axes.size() != rank) return {};
  return movement->parts[0].axes;
}

Operands OfTranspose(const Facts& facts, const Node& node, const ZeroPadding& out) {
  const absl::Span<const AxisSource> axes = TransposedAxes(facts, node, out.size());
  if (axes.empty()) return No("the axes of a Transpose are not known");
  ZeroPadding in;
  for (const AxisSource& source : axes) in.push_back(out[static_cast<size_t>(source.axis)]);
  return std::vector<PaddedOperand>{{0, Whole(in)}};
}

Operands OfReshape(Facts& facts, const Node& node, const ZeroPadding& out) {
  const Fact& in = facts.Of(node.input(0));
  if (!in.has_rank) return No(fmt::format("the shape that {} reads is not known", Named(node)));
  const auto padding = RegroupPadding(facts.dims(), facts.Of(node.output()).shape, out, in.shape);
  if (!padding.has_value()) {
    return No(fmt::format("{} takes {} to {}, across the heads", Named(node), facts.Describe(node.input(0)),
                          facts.Describe(node.output())));
  }
  return std::vector<PaddedOperand>{{0, Whole(*padding)}};
}

// A cut along one axis: what each output takes, one after another.
struct Cut {
  size_t axis = 0;
  bool drops_axis = false;  // a Gather by one index
  std::vector<int64_t> starts;
  std::vector<int64_t> lengths;
};

// The axis that a Slice, Split or Gather cuts, and where. Of a Slice, the one that is cut and not whole.
std::optional<Cut> CutOf(const Facts& facts, const Node& node) {
  const Fact& in = facts.Of(node.input(0));
  if (in.rank() < 1) return std::nullopt;
  const auto size_of = [&](int64_t axis) {
    const Dim dim = facts.dims().Resolve(in.shape[static_cast<size_t>(axis)]);
    return dim.is_number() ? dim.number() : int64_t{-1};
  };
  Cut cut;
  if (IsOp(node, "Gather")) {
    const auto axis = AxisOf(node, "axis", 0, in.rank());
    const Fact& index = facts.Of(node.input(1));
    if (!axis.has_value() || index.elements == nullptr || index.elements->integers.size() != 1 || index.rank() > 1)
      return std::nullopt;
    const Dim at = index.elements->integers[0];
    if (!at.is_number() || size_of(*axis) < 0) return std::nullopt;
    cut.axis = static_cast<size_t>(*axis);
    cut.drops_axis = index.rank() == 0;
    cut.starts = {NormalizePosition(at.number(), size_of(*axis))};
    cut.lengths = {1};
  } else if (IsOp(node, "Split")) {
    const auto axis = AxisOf(node, "axis", 0, in.rank());
    if (!axis.has_value()) return std::nullopt;
    cut.axis = static_cast<size_t>(*axis);
    int64_t start = 0;
    for (const Value* output : node.outputs()) {
      if (output == nullptr || facts.Of(output).rank() != in.rank()) return std::nullopt;
      const Dim length = facts.dims().Resolve(facts.Of(output).shape[cut.axis]);
      if (!length.is_number()) return std::nullopt;
      cut.starts.push_back(start);
      cut.lengths.push_back(length.number());
      start += length.number();
    }
    if (start != size_of(*axis)) return std::nullopt;
  } else if (IsOp(node, "Slice")) {
    const auto starts = IntsParameter(facts, node, "starts", 1);
    const auto ends = IntsParameter(facts, node, "ends", 2);
    const auto axes = IntsParameter(facts, node, "axes", 3);
    const auto steps = IntsParameter(facts, node, "steps", 4);
    if (!starts.has_value() || !ends.has_value() || starts->size() != 1 || ends->size() != 1) return std::nullopt;
    if (axes.has_value() ? axes->size() != 1 : node.input(3) != nullptr) return std::nullopt;
    if (steps.has_value() ? *steps != std::vector<int64_t>{1} : node.input(4) != nullptr) return std::nullopt;
    const int64_t axis = NormalizeAxis(axes.has_value() ? (*axes)[0] : 0, in.rank());
    if (axis < 0 || size_of(axis) < 0) return std::nullopt;
    const SliceRange range = RangeOfSlice((*starts)[0], (*ends)[0], 1, size_of(axis));
    cut.axis = static_cast<size_t>(axis);
    cut.starts = {range.start};
    cut.lengths = {range.count};
  } else {
    return std::nullopt;
  }
  const bool fits = std::all_of(cut.lengths.begin(), cut.lengths.end(), [](int64_t length) { return length > 0; });
  return fits && cut.starts[0] >= 0 ? std::optional(cut) : std::nullopt;
}

// A Slice or Gather along axes that are not padded, wherever it cuts: the padding of its input.
std::optional<ZeroPadding> BesideCut(const Facts& facts, const Node& node, const ZeroPadding& out) {
  const int rank = facts.Of(node.input(0)).rank();
  if (IsOp(node, "Slice")) {
    const auto axes = IntsParameter(facts, node, "axes", 3);
    if (!axes.has_value() || rank != static_cast<int>(out.size())) return std::nullopt;
    for (const int64_t axis : *axes) {
      const int64_t at = NormalizeAxis(axis, rank);
      if (at < 0 || !out[static_cast<size_t>(at)].empty()) return std::nullopt;
    }
    return out;
  }
  if (!IsOp(node, "Gather") || rank < 1) return std::nullopt;
  const auto axis = AxisOf(node, "axis", 0, rank);
  const int indices = facts.Of(node.input(1)).rank();
  if (!axis.has_value() || indices < 0 || static_cast<int>(out.size()) != rank - 1 + indices) return std::nullopt;
  ZeroPadding in(out.begin(), out.begin() + *axis);
  for (int i = 0; i < indices; ++i) {
    if (!out[static_cast<size_t>(*axis + i)].empty()) return std::nullopt;
  }
  in.emplace_back();
  in.insert(in.end(), out.begin() + *axis + indices, out.end());
  return in;
}

Operands OfCut(const Facts& facts, const Node& node, absl::Span<const ZeroPadding> outputs) {
  const std::optional<Cut> cut = CutOf(facts, node);
  if (!cut.has_value()) {
    const std::optional<ZeroPadding> beside = outputs.size() == 1 ? BesideCut(facts, node, outputs[0]) : std::nullopt;
    if (beside.has_value()) return std::vector<PaddedOperand>{{0, Whole(*beside)}};
    return No(fmt::format("{} cuts at places that are not known", Named(node)));
  }
  const auto rank = static_cast<size_t>(facts.Of(node.input(0)).rank());
  std::vector<PaddedPart> parts(rank);
  Places along;
  int64_t length = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t axis = 0; axis < rank; ++axis) {
      const bool cuts = axis == cut->axis;
      const size_t own = axis - (cut->drops_axis && axis > cut->axis ? 1 : 0);
      const Places none;
      const Places& places = cuts && cut->drops_axis ? none : own < outputs[i].size() ? outputs[i][own] : none;
      if (!cuts) {
        if (i > 0 && parts[axis].places != places) return No(fmt::format("what {} gives is padded in two ways", Named(node)));
        parts[axis].places = places;
        continue;
      }
      for (const int64_t from : places.empty() ? AllPlaces(cut->lengths[i]) : places)
        along.push_back(from < 0 ? -1 : length + from);
      length += cut->lengths[i];
    }
  }
  parts[cut->axis] = {cut->starts[0], length, std::move(along)};
  return std::vector<PaddedOperand>{{0, std::move(parts)}};
}

Operands OfConcat(const Facts& facts, const Node& node, const ZeroPadding& out) {
  const auto axis = AxisOf(node, "axis", 0, static_cast<int>(out.size()));
  if (!axis.has_value() || !out[static_cast<size_t>(*axis)].empty())
    return No(fmt::format("{} joins parts of a head", Named(node)));
  std::vector<PaddedOperand> operands;
  for (size_t i = 0; i < node.input_count; ++i) {
    if (facts.Of(node.input(i)).rank() != static_cast<int>(out.size()))
      return No(fmt::format("the shape that {} reads is not known", Named(node)));
    operands.push_back({i, Whole(out)});
  }
  return operands;
}

// Whether nothing but `axis` is padded.
bool OnlyAlong(const ZeroPadding& out, size_t axis) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (i != axis && !out[i].empty()) return false;
  }
  return axis < out.size();
}

// One axis of an operand of this rank.
PaddedOperand Along(size_t index, int rank, size_t axis, const Places& places) {
  ZeroPadding padding(static_cast<size_t>(rank));
  padding[axis] = places;
  return {index, Whole(padding)};
}

Operands OfMatMul(const Facts& facts, const Node& node, const ZeroPadding& out) {
  const int left = facts.Of(node.input(0)).rank();
  const int right = facts.Of(node.input(1)).rank();
  if (left < 2 || right < 2 || out.size() < 2) return No(fmt::format("{} multiplies no matrices", Named(node)));
  if (OnlyAlong(out, out.size() - 1)) {
    return std::vector<PaddedOperand>{Along(1, right, static_cast<size_t>(right - 1), out.back())};
  }
  if (OnlyAlong(out, out.size() - 2)) {
    return std::vector<PaddedOperand>{Along(0, left, static_cast<size_t>(left - 2), out[out.size() - 2])};
  }
  return No(fmt::format("{} has heads as a batch", Named(node)));
}

Operands OfGemm(const Facts& facts, const Node& node, const ZeroPadding& out) {
  if (!OnlyAlong(out, 1)) return No(fmt::format("{} has its heads in the rows", Named(node)));
  std::vector<PaddedOperand> operands = {Along(1, 2, IntAttribute(node, "transB").value_or(0) != 0 ? 0 : 1, out[1])};
  if (node.input(2) != nullptr) {
    const Fact& bias = facts.Of(node.input(2));
    const bool full = bias.rank() >= 1 && facts.dims().Equal(bias.shape.back(), facts.Of(node.output()).shape[1]);
    if (!full) return No(fmt::format("{} adds to zeros", Named(node)));
    operands.push_back(Along(2, bias.rank(), bias.shape.size() - 1, out[1]));
  }
  return operands;
}

Operands OfConv(const Facts& facts, const Node& node, const ZeroPadding& out) {
  const int rank = facts.Of(node.input(1)).rank();
  if (!OnlyAlong(out, 1) || rank < 3 || IntAttribute(node, "group").value_or(1) != 1) {
    return No(fmt::format("{} is in groups, or has heads along other axes than the channels", Named(node)));
  }
  std::vector<PaddedOperand> operands = {Along(1, rank, 0, out[1])};
  if (node.input(2) != nullptr) operands.push_back(Along(2, 1, 0, out[1]));
  return operands;
}

// (0 - 0) / sqrt (0 + epsilon) * 0 + 0
Operands OfBatchNormalization(const Facts&, const Node& node, const ZeroPadding& out) {
  const bool inference = IntAttribute(node, "training_mode").value_or(0) == 0 && node.input_count == 5;
  const float epsilon = FloatAttribute(node, "epsilon").value_or(1e-5F);
  if (!inference || !OnlyAlong(out, 1) || !(epsilon > 0)) return No(fmt::format("{} makes numbers of zeros", Named(node)));
  std::vector<PaddedOperand> operands = {{0, Whole(out)}};
  for (size_t i = 1; i < 5; ++i) operands.push_back(Along(i, 1, 0, out[1]));
  return operands;
}

// The letters of each operand and of the result: "bsd,dhk->bshk". nullopt for an equation with dots, whose axes are broadcast, or
// without an arrow.
std::optional<std::vector<std::string>> Letters(const Facts& facts, const Node& node) {
  const std::string_view equation = StringAttribute(node, "equation").value_or("");
  if (equation.find('.') != std::string_view::npos || equation.find("->") == std::string_view::npos) return std::nullopt;
  std::vector<size_t> ranks;
  for (const Use& operand : node.inputs()) {
    const int rank = operand.value != nullptr ? facts.Of(operand.value).rank() : -1;
    if (rank < 0) return std::nullopt;
    ranks.push_back(static_cast<size_t>(rank));
  }
  auto letters = EinsumLetters(equation, ranks);
  return letters.ok() ? std::optional(*std::move(letters)) : std::nullopt;
}

Operands OfEinsum(const Facts& facts, const Node& node, const ZeroPadding& out) {
  const auto letters = Letters(facts, node);
  if (!letters.has_value() || letters->back().size() != out.size())
    return No(fmt::format("the equation of {} is not known", Named(node)));
  std::vector<PaddedOperand> operands;
  for (size_t i = 0; i < node.input_count; ++i) {
    const std::string& own = (*letters)[i];
    ZeroPadding padding(own.size());
    for (size_t axis = 0; axis < own.size(); ++axis) {
      const size_t at = letters->back().find(own[axis]);
      if (at != std::string::npos) padding[axis] = out[at];
    }
    if (IsPadded(padding)) operands.push_back({i, Whole(padding)});
  }
  return operands;
}

// Each element by itself.
Operands OfSame(const Facts&, const Node&, const ZeroPadding& out) { return std::vector<PaddedOperand>{{0, Whole(out)}}; }

// Operators of one output, by what their operands have to be for it to be padded.
constexpr std::pair<std::string_view, Operands (*)(const Facts&, const Node&, const ZeroPadding&)> kOperators[] = {
    {"Cast", OfSame},       {"Neg", OfSame},        {"Transpose", OfTranspose}, {"Add", OfElementwise},
    {"Sub", OfElementwise}, {"Mul", OfElementwise}, {"Div", OfElementwise},     {"Concat", OfConcat},
    {"MatMul", OfMatMul},   {"Gemm", OfGemm},       {"Conv", OfConv},           {"BatchNormalization", OfBatchNormalization},
    {"Einsum", OfEinsum},
};

// What a Reshape has as its dims, with those that are padded changed: a number, 0 for the dim at the same place of the input,
// or one -1. Empty: there is no such list.
std::vector<int64_t> DimsToWrite(const Facts& facts, const Node& node, const ZeroPadding& out, const ZeroPadding& first) {
  const auto in = facts.Of(node.input(0)).shape;
  const auto shape = facts.Of(node.output()).shape;
  const auto taken_over = [&](size_t axis) { return axis < in.size() && axis < first.size() && first[axis] == out[axis]; };
  const Value* given = node.input(1);
  const bool constant =
      given != nullptr && (given->IsConstant() || (given->producer != nullptr && IsOp(*given->producer, "Constant")));
  const auto numbers = constant ? IntsParameter(facts, node, "shape", 1) : std::nullopt;
  std::vector<int64_t> written;
  int open = 0;
  for (size_t axis = 0; axis < out.size(); ++axis) {
    const Dim dim = facts.dims().Resolve(shape[axis]);
    const int64_t size = static_cast<int64_t>(out[axis].size());
    if (numbers.has_value() && axis < numbers->size()) {
      const int64_t number = (*numbers)[axis];
      if (number == 0 && (!taken_over(axis) || IntAttribute(node, "allowzero").value_or(0) != 0)) return {};
      written.push_back(number <= 0 || out[axis].empty() ? number : size);
    } else if (!out[axis].empty()) {
      written.push_back(size);
    } else if (taken_over(axis) && facts.dims().Equal(in[axis], dim)) {
      written.push_back(0);
    } else if (dim.is_number()) {
      if (dim.number() < 1) return {};
      written.push_back(dim.number());
    } else {
      written.push_back(-1);
      ++open;
    }
  }
  return open <= 1 ? written : std::vector<int64_t>();
}

// The dims that a Reshape reads, with those that are padded changed.
absl::StatusOr<const Value*> DimsInput(const Node& node, const ZeroPadding& out, const ZeroPadding& first, Workspace& workspace) {
  const Facts& facts = workspace.facts();
  NodeInserter inserter(workspace, node);
  if (const auto dims = DimsToWrite(facts, node, out, first); !dims.empty()) return inserter.Numbers(dims);
  const Fact& given = facts.Of(node.input(1));
  if (given.elements == nullptr || given.elements->integers.size() != out.size()) {
    return No(fmt::format("the dims of {} are not known", Named(node)));
  }
  std::vector<int64_t> more(out.size(), 0);
  for (size_t axis = 0; axis < out.size(); ++axis) {
    const Dim element = facts.dims().Resolve(given.elements->integers[axis]);
    if (element.is(0)) return No(fmt::format("{} takes dims over", Named(node)));
    if (out[axis].empty() || element.is(-1)) continue;
    if (!element.is_number()) return No(fmt::format("the dims of {} are not known", Named(node)));
    more[axis] = static_cast<int64_t>(out[axis].size()) - element.number();
  }
  return inserter.Op("Add", {node.input(1), inserter.Numbers(more)});
}

// How many elements stand in front of what stood at `place`.
int64_t NewPlace(const Places& places, int64_t place) {
  if (places.empty()) return place;
  return std::find(places.begin(), places.end(), place) - places.begin();
}

void Erase(std::vector<Attribute>* attributes, std::string_view name) {
  std::erase_if(*attributes, [name](const Attribute& attribute) { return attribute.name == name; });
}

}  // namespace

bool IsPadded(const ZeroPadding& padding) {
  return std::any_of(padding.begin(), padding.end(), [](const Places& places) { return !places.empty(); });
}

Places AllPlaces(int64_t size) {
  Places places(static_cast<size_t>(size));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

Places PlacesOfHeads(int64_t size, int64_t head, int64_t width) {
  Places places;
  for (int64_t begin = 0; begin < size; begin += head) {
    for (int64_t i = 0; i < width; ++i) places.push_back(i < head ? begin + i : -1);
  }
  return places;
}

Operands OperandsOf(Facts& facts, const Node& node, absl::Span<const ZeroPadding> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool known = node.output(i) != nullptr && facts.Of(node.output(i)).rank() == static_cast<int>(outputs[i].size());
    if (!known) return No(fmt::format("the shape that {} gives is not known", Named(node)));
  }
  if (node.domain != NameId::kEmpty || node.input(0) == nullptr) return No(fmt::format("{} computes with them", Named(node)));
  if (IsOp(node, "Split") || IsOp(node, "Slice") || IsOp(node, "Gather")) return OfCut(facts, node, outputs);
  if (outputs.size() != 1) return No(fmt::format("{} computes with them", Named(node)));
  const ZeroPadding& out = outputs[0];
  if (KeepsOrder(facts, node)) return OfReshape(facts, node, out);
  for (const auto& [op_type, operands] : kOperators) {
    if (OpType(node) == op_type) return operands(facts, node, out);
  }
  return No(fmt::format("{} computes with them", Named(node)));
}

std::optional<ZeroPadding> ResultOf(Facts& facts, const Node& node, size_t operand, const ZeroPadding& padding) {
  if (node.domain != NameId::kEmpty || node.output_count != 1) return std::nullopt;
  const Fact& out = facts.Of(node.output());
  if (!out.has_rank) return std::nullopt;
  if (KeepsOrder(facts, node) && operand == 0)
    return RegroupPadding(facts.dims(), facts.Of(node.input(0)).shape, padding, out.shape);
  if (IsOp(node, "Cast")) return padding;
  if (IsOp(node, "Transpose")) {
    const absl::Span<const AxisSource> axes = TransposedAxes(facts, node, padding.size());
    if (axes.empty()) return std::nullopt;
    ZeroPadding turned(padding.size());
    for (size_t from = 0; from < axes.size(); ++from) turned[static_cast<size_t>(axes[from].axis)] = padding[from];
    return turned;
  }
  const bool factor = IsOp(node, "Mul") || (IsOp(node, "Div") && operand == 0);
  if (!factor || out.shape.size() != padding.size() || node.input(0) == node.input(1)) return std::nullopt;
  // The other factor has one element along what is padded.
  const Fact& other = facts.Of(node.input(1 - operand));
  if (!other.has_rank) return std::nullopt;
  for (size_t axis = 0; axis < padding.size(); ++axis) {
    const size_t missing = padding.size() - std::min(padding.size(), other.shape.size());
    if (padding[axis].empty() || axis < missing) continue;
    if (!facts.dims().Resolve(other.shape[axis - missing]).is(1)) return std::nullopt;
  }
  return padding;
}

std::optional<PaddedOperand> OtherFactorOf(const Facts& facts, const Node& node, size_t operand, const ZeroPadding& padding) {
  if (node.domain != NameId::kEmpty || operand > 1 || node.input(0) == node.input(1)) return std::nullopt;
  const size_t other = 1 - operand;
  const int rank = facts.Of(node.input(other)).rank();
  if (IsOp(node, "MatMul")) {
    const size_t summed = padding.size() - (operand == 0 ? 1 : 2);
    if (rank < 2 || padding.size() < 2 || !OnlyAlong(padding, summed)) return std::nullopt;
    return Along(other, rank, static_cast<size_t>(rank - (operand == 0 ? 2 : 1)), padding[summed]);
  }
  if (IsOp(node, "Gemm") && operand == 0 && IntAttribute(node, "transA").value_or(0) == 0 && OnlyAlong(padding, 1)) {
    return Along(1, 2, IntAttribute(node, "transB").value_or(0) != 0 ? 1 : 0, padding[1]);
  }
  if (IsOp(node, "Conv") && operand == 0 && OnlyAlong(padding, 1) && rank >= 3 && IntAttribute(node, "group").value_or(1) == 1) {
    return Along(1, rank, 1, padding[1]);
  }
  const auto letters = IsOp(node, "Einsum") && node.input_count == 2 ? Letters(facts, node) : std::nullopt;
  if (!letters.has_value() || (*letters)[operand].size() != padding.size()) return std::nullopt;
  const std::string& own = (*letters)[other];
  ZeroPadding made(own.size());
  for (size_t axis = 0; axis < padding.size(); ++axis) {
    if (padding[axis].empty()) continue;
    const char letter = (*letters)[operand][axis];
    const size_t at = own.find(letter);
    const auto times = std::count((*letters)[operand].begin(), (*letters)[operand].end(), letter);
    if (at == std::string::npos || times != 1 || letters->back().find(letter) != std::string::npos) return std::nullopt;
    made[at] = padding[axis];
  }
  return PaddedOperand{other, Whole(made)};
}

absl::StatusOr<NewNode> PaddedNode(const Node& node, absl::Span<const ZeroPadding> outputs, const ZeroPadding& first,
                                   Workspace& workspace) {
  NewNode plan = PlanOf(node);
  NodeInserter inserter(workspace, node);
  if (IsOp(node, "Reshape")) {
    ASSIGN_OR_RETURN(plan.inputs[1], DimsInput(node, outputs[0], first, workspace));
    Erase(&plan.attributes, "allowzero");
  }
  if (!IsOp(node, "Slice") && !IsOp(node, "Split") && !IsOp(node, "Gather")) return plan;
  const std::optional<Cut> cut = CutOf(workspace.facts(), node);
  if (!cut.has_value() || first[cut->axis].empty()) return plan;  // it cuts where nothing is padded
  if (IsOp(node, "Gather")) return No(fmt::format("{} takes one place of what is padded", Named(node)));
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < cut->lengths.size(); ++i) {
    const Places& places = outputs[i][cut->axis];
    lengths.push_back(places.empty() ? cut->lengths[i] : static_cast<int64_t>(places.size()));
  }
  if (IsOp(node, "Slice")) {
    const int64_t start = NewPlace(first[cut->axis], cut->starts[0]);
    const int64_t end = start + lengths[0];
    if (node.input_count < 3) {  // before opset 10
      for (const auto& [name, at] : {std::pair("starts", start), std::pair("ends", end)}) {
        Erase(&plan.attributes, name);
        plan.attributes.push_back(Attribute::Ints(name, {at}));
      }
    } else {
      plan.inputs[1] = inserter.Numbers({start});
      plan.inputs[2] = inserter.Numbers({end});
      // These have one type.
      if (node.input(3) != nullptr) plan.inputs[3] = inserter.Numbers({static_cast<int64_t>(cut->axis)});
      if (node.input(4) != nullptr) plan.inputs[4] = inserter.Numbers({1});
    }
    return plan;
  }
  Erase(&plan.attributes, "num_outputs");
  Erase(&plan.attributes, "split");
  plan.inputs.resize(1);
  inserter.SetLengths(&plan, lengths);
  return plan;
}

}  // namespace ascend_fuse
