#include "passes/layout/zero_padding.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/status_macros.h"
#include "passes/layout/moving_nodes.h"
#include "passes/layout/regrouped_padding.h"
#include "patterns/analysis/einsum_letters.h"

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

// What is padded of an operand that the node moves, where the result is padded as `out` says.
absl::StatusOr<std::vector<PaddedPart>> PartsOf(const Facts& facts, const Node& node, const MovedPart& moved, const Fact& result,
                                                const ZeroPadding& out) {
  const Fact& operand = facts.Of(node.input(moved.operand));
  const auto unknown = [&] { return No(fmt::format("{} moves to places that are not known", Named(node))); };
  if (!moved.known || moved.viewed() || operand.shape.size() != moved.axes.size()) return unknown();
  for (const PlaceWindow& window : moved.windows) {
    if (!out[static_cast<size_t>(window.axis)].empty()) return No(fmt::format("{} joins parts of a head", Named(node)));
  }
  std::vector<PaddedPart> parts;
  for (size_t axis = 0; axis < moved.axes.size(); ++axis) {
    const AxisSource& source = moved.axes[axis];
    const auto at = static_cast<size_t>(source.axis);
    const bool starts = source.start.is_number();
    PaddedPart part;  // whole, and not padded
    if (source.kind == AxisSource::Kind::kFixed) {
      if (starts) part = {source.start.number(), 1, {}};
    } else if (source.kind == AxisSource::Kind::kRead) {
      const int read = facts.Of(node.input(source.operand)).rank() - (source.component >= 0 ? 1 : 0);
      if (read < 0) return unknown();
      for (int i = 0; i < read; ++i) {
        if (!out[at + static_cast<size_t>(i)].empty()) return unknown();
      }
    } else if (source.kind == AxisSource::Kind::kPlace) {
      const Dim length = facts.dims().Resolve(result.shape[at]);
      const bool whole =
          source.IsPlace(source.axis) && (!moved.windows.empty() || facts.dims().Equal(operand.shape[axis], length));
      if (whole) {
        part.places = out[at];
      } else if (starts && source.step == 1 && length.is_number()) {
        part = {source.start.number(), length.number(), out[at]};
      } else if (!out[at].empty()) {
        return unknown();
      }
    } else {
      return unknown();
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// Where the operands stand in the results they are padded as those are.
Operands OfMoved(const Facts& facts, const Node& node, absl::Span<const ZeroPadding> outputs) {
  std::vector<PaddedOperand> operands;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Movement* movement = facts.MovementOf(node.output(i));
    if (movement == nullptr) return No(fmt::format("{} moves to places that are not known", Named(node)));
    for (const MovedPart& moved : movement->parts) {
      ASSIGN_OR_RETURN(auto parts, PartsOf(facts, node, moved, facts.Of(node.output(i)), outputs[i]));
      operands.push_back({moved.operand, std::move(parts)});
    }
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

// Whether pairs of elements stay together.
bool KeepsPairs(const Places& places) {
  if (places.size() % 2 != 0) return false;
  for (size_t i = 0; i < places.size(); i += 2) {
    const int64_t first = places[i];
    const bool pair = first < 0 ? places[i + 1] < 0 : first % 2 == 0 && places[i + 1] == first + 1;
    if (!pair) return false;
  }
  return true;
}

// Pairs of zeros are turned to zeros, by whatever angles. Halves and quarters would stand elsewhere.
Operands OfRotation(const Facts& facts, const Node& node, const ZeroPadding& out) {
  const bool pairs = StringAttribute(node, "mode") == "interleaved" && out.size() == 4 && OnlyAlong(out, 3) && KeepsPairs(out[3]);
  if (!pairs) return No(fmt::format("{} computes with them", Named(node)));
  std::vector<PaddedOperand> operands = {{0, Whole(out)}};
  for (size_t i = 1; i < 3; ++i) {  // the tables, as wide as a head
    const int rank = facts.Of(node.input(i)).rank();
    if (rank < 1) return No(fmt::format("the shape that {} reads is not known", Named(node)));
    operands.push_back(Along(i, rank, static_cast<size_t>(rank - 1), out[3]));
  }
  return operands;
}

// Each element by itself.
Operands OfSame(const Facts&, const Node&, const ZeroPadding& out) { return std::vector<PaddedOperand>{{0, Whole(out)}}; }

// Operators of one output, by what their operands have to be for it to be padded.
constexpr std::pair<std::string_view, Operands (*)(const Facts&, const Node&, const ZeroPadding&)> kOperators[] = {
    {"Cast", OfSame},       {"Neg", OfSame},
    {"Add", OfElementwise}, {"Sub", OfElementwise},
    {"Mul", OfElementwise}, {"Div", OfElementwise},
    {"MatMul", OfMatMul},   {"Gemm", OfGemm},
    {"Conv", OfConv},       {"BatchNormalization", OfBatchNormalization},
    {"Einsum", OfEinsum},
};

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
  if (OperatorKey(node) == "ascend_fuse.Rotary") return OfRotation(facts, node, outputs[0]);
  if (node.domain != NameId::kEmpty || node.input(0) == nullptr) return No(fmt::format("{} computes with them", Named(node)));
  if (CanBePadded(node)) return OfMoved(facts, node, outputs);
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
  if (KindOf(facts, node) == MovementKind::kPermutes) {
    const PermutationOfAxes axes = PermutedAxes(facts, node.output());
    if (axes.size() != padding.size()) return std::nullopt;
    ZeroPadding moved(padding.size());
    for (size_t from = 0; from < axes.size(); ++from) moved[static_cast<size_t>(axes[from])] = padding[from];
    return moved;
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

}  // namespace ascend_fuse
