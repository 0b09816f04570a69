#include "patterns/analysis/axis_map.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "ir/attribute.h"
#include "ir/infer/movement_of.h"
#include "patterns/terms/node_builder.h"

namespace ascend_fuse {

Atoms AtomTable::New(Dim size) {
  if (size.is(1)) return {};
  atoms_.push_back({size});
  return {static_cast<int>(atoms_.size()) - 1};
}

void AtomTable::AddLeaves(int atom, Atoms* leaves) const {
  const Atom& of = atoms_[static_cast<size_t>(atom)];
  if (of.outer < 0) {
    leaves->push_back(atom);
    return;
  }
  AddLeaves(of.outer, leaves);
  AddLeaves(of.inner, leaves);
}

Atoms AtomTable::Leaves(const Atoms& atoms) const {
  Atoms leaves;
  for (int atom : atoms) AddLeaves(atom, &leaves);
  return leaves;
}

AxisList AtomTable::Leaves(const AxisList& axes) const {
  AxisList leaves;
  leaves.reserve(axes.size());
  for (const Atoms& axis : axes) leaves.push_back(Leaves(axis));
  return leaves;
}

Dim AtomTable::SizeOf(const Atoms& atoms) const {
  Dim size = Dim::Of(1);
  for (int atom : atoms) size = dims_->Mul(size, atoms_[static_cast<size_t>(atom)].size);
  return size;
}

bool AtomTable::Resize(const Atoms& axis, Dim size) {
  const Atoms leaves = Leaves(axis);
  if (leaves.size() != 1) return false;
  atoms_[static_cast<size_t>(leaves[0])].size = size;
  return true;
}

std::vector<Dim> AtomTable::SizesOf(const AxisList& axes) const {
  std::vector<Dim> sizes;
  sizes.reserve(axes.size());
  for (const Atoms& axis : axes) sizes.push_back(SizeOf(axis));
  return sizes;
}

std::optional<AxisList> AtomTable::Regroup(const AxisList& axes, absl::Span<const Dim> dims) {
  const Atoms leaves = Leaves(Joined(axes));
  std::vector<int> left(leaves.rbegin(), leaves.rend());  // the next one last
  AxisList groups;
  // Whether the dims from `first` on are the next leaves but `skipped`, one by one, or each of several.
  const auto are_the_rest = [&](size_t first, size_t skipped) {
    size_t next = left.size() - skipped;
    for (size_t i = first; i < dims.size(); ++i) {
      Dim rest = dims[i];
      while (!rest.is(1)) {
        if (next == 0) return false;
        const Dim size = atoms_[static_cast<size_t>(left[--next])].size;
        const bool equal = dims_->Equal(rest, size);
        rest = equal ? Dim::Of(1) : dims_->ExactDiv(rest, size);
        if (!rest.known() || (!equal && !by_count_)) return false;
      }
    }
    return next == 0;
  };
  for (size_t i = 0; i < dims.size(); ++i) {
    Dim wanted = dims[i];
    if (!wanted.known()) return std::nullopt;
    Atoms group;
    // One dim and one leaf between equal ones are equal, because there are as many elements.
    if (!wanted.is(1) && !left.empty() && are_the_rest(i + 1, 1)) {
      groups.push_back({left.back()});
      left.pop_back();
      continue;
    }
    while (!wanted.is(1)) {
      if (left.empty()) return std::nullopt;
      const int next = left.back();
      const Dim size = atoms_[static_cast<size_t>(next)].size;
      left.pop_back();
      if (dims_->Equal(size, wanted)) {
        group.push_back(next);
        break;
      }
      if (const Dim rest = dims_->ExactDiv(wanted, size); rest.known()) {
        group.push_back(next);
        wanted = rest;
        continue;
      }
      const Dim inner = dims_->ExactDiv(size, wanted);
      if (!inner.known()) return std::nullopt;
      const int outer = static_cast<int>(atoms_.size());
      atoms_.push_back({wanted});
      atoms_.push_back({inner});
      atoms_[static_cast<size_t>(next)].outer = outer;
      atoms_[static_cast<size_t>(next)].inner = outer + 1;
      group.push_back(outer);
      left.push_back(outer + 1);
      break;
    }
    groups.push_back(std::move(group));
  }
  if (!left.empty()) return std::nullopt;
  return groups;
}

bool Contains(const Atoms& atoms, int atom) { return std::find(atoms.begin(), atoms.end(), atom) != atoms.end(); }

Atoms Joined(const AxisList& axes) {
  Atoms joined;
  for (const Atoms& axis : axes) joined.insert(joined.end(), axis.begin(), axis.end());
  return joined;
}

namespace {

// The axes of what is permuted: those of the operand, by the axes of the result.
std::optional<AxisList> BeforePermutation(const Movement& movement, const AxisList& axes, absl::Span<const Dim> operand,
                                          AtomTable* atoms) {
  const MovedPart& part = movement.parts[0];
  if (!part.known) return std::nullopt;
  const std::optional<AxisList> places = movement.places.empty() ? axes : atoms->Regroup(axes, movement.places);
  if (!places.has_value() || part.axes.size() != places->size()) return std::nullopt;
  AxisList before;
  for (const AxisSource& source : part.axes) before.push_back((*places)[static_cast<size_t>(source.axis)]);
  return part.viewed() ? atoms->Regroup(before, operand) : before;
}

// The axes of what is repeated. Repeated atoms are added to `copied`.
std::optional<AxisList> BeforeCopies(const FunctionContext& context, const Movement& movement, const AxisList& axes,
                                     AtomTable* atoms, Atoms* copied) {
  const MovedPart& part = movement.parts[0];
  const Node& node = *movement.node;
  const Fact& input = context.facts->Of(node.input(part.operand));
  const Fact& output = context.facts->Of(node.output());
  if (!part.known || !input.has_rank || !output.has_rank || input.shape.size() > axes.size()) return std::nullopt;
  const size_t added = axes.size() - input.shape.size();
  AxisList before;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i >= added && context.dims->Equal(input.shape[i - added], output.shape[i])) {
      before.push_back(axes[i]);
      continue;
    }
    Atoms times = axes[i];
    Atoms kept;
    if (i >= added && !input.shape[i - added].is(1)) {
      // More than one element: all of them, one time after another.
      const Dim count = context.dims->ExactDiv(output.shape[i], input.shape[i - added]);
      if (!count.known() || part.axes[i - added].kind != AxisSource::Kind::kWrapped) return std::nullopt;
      const auto parts = atoms->Regroup({axes[i]}, {count, input.shape[i - added]});
      if (!parts.has_value()) return std::nullopt;
      times = (*parts)[0];
      kept = (*parts)[1];
    }
    copied->insert(copied->end(), times.begin(), times.end());
    if (i >= added) before.push_back(std::move(kept));
  }
  return before;
}

}  // namespace

bool FollowMovement(const FunctionContext& context, AtomTable* atoms, AxisView* view) {
  const Movement* movement = context.facts->MovementOf(view->value);
  if (movement == nullptr || movement->node->input(0) == nullptr || movement->node->output_count != 1) return false;
  const Fact& input = context.facts->Of(movement->node->input(0));
  if (!input.has_rank) return false;
  std::optional<AxisList> before;
  Atoms copied = view->copied;
  switch (movement->kind) {
    case MovementKind::kKeepsOrder:
      before = atoms->Regroup(view->axes, input.shape);
      break;
    case MovementKind::kPermutes:
      before = BeforePermutation(*movement, view->axes, input.shape, atoms);
      break;
    case MovementKind::kCopies:
      before = BeforeCopies(context, *movement, view->axes, atoms, &copied);
      break;
    default:
      break;
  }
  if (!before.has_value()) return false;
  view->value = movement->node->input(0);
  view->axes = *std::move(before);
  view->copied = std::move(copied);
  view->nodes.push_back(movement->node);
  return true;
}

bool FollowPick(const FunctionContext& context, AtomTable* atoms, AxisView* view) {
  const Movement* movement = context.facts->MovementOf(view->value);
  const MovedPart* part = movement != nullptr && movement->kind == MovementKind::kPicks ? movement->only() : nullptr;
  if (part == nullptr || !part->known || view->picked.has_value()) return false;
  const Node* node = movement->node;
  const Fact& input = context.facts->Of(node->input(part->operand));
  const Fact& output = context.facts->Of(view->value);
  if (!input.has_rank || !output.has_rank || view->axes.size() != output.shape.size()) return false;
  AxisList before;
  PickedElement picked;
  for (size_t axis = 0; axis < part->axes.size(); ++axis) {
    const AxisSource& source = part->axes[axis];
    const Dim count = input.shape[axis];
    const bool place = source.kind == AxisSource::Kind::kPlace;
    if (place && source.step == 1 && context.dims->Equal(count, output.shape[static_cast<size_t>(source.axis)])) {
      before.push_back(view->axes[static_cast<size_t>(source.axis)]);
      continue;
    }
    // One element: without its axis, or as one of the parts into which a node takes the axis apart.
    const bool single = place && output.shape[static_cast<size_t>(source.axis)].is(1) && count.is(node->output_count);
    if ((!source.IsOneElement() && !single) || picked.count != 0 || !source.start.is_number()) return false;
    if (!count.is_number() || count.number() < 2) return false;
    picked = {-1, source.start.number(), count.number()};
    if (picked.index < 0 || picked.index >= picked.count) return false;
    before.push_back(atoms->New(count));
    picked.atom = before.back()[0];
  }
  if (picked.count == 0) return false;
  view->picked = picked;
  view->value = node->input(part->operand);
  view->axes = std::move(before);
  view->nodes.push_back(node);
  return true;
}

bool FollowCopy(const FunctionContext& context, AxisView* view) {
  const Value* source = context.numbering->Source(view->value);
  if (source == nullptr) return false;
  view->nodes.push_back(view->value->producer);
  view->value = source;
  return true;
}

bool FollowFactor(const FunctionContext& context, AxisView* view) {
  const Node* node = view->value->producer;
  if (node == nullptr) return false;
  const bool divides = IsOp(*node, "Div");
  if (!divides && !IsOp(*node, "Mul")) return false;
  const Fact& product = context.facts->Of(view->value);
  for (size_t i = 0; i < (divides ? 1U : 2U); ++i) {
    const Value* x = node->input(i);
    const Value* number = node->input(1 - i);
    double factor = 0;
    if (x == nullptr || number == nullptr || !ConstantNumber(*context.facts, number, &factor)) continue;
    const Fact& fact = context.facts->Of(x);
    if (factor == 0 || !std::isfinite(factor) || !fact.has_rank || !product.has_rank ||
        !context.dims->Equal(fact.shape, product.shape)) {
      continue;
    }
    view->nodes.push_back(node);
    view->value = x;
    view->factor = divides ? view->factor / factor : view->factor * factor;
    return true;
  }
  return false;
}

bool FollowWidening(const FunctionContext& context, AxisView* view) {
  const Node* node = view->value->producer;
  if (node == nullptr || !IsOp(*node, "Cast") || node->input(0) == nullptr) return false;
  const DataType from = context.facts->Of(node->input(0)).type;
  if (context.facts->Of(view->value).type != DataType::kFloat || (from != DataType::kFloat16 && from != DataType::kBfloat16)) {
    return false;
  }
  view->nodes.push_back(node);
  view->value = node->input(0);
  return true;
}

namespace {

// One tensor on the way from one list of axes to another.
class Arrangement {
 public:
  Arrangement(const FunctionContext& context, const AtomTable& atoms, Term term, AxisList axes, const Value* shape_of)
      : context_(context), atoms_(atoms), term_(std::move(term)), axes_(std::move(axes)), shape_of_(shape_of) {}

  std::optional<Arranged> Run(const AxisList& to) {
    if (axes_ == to) return Arranged{term_, 0};
    Atoms from_leaves = Joined(axes_);
    const Atoms to_leaves = Joined(to);
    if (!std::is_permutation(from_leaves.begin(), from_leaves.end(), to_leaves.begin(), to_leaves.end())) {
      return std::nullopt;
    }
    if (from_leaves == to_leaves) {
      if (!ReshapeTo(to)) return std::nullopt;
      return Arranged{term_, nodes_};
    }
    const auto is_one = [](const Atoms& axis) { return axis.empty(); };
    const auto ones = std::count_if(axes_.begin(), axes_.end(), is_one);
    const bool keeps_ones = ones == std::count_if(to.begin(), to.end(), is_one);
    // Every atom an axis of its own, and the axes of 1 where they are wanted.
    AxisList split;
    for (const Atoms& axis : axes_) {
      if (axis.empty() && keeps_ones) split.emplace_back();
      for (int atom : axis) split.push_back({atom});
    }
    if (!ReshapeTo(split)) return std::nullopt;
    AxisList apart;
    for (const Atoms& axis : to) {
      if (axis.empty() && keeps_ones) apart.emplace_back();
      for (int atom : axis) apart.push_back({atom});
    }
    if (!TransposeTo(apart) || !ReshapeTo(to)) return std::nullopt;
    return Arranged{term_, nodes_};
  }

 private:
  bool TransposeTo(const AxisList& to) {
    if (axes_ == to) return true;
    std::vector<int64_t> perm;
    for (const Atoms& axis : to) {
      for (size_t i = 0; i < axes_.size(); ++i) {
        const auto place = static_cast<int64_t>(i);
        if (axes_[i] != axis || std::find(perm.begin(), perm.end(), place) != perm.end()) continue;
        perm.push_back(place);
        break;
      }
    }
    if (perm.size() != axes_.size()) return false;
    term_ = build::Transpose(std::move(term_), perm);
    axes_ = to;
    ++nodes_;
    return true;
  }

  // Where `with` is `without` and axes of 1 besides, their places.
  static std::optional<std::vector<int64_t>> Ones(const AxisList& with, const AxisList& without) {
    std::vector<int64_t> places;
    size_t next = 0;
    for (size_t i = 0; i < with.size(); ++i) {
      if (next < without.size() && with[i] == without[next]) {
        ++next;
      } else if (with[i].empty()) {
        places.push_back(static_cast<int64_t>(i));
      } else {
        return std::nullopt;
      }
    }
    if (next != without.size()) return std::nullopt;
    return places;
  }

  bool ReshapeTo(const AxisList& to) {
    if (axes_ == to) return true;
    if (const auto added = Ones(to, axes_); added.has_value()) {
      term_ = build::Unsqueeze(std::move(term_), *added);
    } else if (const auto dropped = Ones(axes_, to); dropped.has_value()) {
      term_ = build::Squeeze(std::move(term_), *dropped);
    } else {
      std::optional<Term> dims = DimsOf(to);
      if (!dims.has_value()) return false;
      term_ = build::Reshape(std::move(term_), *std::move(dims));
    }
    axes_ = to;
    ++nodes_;
    return true;
  }

  // The axis of the value that is as long.
  std::optional<int64_t> PlaceOf(const Value& value, const Atoms& axis) const {
    const Dim dim = atoms_.SizeOf(axis);
    const auto& shape = context_.facts->Of(&value).shape;
    const auto place = std::find_if(shape.begin(), shape.end(), [&](Dim other) { return context_.dims->Equal(other, dim); });
    if (place == shape.end()) return std::nullopt;
    return place - shape.begin();
  }

  // What a Reshape to these axes reads: numbers, 0 for a dim that stays, one -1; where that is not enough, elements of a
  // Shape.
  std::optional<Term> DimsOf(const AxisList& to) {
    const std::vector<Dim> now = atoms_.SizesOf(axes_);
    std::vector<Term> items;
    std::vector<size_t> open;
    for (size_t i = 0; i < to.size(); ++i) {
      const Dim dim = atoms_.SizeOf(to[i]);
      if (!dim.known() || dim.is(0)) return std::nullopt;
      int64_t item = dim.is_number() ? dim.number() : -1;
      if (item < 0 && i < now.size() && context_.dims->Equal(now[i], dim)) item = 0;
      if (item < 0) open.push_back(i);
      items.push_back(Term::Integer(item));
    }
    if (open.size() <= 1) return Term::List(std::move(items));
    // One dim is left to the Reshape: the one that no axis of `shape_of` has, else one that may be 0, which read from there would
    // mean the dim that stands at its place.
    const auto may_be_0 = [&](size_t axis) { return !context_.dims->AtLeast(atoms_.SizeOf(to[axis]), Dim::Of(1)); };
    const auto first = std::find_if(open.begin(), open.end(), may_be_0);
    size_t inferred = first != open.end() ? *first : open.front();
    for (size_t axis : open) {
      if (!PlaceOf(*shape_of_, to[axis]).has_value()) inferred = axis;
    }
    // Beside a dim of 0 a Reshape finds none. From opset 14 on, where a 0 can stand for itself (allowzero), all are read where an
    // input of the model has them; of another value they would be read at the price of the nodes that make it.
    const Value* shape_of = shape_of_;
    const auto other_may_be_0 = [&](size_t axis) { return axis != inferred && may_be_0(axis); };
    if (context_.model->OpsetVersion() >= 14 && std::any_of(open.begin(), open.end(), other_may_be_0)) {
      const auto has_all = [&](const Value* input) {
        return input->graph == shape_of_->graph &&
               std::all_of(open.begin(), open.end(), [&](size_t axis) { return PlaceOf(*input, to[axis]).has_value(); });
      };
      const auto& inputs = context_.model->graph().inputs();
      if (const auto input = std::find_if(inputs.begin(), inputs.end(), has_all); input != inputs.end()) {
        shape_of = *input;
        inferred = to.size();
      }
    }
    std::vector<Term> parts;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i == inferred || std::find(open.begin(), open.end(), i) == open.end()) {
        parts.push_back(Term::List({items[i]}));
        continue;
      }
      const std::optional<int64_t> place = PlaceOf(*shape_of, to[i]);
      if (!place.has_value()) return std::nullopt;
      // Shape whole, then one element of it: ATC ignores the start and end attributes of Shape (docs/sources/atc-op-audit.md W2).
      parts.push_back(build::Gather(build::Shape(Term::Of(shape_of)), build::Numbers({*place}), 0));
      ++nodes_;
    }
    nodes_ += 2;
    return build::Concat(std::move(parts), 0);
  }

  const FunctionContext& context_;
  const AtomTable& atoms_;
  Term term_;
  AxisList axes_;
  const Value* shape_of_;
  int nodes_ = 0;
};

}  // namespace

std::optional<Arranged> Arrange(const FunctionContext& context, const AtomTable& atoms, Term source, const AxisList& from,
                                const AxisList& to, const Value* shape_of) {
  return Arrangement(context, atoms, std::move(source), atoms.Leaves(from), shape_of).Run(atoms.Leaves(to));
}

}  // namespace ascend_fuse
