#include "patterns/analysis/empty_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/constant_tensor.h"
#include "ir/infer/movement_of.h"
#include "ir/rounding.h"
#include "ir/schema.h"
#include "ir/whole_number.h"
#include "patterns/analysis/mask.h"

namespace ascend_fuse {
namespace {

constexpr int64_t kMostInTable = int64_t{1} << 20;
constexpr int kMostStepsBack = 64;  // from a mask back to its constants
constexpr int kMostTables = 128;    // of one attention

// Elements in row-major order; booleans are 0 and 1.
struct Table {
  std::vector<int64_t> dims;
  std::vector<double> values;
};
using MaybeTable = std::optional<Table>;

int64_t CountElements(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count = dim < 0 || count > kMostInTable ? kMostInTable + 1 : count * dim;
  return count;
}

// The dims that both are broadcast to; nullopt where they do not fit, or are too many.
std::optional<std::vector<int64_t>> Broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> dims(std::max(a.size(), b.size()), 1);
  for (const auto* own : {&a, &b}) {
    for (size_t i = 0; i < own->size(); ++i) {
      int64_t& dim = dims[dims.size() - own->size() + i];
      if (dim != 1 && (*own)[i] != 1 && dim != (*own)[i]) return std::nullopt;
      if ((*own)[i] != 1) dim = (*own)[i];
    }
  }
  return CountElements(dims) <= kMostInTable ? std::optional(dims) : std::nullopt;
}

// x broadcast to `dims`.
std::vector<double> Spread(const Table& x, const std::vector<int64_t>& dims) {
  const auto count = static_cast<size_t>(CountElements(dims));
  std::vector<double> values(count);
  std::vector<int64_t> strides(dims.size(), 0);
  int64_t stride = 1;
  for (size_t i = x.dims.size(); i-- > 0;) {
    if (x.dims[i] != 1) strides[dims.size() - x.dims.size() + i] = stride;
    stride *= x.dims[i];
  }
  std::vector<int64_t> place(dims.size(), 0);
  int64_t from = 0;
  for (size_t at = 0; at < count; ++at) {
    values[at] = x.values[static_cast<size_t>(from)];
    for (size_t axis = dims.size(); axis-- > 0;) {
      from += strides[axis];
      if (++place[axis] < dims[axis]) break;
      from -= strides[axis] * dims[axis];
      place[axis] = 0;
    }
  }
  return values;
}

MaybeTable Combined(const MaybeTable& a, const MaybeTable& b, const std::function<double(double, double)>& op) {
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  const auto dims = Broadcast(a->dims, b->dims);
  if (!dims.has_value()) return std::nullopt;
  Table result{*dims, Spread(*a, *dims)};
  const std::vector<double> other = Spread(*b, *dims);
  for (size_t i = 0; i < other.size(); ++i) result.values[i] = op(result.values[i], other[i]);
  return result;
}

MaybeTable Mapped(MaybeTable x, const std::function<double(double)>& op) {
  if (x.has_value()) std::transform(x->values.begin(), x->values.end(), x->values.begin(), op);
  return x;
}

// Elements that no input of the model changes.
class Tables {
 public:
  explicit Tables(const FunctionContext& context) : context_(context) {}

  const MaybeTable& Of(const Value* value) {
    static const MaybeTable* const kNone = new MaybeTable();
    if (value == nullptr || ++steps_ > kMostTables) return *kNone;
    const auto [entry, fresh] = known_.try_emplace(value);
    if (fresh)
      entry->second = std::make_unique<MaybeTable>();
    else
      return *entry->second;
    MaybeTable found = Find(*value);
    return *(known_[value] = std::make_unique<MaybeTable>(std::move(found)));
  }

  // The dims of a value; nullopt where one is not a number.
  std::optional<std::vector<int64_t>> DimsOf(const Value* value) const {
    const Fact& fact = context_.facts->Of(value);
    if (!fact.has_rank) return std::nullopt;
    std::vector<int64_t> dims;
    for (const Dim dim : fact.shape) {
      const Dim resolved = context_.dims->Resolve(dim);
      if (!resolved.is_number()) return std::nullopt;
      dims.push_back(resolved.number());
    }
    return CountElements(dims) <= kMostInTable ? std::optional(dims) : std::nullopt;
  }

 private:
  MaybeTable Find(const Value& value) {
    const auto dims = DimsOf(&value);
    if (!dims.has_value()) return std::nullopt;
    const Fact& fact = context_.facts->Of(&value);
    Table table{*dims, {}};
    if (fact.is_splat) {
      table.values.assign(static_cast<size_t>(CountElements(*dims)), fact.splat);
    } else if (fact.elements != nullptr) {
      table.values.assign(fact.elements->floats.begin(), fact.elements->floats.end());
      for (const Dim element : fact.elements->integers) {
        if (!element.is_number()) return std::nullopt;
        table.values.push_back(static_cast<double>(element.number()));
      }
    } else if (const auto tensor = ConstantTensor(value); tensor.has_value()) {
      if (IsFloat(tensor->type)) {
        auto numbers = ReadFloats(*context_.model, *tensor, kMostInTable);
        if (numbers.ok()) table.values = *std::move(numbers);
      } else if (auto numbers = ReadIntegers(*context_.model, *tensor, kMostInTable); numbers.ok()) {
        table.values.assign(numbers->begin(), numbers->end());
      }
    } else if (const Node* node = value.producer; node != nullptr && node->domain == NameId::kEmpty && !node->dead) {
      return Computed(*node, value, *dims);
    }
    if (static_cast<int64_t>(table.values.size()) != CountElements(*dims)) return std::nullopt;
    return table;
  }

  MaybeTable Computed(const Node& node, const Value& value, const std::vector<int64_t>& dims) {
    if (const Movement* movement = context_.facts->MovementOf(&value); movement != nullptr) return Moved(*movement, dims);
    const std::string_view op = OpType(node);
    const DataType type = context_.facts->Of(&value).type;
    if (op == "Not") return Mapped(Of(node.input(0)), [](double x) { return x == 0 ? 1 : 0; });
    if (op == "Neg") return Mapped(Of(node.input(0)), [](double x) { return -x; });
    if (op == "Cast") {
      return Mapped(Of(node.input(0)), [type](double x) {
        if (type == DataType::kBool) return x != 0 ? 1.0 : 0.0;
        return IsFloat(type) ? RoundTo(type, x) : std::trunc(x);
      });
    }
    if (op == "Where") {
      const MaybeTable chosen =
          Combined(Of(node.input(0)), Of(node.input(1)), [](double c, double x) { return c != 0 ? x : std::nan(""); });
      return Combined(chosen, Of(node.input(2)), [](double x, double y) { return std::isnan(x) ? y : x; });
    }
    if (op == "Trilu") return Triangle(node);
    const auto two = [&](const std::function<double(double, double)>& f) {
      return Combined(Of(node.input(0)), Of(node.input(1)), f);
    };
    if (op == "And") return two([](double x, double y) { return x != 0 && y != 0 ? 1 : 0; });
    if (op == "Or") return two([](double x, double y) { return x != 0 || y != 0 ? 1 : 0; });
    if (op == "Less") return two([](double x, double y) { return x < y ? 1 : 0; });
    if (op == "LessOrEqual") return two([](double x, double y) { return x <= y ? 1 : 0; });
    if (op == "Greater") return two([](double x, double y) { return x > y ? 1 : 0; });
    if (op == "GreaterOrEqual") return two([](double x, double y) { return x >= y ? 1 : 0; });
    if (op == "Equal") return two([](double x, double y) { return x == y ? 1 : 0; });
    if (!IsFloat(type)) return std::nullopt;  // integers wrap around
    if (op == "Add") return two([type](double x, double y) { return RoundTo(type, x + y); });
    if (op == "Sub") return two([type](double x, double y) { return RoundTo(type, x - y); });
    if (op == "Mul") return two([type](double x, double y) { return RoundTo(type, x * y); });
    if (op == "Min") return node.input_count == 2 ? two([](double x, double y) { return std::min(x, y); }) : std::nullopt;
    return std::nullopt;
  }

  MaybeTable Triangle(const Node& node) {
    MaybeTable x = Of(node.input(0));
    int64_t offset = 0;
    if (node.input(1) != nullptr) {
      const MaybeTable& k = Of(node.input(1));
      if (!k.has_value() || k->values.size() != 1) return std::nullopt;
      constexpr double kFar = 1e15;  // from here on all of the table is on one side
      offset = WholeNumber(std::clamp(k->values[0], -kFar, kFar));
    }
    if (!x.has_value() || x->dims.size() < 2) return std::nullopt;
    const bool upper = IntAttribute(node, "upper").value_or(1) != 0;
    const int64_t rows = x->dims[x->dims.size() - 2];
    const int64_t columns = x->dims.back();
    for (size_t at = 0; at < x->values.size(); ++at) {
      const int64_t column = static_cast<int64_t>(at) % columns;
      const int64_t row = static_cast<int64_t>(at) / columns % rows;
      if (upper ? column < row + offset : column > row + offset) x->values[at] = 0;
    }
    return x;
  }

  // Of one operand; the lengths are those that inference found.
  MaybeTable Moved(const Movement& movement, const std::vector<int64_t>& dims) {
    const MovedPart* part = movement.only();
    if (part == nullptr) return std::nullopt;
    MaybeTable from = Of(movement.node->input(part->operand));
    if (!from.has_value()) return std::nullopt;
    if (movement.kind == MovementKind::kKeepsOrder) {
      if (CountElements(from->dims) != CountElements(dims)) return std::nullopt;
      from->dims = dims;
      return from;
    }
    if (!part->known || part->viewed() || !part->windows.empty() || part->axes.size() != from->dims.size()) return std::nullopt;
    Table moved{dims, {}};
    std::vector<int64_t> place(dims.size(), 0);
    for (int64_t count = CountElements(dims); count > 0; --count) {
      int64_t at = 0;
      for (size_t axis = 0; axis < part->axes.size(); ++axis) {
        const int64_t position = PositionOf(part->axes[axis], place, from->dims[axis]);
        if (position < 0 || position >= from->dims[axis]) return std::nullopt;
        at = at * from->dims[axis] + position;
      }
      moved.values.push_back(from->values[static_cast<size_t>(at)]);
      for (size_t axis = dims.size(); axis-- > 0;) {
        if (++place[axis] < dims[axis]) break;
        place[axis] = 0;
      }
    }
    return moved;
  }

  // Where along an axis of `extent` elements the one at a place stands; -1 where that is not known.
  static int64_t PositionOf(const AxisSource& source, const std::vector<int64_t>& place, int64_t extent) {
    const auto along = static_cast<size_t>(source.axis);
    switch (source.kind) {
      case AxisSource::Kind::kPlace:
        return source.start.is_number() && source.step != 0 ? source.start.number() + source.step * place[along] : -1;
      case AxisSource::Kind::kFixed:
        return source.start.is_number() ? source.start.number() : -1;
      case AxisSource::Kind::kBroadcast:
        return extent == 1 ? 0 : place[along];
      case AxisSource::Kind::kWrapped:
        return extent > 0 ? place[along] % extent : -1;
      default:
        return -1;
    }
  }

  const FunctionContext& context_;
  absl::flat_hash_map<const Value*, std::unique_ptr<MaybeTable>> known_;
  int steps_ = 0;
};

// Where a key is kept: where a boolean is true, where it is false, or where an added number does not take it out.
enum class Sense : uint8_t { kTrue, kFalse, kAdded };

// 1 where a key may be kept, as far as constants say; without a table everywhere.
class Kept {
 public:
  explicit Kept(const FunctionContext& context) : context_(context), tables_(context) {}

  // `decides`: what this leaves out is out whatever else is said. Then the part of a constant that a run chooses is looked at.
  MaybeTable Of(const Value* value, Sense sense, bool decides, int depth = 0) {
    if (value == nullptr || depth > kMostStepsBack) return std::nullopt;
    while (const Value* source = context_.numbering->Source(value)) value = source;
    if (const MaybeTable& table = tables_.Of(value); table.has_value()) {
      return Mapped(table, [sense](double x) {
        return (sense == Sense::kTrue ? x != 0 : sense == Sense::kFalse ? x == 0 : x > kMaskThreshold) ? 1 : 0;
      });
    }
    const Node* node = value->producer;
    if (node == nullptr || node->dead || node->domain != NameId::kEmpty) return std::nullopt;
    const std::string_view op = OpType(*node);
    const auto input = [&](size_t i, Sense of, bool strict) { return Of(node->input(i), of, decides && strict, depth + 1); };
    if (op == "Not") return input(0, sense == Sense::kTrue ? Sense::kFalse : Sense::kTrue, true);
    if ((op == "And" && sense == Sense::kTrue) || (op == "Or" && sense == Sense::kFalse)) {
      return Both(input(0, sense, true), input(1, sense, true));
    }
    // Neither raises what the other one has taken out.
    if (op == "Add" && sense == Sense::kAdded && OnlyMasks(context_, node->input(0)) && OnlyMasks(context_, node->input(1))) {
      return Both(input(0, sense, true), input(1, sense, true));
    }
    if (op == "Where") return Chosen(*node, sense, decides, depth);
    const Movement* movement = context_.facts->MovementOf(value);
    if (movement == nullptr || !KeepsRows(*movement, *value)) return std::nullopt;
    if (movement->kind == MovementKind::kKeepsOrder || IsBroadcast(*movement))
      return WithLeadingAxes(*value, input(0, sense, true));
    if (movement->kind != MovementKind::kPicks) return std::nullopt;
    if (const MaybeTable whole = input(0, sense, true); decides && whole.has_value())
      Note(*whole, &chosen_);  // a part, by a length of the run
    return std::nullopt;
  }

  static MaybeTable Both(const MaybeTable& a, const MaybeTable& b) {
    if (!a.has_value()) return b;
    if (!b.has_value()) return a;
    MaybeTable both = Combined(a, b, [](double x, double y) { return x * y; });
    return both.has_value() ? both : a;
  }

  // The first row without a key.
  static void Note(const Table& table, std::optional<int64_t>* row) {
    if (row->has_value() || table.values.empty()) return;
    const auto length = static_cast<size_t>(table.dims.empty() ? 1 : table.dims.back());
    const int64_t rows = table.dims.size() < 2 ? 1 : table.dims[table.dims.size() - 2];
    for (size_t at = 0; at < table.values.size(); at += length) {
      const auto first = table.values.begin() + static_cast<std::ptrdiff_t>(at);
      if (std::any_of(first, first + static_cast<std::ptrdiff_t>(length), [](double kept) { return kept != 0; })) continue;
      *row = static_cast<int64_t>(at / length) % rows;
      return;
    }
  }

  // Of a constant of which a run chooses a part.
  const std::optional<int64_t>& chosen() const { return chosen_; }

 private:
  // Kept where the condition chooses what keeps.
  MaybeTable Chosen(const Node& node, Sense sense, bool decides, int depth) {
    const MaybeTable x = Of(node.input(1), sense, false, depth + 1);
    const MaybeTable y = Of(node.input(2), sense, false, depth + 1);
    const auto none = [](const MaybeTable& table) {
      return table.has_value() && std::all_of(table->values.begin(), table->values.end(), [](double kept) { return kept == 0; });
    };
    if (none(y)) return Both(Of(node.input(0), Sense::kTrue, decides, depth + 1), Of(node.input(1), sense, decides, depth + 1));
    if (none(x)) return Both(Of(node.input(0), Sense::kFalse, decides, depth + 1), Of(node.input(2), sense, decides, depth + 1));
    return std::nullopt;
  }

  // Whether the last two axes of the result are those of the operand: then what a row of one is, a row of the other is.
  bool KeepsRows(const Movement& movement, const Value& result) const {
    const Fact& from = context_.facts->Of(movement.node->input(0));
    const Fact& to = context_.facts->Of(&result);
    if (from.rank() < 2 || to.rank() < from.rank()) return false;
    if (movement.kind == MovementKind::kKeepsOrder) {
      const auto last = [](const Fact& fact) { return fact.shape.subspan(fact.shape.size() - 2); };
      const auto is_one = [](Dim dim) { return dim.is(1); };
      return to.rank() > from.rank() && context_.dims->Equal(last(from), last(to)) &&
             std::none_of(to.shape.end() - 2, to.shape.end(), is_one);
    }
    const MovedPart* part = movement.only();
    if (part == nullptr || !part->known || part->axes.size() != from.shape.size()) return false;
    for (const int from_end : {1, 2}) {
      const AxisSource& source = part->axes[part->axes.size() - static_cast<size_t>(from_end)];
      const bool along = source.kind == AxisSource::Kind::kPlace || source.kind == AxisSource::Kind::kBroadcast;
      if (!source.IsOneElement() && (!along || source.axis != to.rank() - from_end)) return false;
    }
    return true;
  }

  // What is kept of a value that got axes in front, which broadcasting adds by itself.
  MaybeTable WithLeadingAxes(const Value& result, MaybeTable kept) const {
    if (!kept.has_value()) return std::nullopt;
    const int rank = context_.facts->Of(&result).rank();
    if (rank > static_cast<int>(kept->dims.size()) && kept->dims.size() > 2) return std::nullopt;
    return kept;
  }

  const FunctionContext& context_;
  Tables tables_;
  std::optional<int64_t> chosen_;
};

}  // namespace

std::optional<EmptyRow> FindEmptyRow(const FunctionContext& context, absl::Span<const Value* const> masks,
                                     absl::Span<const Value* const> drops) {
  Kept kept(context);
  MaybeTable all;
  const Value* first = nullptr;
  std::optional<int64_t> row;
  const auto add = [&](const Value* mask, Sense sense) {
    const MaybeTable own = kept.Of(mask, sense, true);
    if (first == nullptr && (own.has_value() || kept.chosen().has_value())) first = mask;
    all = Kept::Both(all, own);
  };
  for (const Value* mask : masks) {
    add(mask, context.facts->Of(mask).type == DataType::kBool ? Sense::kTrue : Sense::kAdded);
  }
  for (const Value* drop : drops) add(drop, Sense::kFalse);
  if (all.has_value()) Kept::Note(*all, &row);
  if (!row.has_value()) row = kept.chosen();
  if (!row.has_value()) return std::nullopt;
  return EmptyRow{first, *row};
}

}  // namespace ascend_fuse
