#include "patterns/analysis/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "ir/add_once.h"
#include "ir/constant_tensor.h"
#include "ir/infer/movement_of.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/analysis/mask.h"
#include "patterns/analysis/renormalized.h"
#include "patterns/analysis/score_variants.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

constexpr int kMostWeightSteps = 24;  // between the softmax and the product with the value
constexpr int kMostScoreSteps = 200;  // between the product of query and key and the softmax, all attempts together
constexpr int kMostLookahead = 64;
constexpr int64_t kMostFactors = 4096;  // numbers of a constant that the scores are multiplied with
constexpr double kLargestHalf = 65504;
constexpr double kNearlyLargestFloat = 3.38e38;  // bfloat16 keeps no more of it

absl::Status No(const std::string& sentence) { return Refuse(sentence, "attention-not-proved"); }

std::string DescribeProducer(const Value& value) {
  if (value.producer == nullptr) return fmt::format("{}, which no node computes", ValueName(value));
  return fmt::format("{}, computed by {}", ValueName(value), OpType(*value.producer));
}

bool IsFloating(const FunctionContext& context, const Value* value) {
  return value != nullptr && IsFloat(context.facts->Of(value).type);
}

// The value that a Cast between floating-point types converts; nullptr for any other node.
const Value* ConvertedFrom(const FunctionContext& context, const Node& node) {
  const bool converts = IsOp(node, "Cast") && IsFloating(context, node.input(0)) && IsFloating(context, node.output());
  return converts ? node.input(0) : nullptr;
}

bool Number(const FunctionContext& context, const Value* value, double* number) {
  return value != nullptr && ConstantNumber(*context.facts, value, number);
}

bool IsZero(const FunctionContext& context, const Value* value) {
  double number = 1;
  return Number(context, value, &number) && number == 0;
}

// IsNaN (p), or Not (Equal (p, p)), which is the same: p.
const Value* TestedForNumbers(const Node* test) {
  if (test == nullptr) return nullptr;
  if (IsOp(*test, "IsNaN")) return test->input(0);
  const Node* equal = IsOp(*test, "Not") && test->input(0) != nullptr ? test->input(0)->producer : nullptr;
  const bool itself = equal != nullptr && IsOp(*equal, "Equal") && equal->input(0) == equal->input(1);
  return itself ? equal->input(0) : nullptr;
}

// Where (IsNaN (p), 0, p): p.
const Value* Guarded(const FunctionContext& context, const Node& node) {
  if (!IsOp(node, "Where") || !IsZero(context, node.input(1)) || node.input(0) == nullptr) return nullptr;
  const Value* tested = TestedForNumbers(node.input(0)->producer);
  if (tested == nullptr || node.input(2) == nullptr) return nullptr;
  return context.numbering->Same(tested, node.input(2)) ? node.input(2) : nullptr;
}

// The boolean that a Cast makes 0 and 1; nullptr for any other value.
const Value* OfBoolean(const FunctionContext& context, const Value* number) {
  const Node* cast = number != nullptr ? number->producer : nullptr;
  if (cast == nullptr || !IsOp(*cast, "Cast") || cast->input(0) == nullptr) return nullptr;
  return context.facts->Of(cast->input(0)).type == DataType::kBool ? cast->input(0) : nullptr;
}

// The place of the operand of a Mul that is the numbers of a boolean; -1 where none is.
int PlaceOfBoolean(const FunctionContext& context, const Node& node) {
  if (!IsOp(node, "Mul")) return -1;
  return OfBoolean(context, node.input(0)) != nullptr ? 0 : OfBoolean(context, node.input(1)) != nullptr ? 1 : -1;
}

// Whether a value is 0 throughout: a number, or the product of 0 and the numbers of a boolean.
bool IsZeroThroughout(const FunctionContext& context, const Value* value) {
  if (IsZero(context, value)) return true;
  const int place = value != nullptr && value->producer != nullptr ? PlaceOfBoolean(context, *value->producer) : -1;
  return place >= 0 && IsZero(context, value->producer->input(static_cast<size_t>(1 - place)));
}

// x of x + 0; nullptr for any other node.
const Value* WithoutZero(const FunctionContext& context, const Node& node) {
  if (!IsOp(node, "Add")) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    if (IsZeroThroughout(context, node.input(1 - i))) return node.input(i);
  }
  return nullptr;
}

// Equal (ReduceMax (x) along the last axis, minus infinity): x. Where that holds, a row has no number above it.
const Value* WithEmptyRows(const FunctionContext& context, const Node* test) {
  if (test == nullptr || !IsOp(*test, "Equal")) return nullptr;
  for (size_t i = 0; i < 2; ++i) {
    const Node* maximum = test->input(i) != nullptr ? test->input(i)->producer : nullptr;
    double low = 0;
    if (maximum == nullptr || !IsOp(*maximum, "ReduceMax") || maximum->input(0) == nullptr) continue;
    if (!Number(context, test->input(1 - i), &low) || low != -std::numeric_limits<double>::infinity()) continue;
    const auto axes = IntsParameter(*context.facts, *maximum, "axes", 1);
    const int rank = context.facts->Of(maximum->input(0)).rank();
    const bool last = axes.has_value() && axes->size() == 1 && ((*axes)[0] == -1 || (*axes)[0] == rank - 1);
    if (last && IntAttribute(*maximum, "keepdims").value_or(1) == 1) return maximum->input(0);
  }
  return nullptr;
}

// Whether a product of two tensors is found on one of the ways that scores go. `computed`: of two that no constant is.
bool LeadsToProduct(const FunctionContext& context, const Value* value, bool computed = false) {
  std::vector<const Value*> work = {value};
  for (int step = 0; step < kMostLookahead && !work.empty(); ++step) {
    const Value* next = work.back();
    work.pop_back();
    const Node* node = next != nullptr ? next->producer : nullptr;
    if (node == nullptr || node->domain != NameId::kEmpty) continue;
    if (const auto product = FindProduct(context, next); product.has_value()) {
      if (!computed || (!IsMixer(context, product->operands[0]) && !IsMixer(context, product->operands[1]))) return true;
      continue;
    }
    const std::string_view op = OpType(*node);
    const MovementKind movement = KindOf(*context.facts, *node);
    const bool moves = movement == MovementKind::kKeepsOrder || movement == MovementKind::kPermutes;
    if (moves || op == "Conv" || op == "Cast" || op == "Tanh" || op == "Clip" || op == "Div" || op == "ScatterND") {
      work.push_back(node->input(0));
    } else if (op == "Add" || op == "Sub" || op == "Mul" || op == "Max" || op == "Sum") {
      work.push_back(node->input(1));
      work.push_back(node->input(0));
    } else if (op == "Where") {
      work.push_back(node->input(2));
      work.push_back(node->input(1));
    }
  }
  return false;
}

// Whether `value` is the largest number of x, along all axes or at least along `axis`: one for all keys where that is their axis.
// It changes no weight where it is added to or taken off all of a row. The smallest number and the mean would not either, but
// beside a mask of -1e38 they are so large that the scores are lost in rounding.
bool IsLargestOfRow(const FunctionContext& context, const Value* value, const Value* x, size_t axis) {
  AxisView view;
  view.value = value;
  while (FollowCopy(context, &view)) {
  }
  const Node* node = view.value->producer;
  if (node == nullptr || !IsOp(*node, "ReduceMax")) return false;
  if (node->input(0) == nullptr || !context.numbering->Same(node->input(0), x)) return false;
  const Fact& number = context.facts->Of(value);
  const Fact& row = context.facts->Of(x);
  if (!number.has_rank || !row.has_rank || axis >= row.shape.size() || number.shape.size() > row.shape.size()) return false;
  const size_t missing = row.shape.size() - number.shape.size();
  return axis < missing || number.shape[axis - missing].is(1);
}

// Whether the first of the two, which is added to the second, changes no weight: it is a number, or the largest of the second for
// all keys. The second has the axes of the view.
bool IsShift(const FunctionContext& context, const AtomTable& atoms, std::pair<const Value*, const Value*> added_to,
             const AxisView& view, const Atoms& keys) {
  double number = 0;
  if (Number(context, added_to.first, &number)) return std::isfinite(number);
  for (size_t axis = 0; axis < view.axes.size(); ++axis) {
    if (atoms.Leaves(view.axes[axis]) == atoms.Leaves(keys)) {
      return IsLargestOfRow(context, added_to.first, added_to.second, axis);
    }
  }
  return false;
}

// Whether `value` is something less its largest number.
bool IsLessItsLargest(const FunctionContext& context, const Value* value) {
  const Node* node = value != nullptr ? value->producer : nullptr;
  if (node == nullptr || !IsOp(*node, "Sub") || node->input(0) == nullptr || node->input(1) == nullptr) return false;
  const Node* largest = node->input(1)->producer;
  return largest != nullptr && IsOp(*largest, "ReduceMax") && largest->input(0) != nullptr &&
         context.numbering->Same(largest->input(0), node->input(0));
}

// x, of a node that changes only scores that the softmax drops anyway.
const Value* Clamped(const FunctionContext& context, const Node& node, double factor) {
  double low = 0;
  if (IsOp(node, "Max") && node.input_count == 2) {
    for (size_t i = 0; i < 2; ++i) {
      if (Number(context, node.input(1 - i), &low) && factor > 0 && low * factor <= kMaskThreshold) return node.input(i);
    }
    return nullptr;
  }
  if (!IsOp(node, "Clip") || node.input_count < 2) return nullptr;  // before opset 11 its bounds are attributes
  if (node.input(1) != nullptr && (!Number(context, node.input(1), &low) || low * factor > kMaskThreshold)) return nullptr;
  double high = 0;
  const bool half = context.facts->Of(node.output()).type == DataType::kFloat16;
  const bool never_above = IsLessItsLargest(context, node.input(0));
  const double bound = never_above ? 0 : half ? kLargestHalf : kNearlyLargestFloat;
  if (node.input(2) != nullptr && (!Number(context, node.input(2), &high) || high < bound)) {
    return nullptr;
  }
  return factor > 0 ? node.input(0) : nullptr;
}

bool IsNegation(const FunctionContext& context, const Value* inverse, const Value* value) {
  const Node* negation = inverse->producer;
  return negation != nullptr && IsOp(*negation, "Not") && negation->input(0) != nullptr &&
         context.numbering->Same(negation->input(0), value);
}

// Whether `drop` is 1 - keep: as numbers, or as the number of a boolean that is the other one's negation.
bool IsComplement(const FunctionContext& context, const Value* drop, const Value* keep) {
  const Node* inverse = drop->producer;
  if (inverse == nullptr) return false;
  double one = 0;
  if (IsOp(*inverse, "Sub")) {
    return Number(context, inverse->input(0), &one) && one == 1 && inverse->input(1) != nullptr &&
           context.numbering->Same(inverse->input(1), keep);
  }
  const Value* dropped = OfBoolean(context, drop);
  const Value* kept = OfBoolean(context, keep);
  return dropped != nullptr && kept != nullptr && (IsNegation(context, dropped, kept) || IsNegation(context, kept, dropped));
}

// Whether what is added is 0 where `keep` is 1 and at most the threshold where it is 0: c * (1 - keep).
bool DropsWhereZero(const FunctionContext& context, const ScoreMask& mask, const Value* keep) {
  const bool subtracts = mask.kind == ScoreMask::Kind::kSubtracted;
  if (!subtracts && mask.kind != ScoreMask::Kind::kAdded) return false;
  AxisView added;
  added.value = mask.value;
  while (FollowCopy(context, &added)) {
  }
  if (!FollowFactor(context, &added)) return false;
  while (FollowCopy(context, &added)) {
  }
  if (!IsComplement(context, added.value, keep)) return false;
  const PossibleValues set = ValuesOf(context, keep);
  const bool zero_or_one = set.known && set.assumptions.empty() &&
                           std::all_of(set.values.begin(), set.values.end(), [](double n) { return n == 0 || n == 1; });
  return zero_or_one && (subtracts ? -added.factor : added.factor) <= kMaskThreshold;
}

// Where another function of the scores stands between what is added and the product.
absl::Status InTheWay(const FunctionContext& context, const Value& x) {
  const Node* node = x.producer;
  if (node == nullptr || node->output_count != 1) return absl::OkStatus();
  const bool leads = std::any_of(node->inputs().begin(), node->inputs().end(),
                                 [&](const Use& use) { return use.value != nullptr && LeadsToProduct(context, use.value); });
  if (!leads) return absl::OkStatus();
  return At(node, No(fmt::format("the scores are {}, which is not part of an attention", DescribeProducer(x))));
}

absl::Status NoSoftmax(const Value& weights) {
  return No(fmt::format("the weights are {}, which is not a softmax along one axis", DescribeProducer(weights)));
}

// Some weights were made 0 and the others divided by their sum: as if the scores of the first were minus infinity. Goes on at the
// weights before that.
bool BeforeRenormalizing(const FunctionContext& context, const AtomTable& atoms, const Atoms& keys, AxisView* view,
                         ScorePath* path, std::vector<const Node*>* reached, std::optional<SoftmaxView>* exponential) {
  const auto found = FindRenormalized(context, view->value);
  if (!found.has_value() || static_cast<size_t>(found->axis) >= view->axes.size()) return false;
  const Atoms summed = atoms.Leaves(view->axes[static_cast<size_t>(found->axis)]);
  const Atoms all = atoms.Leaves(keys);
  if (summed.size() != all.size() || !std::is_permutation(all.begin(), all.end(), summed.begin())) return false;
  const Fact& before = context.facts->Of(found->weights);
  if (!before.has_rank || !context.dims->Equal(before.shape, context.facts->Of(view->value).shape)) return false;
  path->masks.push_back({ScoreMask::Kind::kKeeps, found->keep, view->axes});
  path->stages.push_back(view->axes);
  path->guard = path->guard || found->guard;
  view->value = found->weights;
  reached->insert(reached->end(), found->nodes.begin(), found->nodes.end());
  *exponential = FindExponential(context, view->value, found->axis);
  return true;
}

// What takes part in a softmax beside the scores, as a sentence.
std::string AddedToSum(const FunctionContext& context, const Value& added, const Value& weights) {
  double number = 0;
  const std::string what = Number(context, &added, &number) ? fmt::format("{:.6g}", number) : std::string(ValueName(added));
  return fmt::format("{} is added to the sum of the exponentials of {} (a sink), and kernels of ATC take none", what,
                     ValueName(weights));
}

// A refusal where the value is a function of the scores, element by element.
absl::Status NoOtherFunction(const FunctionContext& context, const Value& value) {
  const Node& node = *value.producer;
  if (node.input_count != 1 || !IsElementwise(node) || !IsFloating(context, node.input(0))) return absl::OkStatus();
  if (!LeadsToProduct(context, node.input(0))) return absl::OkStatus();
  return No(
      fmt::format("the scores are {}, the {} of {}: before the softmax an attention has no function of them but Tanh, "
                  "which caps them",
                  ValueName(value), OpType(node), ValueName(*node.input(0))));
}

// What is cut off after the softmax, as a sentence.
std::string SinkOf(const JoinedColumn& joined) {
  if (joined.column != nullptr) {
    return fmt::format(
        "{} takes part in the softmax beside the scores and is cut off after it (a sink), and kernels of ATC take none",
        ValueName(*joined.column));
  }
  return fmt::format(
      "what {} pads the scores with takes part in the softmax and is cut off after it (a sink), and kernels of ATC "
      "take none",
      ValueName(*joined.nodes.back()->output()));
}

// What a Clip does to the scores, as a sentence.
std::string Clips(const FunctionContext& context, const Node& clip) {
  double low = 0;
  double high = 0;
  const bool below = Number(context, clip.input(1), &low);
  const bool above = Number(context, clip.input(2), &high);
  std::string bounds = below && above ? fmt::format(" to {:.6g} ... {:.6g}", low, high)
                       : below        ? fmt::format(" to at least {:.6g}", low)
                       : above        ? fmt::format(" to at most {:.6g}", high)
                                      : "";
  return fmt::format("{} clips the scores{} before the softmax, and kernels do not", ValueName(*clip.output()), bounds);
}

// What a ScatterND does to the scores, as a sentence.
std::string WritesTo(const Node& scatter) {
  return fmt::format("ScatterND writes {} into the scores before the softmax, and kernels do not", ValueName(*scatter.input(2)));
}

// What a tensor of factors after a mask or a bias does to it, as a sentence; "" where there is none.
std::string ScaledAfter(const Value& mask, const ScorePath& path) {
  if (path.factors.empty()) return "";
  return fmt::format("the scores are multiplied by {} after {}, which is scaled with them; kernels scale before the mask",
                     ValueName(*path.factors.back().value), ValueName(mask));
}

// Whether scores of at most `fill` are dropped after all factors too: these are positive numbers of the file.
bool DropsAfterFactors(const FunctionContext& context, double fill, const ScorePath& path) {
  for (const ScoreFactor& factor : path.factors) {
    const std::optional<Tensor> tensor = ConstantTensor(*factor.value);
    if (!tensor.has_value() || !IsFloat(tensor->type)) return false;
    const auto numbers = ReadFloats(*context.model, *tensor, kMostFactors);
    if (!numbers.ok() || numbers->empty()) return false;
    const auto [least, most] = std::minmax_element(numbers->begin(), numbers->end());
    if (!(*least > 0) || !std::isfinite(*most)) return false;
    fill *= factor.divides ? 1 / *most : *least;
  }
  return fill <= kMaskThreshold;
}

// A refusal where what follows the mask on the way of the scores must not.
absl::Status MayAdd(const Value& mask, double factor, const ScorePath& path) {
  if (path.softcap != 0) {
    return Refuse(fmt::format("{} is applied to the scores before they are capped by tanh", ValueName(mask)),
                  "attention-not-proved");
  }
  if (factor > 0) return absl::OkStatus();
  return Refuse(fmt::format("the scores are multiplied by {:.6g} after {}, which inverts the mask", factor, ValueName(mask)),
                "scale-behind-mask");
}

class ScoreReader {
 public:
  ScoreReader(const FunctionContext& context, AtomTable* atoms, const Atoms& keys, const Atoms& leading,
              const std::optional<SoftmaxView>& undivided, std::vector<const Node*>* reached)
      : context_(context), atoms_(atoms), keys_(keys), leading_(leading), reached_(reached), exponential_(undivided) {}

  absl::StatusOr<ScorePath> Read(AxisView view) {
    absl::StatusOr<ScorePath> path = FromWeights(std::move(view));
    return path.ok() ? std::move(path) : At(at_, path.status());
  }

 private:
  absl::StatusOr<ScorePath> FromWeights(AxisView view) {
    ScorePath path;
    for (int step = 0; step < kMostWeightSteps; ++step) {
      const auto softmax = exponential_.has_value() ? exponential_ : FindSoftmax(context_, view.value);
      if (softmax.has_value()) return BeforeSoftmax(*softmax, view, path);
      RETURN_IF_ERROR(WeightStep(&view, &path));
      if (path.mixer != nullptr) return path;
    }
    return No(fmt::format("no softmax is near {}", ValueName(*view.value)));
  }

  void Reach(const Node* node) { AddOnce(node, reached_); }

  // view->value is a factor of the product with the value: back over one node.
  absl::Status WeightStep(AxisView* view, ScorePath* path) {
    const Node* node = view->value->producer;
    if (node == nullptr) return No(fmt::format("the weights are {}", DescribeProducer(*view->value)));
    at_ = node;
    Reach(node);
    if (FollowCopy(context_, view) || FollowMovement(context_, atoms_, view)) return absl::OkStatus();
    if (const Value* source = ConvertedFrom(context_, *node); source != nullptr) {
      view->value = source;
      return absl::OkStatus();
    }
    if (path->masks.empty() && FollowFactor(context_, view)) return absl::OkStatus();  // not before a division by their sum
    if (BeforeRenormalizing(context_, *atoms_, keys_, view, path, reached_, &exponential_)) return absl::OkStatus();
    if (const Value* source = Guarded(context_, *node); source != nullptr) {
      Reach(node->input(0)->producer);
      path->guard = true;
      view->value = source;
      return absl::OkStatus();
    }
    // Weights are made 0 where a key was taken out: a guard, if those are the keys that the mask takes out.
    if (IsOp(*node, "Where") && node->input(0) != nullptr) {
      const Value* rows = IsZero(context_, node->input(1)) ? WithEmptyRows(context_, node->input(0)->producer) : nullptr;
      if (rows != nullptr) {
        empty_rows_ = rows;
        axes_of_rows_ = view->axes;
        return Continue(view, node->input(2));
      }
      const bool drops = IsZero(context_, node->input(1));
      if (drops || IsZero(context_, node->input(2))) {
        zeroed_ = {drops ? ScoreMask::Kind::kDrops : ScoreMask::Kind::kKeeps, node->input(0), {}};
        return Continue(view, node->input(drops ? 2 : 1));
      }
    }
    if (!cut_.has_value() && IsCut(view)) return absl::OkStatus();
    if (const auto mixed = FindMixedHeads(context_, *atoms_, *view, leading_);
        mixed.has_value() && LeadsToSoftmax(context_, mixed->source, reached_)) {
      path->mixer = mixed->weights;
      path->mixes_weights = true;
      return absl::OkStatus();
    }
    // The same as products with the numbers of a boolean, as tf2onnx writes a choice.
    if (const Value* rest = WithoutZero(context_, *node); rest != nullptr) return Continue(view, rest);
    if (const int place = PlaceOfBoolean(context_, *node); place >= 0 && zeroed_.value == nullptr) {
      zeroed_ = {ScoreMask::Kind::kKeeps, OfBoolean(context_, node->input(static_cast<size_t>(place))), {}};
      return Continue(view, node->input(static_cast<size_t>(1 - place)));
    }
    // The bias of a linear over heads.
    const size_t bias = IsMixer(context_, node->input(0)) ? 0 : 1;
    if (IsOp(*node, "Add") && biased_ == nullptr && IsMixer(context_, node->input(bias)) && node->input(1 - bias) != nullptr) {
      biased_ = node->output();
      return Continue(view, node->input(1 - bias));
    }
    return NoSoftmax(*view->value);
  }

  // Weights that were cut off by one: what is cut off is a sink.
  bool IsCut(AxisView* view) {
    cut_ = FindCutColumn(context_, view->value);
    if (!cut_.has_value() || cut_->axis >= view->axes.size()) return false;
    const Atoms cut = atoms_->Leaves(view->axes[cut_->axis]);
    const Atoms keys = atoms_->Leaves(keys_);
    if (cut.size() != keys.size() || !std::is_permutation(keys.begin(), keys.end(), cut.begin())) return false;
    without_sink_ = cut;
    view->value = cut_->whole;
    view->axes[cut_->axis] = atoms_->New(context_.facts->Of(cut_->whole).shape[cut_->axis]);
    keys_ = view->axes[cut_->axis];
    return true;
  }

  // view->value is what the softmax with a sink is taken of: back to the scores.
  absl::Status BeforeSink(AxisView* view, ScorePath* path) {
    const auto joined = FindJoinedColumn(context_, view->value, *cut_);
    if (!joined.has_value()) {
      return No(fmt::format("one of the weights is cut off, and {} is not scores with one more joined", ValueName(*view->value)));
    }
    for (const Node* node : joined->nodes) Reach(node);
    path->unfused = SinkOf(*joined);
    path->keys = without_sink_;
    view->value = joined->scores;
    view->axes[cut_->axis] = without_sink_;
    return absl::OkStatus();
  }

  absl::StatusOr<ScorePath> BeforeSoftmax(const SoftmaxView& softmax, AxisView view, ScorePath path) {
    for (const Node* node : softmax.nodes) Reach(node);
    if (biased_ != nullptr) return NoSoftmax(*biased_);
    at_ = softmax.nodes.back();
    const auto axis = static_cast<size_t>(softmax.axis);
    if (axis < view.axes.size()) path.keys = atoms_->Leaves(view.axes[axis]);
    const Atoms keys = atoms_->Leaves(keys_);
    if (path.keys.size() != keys.size() || !std::is_permutation(keys.begin(), keys.end(), path.keys.begin())) {
      return No(
          fmt::format("the softmax that gives {} is along axis {}, which is not the axis that the product with the "
                      "value sums over",
                      ValueName(*view.value), softmax.axis));
    }
    if (softmax.added != nullptr) path.unfused = AddedToSum(context_, *softmax.added, *view.value);
    view.value = softmax.input;
    path.weight = view.factor;
    view.factor = 1;
    if (cut_.has_value()) RETURN_IF_ERROR(BeforeSink(&view, &path));
    path.stages.push_back(view.axes);
    const bool rows_of_scores = empty_rows_ != nullptr && context_.numbering->Same(empty_rows_, softmax.input) &&
                                atoms_->Leaves(view.axes) == atoms_->Leaves(axes_of_rows_);
    ASSIGN_OR_RETURN(ScorePath done, Follow(std::move(view), std::move(path)));
    if (empty_rows_ != nullptr) {
      // Of the scores themselves, or of what masks them.
      const bool rows = rows_of_scores || std::any_of(done.masks.begin(), done.masks.end(), [&](const ScoreMask& mask) {
                          return mask.kind == ScoreMask::Kind::kAdded && context_.numbering->Same(mask.value, empty_rows_) &&
                                 atoms_->Leaves(mask.axes) == atoms_->Leaves(axes_of_rows_);
                        });
      if (!rows) {
        return No(fmt::format("weights are made 0 where a row of {} is empty, which is not a mask of the scores",
                              ValueName(*empty_rows_)));
      }
      done.guard = true;
    }
    if (zeroed_.value == nullptr) return done;
    const bool same = std::any_of(done.masks.begin(), done.masks.end(), [&](const ScoreMask& mask) {
      return mask.kind == zeroed_.kind && context_.numbering->Same(mask.value, zeroed_.value);
    });
    if (!same) return No(fmt::format("weights are made 0 by {}, which is not a mask of the scores", ValueName(*zeroed_.value)));
    done.guard = true;
    return done;
  }

  // The scores go on at x, the operand of the node that computes view->value which is not a mask: of its shape.
  absl::Status Continue(AxisView* view, const Value* x) {
    const Fact& before = context_.facts->Of(x);
    const Fact& after = context_.facts->Of(view->value);
    if (!before.has_rank || !after.has_rank || before.shape.size() != after.shape.size()) {
      return No(fmt::format("{} has not as many dims as {}", ValueName(*x), ValueName(*view->value)));
    }
    for (size_t i = 0; i < before.shape.size(); ++i) {
      if (context_.dims->Equal(before.shape[i], after.shape[i])) continue;
      // What broadcasting may do to an open dim is asked of the mask later; two numbers are two numbers.
      if (context_.dims->NotEqual(before.shape[i], after.shape[i]) || !before.shape[i].known() ||
          !atoms_->Resize(view->axes[i], before.shape[i])) {
        return Refuse(fmt::format("the scores {} are enlarged to {} by what is added", ValueName(*x), ValueName(*view->value)),
                      "mask-shape");
      }
    }
    view->value = x;
    return absl::OkStatus();
  }

  // The refusal is told of the node before which the way ends.
  absl::StatusOr<ScorePath> Follow(AxisView view, ScorePath path) {
    absl::StatusOr<ScorePath> done = TowardsProduct(std::move(view), std::move(path));
    return done.ok() ? std::move(done) : At(at_, done.status());
  }

  absl::StatusOr<ScorePath> TowardsProduct(AxisView view, ScorePath path) {
    while (true) {
      if (++steps_ > kMostScoreSteps) return No("the way from the softmax to the scores is too long");
      if (const auto mixed = FindMixedHeads(context_, *atoms_, view, leading_);
          mixed.has_value() && LeadsToProduct(context_, mixed->source, true)) {
        Reach(view.value->producer);
        path.mixer = mixed->weights;
        return path;
      }
      if (const auto product = FindProduct(context_, view.value); product.has_value()) {
        Reach(product->node);
        path.product = *product;
        path.axes = view.axes;
        path.scale = view.factor;
        path.stages.push_back(view.axes);
        return path;
      }
      const Node* node = view.value->producer;
      if (node == nullptr) return No(fmt::format("the scores are {}, not a product", DescribeProducer(*view.value)));
      at_ = node;
      Reach(node);
      if (FollowCopy(context_, &view)) continue;
      if (FollowMovement(context_, atoms_, &view)) {
        path.stages.push_back(view.axes);
        continue;
      }
      if (const Value* source = ConvertedFrom(context_, *node); source != nullptr) {
        view.value = source;
        continue;
      }
      if (FollowFactor(context_, &view)) continue;
      if (IsOp(*node, "Tanh") && node->input(0) != nullptr) {
        if (path.softcap != 0 || view.factor <= 0) return No("the scores are capped twice, or by a negative number");
        if (!path.factors.empty())
          return No(fmt::format("the scores are multiplied by {} after they are capped by tanh",
                                ValueName(*path.factors.back().value)));
        path.softcap = view.factor;
        view.value = node->input(0);
        continue;
      }
      if (const Value* clamped = Clamped(context_, *node, view.factor); clamped != nullptr && path.factors.empty()) {
        RETURN_IF_ERROR(Continue(&view, clamped));
        continue;
      }
      if (IsOp(*node, "Clip") && node->input(0) != nullptr) {
        if (path.unfused.empty()) path.unfused = Clips(context_, *node);
        RETURN_IF_ERROR(Continue(&view, node->input(0)));
        continue;
      }
      if (IsOp(*node, "ScatterND") && node->input(2) != nullptr && LeadsToProduct(context_, node->input(0))) {
        if (path.unfused.empty()) path.unfused = WritesTo(*node);
        RETURN_IF_ERROR(Continue(&view, node->input(0)));
        continue;
      }
      if (IsOp(*node, "Add") || IsOp(*node, "Sub")) return Sum(*node, view, path);
      RETURN_IF_ERROR(NoOtherFunction(context_, *view.value));
      absl::Status status =
          IsOp(*node, "Where") ? Replaced(*node, &view, &path)
          : IsOp(*node, "Mul") || IsOp(*node, "Div")
              ? Multiplied(*node, &view, &path)
              : No(fmt::format("the scores are {}, which is not part of an attention", DescribeProducer(*view.value)));
      if (!status.ok()) return status;
    }
  }

  // Add (x, m) and Sub (x, m): x is the operand that leads to the product of query and key.
  absl::StatusOr<ScorePath> Sum(const Node& node, const AxisView& view, const ScorePath& path) {
    absl::Status why = No(fmt::format("the scores are {}, which leads to no product", DescribeProducer(*view.value)));
    const bool subtracts = IsOp(node, "Sub");
    for (size_t i = 0; i < (subtracts ? 1U : 2U); ++i) {
      at_ = &node;
      const Value* x = node.input(i);
      const Value* mask = node.input(1 - i);
      if (x == nullptr || mask == nullptr) continue;
      if (!LeadsToProduct(context_, x)) {
        if (absl::Status status = InTheWay(context_, *x); !status.ok()) why = status;
        continue;
      }
      AxisView next = view;
      ScorePath longer = path;
      // The same number added to all scores of a row changes no weight.
      const bool shifts = path.softcap == 0 && IsShift(context_, *atoms_, {mask, x}, view, path.keys);
      if (!shifts) {
        if (absl::Status status = MayAdd(*mask, view.factor, path); !status.ok()) {
          why = status;
          continue;
        }
        if (longer.unfused.empty()) longer.unfused = ScaledAfter(*mask, path);
        const auto kind = subtracts ? ScoreMask::Kind::kSubtracted : ScoreMask::Kind::kAdded;
        longer.masks.push_back({kind, mask, view.axes, view.factor});
        longer.stages.insert(longer.stages.begin(), view.axes);
      }
      if (absl::Status status = Continue(&next, x); !status.ok()) {
        why = status;
        continue;
      }
      absl::StatusOr<ScorePath> done = Follow(std::move(next), std::move(longer));
      if (done.ok()) return done;
      why = done.status();
    }
    return why;
  }

  // Where (keep, x, fill) and Where (drop, fill, x).
  absl::Status Replaced(const Node& node, AxisView* view, ScorePath* path) {
    for (size_t i = 1; i <= 2; ++i) {
      double fill = 0;
      if (!Number(context_, node.input(3 - i), &fill) || node.input(0) == nullptr || node.input(i) == nullptr) continue;
      if (view->factor <= 0 || fill * view->factor > kMaskThreshold) {
        return Refuse(fmt::format("{} puts {:.6g} in the place of scores, which is not minus infinity or a number at most {}",
                                  ValueName(*view->value), fill, kMaskThreshold),
                      "mask-is-bias");
      }
      // A scale after it does nothing to what is dropped, a cap does.
      RETURN_IF_ERROR(MayAdd(*node.input(0), 1, *path));
      if (path->unfused.empty() && !DropsAfterFactors(context_, fill * view->factor, *path)) {
        path->unfused = ScaledAfter(*node.input(0), *path);
      }
      path->masks.push_back({i == 1 ? ScoreMask::Kind::kKeeps : ScoreMask::Kind::kDrops, node.input(0), view->axes});
      path->stages.insert(path->stages.begin(), view->axes);
      return Continue(view, node.input(i));
    }
    return No(fmt::format("{} chooses between two tensors of scores", ValueName(*view->value)));
  }

  // Mul (x, m) of numbers m that are 0 and 1, after which something large is taken off where m is 0. Of any other numbers
  // a factor of the query, with Div too.
  absl::Status Multiplied(const Node& node, AxisView* view, ScorePath* path) {
    const bool divides = IsOp(node, "Div");
    for (size_t i = 0; i < 2 && !divides; ++i) {
      const Value* x = node.input(i);
      const Value* keep = node.input(1 - i);
      if (x == nullptr || keep == nullptr || path->masks.empty() || view->factor != 1) continue;
      if (path->masks.back().factor != 1) continue;
      if (!DropsWhereZero(context_, path->masks.back(), keep)) continue;
      const Value* const boolean = OfBoolean(context_, keep);
      path->masks.back() = {boolean != nullptr ? ScoreMask::Kind::kKeeps : ScoreMask::Kind::kMultiplied,
                            boolean != nullptr ? boolean : keep, view->axes};
      return Continue(view, x);
    }
    absl::Status why = No(fmt::format("the scores are {}, which is not part of an attention", DescribeProducer(*view->value)));
    for (size_t i = 0; i < (divides ? 1U : 2U); ++i) {
      const Value* x = node.input(i);
      const Value* factor = node.input(1 - i);
      double number = 0;
      // A number that is not a scale, 0 or infinite, is not a factor either.
      if (x == nullptr || factor == nullptr || Number(context_, factor, &number) || !LeadsToProduct(context_, x)) continue;
      const ScoreFactor found = {factor, view->axes, divides, &node};
      why = Continue(view, x);
      if (!why.ok()) continue;
      path->stages.insert(path->stages.begin(), found.axes);
      path->factors.push_back(found);
      return why;
    }
    return why;
  }

  const FunctionContext& context_;
  AtomTable* atoms_;
  Atoms keys_;
  const Atoms leading_;
  std::vector<const Node*>* reached_;
  std::optional<CutColumn> cut_;            // of the weights
  Atoms without_sink_;                      // the keys, where keys_ are those and a sink
  std::optional<SoftmaxView> exponential_;  // of weights that were divided by a sum already, or are divided later
  const Value* biased_ = nullptr;           // what a bias is added to is not a softmax
  ScoreMask zeroed_;
  const Value* empty_rows_ = nullptr;  // weights are made 0 where a row of this is minus infinity throughout
  AxisList axes_of_rows_;              // of those weights
  const Node* at_ = nullptr;           // the node that was looked at last
  int steps_ = 0;
};

}  // namespace

bool LeadsToSoftmax(const FunctionContext& context, const Value* value, std::vector<const Node*>* way) {
  int changes = 0;  // what is not followed: there is something to tell if a softmax follows it
  for (int step = 0; step < kMostWeightSteps; ++step) {
    const Node* node = value->producer;
    if (node == nullptr || node->domain != NameId::kEmpty) return false;
    if (way != nullptr) way->push_back(node);
    if (IsOp(*node, "Softmax") || FindSoftmax(context, value).has_value()) return true;
    if (const auto renormalized = FindRenormalized(context, value); renormalized.has_value()) {
      value = renormalized->weights;
      if (FindExponential(context, value, renormalized->axis).has_value()) return true;
      continue;
    }
    const Value* next = nullptr;
    if (IsOp(*node, "Where")) {
      next = IsZero(context, node->input(1)) ? node->input(2) : node->input(1);
    } else if ((IsOp(*node, "Mul") || IsOp(*node, "Add") || IsOp(*node, "Div")) && changes++ < 2) {
      next = node->input(PlaceOfBoolean(context, *node) == 0 || IsMixer(context, node->input(0)) ? 1 : 0);
    } else if ((IsOp(*node, "MatMul") || IsOp(*node, "Einsum") || IsOp(*node, "Conv")) && changes++ < 2) {
      next = IsMixer(context, node->input(0)) ? node->input(1) : IsMixer(context, node->input(1)) ? node->input(0) : nullptr;
    } else if (IsOp(*node, "Cast") || context.numbering->Source(value) != nullptr ||
               IsOfOneOperand(KindOf(*context.facts, *node)) || KindOf(*context.facts, *node) == MovementKind::kJoins) {
      next = context.numbering->Source(value) != nullptr ? context.numbering->Source(value) : node->input(0);
    }
    if (next == nullptr) return false;
    value = next;
  }
  return false;
}

absl::StatusOr<ScorePath> FollowScores(const FunctionContext& context, AtomTable* atoms, AxisView weights, const Atoms& keys,
                                       const Atoms& leading, const std::optional<SoftmaxView>& undivided,
                                       std::vector<const Node*>* reached) {
  return ScoreReader(context, atoms, keys, leading, undivided, reached).Read(std::move(weights));
}

}  // namespace ascend_fuse
