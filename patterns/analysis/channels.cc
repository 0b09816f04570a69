#include "patterns/analysis/channels.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"
#include "ir/infer/facts.h"
#include "ir/model.h"
#include "ir/movement/data_movement.h"
#include "patterns/terms/refusal.h"
#include "patterns/terms/term.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMaximumWidth = 512;  // of a matrix that moves channels
constexpr int kMaximumNodes = 64;
constexpr int kMaximumSteps = 12;  // from a value up to what it is cut from

absl::Status No(const std::string& sentence) { return Refuse(sentence, "channels-not-proved"); }

// Whether the leading axes come first, in their order.
bool InOrder(const ChannelMap& map) {
  for (int i = 0; i < map.leading; ++i) {
    if (map.axes[static_cast<size_t>(i)] != i) return false;
  }
  return true;
}

bool IsWhole(const ChannelMap& map) {
  return std::all_of(map.windows.begin(), map.windows.end(), [](const Window& window) { return window.whole; });
}

// Whether two values of one source take the same parts of its leading axes.
bool SameWindows(const ChannelMap& a, const ChannelMap& b, const DimTable& dims) {
  return std::equal(a.windows.begin(), a.windows.end(), b.windows.begin(), b.windows.end(),
                    [&dims](const Window& x, const Window& y) {
                      if (x.whole || y.whole) return x.whole && y.whole;
                      return dims.Equal(x.start, y.start) && dims.Equal(x.extent, y.extent);
                    });
}

class Follower {
 public:
  Follower(const FunctionContext& context, absl::Span<Value* const> sources, int64_t most)
      : context_(context), facts_(*context.facts), sources_(sources), most_(most) {}

  absl::StatusOr<ChannelMap> Follow(Value* value) {
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (context_.numbering->Same(value, sources_[i])) return Whole(sources_[i], static_cast<int>(i));
    }
    if (Value* source = context_.numbering->Source(value); source != nullptr) {
      if (!Visit(value->producer)) return TooLong();
      return Follow(source);
    }
    const Node* node = value->producer;
    if (node == nullptr) return No(fmt::format("{} is not computed from it", ValueName(*value)));
    if (!Visit(node)) return TooLong();
    const std::string_view op = node->domain == NameId::kEmpty ? OpType(*node) : std::string_view();
    if (op == "Neg") return Negate(Follow(node->input(0)));
    if (op == "Mul" || op == "Div") return Scale(*node, value);
    if (op == "Slice") return Slice(*node, value);
    if (op == "Split") return Split(*node, value);
    if (op == "Concat") return Concat(*node, value);
    if (op == "Gather" || op == "GatherND") return Gather(*node, value);
    if (op == "Transpose") return Transpose(*node);
    if (op == "MatMul") return Multiply(*node, value);
    if (KeepsOrder(*node)) return Reshape(*node, value);
    nodes_.pop_back();  // it computes: the end of the way
    return No(fmt::format("{} is computed by {}", ValueName(*value), OpType(*node)));
  }

  std::vector<const Node*>& nodes() { return nodes_; }

 private:
  bool Visit(const Node* node) {
    if (++visited_ > kMaximumNodes) return false;
    if (std::find(nodes_.begin(), nodes_.end(), node) == nodes_.end()) nodes_.push_back(node);
    return true;
  }
  absl::Status TooLong() const { return No("the way back is too long"); }

  absl::StatusOr<ChannelMap> Whole(const Value* value, int source) {
    const Fact& fact = facts_.Of(value);
    if (fact.rank() < 1) return No(fmt::format("the shape of {} is not known", ValueName(*value)));
    const Dim width = fact.shape.back();
    if (!width.is_number() || width.number() < 1 || width.number() > most_) {
      return No(fmt::format("the last axis of {} is {}, which is not a number of channels", ValueName(*value),
                            facts_.dims().ToString(width)));
    }
    ChannelMap map;
    map.leading = fact.rank() - 1;
    map.trailing = {width.number()};
    map.windows.resize(static_cast<size_t>(map.leading));
    for (int i = 0; i < map.leading; ++i) map.axes.push_back(i);
    map.axes.push_back(ChannelMap::kChannels);
    for (int64_t i = 0; i < width.number(); ++i) map.channels.push_back({source, i, false});
    return map;
  }

  static absl::StatusOr<ChannelMap> Negate(absl::StatusOr<ChannelMap> map) {
    if (map.ok()) {
      for (Channel& channel : map->channels) channel.negative = !channel.negative;
    }
    return map;
  }

  // By -1, or channel by channel by constants that are 1 or -1.
  absl::StatusOr<ChannelMap> Scale(const Node& node, const Value* value) {
    for (size_t side = 0; side < (IsOp(node, "Mul") ? 2u : 1u); ++side) {
      const Value* constant = node.input(1 - side);
      Value* operand = node.input(side);
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
      if (fact.elements == nullptr || fact.elements->floats.empty()) continue;
      const auto& signs = fact.elements->floats;
      if (!std::all_of(signs.begin(), signs.end(), [](double f) { return f == 1 || f == -1; })) continue;
      absl::StatusOr<ChannelMap> map = Follow(operand);
      if (!map.ok()) return map;
      // The constant lies along the last axes.
      if (map->channels.size() % signs.size() != 0 || !facts_.dims().Equal(fact.shape.back(), shape.shape.back()) ||
          static_cast<int64_t>(signs.size()) != map->trailing.back()) {
        continue;
      }
      for (size_t i = 0; i < map->channels.size(); ++i) {
        if (signs[i % signs.size()] == -1) map->channels[i].negative = !map->channels[i].negative;
      }
      return map;
    }
    nodes_.pop_back();
    return No(fmt::format("{} is computed by {}", ValueName(*value), OpType(node)));
  }

  // `map` with only the given positions of one trailing axis; the axis goes away when `drop`.
  static ChannelMap Take(const ChannelMap& map, size_t axis, const std::vector<int64_t>& positions, bool drop) {
    ChannelMap result;
    result.leading = map.leading;
    result.windows = map.windows;
    result.axes = map.axes;
    if (drop) result.axes.erase(result.axes.begin() + AxisOf(map, axis));
    int64_t outer = 1;
    int64_t inner = 1;
    for (size_t i = 0; i < map.trailing.size(); ++i) {
      if (i < axis) outer *= map.trailing[i];
      if (i > axis) inner *= map.trailing[i];
      if (i != axis) {
        result.trailing.push_back(map.trailing[i]);
      } else if (!drop) {
        result.trailing.push_back(static_cast<int64_t>(positions.size()));
      }
    }
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t position : positions) {
        for (int64_t i = 0; i < inner; ++i) {
          result.channels.push_back(map.channels[(o * map.trailing[axis] + position) * inner + i]);
        }
      }
    }
    return result;
  }

  // Axis of a node as an index into map.trailing; -1 for a leading axis.
  static int TrailingAxis(const ChannelMap& map, int64_t axis) {
    const int64_t rank = static_cast<int64_t>(map.axes.size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || map.axes[static_cast<size_t>(axis)] != ChannelMap::kChannels) return -1;
    return static_cast<int>(std::count(map.axes.begin(), map.axes.begin() + axis, ChannelMap::kChannels));
  }

  // The other way round.
  static int64_t AxisOf(const ChannelMap& map, size_t trailing) {
    int64_t axis = 0;
    for (;; ++axis) {
      if (map.axes[static_cast<size_t>(axis)] == ChannelMap::kChannels && trailing-- == 0) return axis;
    }
  }

  absl::Status WrongAxis(const Node& node, int64_t axis, const ChannelMap& map) const {
    const int64_t rank = static_cast<int64_t>(map.axes.size());
    return No(fmt::format("{} {} works on axis {} of {}, not on the channels (the last axis)", OpType(node),
                          node.output(0) != nullptr ? ValueName(*node.output(0)) : NodeName(node), axis < 0 ? axis + rank : axis,
                          rank));
  }

  // What a Slice takes of a leading axis. Equal windows of one axis start at the same place, whatever Slice makes of a
  // start that is negative or too large. False where that is not known, or where the axis was cut before.
  bool CutLeading(const Node& node, int64_t axis, Dim start, Dim end, int64_t step, ChannelMap* map) {
    const Fact& in = facts_.Of(node.input(0));
    const Fact& out = facts_.Of(node.output(0));
    if (axis < 0) axis += in.rank();
    if (axis < 0 || axis >= in.rank() || out.rank() != in.rank() || step != 1) return false;
    const size_t at = static_cast<size_t>(axis);
    if (facts_.dims().Equal(in.shape[at], out.shape[at])) return true;
    Window& window = map->windows[static_cast<size_t>(map->axes[at])];
    if (!window.whole || !start.known() || !out.shape[at].known()) return false;
    if (start.is_number() && start.number() < 0 && in.shape[at].is_number()) {
      start = Dim::Of(std::max<int64_t>(0, start.number() + in.shape[at].number()));
    }
    window = {false, start, end, out.shape[at]};
    return true;
  }

  absl::StatusOr<ChannelMap> Slice(const Node& node, const Value* value) {
    absl::StatusOr<ChannelMap> map = Follow(node.input(0));
    if (!map.ok()) return map;
    const auto starts = ListParameter(facts_, node, "starts", 1);
    const auto ends = ListParameter(facts_, node, "ends", 2);
    auto axes = IntsParameter(facts_, node, "axes", 3);
    auto steps = IntsParameter(facts_, node, "steps", 4);
    const bool axes_known = axes.has_value() || node.input(3) == nullptr;
    if (!starts.has_value() || !ends.has_value() || !axes_known || (!steps.has_value() && node.input(4) != nullptr)) {
      return No(fmt::format("the bounds of Slice {} are not known", ValueName(*value)));
    }
    if (!axes.has_value()) {
      axes.emplace();
      for (size_t i = 0; i < starts->size(); ++i) axes->push_back(static_cast<int64_t>(i));
    }
    if (!steps.has_value()) steps = std::vector<int64_t>(starts->size(), 1);
    if (ends->size() != starts->size() || axes->size() != starts->size() || steps->size() != starts->size()) {
      return No(fmt::format("the bounds of Slice {} do not fit", ValueName(*value)));
    }
    for (size_t i = 0; i < starts->size(); ++i) {
      const int axis = TrailingAxis(*map, (*axes)[i]);
      if (axis < 0) {
        if (!CutLeading(node, (*axes)[i], (*starts)[i], (*ends)[i], (*steps)[i], &*map)) {
          return WrongAxis(node, (*axes)[i], *map);
        }
        continue;
      }
      if (!(*starts)[i].is_number() || !(*ends)[i].is_number()) {
        return No(fmt::format("the bounds of Slice {} are not known", ValueName(*value)));
      }
      const int64_t start = (*starts)[i].number();
      const int64_t last = (*ends)[i].number();
      const int64_t size = map->trailing[axis];
      const int64_t step = (*steps)[i];
      if (step == 0) return No("a Slice with step 0");
      auto clamp = [size](int64_t bound, int64_t low, int64_t high) {
        if (bound < 0) bound = bound < -size ? low : bound + size;
        return std::clamp(bound, low, high);
      };
      std::vector<int64_t> positions;
      if (step > 0) {
        const int64_t end = clamp(last, 0, size);
        for (int64_t p = clamp(start, 0, size); p < end; p += std::min(step, size)) positions.push_back(p);
      } else {
        const int64_t end = last < -size ? -1 : clamp(last, -1, size - 1);
        for (int64_t p = clamp(start, 0, size - 1); p > end; p += std::max(step, -size)) positions.push_back(p);
      }
      if (positions.empty()) return No(fmt::format("Slice {} takes no channel", ValueName(*value)));
      *map = Take(*map, static_cast<size_t>(axis), positions, false);
    }
    return map;
  }

  absl::StatusOr<ChannelMap> Split(const Node& node, const Value* value) {
    absl::StatusOr<ChannelMap> map = Follow(node.input(0));
    if (!map.ok()) return map;
    const int64_t split_axis = IntAttribute(node, "axis").value_or(0);
    const int axis = TrailingAxis(*map, split_axis);
    if (axis < 0) return WrongAxis(node, split_axis, *map);
    int64_t offset = 0;
    int64_t size = 0;
    for (size_t i = 0; i <= value->output_index; ++i) {
      const Value* part = node.output(i);
      const Fact* fact = part != nullptr ? &facts_.Of(part) : nullptr;
      const size_t at = static_cast<size_t>(AxisOf(*map, static_cast<size_t>(axis)));
      if (fact == nullptr || fact->rank() <= static_cast<int>(at) || !fact->shape[at].is_number()) {
        return No(fmt::format("the parts of Split {} are not known", ValueName(*value)));
      }
      offset += size;
      size = fact->shape[at].number();
    }
    if (offset + size > map->trailing[axis]) return No("a Split beyond the axis");
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < size; ++i) positions.push_back(offset + i);
    return Take(*map, static_cast<size_t>(axis), positions, false);
  }

  absl::StatusOr<ChannelMap> Concat(const Node& node, const Value* value) {
    std::vector<ChannelMap> parts;
    for (const Use& use : node.inputs()) {
      if (use.value == nullptr) return No("a Concat with an absent input");
      absl::StatusOr<ChannelMap> part = Follow(use.value);
      if (!part.ok()) return part;
      parts.push_back(*std::move(part));
    }
    const auto attribute = IntAttribute(node, "axis");
    if (parts.empty() || !attribute.has_value()) return No("a Concat without axis");
    ChannelMap result = parts[0];
    const int axis = TrailingAxis(result, *attribute);
    if (axis < 0) return WrongAxis(node, *attribute, result);
    const size_t at = static_cast<size_t>(axis);
    int64_t outer = 1;
    for (size_t i = 0; i < at; ++i) outer *= result.trailing[i];
    result.channels.clear();
    result.trailing[at] = 0;
    for (const ChannelMap& part : parts) {
      bool fits =
          part.axes == result.axes && part.trailing.size() == result.trailing.size() && SameWindows(part, result, facts_.dims());
      for (size_t i = 0; fits && i < part.trailing.size(); ++i) {
        fits = i == at || part.trailing[i] == result.trailing[i];
      }
      if (!fits) return No(fmt::format("the parts of Concat {} do not fit", ValueName(*value)));
      result.trailing[at] += part.trailing[at];
    }
    for (int64_t o = 0; o < outer; ++o) {
      for (const ChannelMap& part : parts) {
        const size_t block = part.channels.size() / static_cast<size_t>(outer);
        result.channels.insert(result.channels.end(), part.channels.begin() + static_cast<int64_t>(block) * o,
                               part.channels.begin() + static_cast<int64_t>(block) * (o + 1));
      }
    }
    if (result.channels.size() > static_cast<size_t>(most_)) return No("too many channels");
    return result;
  }

  absl::StatusOr<ChannelMap> Gather(const Node& node, const Value* value) {
    const Value* index = node.input(1);
    absl::StatusOr<ChannelMap> map = Follow(node.input(0));
    if (!map.ok()) return map;
    // GatherND with indices [n, 1] is Gather on axis 0.
    const bool nd = IsOp(node, "GatherND");
    const int index_rank = index != nullptr ? facts_.Of(index).rank() : -1;
    if (nd && (IntAttribute(node, "batch_dims").value_or(0) != 0 || index_rank != 2 || !facts_.Of(index).shape[1].is(1))) {
      return No(fmt::format("the channels that GatherND {} takes are not known", ValueName(*value)));
    }
    const int64_t gather_axis = nd ? 0 : IntAttribute(node, "axis").value_or(0);
    const int axis = TrailingAxis(*map, gather_axis);
    if (axis < 0) return WrongAxis(node, gather_axis, *map);
    const auto numbers = IntsParameter(facts_, node, "", 1);
    if (!numbers.has_value() || index_rank > (nd ? 2 : 1) || index_rank < 0) {
      return No(fmt::format("the channels that Gather {} takes are not known", ValueName(*value)));
    }
    std::vector<int64_t> positions;
    for (int64_t number : *numbers) {
      const int64_t position = number < 0 ? number + map->trailing[axis] : number;
      if (position < 0 || position >= map->trailing[axis]) return No("a Gather beyond the axis");
      positions.push_back(position);
    }
    if (positions.empty()) return No("a Gather of nothing");
    return Take(*map, static_cast<size_t>(axis), positions, index_rank == 0);
  }

  absl::StatusOr<ChannelMap> Transpose(const Node& node) {
    absl::StatusOr<ChannelMap> map = Follow(node.input(0));
    if (!map.ok()) return map;
    auto perm = IntsAttribute(node, "perm");
    if (!perm.has_value() || perm->size() != map->axes.size()) return No("a Transpose of unknown order");
    const size_t count = map->trailing.size();
    ChannelMap result;
    result.leading = map->leading;
    result.windows = map->windows;
    std::vector<int64_t> strides(count, 1);
    for (size_t i = count; i-- > 1;) strides[i - 1] = strides[i] * map->trailing[i];
    std::vector<int64_t> order;
    for (int64_t axis : *perm) {
      if (axis < 0 || axis >= static_cast<int64_t>(map->axes.size())) return No("a Transpose of unknown order");
      result.axes.push_back(map->axes[static_cast<size_t>(axis)]);
      const int trailing = TrailingAxis(*map, axis);
      if (trailing < 0) continue;
      order.push_back(trailing);
      result.trailing.push_back(map->trailing[static_cast<size_t>(trailing)]);
    }
    std::vector<int64_t> at(count, 0);
    for (size_t n = 0; n < map->channels.size(); ++n) {
      int64_t from = 0;
      for (size_t i = 0; i < count; ++i) from += at[i] * strides[static_cast<size_t>(order[i])];
      result.channels.push_back(map->channels[static_cast<size_t>(from)]);
      for (size_t i = count; i-- > 0;) {
        if (++at[i] < result.trailing[i]) break;
        at[i] = 0;
      }
    }
    return result;
  }

  // By a constant matrix whose columns each have one number, 1 or -1.
  absl::StatusOr<ChannelMap> Multiply(const Node& node, const Value* value) {
    const Value* matrix = node.input(1);
    const Fact& fact = facts_.Of(matrix);
    auto computes = [&] {
      nodes_.pop_back();
      return No(fmt::format("{} is computed by MatMul", ValueName(*value)));
    };
    if (matrix == nullptr || !matrix->IsConstant() || fact.rank() != 2 || !fact.shape[0].is_number() ||
        !fact.shape[1].is_number() || fact.shape[0].number() > kMaximumWidth || fact.shape[1].number() > kMaximumWidth ||
        context_.model == nullptr) {
      return computes();
    }
    const size_t rows = static_cast<size_t>(fact.shape[0].number());
    const size_t columns = static_cast<size_t>(fact.shape[1].number());
    const auto numbers = ReadFloats(*context_.model, *matrix->initializer, static_cast<int64_t>(rows * columns));
    if (!numbers.ok() || numbers->size() != rows * columns) return computes();
    std::vector<int64_t> positions;
    std::vector<bool> negative;
    for (size_t c = 0; c < columns; ++c) {
      int64_t found = -1;
      for (size_t r = 0; r < rows; ++r) {
        const double number = (*numbers)[r * columns + c];
        if (number == 0) continue;
        if ((number != 1 && number != -1) || found >= 0) return computes();
        found = static_cast<int64_t>(r);
        negative.push_back(number < 0);
      }
      if (found < 0) return computes();
      positions.push_back(found);
    }
    absl::StatusOr<ChannelMap> map = Follow(node.input(0));
    if (!map.ok()) return map;
    const int axis = TrailingAxis(*map, -1);
    if (axis < 0 || map->trailing[static_cast<size_t>(axis)] != static_cast<int64_t>(rows)) {
      return WrongAxis(node, -1, *map);
    }
    *map = Take(*map, static_cast<size_t>(axis), positions, false);
    for (size_t i = 0; i < map->channels.size(); ++i) {
      if (negative[i % columns]) map->channels[i].negative = !map->channels[i].negative;
    }
    return map;
  }

  // Row-major order is kept: only where the leading dims end must stay the same.
  absl::StatusOr<ChannelMap> Reshape(const Node& node, const Value* value) {
    absl::StatusOr<ChannelMap> map = Follow(node.input(0));
    if (!map.ok()) return map;
    const Fact& in = facts_.Of(node.input(0));
    const Fact& out = facts_.Of(value);
    const size_t leading = static_cast<size_t>(map->leading);
    if (!out.has_rank || !in.has_rank || !InOrder(*map) || out.shape.size() < leading ||
        !facts_.dims().Equal(in.shape.subspan(0, leading), out.shape.subspan(0, leading))) {
      return No(fmt::format("{} {} does not keep the leading dims apart from the channels", OpType(node), ValueName(*value)));
    }
    std::vector<int64_t> trailing;
    int64_t product = 1;
    for (Dim dim : out.shape.subspan(leading)) {
      if (!dim.is_number() || dim.number() < 1) {
        return No(fmt::format("the shape of {} is not known", ValueName(*value)));
      }
      trailing.push_back(dim.number());
      product *= dim.number();
      if (product > most_) return No("too many channels");
    }
    if (product != static_cast<int64_t>(map->channels.size())) {
      return No(fmt::format("{} {} does not keep the leading dims apart from the channels", OpType(node), ValueName(*value)));
    }
    map->axes.resize(leading);
    map->axes.resize(leading + trailing.size(), ChannelMap::kChannels);
    map->trailing = std::move(trailing);
    return map;
  }

  const FunctionContext& context_;
  const Facts& facts_;
  absl::Span<Value* const> sources_;
  const int64_t most_;  // channels
  std::vector<const Node*> nodes_;
  int visited_ = 0;
};

// Values that `value` is cut from, itself first.
std::vector<Value*> Upstream(const FunctionContext& context, Value* value) {
  std::vector<Value*> values = {value};
  while (static_cast<int>(values.size()) < kMaximumSteps) {
    Value* last = values.back();
    if (Value* source = context.numbering->Source(last); source != nullptr) {
      values.push_back(source);
      continue;
    }
    const Node* node = last->producer;
    if (node == nullptr || node->input(0) == nullptr) break;
    const Movement movement = MovementOf(*node);
    const bool moves = movement == Movement::kKeepsOrder || movement == Movement::kPermutes || movement == Movement::kPicks;
    if (!moves && !IsOp(*node, "Neg")) break;
    values.push_back(node->input(0));
  }
  return values;
}

void Note(const FunctionContext& context, const std::vector<const Node*>& nodes) {
  if (context.read != nullptr) context.read->insert(context.read->end(), nodes.begin(), nodes.end());
}

struct Mode {
  const char* name;
  int64_t (*partner)(int64_t channel, int64_t width);
  bool (*negative)(int64_t channel, int64_t width);
  int64_t multiple;
  const char* first;  // what stands in front and must be negated
  const char* second;
};

constexpr Mode kModes[] = {
    {"half", [](int64_t i, int64_t d) { return i < d / 2 ? i + d / 2 : i - d / 2; },
     [](int64_t i, int64_t d) { return i < d / 2; }, 2, "second half", "first half"},
    {"interleaved", [](int64_t i, int64_t) { return i ^ 1; }, [](int64_t i, int64_t) { return i % 2 == 0; }, 2, "odd channels",
     "even channels"},
    {"quarter", [](int64_t i, int64_t d) { return (i / (d / 4)) % 2 == 0 ? i + d / 4 : i - d / 4; },
     [](int64_t i, int64_t d) { return (i / (d / 4)) % 2 == 0; }, 4, "second and fourth quarter", "first and third quarter"},
};

// One trailing axis of D channels, the leading dims of x.
bool IsLike(const FunctionContext& context, const ChannelMap& map, const Value* x) {
  const Fact& fact = context.facts->Of(x);
  return map.trailing.size() == 1 && map.axes.back() == ChannelMap::kChannels && fact.rank() == map.leading + 1 &&
         std::is_sorted(map.axes.begin(), map.axes.end() - 1) && fact.shape.back().is(map.trailing[0]);
}

}  // namespace

absl::StatusOr<ChannelMap> FollowChannels(const FunctionContext& context, Value* value, absl::Span<Value* const> sources,
                                          std::vector<const Node*>* reached, int64_t most) {
  Follower follower(context, sources, most);
  absl::StatusOr<ChannelMap> map = follower.Follow(value);
  if (reached != nullptr) *reached = follower.nodes();
  if (map.ok()) map->nodes = std::move(follower.nodes());
  return map;
}

absl::StatusOr<std::string> RotationMode(const FunctionContext& context, Value* rotated, Value* x, int sign, const Value* signs) {
  // The same Cast of both changes nothing of which channel is which.
  while (rotated->producer != nullptr && x->producer != nullptr && rotated != x && IsOp(*rotated->producer, "Cast") &&
         IsOp(*x->producer, "Cast") && IntAttribute(*rotated->producer, "to") == IntAttribute(*x->producer, "to") &&
         context.facts->Of(rotated->producer->input(0)).type == context.facts->Of(x->producer->input(0)).type) {
    Note(context, {rotated->producer});
    rotated = rotated->producer->input(0);
    x = x->producer->input(0);
  }
  // From x itself or, where slices of slices were merged, from what both are cut from.
  absl::StatusOr<ChannelMap> map = No("");
  std::vector<Channel> of_x;
  std::vector<const Node*> longest;
  absl::Status why;
  for (Value* source : Upstream(context, x)) {
    std::vector<const Node*> reached;
    map = FollowChannels(context, rotated, {source}, &reached);
    if (reached.size() > longest.size()) longest = reached;
    if (why.ok()) why = map.status();
    if (!map.ok()) continue;
    if (source == x && !IsWhole(*map)) {
      map = No(fmt::format("it is a part of {} along another axis", ValueName(*x)));
      why = map.status();
      continue;
    }
    if (source != x) {
      const absl::StatusOr<ChannelMap> own = FollowChannels(context, x, {source});
      if (!own.ok()) {
        map = own.status();
        continue;
      }
      if (!SameWindows(*own, *map, context.facts->dims())) {
        return No(fmt::format("{} and {} are different parts of {}", ValueName(*rotated), ValueName(*x), ValueName(*source)));
      }
      if (own->axes != map->axes || own->trailing != map->trailing) {
        return No(fmt::format("{} and {} do not lie along the same axes", ValueName(*rotated), ValueName(*x)));
      }
      of_x = own->channels;
    }
    break;
  }
  Note(context, longest);
  if (!map.ok()) {
    return No(
        fmt::format("{} is not made of the channels of {}: {}", ValueName(*rotated), ValueName(*x), std::string(why.message())));
  }
  if (!IsLike(context, *map, x)) {
    return No(fmt::format("{} has another shape than {}", ValueName(*rotated), ValueName(*x)));
  }
  const int64_t width = map->trailing[0];
  std::vector<Channel> channels = map->channels;
  if (!of_x.empty()) {
    for (int64_t i = 0; i < width; ++i) {
      Channel& channel = channels[static_cast<size_t>(i)];
      auto at = std::find_if(of_x.begin(), of_x.end(), [&](const Channel& c) { return c.index == channel.index; });
      if (at == of_x.end()) {
        return No(fmt::format("channel {} of {} is not among those of {}", i, ValueName(*rotated), ValueName(*x)));
      }
      channel.index = at - of_x.begin();
      channel.negative = channel.negative != at->negative;
    }
  }
  if (sign < 0) {
    for (Channel& channel : channels) channel.negative = !channel.negative;
  }
  if (signs != nullptr) {
    const Fact& fact = context.facts->Of(signs);
    const bool fits = fact.elements != nullptr && static_cast<int64_t>(fact.elements->floats.size()) == width &&
                      fact.rank() >= 1 && fact.shape.back().is(width);
    for (int64_t i = 0; i < width; ++i) {
      const double number = fits ? fact.elements->floats[static_cast<size_t>(i)] : 0;
      if (number != 1 && number != -1) {
        return No(fmt::format("{} does not hold a sign for every channel", ValueName(*signs)));
      }
      Channel& channel = channels[static_cast<size_t>(i)];
      if (number < 0) channel.negative = !channel.negative;
    }
  }
  for (const Mode& mode : kModes) {
    if (width % mode.multiple != 0) continue;
    int64_t same = 0;
    int64_t opposite = 0;
    int64_t negatives = 0;
    bool moved = true;
    for (int64_t i = 0; i < width && moved; ++i) {
      const Channel& channel = channels[static_cast<size_t>(i)];
      moved = channel.index == mode.partner(i, width);
      negatives += channel.negative ? 1 : 0;
      (channel.negative == mode.negative(i, width) ? same : opposite) += 1;
    }
    if (!moved) continue;
    if (same == width) return std::string(mode.name);
    if (opposite == width) {
      return No(
          fmt::format("it turns the other way: minus stands before the {}, or the product with sin is subtracted", mode.second));
    }
    if (negatives == 0) return No(fmt::format("no part is negated; a rotation negates the {}", mode.first));
    if (negatives == width) return No(fmt::format("both parts are negated; a rotation negates the {} only", mode.first));
    return No(fmt::format("the signs are those of no rotation; one negates the {} only", mode.first));
  }
  for (int64_t i = 0; i < width; ++i) {
    const Channel& channel = channels[static_cast<size_t>(i)];
    if (channel.index == i) {
      return No(fmt::format("channel {} stays in its place: no rotation by halves, pairs or quarters", i));
    }
    bool any = false;
    for (const Mode& mode : kModes) {
      any = any || (width % mode.multiple == 0 && channel.index == mode.partner(i, width));
    }
    if (!any) {
      return No(fmt::format("channel {} takes the place of channel {} of {}: no rotation by halves, pairs or quarters",
                            channel.index, i, width));
    }
  }
  return No("the channels change places in a mixture of ways: no rotation by halves, pairs or quarters");
}

absl::StatusOr<std::string> JoinMode(const FunctionContext& context, Value* y, Value* a, Value* b) {
  const Fact& fact = context.facts->Of(y);
  if (fact.rank() < 1 || !fact.shape.back().is_number()) {
    return No(fmt::format("the width of {} is not known", ValueName(*y)));
  }
  const int64_t width = fact.shape.back().number();
  const Node* concat = nullptr;
  for (Value* value : Upstream(context, y)) {
    const Node* node = value->producer;
    if (node == nullptr) break;
    if (IsOp(*node, "Concat") && context.numbering->Source(value) == nullptr) {
      concat = node;
      break;
    }
    if (!KeepsOrder(*node) && context.numbering->Source(value) == nullptr) break;
  }
  if (concat == nullptr || concat->input_count != 2) return No("two parts are not joined by one Concat");
  // [..., D/2] or, with an axis for the pair, [..., D/2, 1].
  const Fact& part = context.facts->Of(a);
  const int extra = part.rank() - fact.rank();
  if (extra < 0 || extra > 1 || (extra == 1 && !part.shape.back().is(1)) ||
      !part.shape[static_cast<size_t>(fact.rank()) - 1].is(width / 2) || width % 2 != 0) {
    return No(fmt::format("{} is not a half of {}", context.facts->Describe(a), context.facts->Describe(y)));
  }
  const int64_t axis = IntAttribute(*concat, "axis").value_or(0);
  const Fact& shape = context.facts->Of(concat->output(0));
  const int leading = fact.rank() - 1;
  const int64_t at = axis < 0 ? axis + shape.rank() : axis;
  auto is = [&](Value* operand, Value* wanted) {
    for (Value* value : Upstream(context, operand)) {
      if (context.numbering->Same(value, wanted)) return true;
      const Node* node = value->producer;
      if (node == nullptr || (!KeepsOrder(*node) && context.numbering->Source(value) == nullptr)) return false;
    }
    return false;
  };
  if (!is(concat->input(0), a) || !is(concat->input(1), b)) return No("other parts are joined");
  // The operands of the Concat are [leading ..., D/2] with unit axes put in.
  const Fact& operand = context.facts->Of(concat->input(0));
  if (!operand.has_rank || operand.rank() < leading + 1 ||
      !context.facts->dims().Equal(operand.shape.subspan(0, static_cast<size_t>(leading)),
                                   fact.shape.subspan(0, static_cast<size_t>(leading)))) {
    return No("the parts are joined with other leading dims");
  }
  int64_t channels_before = 1;
  int64_t channels_behind = 1;
  for (int i = leading; i < operand.rank(); ++i) {
    if (!operand.shape[static_cast<size_t>(i)].is_number()) return No("the width of the parts is not known");
    const int64_t dim = operand.shape[static_cast<size_t>(i)].number();
    if (i < at) channels_before *= dim;
    if (i >= at) channels_behind *= dim;
  }
  if (at < leading || channels_before * channels_behind != width / 2) {
    return No(fmt::format("the parts are joined on axis {}, which is not that of the channels", at));
  }
  if (channels_before == 1) return std::string("half");
  if (channels_behind == 1) return std::string("interleaved");
  return No("the parts are joined in blocks");
}

namespace {

// The part of `source` that `map` takes of its leading axes, which must have the leading dims of `like`; all of it where
// `like` is null. nullopt where it has not, or where the bounds are not known.
std::optional<Term> PartOf(const FunctionContext& context, Value* source, const ChannelMap& map, const Value* like) {
  const Fact& fact = context.facts->Of(source);
  std::vector<Term> starts, ends, axes;
  for (size_t i = 0; i < map.windows.size(); ++i) {
    const Window& window = map.windows[i];
    if (like != nullptr) {
      const Dim extent = window.whole ? fact.shape[i] : window.extent;
      if (!context.facts->dims().Equal(extent, context.facts->Of(like).shape[i])) return std::nullopt;
    }
    if (window.whole) continue;
    if (like == nullptr || !window.start.is_number() || !window.end.is_number()) return std::nullopt;
    starts.push_back(Term::Integer(window.start.number()));
    ends.push_back(Term::Integer(window.end.number()));
    axes.push_back(Term::Integer(static_cast<int64_t>(i)));
  }
  if (starts.empty()) return Term::Of(source);
  return Term::Node(
      {"",
       "Slice",
       {{"starts", Term::List(std::move(starts))}, {"ends", Term::List(std::move(ends))}, {"axes", Term::List(std::move(axes))}},
       {Term::Of(source)},
       1});
}

}  // namespace

absl::StatusOr<Cut> CutSource(const FunctionContext& context, Value* a, Value* b, const Value* like, int64_t scale) {
  absl::Status why;
  for (Value* source : Upstream(context, a)) {
    const Fact& fact = context.facts->Of(source);
    if (fact.rank() < 2 || !fact.shape.back().is_number()) continue;
    if (like != nullptr) {
      const Fact& model = context.facts->Of(like);
      if (model.rank() != fact.rank() || !model.shape.back().is_number() ||
          !fact.shape.back().is(scale * model.shape.back().number())) {
        continue;
      }
    }
    const absl::StatusOr<ChannelMap> first = FollowChannels(context, a, {source});
    if (!first.ok()) continue;
    const std::optional<Term> part = PartOf(context, source, *first, like);
    if (!part.has_value()) continue;
    const int64_t width = first->channels.size() == 0 ? 0 : static_cast<int64_t>(first->channels.size());
    if (!fact.shape.back().is(2 * width)) {
      if (why.ok() && source != a) {
        why = No(fmt::format("{} is {} channels of the {} of {}, not half of them", ValueName(*a), width,
                             context.facts->dims().ToString(fact.shape.back()), ValueName(*source)));
      }
      continue;
    }
    const absl::StatusOr<ChannelMap> second = FollowChannels(context, b, {source});
    if (!second.ok()) {
      if (why.ok()) why = second.status();
      continue;
    }
    if (!InOrder(*first)) {  // transposed after the cut: the parts of something else
      if (why.ok()) why = No(fmt::format("{} has the axes of {} in another order", ValueName(*a), ValueName(*source)));
      continue;
    }
    // Two parts that lie along different axes broadcast against each other.
    if (second->axes != first->axes || second->trailing != first->trailing ||
        !SameWindows(*first, *second, context.facts->dims())) {
      if (why.ok()) why = No(fmt::format("{} and {} do not lie along the same axes", ValueName(*a), ValueName(*b)));
      continue;
    }
    for (const Mode& mode : kModes) {
      if (std::string_view(mode.name) == "quarter") continue;
      const bool pairs = std::string_view(mode.name) == "interleaved";
      bool fits = true;
      for (int64_t i = 0; i < width && fits; ++i) {
        const Channel& p = first->channels[static_cast<size_t>(i)];
        const Channel& q = second->channels[static_cast<size_t>(i)];
        fits = !p.negative && !q.negative && p.index == (pairs ? 2 * i : i) && q.index == (pairs ? 2 * i + 1 : width + i);
      }
      if (!fits) continue;
      Note(context, first->nodes);
      Note(context, second->nodes);
      return Cut{source, mode.name, *part};
    }
    if (why.ok()) {
      const Channel& p = first->channels[0];
      const Channel& q = second->channels[0];
      why = No(fmt::format("{} begins with channel {} of {} and {} with channel {}: neither halves nor pairs", ValueName(*a),
                           p.index, ValueName(*source), ValueName(*b), q.index));
    }
  }
  if (!why.ok()) return why;
  return No(fmt::format("{} and {} are not cut from the last axis of one value", ValueName(*a), ValueName(*b)));
}

absl::StatusOr<Value*> DeinterleavedSource(const FunctionContext& context, Value* x) {
  for (Value* source : Upstream(context, x)) {
    if (source == x) continue;
    const absl::StatusOr<ChannelMap> map = FollowChannels(context, x, {source});
    if (!map.ok() || !IsLike(context, *map, x) || !IsWhole(*map) ||
        !context.facts->dims().Equal(context.facts->Of(x).shape, context.facts->Of(source).shape)) {
      continue;
    }
    const int64_t width = map->trailing[0];
    bool fits = width % 2 == 0 && width > 2;
    for (int64_t i = 0; i < width && fits; ++i) {
      const Channel& channel = map->channels[static_cast<size_t>(i)];
      fits = !channel.negative && channel.index == (i < width / 2 ? 2 * i : 2 * (i - width / 2) + 1);
    }
    if (!fits) continue;
    Note(context, map->nodes);
    return source;
  }
  return No(fmt::format("{} is not the even and then the odd channels of anything", ValueName(*x)));
}

}  // namespace ascend_fuse
