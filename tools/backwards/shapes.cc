// Shapes: dims that are equal, shape conditions of the rule, and guesses where nothing says more.
#include <algorithm>

#include "fmt/format.h"
#include "tools/backwards/builder.h"
#include "tools/backwards/relations.h"

namespace ascend_fuse::backwards {

int Builder::NewDim(int64_t number) {
  dims_.push_back({static_cast<int>(dims_.size()), number, false});
  return static_cast<int>(dims_.size()) - 1;
}

int Builder::Root(int dim) const {
  while (dims_[static_cast<size_t>(dim)].parent != dim) dim = dims_[static_cast<size_t>(dim)].parent;
  return dim;
}

bool Builder::Join(int a, int b) {
  a = Root(a);
  b = Root(b);
  if (a == b) return true;
  changed_ = true;
  Dimension& x = dims_[static_cast<size_t>(a)];
  Dimension& y = dims_[static_cast<size_t>(b)];
  if (x.number >= 0 && y.number >= 0 && x.number != y.number) {
    return Fail(fmt::format("dims {} and {} meet", x.number, y.number));
  }
  if (x.number < 0) x.number = y.number;
  x.locked = x.locked || y.locked;
  y.parent = a;
  return true;
}

bool Builder::Assign(int dim, int64_t number) {
  Dimension& root = dims_[static_cast<size_t>(Root(dim))];
  if (root.number == number) return true;
  if (root.number >= 0) return Fail(fmt::format("a dim is {} and {}", root.number, number));
  if (number < 1) return Fail("a dim below 1");
  root.number = number;
  changed_ = true;
  return true;
}

bool Builder::SetShape(int value, const std::vector<int>& dims) {
  GraphValue& of = values_[static_cast<size_t>(value)];
  if (!of.shaped) {
    of.shaped = true;
    of.dims = dims;
    changed_ = true;
    return true;
  }
  if (of.dims.size() != dims.size()) return Fail(fmt::format("ranks {} and {} meet", of.dims.size(), dims.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!Join(of.dims[i], dims[i])) return false;
  }
  return true;
}

int Builder::DimOf(const Expression& element, Frame* frame) {
  if (element.kind == Expression::Kind::kName && element.slot >= 0) {
    Slot& slot = frame->slots[static_cast<size_t>(element.slot)];
    if (slot.kind == Slot::Kind::kDim) return slot.dim;
    if (slot.kind == Slot::Kind::kUnbound) {
      slot = Slot::Of(Slot::Kind::kDim);
      slot.dim = NewDim();
      return slot.dim;
    }
  } else if (element.kind == Expression::Kind::kNumber) {
    return NewDim(static_cast<int64_t>(element.number));
  } else if (element.kind == Expression::Kind::kWildcard) {
    return NewDim();
  }
  const int dim = NewDim();
  dims_[static_cast<size_t>(dim)].locked = true;
  Slot slot = Slot::Of(Slot::Kind::kDim);
  slot.dim = dim;
  equal_.emplace_back(slot, OfExpression(element, frame));
  return dim;
}

bool Builder::ShapeCondition(PendingCondition* pending, bool force) {
  const Condition& condition = *pending->condition;
  const Expression* call = &condition.left;
  const Expression* list = &condition.right;
  if (!Calls(*call, "shape")) std::swap(call, list);
  const int value = ValueOf(call->arguments[0], pending->frame);
  if (value == kUnknown) {
    pending->done = true;
    return true;
  }
  if (list->kind != Expression::Kind::kList) {
    if (Calls(*list, "shape")) {
      const int other = ValueOf(list->arguments[0], pending->frame);
      if (other == kUnknown) {
        pending->done = true;
      } else if (Shaped(value) || Shaped(other)) {
        pending->done = true;
        return Shaped(value) ? SetShape(other, DimsOf(value)) : SetShape(value, DimsOf(other));
      }
    }
    return true;
  }
  size_t lead = 0;
  bool ellipsis = false;
  for (size_t i = 0; i < list->arguments.size(); ++i) {
    if (list->arguments[i].kind == Expression::Kind::kEllipsis) {
      ellipsis = true;
      lead = i;
    }
  }
  const size_t named = list->arguments.size() - (ellipsis ? 1 : 0);
  size_t rank = named;
  if (ellipsis) {
    if (Shaped(value)) {
      rank = DimsOf(value).size();
      if (rank < named) return Fail("a rank too small");
    } else {
      if (!force) return true;
      if (const int like = Alike(*pending, *list); like != kUnknown && random_.Chance(60)) {
        pending->done = true;
        return SetShape(value, DimsOf(like));
      }
      const size_t most = named >= 4 ? 2 : 5 - named;
      rank = named + static_cast<size_t>(random_.Below(static_cast<int>(most)));
      if (const size_t known = RankOf(value); known >= named) {
        rank = known;
      } else if (random_.Chance(40))
        rank = std::max(rank, std::min<size_t>(named + 2, 4));
    }
  }
  std::vector<int> dims;
  for (size_t i = 0; i < list->arguments.size(); ++i) {
    if (ellipsis && i == lead) {
      for (size_t k = 0; k < rank - named; ++k) {
        dims.push_back(Shaped(value) ? DimsOf(value)[lead + k] : NewDim());
      }
      continue;
    }
    dims.push_back(DimOf(list->arguments[i], pending->frame));
  }
  pending->done = true;
  return SetShape(value, dims);
}

size_t Builder::RankOf(int value) const {
  if (Shaped(value)) return DimsOf(value).size();
  const int index = values_[static_cast<size_t>(value)].node;
  if (index == kUnknown) return 0;
  const GraphNode& node = nodes_[static_cast<size_t>(index)];
  if (node.schema == nullptr || !node.schema->elementwise) return 0;
  size_t rank = 0;
  for (int input : node.inputs) rank = std::max(rank, input == kUnknown ? 0 : RankOf(input));
  return rank;
}

int Builder::Alike(const PendingCondition& pending, const Expression& list) {
  for (const PendingCondition& other : conditions_) {
    if (&other == &pending || other.frame != pending.frame || !IsShapeCondition(*other.condition)) continue;
    const Expression& call = other.condition->left;
    const Expression& shape = other.condition->right;
    if (!Calls(call, "shape") || shape.kind != Expression::Kind::kList || shape.arguments.size() != list.arguments.size())
      continue;
    bool same = true;
    for (size_t i = 0; i < list.arguments.size(); ++i) {
      const Expression& a = list.arguments[i];
      const Expression& b = shape.arguments[i];
      same = same && a.kind == b.kind && a.text == b.text && a.number == b.number;
    }
    const int value = ValueOf(call.arguments[0], other.frame);
    if (same && Shaped(value)) return value;
  }
  return kUnknown;
}

bool Builder::IsShapeCondition(const Condition& condition) {
  return condition.relation == Condition::Relation::kEqual && (Calls(condition.left, "shape") || Calls(condition.right, "shape"));
}

bool Builder::Shape() {
  for (PendingCondition& pending : conditions_) {
    NoteScalars(pending.condition->left, pending.frame);
    NoteScalars(pending.condition->right, pending.frame);
  }
  // Until nothing moves: conditions, functions, operators; then one guess, and again.
  for (int round = 0; round < 200; ++round) {
    do {
      changed_ = false;
      for (PendingCondition& pending : conditions_) {
        if (!pending.done && IsShapeCondition(*pending.condition) && !ShapeCondition(&pending, false)) return false;
        if (!pending.done && !ByFunction(&pending)) return false;
      }
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (!Relations(this).Relate(&nodes_[i])) return false;
      }
      for (const auto& [a, b] : same_shapes_) {
        if (Shaped(a) != Shaped(b) && !(Shaped(a) ? SetShape(b, DimsOf(a)) : SetShape(a, DimsOf(b)))) return false;
        if (Shaped(a) && !SetShape(b, DimsOf(a))) return false;
      }
    } while (changed_);
    if (!Guess()) return false;
    if (!changed_) return true;
  }
  return Fail("shapes that do not settle");
}

bool Builder::Guess() {
  for (PendingCondition& pending : conditions_) {
    if (pending.done || !IsShapeCondition(*pending.condition)) continue;
    if (!ShapeCondition(&pending, true)) return false;
    if (changed_) return true;
  }
  bool moved = false;  // a rank that follows from an equality
  if (!SolveEqualities(&moved)) return false;
  if (moved) return changed_ = true;
  // The partner of a value whose shape is known, then anything.
  for (GraphNode& node : nodes_) {
    if (node.schema == nullptr || !node.schema->elementwise || node.inputs.size() < 2) continue;
    for (int input : node.inputs) {
      if (input == kUnknown || Shaped(input) || values_[static_cast<size_t>(input)].node != kUnknown) continue;
      for (int other : node.inputs) {
        if (!Shaped(other)) continue;
        std::vector<int> dims = DimsOf(other);
        const int kind = random_.Below(10);
        if (kind >= 6 && !dims.empty()) {  // a suffix
          dims.erase(dims.begin(), dims.begin() + random_.Below(static_cast<int>(dims.size())));
        } else if (kind >= 4) {  // ones in it
          for (int& dim : dims) {
            if (random_.Chance(40)) dim = NewDim(1);
          }
        }
        return SetShape(input, dims);
      }
    }
  }
  for (GraphNode& node : nodes_) {
    if (node.op != "Reshape" || !Shaped(node.inputs[0]) || Shaped(node.outputs[0])) continue;
    std::vector<int> dims(random_.Chance(60) ? 3 : static_cast<size_t>(2 + random_.Below(3)));
    for (int& dim : dims) dim = NewDim();
    return SetShape(node.outputs[0], dims);
  }
  for (GraphNode& node : nodes_) {
    if (node.op != "Expand" || !Shaped(node.inputs[0]) || Shaped(node.outputs[0])) continue;
    return SetShape(node.outputs[0], DimsOf(node.inputs[0]));
  }
  for (size_t v = 0; v < values_.size(); ++v) {
    GraphValue& value = values_[v];
    if (value.shaped || value.target || value.node != kUnknown || value.scalar) continue;
    std::vector<int> dims(static_cast<size_t>(1 + random_.Below(4)));
    if (random_.Chance(40)) dims.resize(3);
    for (int& dim : dims) dim = NewDim();
    return SetShape(static_cast<int>(v), dims);
  }
  return true;
}

bool Builder::Waits(int value) {
  for (const PendingCondition& pending : conditions_) {
    if (pending.done || !IsShapeCondition(*pending.condition)) continue;
    if (ValueOf(pending.condition->left.kind == Expression::Kind::kCall ? pending.condition->left.arguments[0]
                                                                        : pending.condition->right.arguments[0],
                pending.frame) == value)
      return false;
  }
  return true;
}

}  // namespace ascend_fuse::backwards
