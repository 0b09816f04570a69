#include "patterns/analysis/linear.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/infer/movement_of.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/analysis/einsum_letters.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

const Value* WithoutNoise(const FunctionContext& context, const Value* value, std::vector<const Value*>* chain) {
  while (context.numbering->Source(value) != nullptr) {
    value = context.numbering->Source(value);
    if (chain != nullptr) chain->push_back(value);
  }
  return value;
}

bool IsContrib(const Node& node, std::string_view op_type) { return Domain(node) == "com.microsoft" && OpType(node) == op_type; }

// What a weight is made of: a constant before shape-changing and type-changing operators.
struct Weight {
  const Value* root = nullptr;  // an initializer or the output of a Constant
  bool direct = true;           // nothing but copies between
  bool transposed = false;      // one Transpose <perm = [1, 0]> between
  std::vector<const Value*> chain;
};

Weight FindWeight(const FunctionContext& context, const Value* value) {
  Weight weight;
  if (value == nullptr) return weight;
  constexpr int kMaximumSteps = 8;
  for (int step = 0; step < kMaximumSteps; ++step) {
    weight.chain.push_back(value);
    value = WithoutNoise(context, value, &weight.chain);
    if (value->IsConstant()) {
      weight.root = value;
      return weight;
    }
    const Node* node = value->producer;
    if (node == nullptr) return weight;  // an input of the graph
    if (IsOp(*node, "Constant")) {
      weight.root = value;
      return weight;
    }
    if (KindOf(*context.facts, *node) == MovementKind::kPermutes) {
      if (weight.transposed || PermutedAxes(*context.facts, value) != PermutationOfAxes{1, 0}) weight.direct = false;
      weight.transposed = true;
    } else if (KeepsOrder(*context.facts, *node) || IsOp(*node, "DequantizeLinear") || IsOp(*node, "Cast") ||
               IsOp(*node, "Mul") || IsContrib(*node, "DequantizeLinear")) {
      weight.direct = false;
    } else {
      return weight;
    }
    value = node->input(0);
    if (value == nullptr) return weight;
  }
  return weight;
}

// A bias of the last axis: one dim of that width, or more of which all but the last are 1.
bool IsBias(const FunctionContext& context, const Value* value, const Value* y) {
  const Fact& bias = context.facts->Of(value);
  const Fact& fact = context.facts->Of(y);
  if (FindWeight(context, value).root == nullptr || bias.rank() < 1 || fact.rank() < bias.rank()) return false;
  if (!context.facts->dims().Equal(bias.shape.back(), fact.shape.back())) return false;
  return std::all_of(bias.shape.begin(), bias.shape.end() - 1, [](Dim dim) { return dim.is(1); });
}

// "bsk,kn->bsn": every letter of the constant is summed or new, and the rest keeps its order.
bool IsLinearEquation(const FunctionContext& context, const Node& node) {
  const auto equation = StringAttribute(node, "equation");
  if (!equation.has_value() || equation->find("->") == std::string_view::npos) return false;
  size_t ranks[2];
  for (size_t i = 0; i < 2; ++i) {
    const int rank = context.facts->Of(node.input(i)).rank();
    if (rank < 0) return false;
    ranks[i] = static_cast<size_t>(rank);
  }
  const auto letters = EinsumLetters(*equation, ranks);
  if (!letters.ok()) return false;
  const std::string& left = (*letters)[0];
  const std::string& right = (*letters)[1];
  const std::string& out = (*letters)[2];
  std::string kept;
  std::string made;
  for (char c : left) {
    if (right.find(c) == std::string::npos) kept += c;
  }
  for (char c : right) {
    if (left.find(c) == std::string::npos) made += c;
    if (left.find(c) != std::string::npos && out.find(c) != std::string::npos) return false;  // a batch letter
  }
  return !made.empty() && kept.size() < left.size() && out == kept + made;
}

bool AllAre(const Node& node, std::string_view name, int64_t number) {
  const auto list = IntsAttribute(node, name);
  return !list.has_value() || std::all_of(list->begin(), list->end(), [&](int64_t i) { return i == number; });
}

float Factor(const Node& node, std::string_view name) {
  const auto attribute = FindAttribute(node, name);
  return attribute.has_value() ? attribute->f : 1.0F;
}

void NotPlain(LinearView* view, std::string why) {
  if (!view->plain) return;
  view->plain = false;
  view->why_not_plain = std::move(why);
}

class LinearFinder {
 public:
  LinearFinder(const FunctionContext& context, const Value* y, int depth) : context_(context), asked_(y), y_(y), depth_(depth) {}

  absl::StatusOr<LinearView> Find() {
    if (depth_ > 4) return No("too many operators stand between");
    view_.chain.push_back(y_);
    y_ = WithoutNoise(context_, y_, &view_.chain);
    if (y_->producer == nullptr) return No("nothing computes it");
    const Node& node = *y_->producer;
    const bool contrib = Domain(node) == "com.microsoft";
    const std::string_view op = contrib || node.domain == NameId::kEmpty ? OpType(node) : "";
    if (contrib) {
      if (op == "FusedGemm" || op == "GemmFastGelu") return OfGemm(node);
      if (op == "FusedMatMul") return OfFusedMatMul(node);
      if (op == "MatMulNBits" || op == "MatMulBnb4") return NotPlainProduct(node, "its weight is quantized");
      if (op == "FusedConv") return OfConv(node);
    } else {
      if (op == "MatMul") return OfMatMul(node);
      if (op == "Gemm") return OfGemm(node);
      if (op == "Einsum" && node.input_count == 2) return OfEinsum(node);
      if (op == "Conv") return OfConv(node);
      if (op == "Add") return OfAdd(node);
      if (KeepsOrder(*context_.facts, node) && node.input(0) != nullptr) return OfReshape(node);
    }
    return No(fmt::format("{} computes it", OpType(node)));
  }

 private:
  absl::Status No(std::string_view why) const {
    return Refuse(fmt::format("{} is not the output of a linear: {}", ValueName(*asked_), why), "no-linear");
  }

  absl::StatusOr<LinearView> Inner(const Value* y) const { return LinearFinder(context_, y, depth_ + 1).Find(); }

  absl::StatusOr<LinearView> Product(const Node& node) {
    const Value* const x = node.input(0);
    const Weight weight = FindWeight(context_, node.input(1));
    if (x == nullptr || weight.root == nullptr) {
      return No(fmt::format("{} multiplies it by a value that is computed", OpType(node)));
    }
    view_.x = x;
    view_.weight = weight.root;
    view_.product = &node;
    view_.transposed = view_.transposed != weight.transposed;
    for (const Value* value : weight.chain) view_.chain.push_back(value);
    view_.of_weight = weight.chain.size();
    if (!weight.direct) NotPlain(&view_, "its weight is computed from a constant");
    if (context_.facts->Of(weight.root).rank() != 2) NotPlain(&view_, "its weight has not two dims");
    return std::move(view_);
  }

  absl::StatusOr<LinearView> NotPlainProduct(const Node& node, std::string why) {
    NotPlain(&view_, std::move(why));
    return Product(node);
  }

  absl::StatusOr<LinearView> OfMatMul(const Node& node) {
    const Fact& weight = context_.facts->Of(node.input(1));
    if (weight.has_rank && weight.rank() != 2) return No("the matrices of MatMul come in a batch");
    return Product(node);
  }

  absl::StatusOr<LinearView> OfGemm(const Node& node) {
    if (IntAttribute(node, "transA").value_or(0) != 0) return No("Gemm transposes it");
    if (!IsOp(node, "Gemm")) NotPlain(&view_, fmt::format("{} computes it", OpType(node)));
    if (Factor(node, "alpha") != 1 || Factor(node, "beta") != 1) NotPlain(&view_, "Gemm has a factor");
    view_.transposed = IntAttribute(node, "transB").value_or(0) != 0;
    if (const Value* bias = node.input(2); bias != nullptr) {
      if (!IsBias(context_, bias, y_)) return No("what Gemm adds is not a bias of the last axis");
      view_.bias = bias;
    }
    return Product(node);
  }

  absl::StatusOr<LinearView> OfFusedMatMul(const Node& node) {
    if (IntAttribute(node, "transA").value_or(0) != 0) return No("FusedMatMul transposes it");
    view_.transposed = IntAttribute(node, "transB").value_or(0) != 0;
    return NotPlainProduct(node, "FusedMatMul computes it");
  }

  absl::StatusOr<LinearView> OfEinsum(const Node& node) {
    if (!IsLinearEquation(context_, node)) return No("the equation of Einsum is not a linear");
    return NotPlainProduct(node, "Einsum computes it");
  }

  absl::StatusOr<LinearView> OfConv(const Node& node) {
    const Fact& weight = context_.facts->Of(node.input(1));
    if (weight.rank() < 3 || IntAttribute(node, "group").value_or(1) != 1 ||
        !std::all_of(weight.shape.begin() + 2, weight.shape.end(), [](Dim dim) { return dim.is(1); }) ||
        !AllAre(node, "strides", 1) || !AllAre(node, "pads", 0)) {
      return No("Conv looks at more than one place");
    }
    return NotPlainProduct(node, "Conv computes it");
  }

  absl::StatusOr<LinearView> OfAdd(const Node& node) {
    for (int side = 0; side < 2; ++side) {
      const Value* bias = node.input(side);
      const Value* product = node.input(1 - side);
      if (bias == nullptr || product == nullptr || !IsBias(context_, bias, y_)) continue;
      ASSIGN_OR_RETURN(LinearView inner, Inner(product));
      if (inner.bias != nullptr) NotPlain(&inner, "it has two biases");
      inner.bias = bias;
      inner.chain.insert(inner.chain.begin(), view_.chain.begin(), view_.chain.end());
      return inner;
    }
    for (int side = 0; side < 2; ++side) {
      if (node.input(0) == nullptr || node.input(1) == nullptr) break;
      if (std::optional<LinearView> base = WithUpdate(node.input(1 - side), node.input(side)); base.has_value()) {
        return *std::move(base);
      }
    }
    return No("Add joins it with a value that is not a bias (a residual)");
  }

  // LoRA: x W + factor (x A) B.
  std::optional<LinearView> WithUpdate(const Value* whole, const Value* update) const {
    const Node* scaled = update->producer;
    if (scaled != nullptr && IsOp(*scaled, "Mul")) {
      double number = 0;
      const int constant = ConstantNumber(*context_.facts, scaled->input(1), &number) ? 1 : 0;
      update = scaled->input(1 - constant);
    }
    const absl::StatusOr<LinearView> outer = Inner(update);
    if (!outer.ok() || outer->bias != nullptr) return std::nullopt;
    const absl::StatusOr<LinearView> inner = Inner(outer->x);
    absl::StatusOr<LinearView> base = Inner(whole);
    if (!inner.ok() || !base.ok() || inner->bias != nullptr || !context_.numbering->Same(inner->x, base->x)) return std::nullopt;
    NotPlain(&*base, "a LoRA update is added to it");
    return *std::move(base);
  }

  absl::StatusOr<LinearView> OfReshape(const Node& node) const {
    const Fact& before = context_.facts->Of(node.input(0));
    const Fact& after = context_.facts->Of(y_);
    if (before.rank() < 1 || after.rank() < 1 || !context_.facts->dims().Equal(before.shape.back(), after.shape.back())) {
      return No(fmt::format("{} changes its last dim", OpType(node)));
    }
    ASSIGN_OR_RETURN(LinearView inner, Inner(node.input(0)));
    const std::string_view op = OpType(node);
    NotPlain(&inner, fmt::format("{} {} stands after it", op.starts_with('U') ? "an" : "a", op));
    return inner;
  }

  const FunctionContext& context_;
  const Value* const asked_;
  const Value* y_;  // without what keeps it as it is
  const int depth_;
  LinearView view_;
};

absl::StatusOr<LinearView> Find(const FunctionContext& context, const Value* y) { return LinearFinder(context, y, 0).Find(); }

// Why a constant cannot become part of a merged one; empty if it can.
std::string WhyNotJoined(const Value* value) {
  if (!value->IsConstant()) return fmt::format("{} is not an initializer", ValueName(*value));
  if (value->is_graph_output) return fmt::format("{} is an output of the graph", ValueName(*value));
  return "";
}

}  // namespace

std::string OtherReader(const Value* value) {
  if (value->is_graph_output) return fmt::format("{} is an output of the graph", ValueName(*value));
  const int64_t readers = CountReaders(*value);
  if (readers <= 1) return "";
  constexpr int kNamed = 3;
  std::string names;
  int named = 0;
  for (const Use& use : LiveUses(*value)) {
    if (named++ < kNamed) names += fmt::format("{}{}", names.empty() ? "" : ", ", OpType(*use.user));
  }
  return fmt::format("{} has {} readers ({}{})", ValueName(*value), readers, names, readers > kNamed ? " ..." : "");
}

absl::StatusOr<LinearView> FindLinear(const FunctionContext& context, const Value* y) { return Find(context, y); }

absl::StatusOr<MergedView> MergedLinear(const FunctionContext& context, const Value* a, const Value* b) {
  auto no = [](const std::string& why) {
    return Refuse(fmt::format("the two linears cannot be merged: {}", why), "linears-not-merged");
  };
  LinearView views[2];
  for (int i = 0; i < 2; ++i) {
    absl::StatusOr<LinearView> view = Find(context, i == 0 ? a : b);
    if (!view.ok()) return no(std::string(view.status().message()));
    views[i] = *std::move(view);
    if (!views[i].plain) return no(fmt::format("{} ({})", views[i].why_not_plain, ValueName(i == 0 ? *a : *b)));
  }
  const LinearView& first = views[0];
  const LinearView& second = views[1];
  if (!context.numbering->Same(first.x, second.x)) {
    return no(fmt::format("their inputs are {} and {}", ValueName(*first.x), ValueName(*second.x)));
  }
  if (OpType(*first.product) != OpType(*second.product) || first.transposed != second.transposed) {
    return no("they are not written in the same way");
  }
  if ((first.bias == nullptr) != (second.bias == nullptr)) return no("only one of them has a bias");
  std::vector<std::pair<const Value*, const Value*>> joined = {{first.weight, second.weight}};
  if (first.bias != nullptr) {
    const Weight biases[2] = {FindWeight(context, first.bias), FindWeight(context, second.bias)};
    for (const Weight& bias : biases) {
      if (!bias.direct || bias.transposed || context.facts->Of(bias.root).rank() != 1) {
        return no(fmt::format("{} is not a bias of one dim", ValueName(*bias.root)));
      }
    }
    joined.emplace_back(biases[0].root, biases[1].root);
  }
  for (const auto& [one, other] : joined) {
    for (const Value* value : {one, other}) {
      if (std::string why = WhyNotJoined(value); !why.empty()) return no(why);
      if (std::string why = OtherReader(value); !why.empty()) return no(why);
    }
    if (one == other) return no("they have one weight");
    const Fact& x = context.facts->Of(one);
    const Fact& y = context.facts->Of(other);
    const bool same = x.type == y.type && context.facts->dims().Equal(x.shape, y.shape);
    if (!same) {
      return no(fmt::format("{} is {} and {} is {}", ValueName(*one), context.facts->Describe(one), ValueName(*other),
                            context.facts->Describe(other)));
    }
    if (BitWidth(x.type) % 8 != 0 || BitWidth(x.type) == 0) return no("their elements are not whole bytes");
    for (const Value* value : {one, other}) {
      const Storage storage = value->initializer->storage;
      if (storage == Storage::kNone) {
        return no(fmt::format("the elements of {} are not given", ValueName(*value)));
      }
    }
    if (one->graph != other->graph) return no("their weights lie in different graphs");
  }
  for (const LinearView& view : views) {
    for (const Value* value : view.chain) {
      if (std::string why = OtherReader(value); !why.empty()) return no(why);
    }
  }

  auto join = [&](const Value* one, const Value* other, int64_t axis) {
    return Term::Node({"", "@Join", {{"axis", Term::Integer(axis)}}, {Term::Of(one), Term::Of(other)}, 1});
  };
  MergedView merged;
  merged.x = first.x;
  merged.weight = join(first.weight, second.weight, first.transposed ? 0 : 1);
  merged.transposed = first.transposed;
  merged.bias = first.bias != nullptr ? join(joined[1].first, joined[1].second, 0) : Term::Absent();
  merged.gemm = IsOp(*first.product, "Gemm");
  return merged;
}

}  // namespace ascend_fuse
