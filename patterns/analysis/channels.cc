#include "patterns/analysis/channels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fmt/format.h"
#include "ir/add_once.h"
#include "ir/constant_tensor.h"
#include "ir/infer/movement_of.h"
#include "ir/model.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "patterns/terms/refusal.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMaximumWidth = 512;  // of a matrix that moves channels
constexpr int64_t kMostListed = int64_t{1} << 22;
constexpr int64_t kMostPositions = int64_t{1} << 22;
constexpr int kMostNodesBack = 64;
constexpr int kMostCuts = 12;  // from a value up to what it is cut from

class ChannelFollower {
 public:
  ChannelFollower(const FunctionContext& context, absl::Span<const Value* const> sources)
      : context_(context), facts_(*context.facts), sources_(sources) {}

  absl::StatusOr<ChannelMap> Follow(const Value* value) {
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (context_.numbering->Same(value, sources_[i])) return Whole(sources_[i], static_cast<int>(i));
    }
    if (const Value* source = context_.numbering->Source(value); source != nullptr) {
      if (!Visit(value->producer)) return TooLong();
      return Follow(source);
    }
    const Node* node = value->producer;
    if (node == nullptr) return No(fmt::format("{} is not computed from it", ValueName(*value)));
    if (!Visit(node)) return TooLong();
    if (const Movement* movement = facts_.MovementOf(value); movement != nullptr) {
      switch (movement->kind) {
        case MovementKind::kKeepsOrder:
          return Reshape(*node, value);
        case MovementKind::kPermutes:
          return Permute(*movement, value);
        case MovementKind::kPicks:
          return Pick(*movement, value);
        case MovementKind::kJoins:
          return Join(*movement, value);
        default:
          return Computes(*node, value);
      }
    }
    const std::string_view op = node->domain == NameId::kEmpty ? OpType(*node) : std::string_view();
    if (op == "Neg") return Negate(Follow(node->input(0)));
    if (op == "Mul" || op == "Div") return Scale(*node, value);
    if (op == "MatMul") return Multiply(*node, value);
    return Computes(*node, value);
  }

  std::vector<const Node*>& nodes() { return nodes_; }

 private:
  static absl::Status No(const std::string& sentence) { return ChannelsNotProved(sentence); }
  absl::Status TooLong() const { return No("the way back is too long"); }
  static absl::Status TooMany() { return No("too many channels"); }
  // It computes: the end of the way.
  absl::Status Computes(const Node& node, const Value* value) {
    nodes_.pop_back();
    return No(fmt::format("{} is computed by {}", ValueName(*value), OpType(node)));
  }

  bool Visit(const Node* node) {
    if (++visited_ > kMostNodesBack) return false;
    AddOnce(node, &nodes_);
    return true;
  }

  absl::StatusOr<ChannelMap> Whole(const Value* value, int source) {
    const Fact& fact = facts_.Of(value);
    if (fact.rank() < 1) return No(fmt::format("the shape of {} is not known", ValueName(*value)));
    const Dim width = fact.shape.back();
    if (!width.is_number() || width.number() < 1) {
      return No(fmt::format("the last axis of {} is {}, which is not a number of channels", ValueName(*value),
                            facts_.dims().ToString(width)));
    }
    ChannelMap map;
    map.leading = fact.rank() - 1;
    map.trailing = {width.number()};
    map.windows.resize(static_cast<size_t>(map.leading));
    for (int i = 0; i < map.leading; ++i) map.axes.push_back(i);
    map.axes.push_back(ChannelMap::kChannels);
    map.channels = PlaceMap::Whole(source, width.number());
    return map;
  }

  static absl::StatusOr<ChannelMap> Negate(absl::StatusOr<ChannelMap> map) {
    if (map.ok()) map->channels.NegateAll();
    return map;
  }

  // By -1, or channel by channel by constants that are 1 or -1.
  absl::StatusOr<ChannelMap> Scale(const Node& node, const Value* value) {
    for (size_t side = 0; side < (IsOp(node, "Mul") ? 2u : 1u); ++side) {
      const Value* constant = node.input(1 - side);
      const Value* operand = node.input(side);
      if (constant == nullptr || operand == nullptr) continue;
      const Fact& fact = facts_.Of(constant);
      const Fact& shape = facts_.Of(operand);
      if (!fact.has_rank || !shape.has_rank || fact.rank() > shape.rank()) continue;
      double number = 0;
      if (ConstantNumber(facts_, constant, &number)) {
        if (number != -1 && number != 1) continue;
        if (!facts_.dims().Equal(shape.shape, facts_.Of(value).shape)) continue;
        absl::StatusOr<ChannelMap> map = Follow(operand);
        return number == -1 ? Negate(std::move(map)) : map;
      }
      const std::optional<std::vector<bool>> signs = SignsOf(context_, *constant);
      if (!signs.has_value()) continue;
      ASSIGN_OR_RETURN(ChannelMap map, Follow(operand));
      // The constant lies along the last axis.
      if (!facts_.dims().Equal(fact.shape.back(), shape.shape.back()) ||
          static_cast<int64_t>(signs->size()) != map.trailing.back()) {
        continue;
      }
      if (!map.channels.Negate(*signs)) return TooMany();
      return map;
    }
    return Computes(node, value);
  }

  // Axis of a value as an index into map.trailing; -1 for a leading axis.
  static int TrailingAxis(const ChannelMap& map, int64_t axis) {
    axis = NormalizeAxis(axis, static_cast<int64_t>(map.axes.size()));
    if (axis < 0 || map.axes[static_cast<size_t>(axis)] != ChannelMap::kChannels) return -1;
    return static_cast<int>(std::count(map.axes.begin(), map.axes.begin() + axis, ChannelMap::kChannels));
  }

  absl::Status WrongAxis(const Node& node, int64_t axis, const ChannelMap& map) const {
    return No(fmt::format("{} {} works on axis {} of {}, not on the channels (the last axis)", OpType(node),
                          node.output(0) != nullptr ? ValueName(*node.output(0)) : NodeName(node), axis, map.axes.size()));
  }

  // What is taken of a leading axis. Equal windows of one axis start at the same place. False where that is not known, or
  // where the axis was cut before.
  bool CutLeading(const AxisSource& source, Dim in, Dim out, Window* window) const {
    if (source.kind != AxisSource::Kind::kPlace || source.step != 1) return false;
    if (facts_.dims().Equal(in, out)) return true;
    if (!window->whole || !source.start.known() || !out.known()) return false;
    *window = {false, source.start, out};
    return true;
  }

  // Which positions of an axis of `size` channels are taken; nullopt where it is not known.
  std::optional<std::vector<PositionRange>> Positions(const Node& node, const AxisSource& source, Dim out, int64_t size) const {
    switch (source.kind) {
      case AxisSource::Kind::kPlace:
        if (!source.start.is_number() || source.step == 0 || !out.is_number()) return std::nullopt;
        return std::vector<PositionRange>{{source.start.number(), source.step, out.number()}};
      case AxisSource::Kind::kFixed:
        if (!source.start.is_number()) return std::nullopt;
        return std::vector<PositionRange>{{source.start.number(), 1, 1}};
      case AxisSource::Kind::kRead:
        break;
      default:
        return std::nullopt;
    }
    const Value* table = node.input(source.operand);
    const int rank = facts_.Of(table).rank();
    if (rank != (source.component >= 0 ? 2 : 1) || source.component > 0) return std::nullopt;
    auto numbers = IntsParameter(facts_, node, "", source.operand);
    if (const auto tensor = ConstantTensor(*table); !numbers.has_value() && tensor.has_value()) {
      auto read = ReadIntegers(*context_.model, *tensor, kMostPositions);
      if (read.ok()) numbers = *std::move(read);
    }
    if (!numbers.has_value()) return std::nullopt;
    for (int64_t& number : *numbers) number = NormalizePosition(number, size);
    return RangesOf(*numbers);
  }

  absl::StatusOr<ChannelMap> Pick(const Movement& movement, const Value* value) {
    const Node& node = *movement.node;
    const MovedPart& part = movement.parts[0];
    ASSIGN_OR_RETURN(ChannelMap map, Follow(node.input(part.operand)));
    const auto unknown = [&] {
      return No(fmt::format("the channels that {} {} takes are not known", OpType(node), ValueName(*value)));
    };
    const Fact& in = facts_.Of(node.input(part.operand));
    const Fact& out = facts_.Of(value);
    if (!part.known || !out.has_rank || part.axes.size() != map.axes.size()) return unknown();
    std::vector<int> axes;
    for (size_t axis = 0; axis < part.axes.size(); ++axis) {
      const AxisSource& source = part.axes[axis];
      const bool drops = source.IsOneElement();
      if (!drops && (source.axis != static_cast<int>(axes.size()) || axes.size() >= out.shape.size())) return unknown();
      const Dim extent = drops ? Dim::Of(1) : out.shape[axes.size()];
      const int own = map.axes[axis];
      if (own != ChannelMap::kChannels) {
        if (drops || !CutLeading(source, in.shape[axis], extent, &map.windows[static_cast<size_t>(own)])) {
          return WrongAxis(node, static_cast<int64_t>(axis), map);
        }
        axes.push_back(own);
        continue;
      }
      const auto trailing = static_cast<size_t>(std::count(axes.begin(), axes.end(), ChannelMap::kChannels));
      const int64_t size = map.trailing[trailing];
      const bool whole = source.IsPlace(source.axis) && extent.is(size);
      const auto ranges = whole ? std::vector<PositionRange>{{0, 1, size}} : Positions(node, source, extent, size);
      if (!ranges.has_value()) return unknown();
      int64_t count = 0;
      for (const PositionRange& range : *ranges) {
        const int64_t last = range.start + (range.count - 1) * range.step;
        if (range.count > 0 && (std::min(range.start, last) < 0 || std::max(range.start, last) >= size)) {
          return No(fmt::format("{} {} goes beyond the axis", OpType(node), ValueName(*value)));
        }
        count += range.count;
      }
      if (count == 0) return No(fmt::format("{} {} takes no channel", OpType(node), ValueName(*value)));
      if (!whole && !map.channels.Take(map.trailing, trailing, *ranges)) return TooMany();
      map.trailing[trailing] = count;
      if (drops) {
        map.trailing.erase(map.trailing.begin() + static_cast<std::ptrdiff_t>(trailing));
      } else {
        axes.push_back(ChannelMap::kChannels);
      }
    }
    if (axes.size() != out.shape.size()) return unknown();
    map.axes = std::move(axes);
    return map;
  }

  absl::StatusOr<ChannelMap> Join(const Movement& movement, const Value* value) {
    const Node& node = *movement.node;
    std::vector<ChannelMap> parts;
    for (const MovedPart& part : movement.parts) {
      const Value* operand = node.input(part.operand);
      if (operand == nullptr) return No("a Concat with an absent input");
      absl::StatusOr<ChannelMap> map = Follow(operand);
      if (!map.ok()) return map;
      if (!part.known) return No("a Concat without axis");
      parts.push_back(*std::move(map));
    }
    ChannelMap result = parts[0];
    const int joined = movement.parts[0].windows[0].axis;
    const int axis = TrailingAxis(result, joined);
    if (axis < 0) return WrongAxis(node, joined, result);
    const size_t at = static_cast<size_t>(axis);
    int64_t outer = 1;
    for (size_t i = 0; i < at; ++i) outer *= result.trailing[i];
    result.trailing[at] = 0;
    std::vector<PlaceMap> maps;
    for (const ChannelMap& part : parts) {
      bool fits =
          part.axes == result.axes && part.trailing.size() == result.trailing.size() && SameWindows(part, result, facts_.dims());
      for (size_t i = 0; fits && i < part.trailing.size(); ++i) {
        fits = i == at || part.trailing[i] == result.trailing[i];
      }
      if (!fits) return No(fmt::format("the parts of Concat {} do not fit", ValueName(*value)));
      result.trailing[at] += part.trailing[at];
      maps.push_back(part.channels);
    }
    if (!PlaceMap::Join(maps, outer, &result.channels)) return TooMany();
    return result;
  }

  // Blocks that change places are axes of their own for the moment.
  absl::StatusOr<ChannelMap> Permute(const Movement& movement, const Value* value) {
    const Node& node = *movement.node;
    const MovedPart& part = movement.parts[0];
    absl::StatusOr<ChannelMap> map = Follow(node.input(part.operand));
    if (!map.ok()) return map;
    const Fact& in = facts_.Of(node.input(part.operand));
    if (!part.known || !in.has_rank) return No("a Transpose of unknown order");
    if (part.viewed() && !Regroup(in.shape, part.view, &*map)) return KeepsNot(node, value);
    if (part.axes.size() != map->axes.size()) return No("a Transpose of unknown order");
    ChannelMap result = *map;
    std::vector<int64_t> order(map->axes.size(), 0);  // axis of the operand, by axis of the result
    for (size_t axis = 0; axis < part.axes.size(); ++axis) {
      order[static_cast<size_t>(part.axes[axis].axis)] = static_cast<int64_t>(axis);
    }
    std::vector<int64_t> channels;
    result.trailing.clear();
    for (size_t i = 0; i < order.size(); ++i) {
      result.axes[i] = map->axes[static_cast<size_t>(order[i])];
      if (result.axes[i] != ChannelMap::kChannels) continue;
      channels.push_back(TrailingAxis(*map, order[i]));
      result.trailing.push_back(map->trailing[static_cast<size_t>(channels.back())]);
    }
    if (!result.channels.Permute(map->trailing, channels)) return TooMany();
    if (part.viewed() && !Regroup(movement.places, facts_.Of(value).shape, &result)) return KeepsNot(node, value);
    return result;
  }

  // By a constant matrix whose columns each have one number, 1 or -1.
  absl::StatusOr<ChannelMap> Multiply(const Node& node, const Value* value) {
    const Value* matrix = node.input(1);
    const Fact& fact = facts_.Of(matrix);
    if (matrix == nullptr || !matrix->IsConstant() || fact.rank() != 2 || !fact.shape[0].is_number() ||
        !fact.shape[1].is_number() || fact.shape[0].number() > kMaximumWidth || fact.shape[1].number() > kMaximumWidth ||
        context_.model == nullptr) {
      return Computes(node, value);
    }
    const size_t rows = static_cast<size_t>(fact.shape[0].number());
    const size_t columns = static_cast<size_t>(fact.shape[1].number());
    const auto numbers = ReadFloats(*context_.model, *matrix->initializer, static_cast<int64_t>(rows * columns));
    if (!numbers.ok() || numbers->size() != rows * columns) return Computes(node, value);
    std::vector<int64_t> positions;
    std::vector<bool> negative;
    for (size_t c = 0; c < columns; ++c) {
      int64_t found = -1;
      for (size_t r = 0; r < rows; ++r) {
        const double number = (*numbers)[r * columns + c];
        if (number == 0) continue;
        if ((number != 1 && number != -1) || found >= 0) return Computes(node, value);
        found = static_cast<int64_t>(r);
        negative.push_back(number < 0);
      }
      if (found < 0) return Computes(node, value);
      positions.push_back(found);
    }
    absl::StatusOr<ChannelMap> map = Follow(node.input(0));
    if (!map.ok()) return map;
    const int axis = TrailingAxis(*map, -1);
    if (axis < 0 || map->trailing[static_cast<size_t>(axis)] != static_cast<int64_t>(rows)) {
      return WrongAxis(node, static_cast<int64_t>(map->axes.size()) - 1, *map);
    }
    if (!map->channels.Take(map->trailing, static_cast<size_t>(axis), RangesOf(positions))) return TooMany();
    map->trailing[static_cast<size_t>(axis)] = static_cast<int64_t>(columns);
    if (!map->channels.Negate(negative)) return TooMany();
    return map;
  }

  absl::Status KeepsNot(const Node& node, const Value* value) const {
    return No(fmt::format("{} {} does not keep the leading dims apart from the channels", OpType(node), ValueName(*value)));
  }

  // Row-major order is kept: only where the leading dims end must stay the same.
  bool Regroup(absl::Span<const Dim> from, absl::Span<const Dim> to, ChannelMap* map) const {
    const size_t leading = static_cast<size_t>(map->leading);
    if (!map->InOrder() || to.size() < leading || from.size() < leading ||
        !facts_.dims().Equal(from.subspan(0, leading), to.subspan(0, leading))) {
      return false;
    }
    std::vector<int64_t> trailing;
    int64_t product = 1;
    for (Dim dim : to.subspan(leading)) {
      if (!dim.is_number() || dim.number() < 1 || __builtin_mul_overflow(product, dim.number(), &product)) return false;
      trailing.push_back(dim.number());
    }
    if (product != map->channels.size()) return false;
    map->axes.resize(leading);
    map->axes.resize(leading + trailing.size(), ChannelMap::kChannels);
    map->trailing = std::move(trailing);
    return true;
  }

  absl::StatusOr<ChannelMap> Reshape(const Node& node, const Value* value) {
    absl::StatusOr<ChannelMap> map = Follow(node.input(0));
    if (!map.ok()) return map;
    const Fact& in = facts_.Of(node.input(0));
    const Fact& out = facts_.Of(value);
    if (!out.has_rank || !in.has_rank || !Regroup(in.shape, out.shape, &*map)) return KeepsNot(node, value);
    return map;
  }

  const FunctionContext& context_;
  const Facts& facts_;
  absl::Span<const Value* const> sources_;
  std::vector<const Node*> nodes_;
  int visited_ = 0;
};

}  // namespace

bool ChannelMap::InOrder() const {
  for (int i = 0; i < leading; ++i) {
    if (axes[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

bool ChannelMap::IsWhole() const {
  return std::all_of(windows.begin(), windows.end(), [](const Window& window) { return window.whole; });
}

bool ChannelMap::IsLike(const Fact& x) const {
  return trailing.size() == 1 && axes.back() == kChannels && x.rank() == leading + 1 &&
         std::is_sorted(axes.begin(), axes.end() - 1) && x.shape.back().is(trailing[0]);
}

bool SameWindows(const ChannelMap& a, const ChannelMap& b, const DimTable& dims) {
  return std::equal(a.windows.begin(), a.windows.end(), b.windows.begin(), b.windows.end(),
                    [&dims](const Window& x, const Window& y) {
                      if (x.whole || y.whole) return x.whole && y.whole;
                      return dims.Equal(x.start, y.start) && dims.Equal(x.extent, y.extent);
                    });
}

absl::StatusOr<ChannelMap> FollowChannels(const FunctionContext& context, const Value* value,
                                          absl::Span<const Value* const> sources, std::vector<const Node*>* reached) {
  ChannelFollower follower(context, sources);
  absl::StatusOr<ChannelMap> map = follower.Follow(value);
  if (reached != nullptr) *reached = follower.nodes();
  if (map.ok()) map->nodes = std::move(follower.nodes());
  return map;
}

std::optional<std::vector<bool>> SignsOf(const FunctionContext& context, const Value& constant) {
  const Fact& fact = context.facts->Of(&constant);
  std::vector<double> numbers;
  if (fact.elements != nullptr) {
    numbers.assign(fact.elements->floats.begin(), fact.elements->floats.end());
  } else if (const std::optional<Tensor> tensor = ConstantTensor(constant); tensor.has_value() && IsFloat(tensor->type)) {
    auto read = ReadFloats(*context.model, *tensor, kMostPositions);
    if (read.ok()) numbers = *std::move(read);
  }
  if (numbers.empty() || fact.rank() < 1) return std::nullopt;
  std::vector<bool> signs;
  for (const double number : numbers) {
    if (number != 1 && number != -1) return std::nullopt;
    signs.push_back(number < 0);
  }
  return signs;
}

std::vector<Channel> ListOf(const ChannelMap& map) {
  return map.channels.size() <= kMostListed ? map.channels.List() : std::vector<Channel>();
}

std::vector<const Value*> CutFrom(const FunctionContext& context, const Value* value) {
  std::vector<const Value*> values = {value};
  while (static_cast<int>(values.size()) < kMostCuts) {
    const Value* last = values.back();
    if (const Value* source = context.numbering->Source(last); source != nullptr) {
      values.push_back(source);
      continue;
    }
    const Node* node = last->producer;
    if (node == nullptr || node->input(0) == nullptr) break;
    const MovementKind movement = KindOf(*context.facts, *node);
    const bool moves =
        movement == MovementKind::kKeepsOrder || movement == MovementKind::kPermutes || movement == MovementKind::kPicks;
    if (!moves && !IsOp(*node, "Neg")) break;
    values.push_back(node->input(0));
  }
  return values;
}

absl::Status ChannelsNotProved(const std::string& sentence) { return Refuse(sentence, "channels-not-proved"); }

void NoteRead(const FunctionContext& context, const std::vector<const Node*>& nodes) {
  if (context.read != nullptr) context.read->insert(context.read->end(), nodes.begin(), nodes.end());
}

}  // namespace ascend_fuse
