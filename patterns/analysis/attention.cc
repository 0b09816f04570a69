#include "patterns/analysis/attention.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "ir/infer/movement_of.h"
#include "ir/status_macros.h"
#include "patterns/analysis/attention_axes.h"
#include "patterns/analysis/attention_masks.h"
#include "patterns/analysis/attention_operands.h"
#include "patterns/analysis/axis_map.h"
#include "patterns/analysis/product.h"
#include "patterns/analysis/scores.h"
#include "patterns/how_to_bind.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

absl::Status No(const std::string& sentence) { return Refuse(sentence, "attention-not-proved"); }

std::string NameOf(const AttentionOperand& operand) { return std::string(ValueName(*operand.places.front().value)); }

// An attention that stays as it is, because of what the sentence says.
AttentionView Unfused(const Value& value, std::string sentence) {
  AttentionView view;
  view.query = view.key = view.value = Term::Of(&value);
  view.mask = view.keep = view.bias = Term::Absent();
  view.unfused = std::move(sentence);
  return view;
}

// Why the result, whose axes are `output`, has a symbolic dim where query, key and value have 1: the batch of a mask.
std::string WhyOfMasksAlone(const FunctionContext& context, const AtomTable& atoms, const AttentionOperand& value,
                            const Value& result, const AxisList& output) {
  const Fact& fact = context.facts->Of(&result);
  for (const int atom : atoms.Leaves(value.places.front().copied)) {
    if (!atoms.SizeOf({atom}).is(1)) continue;
    for (size_t i = 0; i < output.size() && i < fact.shape.size(); ++i) {
      const Dim dim = context.dims->Resolve(fact.shape[i]);
      if (!Contains(atoms.Leaves(output[i]), atom) || !dim.known() || dim.is_number()) continue;
      return fmt::format("its axis of `{}` is one of a mask alone, where query, key and value have 1; if it is 1, {}",
                         context.dims->ToString(dim), HowToBind(*context.dims, {dim}, "1"));
    }
  }
  return "";
}

// An attention whose heads are mixed.
AttentionView Mixed(const ScorePath& path, const Value& value) {
  return Unfused(value, fmt::format("{} mixes the {} of all heads (talking heads), and kernels compute each head by itself",
                                    ValueName(*path.mixer), path.mixes_weights ? "weights" : "scores"));
}

// The result of one softmax less that of another one times something.
bool IsDifferenceOfWeights(const FunctionContext& context, const Value& weights) {
  const Node* node = weights.producer;
  if (node == nullptr || !IsOp(*node, "Sub") || node->input(0) == nullptr || node->input(1) == nullptr) return false;
  if (!LeadsToSoftmax(context, node->input(0))) return false;
  const Node* factor = node->input(1)->producer;
  const bool found = factor != nullptr && IsOp(*factor, "Mul")
                         ? std::any_of(factor->inputs().begin(), factor->inputs().end(),
                                       [&](const Use& use) { return use.value != nullptr && LeadsToSoftmax(context, use.value); })
                         : LeadsToSoftmax(context, node->input(1));
  return found;
}

// Whether something but `product` reads the weights, and all of it are products that are attentions by themselves, of other
// values (HF's DiffLlama).
bool OthersTakeWeights(const FunctionContext& context, const Value* weights, const Value* product) {
  if (weights == nullptr || weights->is_graph_output) return false;
  FunctionContext quiet = context;
  quiet.read = nullptr;
  bool shared = false;
  for (const Use& use : LiveUses(*weights)) {
    if (use.user != nullptr && use.user->output() == product) continue;
    const auto other = use.user != nullptr ? FindProduct(quiet, use.user->output()) : std::nullopt;
    if (!other.has_value() || other->operands[0] == other->operands[1]) return false;
    const absl::StatusOr<AttentionView> view = FollowAttention(quiet, use.user->output());
    if (!view.ok() || !view->unfused.empty()) return false;
    shared = true;
  }
  return shared;
}

// Takes a node and what it is computed from out of `reached`. Each attention with these weights computes them for itself; to the
// last one their nodes belong.
void LeaveNodesOf(const Node& weights, std::vector<const Node*>* reached) {
  std::vector<const Node*> work = {&weights};
  while (!work.empty()) {
    const Node* node = work.back();
    work.pop_back();
    const auto at = std::find(reached->begin(), reached->end(), node);
    if (node == nullptr || at == reached->end()) continue;
    reached->erase(at);
    for (const Use& input : node->inputs()) {
      if (input.value != nullptr) work.push_back(input.value->producer);
    }
  }
}

// The node that makes an operand of the product of the result of a softmax; nullptr where none does.
const Node* ChangesWeights(const Product& product) {
  for (const Value* operand : product.operands) {
    const Node* node = operand->producer;
    const bool changes = node != nullptr && std::any_of(node->inputs().begin(), node->inputs().end(), [](const Use& use) {
                           return use.value != nullptr && use.value->producer != nullptr && IsOp(*use.value->producer, "Softmax");
                         });
    if (changes) return node;
  }
  return nullptr;
}

// A refusal where an operand of the product is the logarithm of a softmax.
absl::Status NoLogarithm(const Product& product, std::vector<const Node*>* reached) {
  for (const Value* operand : product.operands) {
    const Node* node = operand->producer;
    if (node == nullptr || !IsOp(*node, "LogSoftmax") || node->input(0) == nullptr) continue;
    reached->insert(reached->end(), {product.node, node});
    if (node->input(0)->producer != nullptr) reached->push_back(node->input(0)->producer);
    return At(node, No(fmt::format("{} is the LogSoftmax of {}, and the weights of an attention are the Softmax",
                                   ValueName(*operand), ValueName(*node->input(0)))));
  }
  return absl::OkStatus();
}

// Whether the product sums over this axis of its first operand, whose other axes are those of the result at their places: then
// one number for each row of that operand is one for each row of the result.
bool SumsAlong(const Product& product, int axis) {
  const std::vector<int>& places = product.axes[0];
  for (size_t i = 0; i < places.size(); ++i) {
    const bool summed = static_cast<int>(i) == axis;
    if (summed ? !Product::IsSummed(places[i]) : places[i] != static_cast<int>(i)) return false;
  }
  return product.summed[0].size() == 1;
}

// Whether the node may divide by a sum.
bool IsDivision(const Node* node) { return node != nullptr && (IsOp(*node, "Div") || IsOp(*node, "Mul")); }

// A product of exponentials, its first operand, that somebody divides by their sum.
struct UndividedProduct {
  Product product;
  SoftmaxView softmax;
};

// What the node divides by a sum.
absl::StatusOr<UndividedProduct> FindUndividedProduct(const FunctionContext& context, const Node& division,
                                                      std::vector<const Node*>* reached) {
  const bool divides = IsOp(division, "Div");
  for (size_t i = 0; i < (divides ? 1U : 2U); ++i) {
    const Node* inverse = divides || division.input(1 - i) == nullptr ? &division : division.input(1 - i)->producer;
    if (inverse == nullptr || (!divides && !IsOp(*inverse, "Reciprocal"))) continue;
    const Value* total = inverse->input(divides ? 1 : 0);
    const auto product = division.input(i) != nullptr ? FindProduct(context, division.input(i)) : std::nullopt;
    if (total == nullptr || !product.has_value()) continue;
    const Value* exponentials = product->operands[0];
    reached->insert(reached->end(), {&division, product->node});
    if (inverse != &division) reached->push_back(inverse);
    const auto softmax = FindUndivided(context, exponentials, total);
    const Value* y = division.output();
    const bool whole = context.dims->Equal(context.facts->Of(product->result).shape, context.facts->Of(y).shape);
    if (softmax.has_value() && whole && SumsAlong(*product, softmax->axis)) return UndividedProduct{*product, *softmax};
    if (exponentials->producer == nullptr || !IsOp(*exponentials->producer, "Exp")) continue;
    reached->push_back(exponentials->producer);
    return At(&division,
              No(fmt::format("{} is divided by {}, which is not the sum of {} along its keys, one for each row of {}",
                             ValueName(*product->result), ValueName(*total), ValueName(*exponentials), ValueName(*y))));
  }
  return No("no product is here");
}

class AttentionReader {
 public:
  AttentionReader(const FunctionContext& context, const Value* y) : context_(context), atoms_(context.dims), y_(y) {}

  absl::StatusOr<AttentionView> Read() {
    absl::StatusOr<AttentionView> view = ReadParts();
    if (view.ok() && view->unfused.empty() && context_.read != nullptr && OthersTakeWeights(context_, weights_, product_)) {
      LeaveNodesOf(*weights_->producer, &reached_);
    }
    if (context_.read != nullptr) {
      context_.read->insert(context_.read->end(), reached_.begin(), reached_.end());
    }
    // What is not an attention here is not one for any rule.
    if (!view.ok()) {
      return At(PlaceOf(view.status()), FinalWord(std::string(view.status().message()), CodeOf(view.status())));
    }
    return view;
  }

  // After Read: `attention` as y.
  absl::StatusOr<Term> Output(const Term& attention) {
    const DataType type = context_.facts->Of(y_).type;
    std::optional<Arranged> arranged =
        Arrange(context_, atoms_, attention, {axes_.batch, axes_.heads, axes_.queries, axes_.channels}, output_,
                operands_.query.places.front().value);
    if (!arranged.has_value()) return No(fmt::format("the dims of {} cannot be told", ValueName(*y_)));
    if (arranged->nodes == 0 || type_ == type) return arranged->term;
    return build::Cast(std::move(arranged->term), type);
  }

 private:
  absl::StatusOr<AttentionView> ReadParts() {
    std::optional<Product> weighted = FindProduct(context_, y_);
    if (IsDivision(y_->producer)) {
      ASSIGN_OR_RETURN(const UndividedProduct found, FindUndividedProduct(context_, *y_->producer, &reached_));
      return ReadWeighted(found.product, 0, false, found.softmax);
    }
    const bool reshaped = !weighted.has_value();
    if (reshaped) {
      const Node* node = y_->producer;
      if (node == nullptr || !KeepsOrder(*context_.facts, *node) || node->input(0) == nullptr) return No("no product is here");
      weighted = FindProduct(context_, node->input(0));
      if (!weighted.has_value()) return No("no product is here");
      reached_.push_back(node);
    }
    for (size_t i = 0; i < 2; ++i) {
      if (!LeadsToSoftmax(context_, weighted->operands[i])) continue;
      return ReadWeighted(*weighted, i, reshaped);
    }
    for (size_t i = 0; i < 2 && !reshaped; ++i) {
      if (!IsDifferenceOfWeights(context_, *weighted->operands[i])) continue;
      reached_.insert(reached_.end(), {weighted->node, weighted->operands[i]->producer});
      return Unfused(*weighted->operands[1 - i],
                     fmt::format("the weights {} are the difference of two softmaxes (differential attention), and kernels take "
                                 "one",
                                 ValueName(*weighted->operands[i])));
    }
    RETURN_IF_ERROR(NoLogarithm(*weighted, &reached_));
    if (const Node* node = ChangesWeights(*weighted); node != nullptr) {
      return At(node, No(fmt::format("{} makes {} of the result of the softmax", OpType(*node), ValueName(*node->output()))));
    }
    return No(fmt::format("{} is not a product with the result of a softmax", ValueName(*y_)));
  }

  absl::StatusOr<AttentionView> ReadWeighted(const Product& weighted, size_t weights_place, bool reshaped,
                                             const std::optional<SoftmaxView>& undivided = std::nullopt) {
    reached_.push_back(weighted.node);
    weights_ = weighted.operands[weights_place];
    product_ = weighted.result;
    const Fact& result = context_.facts->Of(weighted.result);
    AxisList axes;
    for (Dim dim : result.shape) axes.push_back(atoms_.New(dim));
    output_ = axes;
    if (reshaped) {
      auto regrouped = atoms_.Regroup(axes, context_.facts->Of(y_).shape);
      if (!regrouped.has_value()) return No(fmt::format("the dims of {} are not proved", ValueName(*y_)));
      output_ = *std::move(regrouped);
    }
    const AxisList keys = SummedAxes(weighted, weights_place);
    axes_.keys = Joined(keys);
    ASSIGN_OR_RETURN(AxisView weights, View(weighted, weights_place, axes, keys));
    ASSIGN_OR_RETURN(AxisView value, View(weighted, 1 - weights_place, axes, keys));
    if (!weights.copied.empty()) return No("the weights are the same for some of the batch or of the heads");
    const Atoms leading = Shared(weights, value);
    ASSIGN_OR_RETURN(const ScorePath path, FollowScores(context_, &atoms_, weights, axes_.keys, leading, undivided, &reached_));
    // The product before a Reshape is a site by itself.
    if (reshaped && (path.mixer != nullptr || !path.unfused.empty())) return No("no kernel computes this attention");
    if (path.mixer != nullptr) return Mixed(path, *value.value);
    axes_.keys = path.keys;
    RETURN_IF_ERROR(ReadOperands(path, std::move(value)));
    ReadAxes(weights);
    return Assemble(path, reshaped);
  }

  // The axes that a product sums over: of its operand `place`.
  AxisList SummedAxes(const Product& product, size_t place) {
    AxisList axes;
    const Fact& operand = context_.facts->Of(product.operands[place]);
    for (const size_t axis : product.summed[place]) axes.push_back(atoms_.New(operand.shape[axis]));
    return axes;
  }

  // Batch and heads: the atoms that weights and value have, without keys.
  Atoms Shared(const AxisView& weights, const AxisView& value) const {
    const Atoms of_value = Without(Joined(value.axes), axes_.keys);
    const Atoms all = Joined(weights.axes);
    return Without(all, Without(all, of_value));
  }

  absl::StatusOr<AxisView> View(const Product& product, size_t place, const AxisList& result, const AxisList& summed) {
    return OperandView(context_, &atoms_, product, place, result, summed, &sizes_);
  }

  // Which operand of the product of scores is the query, and where all three come from.
  absl::Status ReadOperands(const ScorePath& path, AxisView value) {
    const Product& product = path.product;
    const AxisList width = SummedAxes(product, 0);
    axes_.width = Joined(width);
    std::array<AttentionOperand, 2> operands;
    for (size_t i = 0; i < 2; ++i) {
      ASSIGN_OR_RETURN(AxisView operand, View(product, i, path.axes, width));
      operands[i] = FollowOperand(context_, &atoms_, std::move(operand));
    }
    const std::optional<size_t> key = KeyAmong(atoms_, operands, atoms_.Leaves(axes_.keys));
    if (!key.has_value()) return No("the keys are not an axis of one operand of the scores");
    operands_.query = std::move(operands[1 - *key]);
    operands_.key = std::move(operands[*key]);
    operands_.value = FollowOperand(context_, &atoms_, std::move(value));
    axes_.width = atoms_.Leaves(axes_.width);
    axes_.keys = atoms_.Leaves(axes_.keys);
    return absl::OkStatus();
  }

  // Axes of the result that the value has too are batch or heads, or channels, and the others of the weights are queries.
  void ReadAxes(const AxisView& weights) {
    const AxisView& value = operands_.value.places.front();
    Atoms of_value = atoms_.Leaves(Joined(value.axes));
    const Atoms of_copies = atoms_.Leaves(value.copied);
    of_value.insert(of_value.end(), of_copies.begin(), of_copies.end());
    const Atoms of_weights = atoms_.Leaves(Joined(weights.axes));
    for (int atom : atoms_.Leaves(Joined(output_))) {
      const bool in_value = Contains(of_value, atom);
      const bool in_weights = Contains(of_weights, atom);
      Atoms& part = in_value && in_weights ? axes_.leading : in_value ? axes_.channels : axes_.queries;
      part.push_back(atom);
    }
  }

  absl::StatusOr<AttentionView> Assemble(const ScorePath& path, bool reshaped) {
    for (const auto& [axis, size, value] : sizes_) {
      const Dim whole = atoms_.SizeOf(atoms_.Leaves(axis));
      if (context_.dims->Equal(whole, size)) continue;
      const std::string unknown = fmt::format("whether {} is repeated is not known", ValueName(*value));
      if (reshaped || !whole.known() || !size.known()) return No(unknown);
      return Unfused(*value,
                     fmt::format("{}: its axis of `{}` stands beside one of `{}`; {}", unknown, context_.dims->ToString(size),
                                 context_.dims->ToString(whole), HowToBind(*context_.dims, {size, whole})));
    }
    if (auto why = WhyOfMasksAlone(context_, atoms_, operands_.value, *y_, output_); !why.empty()) return Unfused(*y_, why);
    type_ = CommonType(context_, operands_);
    absl::Status why = No("what is batch and what are heads is not proved");
    bool is_read = false;  // with some heads, up to what is wrong
    const AttentionAxes without_heads = axes_;
    for (const Atoms& heads : PossibleHeads(atoms_, without_heads, operands_, path, output_)) {
      axes_ = WithHeads(without_heads, heads);
      if (reshaped && atoms_.Leaves(output_) != AxisList{axes_.batch, axes_.heads, axes_.queries, axes_.channels}) {
        if (!is_read) why = No(fmt::format("{} has not the axes of an attention", ValueName(*y_)));
        continue;
      }
      absl::StatusOr<AttentionView> view = ViewOf(path);
      if (view.ok()) return view;
      why = view.status();
      is_read = true;
    }
    return why;
  }

  // The attention with these axes.
  absl::StatusOr<AttentionView> ViewOf(const ScorePath& path) {
    const auto& [query_operand, key_operand, value_operand] = operands_;
    const AxisList of_query = {axes_.batch, axes_.heads, axes_.queries, axes_.width};
    auto query = ChoosePlace(context_, atoms_, query_operand, {type_, true}, of_query, {});
    if (!query.has_value() && !query_operand.places.front().copied.empty()) {
      query = ChooseShared(context_, atoms_, query_operand, {type_, true}, of_query, key_operand.places.back().value);
    }
    if (!query.has_value()) {
      return At(query_operand.places.front().value->producer,
                No(fmt::format("{} cannot be taken apart into batch, heads and queries", NameOf(query_operand))));
    }
    // Key and value are of one number of heads: both before their copies, or both after them.
    std::optional<OperandChoice> key;
    std::optional<OperandChoice> value;
    for (const AxisView& place : key_operand.places) {
      const Atoms copied = atoms_.Leaves(place.copied);
      const std::optional<Atoms> groups = HeadsBefore(copied);
      if (!groups.has_value()) continue;
      // What the value is multiplied with is not a part of the scores: only a place without a factor does.
      const auto k =
          ChoosePlace(context_, atoms_, key_operand, {type_, true}, {axes_.batch, *groups, axes_.keys, axes_.width}, copied);
      const auto v = ChoosePlace(context_, atoms_, value_operand, {type_, false},
                                 {axes_.batch, *groups, axes_.keys, axes_.channels}, copied);
      if (!k.has_value() || !v.has_value()) continue;
      if (key.has_value() && k->cost + v->cost >= key->cost + value->cost) continue;
      key = k;
      value = v;
    }
    if (!key.has_value()) {
      return No(
          fmt::format("{} and {} cannot be taken apart into batch, heads and keys", NameOf(key_operand), NameOf(value_operand)));
    }
    for (const OperandChoice* choice : std::array<const OperandChoice*, 3>{&*query, &*key, &*value}) {
      reached_.insert(reached_.end(), choice->place->nodes.begin(), choice->place->nodes.end());
    }
    ASSIGN_OR_RETURN(MasksOfScores masks, ReadMasksOfScores(context_, &atoms_, axes_, path));
    AttentionView view;
    ASSIGN_OR_RETURN(view.query, QueryWithFactors(context_, &atoms_, axes_, path, query->term, type_));
    view.key = key->term;
    view.value = path.weight == 1 ? value->term : build::Op("Mul", {value->term, build::Constant(type_, {}, path.weight)});
    view.mask = std::move(masks.added);
    view.keep = std::move(masks.keep);
    view.bias = std::move(masks.bias);
    view.scale = path.scale * query->place->factor * key->place->factor;
    view.softcap = path.softcap;
    view.guard = path.guard;
    view.unfused = path.unfused;
    return view;
  }

  // The heads of a key that is repeated along `copied`, which are the first ones of all heads; nullopt where they are not.
  std::optional<Atoms> HeadsBefore(const Atoms& copied) const {
    Atoms repeated = copied;
    repeated.insert(repeated.end(), axes_.shared.begin(), axes_.shared.end());
    const Atoms& heads = axes_.heads;
    if (repeated.size() > heads.size() || !std::equal(repeated.rbegin(), repeated.rend(), heads.rbegin())) return std::nullopt;
    return Atoms(heads.begin(), heads.end() - static_cast<std::ptrdiff_t>(repeated.size()));
  }

  const FunctionContext& context_;
  AtomTable atoms_;
  const Value* y_;
  const Value* weights_ = nullptr;  // an operand of product_
  const Value* product_ = nullptr;
  std::vector<const Node*> reached_;
  std::vector<SizeToProve> sizes_;
  AxisList output_;  // of y
  AttentionAxes axes_;
  AttentionOperands operands_;
  DataType type_ = DataType::kUndefined;  // of the operands, as the kernel takes them
};

}  // namespace

absl::StatusOr<AttentionView> FollowAttention(const FunctionContext& context, const Value* y) {
  return AttentionReader(context, y).Read();
}

absl::StatusOr<Term> AttentionOutput(const FunctionContext& context, const Value* y, const Term& attention) {
  FunctionContext quiet = context;
  quiet.read = nullptr;
  AttentionReader reader(quiet, y);
  ASSIGN_OR_RETURN(const AttentionView view, reader.Read());
  if (!view.unfused.empty()) return Refuse(view.unfused, "no-kernel-for-attention");
  return reader.Output(attention);
}

}  // namespace ascend_fuse
