#include "passes/core/reshape_target.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/schema.h"
#include "patterns/terms/node_builder.h"

namespace ascend_fuse {
namespace {

// A product of dims of x, times one number and divided by another.
struct Product {
  std::vector<size_t> axes;  // of x
  int64_t factor = 1;
  int64_t divisor = 1;
};

class TargetDims {
 public:
  TargetDims(Facts& facts, const Value* x, const std::vector<int64_t>& dims) : facts_(facts), x_(x), dims_(dims) {}

  // The place of -1 where a dim of 0 beside it is possible.
  std::optional<size_t> Undecided() const {
    const Fact& fact = facts_.Of(x_);
    if (!fact.has_rank) return std::nullopt;
    std::optional<size_t> open;
    bool positive = true;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (dims_[i] == -1) open = i;
      if (dims_[i] != 0) continue;
      if (i >= fact.shape.size()) return std::nullopt;
      positive = positive && facts_.dims().AtLeast(fact.shape[i], Dim::Of(1));
    }
    return positive ? std::nullopt : open;
  }

  // What -1 at `open` is: nothing where numbers do not divide as they must, or are too large for a tensor.
  std::optional<Product> Left(size_t open) const {
    Product left;
    const Fact& fact = facts_.Of(x_);
    for (size_t i = 0; i < fact.shape.size(); ++i) {
      if (i < dims_.size() && dims_[i] == 0) continue;
      const Dim dim = facts_.dims().Resolve(fact.shape[i]);
      if (!dim.is_number()) {
        left.axes.push_back(i);
      } else if (__builtin_mul_overflow(left.factor, dim.number(), &left.factor)) {
        return std::nullopt;
      }
    }
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (i == open || dims_[i] == 0) continue;
      if (__builtin_mul_overflow(left.divisor, dims_[i], &left.divisor)) return std::nullopt;
    }
    if (left.factor < 1 || left.divisor < 1) return std::nullopt;
    if (left.factor % left.divisor == 0) {
      left.factor /= left.divisor;
      left.divisor = 1;
    } else if (left.divisor % left.factor == 0 && !left.axes.empty()) {
      left.divisor /= left.factor;
      left.factor = 1;
    } else {
      return std::nullopt;
    }
    return left;
  }

  Term Written(size_t open, const Product& left) const {
    std::vector<Term> dims;
    for (const int64_t dim : dims_) dims.push_back(Term::Integer(dim));
    if (left.axes.empty()) {
      dims[open] = Term::Integer(left.factor);
    } else if (left.axes == std::vector<size_t>{open} && left.factor == 1 && left.divisor == 1) {
      dims[open] = Term::Integer(0);
    } else {
      // Nothing says what ATC makes of a 0 among dims that are computed.
      for (size_t i = 0; i < dims_.size(); ++i) {
        if (dims_[i] == 0) dims[i] = DimOf(i);
      }
      dims[open] = Computed(left);
    }
    return build::Vector(dims);
  }

 private:
  // One dim of x: a number, or a vector of one element.
  Term DimOf(size_t axis) const {
    const Dim dim = facts_.dims().Resolve(facts_.Of(x_).shape[axis]);
    if (dim.is_number()) return Term::Integer(dim.number());
    const auto first = static_cast<int64_t>(axis);
    return build::Slice(build::Shape(Term::Of(x_)), first, first + 1, 0);
  }

  Term Computed(const Product& left) const {
    std::optional<Term> product;
    for (const size_t axis : left.axes) {
      const Term dim = DimOf(axis);
      product = product.has_value() ? build::Op("Mul", {*product, dim}) : dim;
    }
    if (left.factor != 1) product = build::Op("Mul", {*product, build::Numbers({left.factor})});
    if (left.divisor != 1) product = build::Op("Div", {*product, build::Numbers({left.divisor})});
    return *product;
  }

  Facts& facts_;
  const Value* x_;
  const std::vector<int64_t>& dims_;
};

}  // namespace

Term ReshapeTarget(Facts& facts, const Value* x, const Term& dims) {
  if (x == nullptr) return dims;
  const std::vector<int64_t> numbers = build::IntegersOf(*dims.list);
  const TargetDims target(facts, x, numbers);
  const std::optional<size_t> open = target.Undecided();
  if (!open.has_value()) return dims;
  const std::optional<Product> left = target.Left(*open);
  return left.has_value() ? target.Written(*open, *left) : dims;
}

bool CopiesByMistake(Facts& facts, const Value* x, const Value* dims) {
  if (x == nullptr || dims == nullptr || dims->IsConstant() || facts.Of(dims).elements == nullptr) return false;
  const Fact& from = facts.Of(x);
  const auto& to = facts.Of(dims).elements->integers;
  if (!from.has_rank || std::any_of(to.begin(), to.end(), [](Dim dim) { return dim.is(0) || dim.is(-1); })) return false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (i >= from.shape.size()) {  // x has no dim to copy there, and a Reshape that asks for one is an error
      if (!facts.dims().AtLeast(to[i], Dim::Of(1))) return true;
      continue;
    }
    // Of a multiple of the dim of x one is 0 where the other one is.
    const auto divides = [&](Dim a, Dim b) {
      const Dim times = facts.dims().ExactDiv(b, a);
      return times.is_number() && times.number() > 0;
    };
    const bool multiple =
        facts.dims().Equal(to[i], from.shape[i]) || divides(from.shape[i], to[i]) || divides(to[i], from.shape[i]);
    if (!multiple && !facts.dims().AtLeast(to[i], Dim::Of(1))) return true;
  }
  return false;
}

void AllowZeroDims(const Model& model, Facts& facts, NewNode* plan) {
  if (plan->op_type != "Reshape" || plan->inputs.size() != 2) return;
  const Schema* const schema = FindSchema(plan->domain, plan->op_type, model.OpsetVersion());
  if (schema == nullptr || schema->FindAttribute("allowzero") == nullptr) return;
  const bool said = std::any_of(plan->attributes.begin(), plan->attributes.end(),
                                [](const Attribute& attribute) { return attribute.name == "allowzero"; });
  if (!said && CopiesByMistake(facts, plan->inputs[0], plan->inputs[1])) {
    plan->attributes.push_back(Attribute::Int("allowzero", 1));
  }
}

}  // namespace ascend_fuse
