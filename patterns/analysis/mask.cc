#include "patterns/analysis/mask.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "ir/attribute.h"
#include "ir/infer/movement_of.h"
#include "ir/schema.h"
#include "ir/status_macros.h"
#include "patterns/analysis/rebuild.h"
#include "patterns/terms/node_builder.h"
#include "patterns/terms/refusal.h"

namespace ascend_fuse {
namespace {

bool IsZero(const FunctionContext& context, const Value* value) {
  double number = 1;
  return value != nullptr && ConstantNumber(*context.facts, value, &number) && number == 0;
}

bool IsMaskFill(const FunctionContext& context, const Value* value) {
  double number = 0;
  return value != nullptr && ConstantNumber(*context.facts, value, &number) && number <= kMaskThreshold;
}

Term DimAsShapeElement(const FunctionContext& context, const Value* value, int axis) {
  const Fact& fact = context.facts->Of(value);
  if (fact.shape[axis].is_number()) return Term::Integer(fact.shape[axis].number());
  // Shape whole, then one element of it: ATC ignores the start and end attributes of Shape
  // (docs/sources/atc-op-audit.md W2).
  return build::Gather(build::Shape(Term::Of(value)), build::Numbers({axis}), 0);
}

// A value without its differences from head to head, where it has none: with 1 (or no axis) in place of the heads, the
// third axis from the end. Copies are taken back, elementwise operators are made of such operands.
class OneForAllHeads {
 public:
  explicit OneForAllHeads(const FunctionContext& context) : context_(context) {}

  // nullopt where it may differ from head to head.
  std::optional<Term> Of(const Value* value) {
    if (++visited_ > kMaximumNodes) return std::nullopt;
    while (const Value* source = context_.numbering->Source(value)) value = source;
    const Fact& fact = context_.facts->Of(value);
    if (!fact.has_rank) return std::nullopt;
    if (HasOneHead(fact)) return Term::Of(value);
    if (fact.is_splat) return build::Constant(fact.type, {1}, fact.splat);
    const Node* node = value->producer;
    if (node == nullptr || node->domain != NameId::kEmpty || node->input(0) == nullptr) return std::nullopt;
    const Movement* movement = context_.facts->MovementOf(value);
    if (movement != nullptr && IsBroadcast(*movement)) return Of(node->input(0));
    if (movement != nullptr && movement->kind == MovementKind::kCopies) return OfRepeated(*movement, fact);
    const Schema* schema = SchemaOf(*node);
    if (schema == nullptr || !schema->elementwise || !schema->deterministic || node->output_count != 1) return std::nullopt;
    std::vector<Term> inputs;
    for (const Use& use : node->inputs()) {
      std::optional<Term> input = use.value == nullptr ? Term::Absent() : Of(use.value);
      if (!input.has_value()) return std::nullopt;
      inputs.push_back(*std::move(input));
    }
    return Rebuilt(*node, std::move(inputs), 0);
  }

 private:
  static constexpr int kMaximumNodes = 64;

  static bool HasOneHead(const Fact& fact) { return fact.rank() < 3 || fact.shape[static_cast<size_t>(fact.rank()) - 3].is(1); }

  // Repeated along the same axes, but for the heads.
  std::optional<Term> OfRepeated(const Movement& movement, const Fact& result) {
    const MovedPart* part = movement.only();
    const Value* input = movement.node->input(0);
    const Fact& once = context_.facts->Of(input);
    if (part == nullptr || !part->known || once.rank() < 3 || once.rank() != result.rank() || !HasOneHead(once))
      return std::nullopt;
    std::vector<int64_t> repeats(once.shape.size(), 1);
    for (size_t axis = 0; axis < repeats.size(); ++axis) {
      if (part->axes[axis].kind == AxisSource::Kind::kPlace || axis + 3 == repeats.size()) continue;
      const Dim times = context_.dims->ExactDiv(result.shape[axis], once.shape[axis]);
      if (!times.is_number()) return std::nullopt;
      repeats[axis] = times.number();
    }
    const bool copies = std::any_of(repeats.begin(), repeats.end(), [](int64_t count) { return count != 1; });
    if (!copies) return Term::Of(input);
    return build::Op("Tile", {Term::Of(input), build::Numbers(repeats)});
  }

  const FunctionContext& context_;
  int visited_ = 0;
};

// What a mask is made of: a value, and what of it takes a key out.
enum class Polarity { kTrueMasks, kTrueKeeps, kNegativeMasks };
struct MaskSource {
  const Value* value = nullptr;
  Polarity polarity = Polarity::kNegativeMasks;
};

void Assume(const FunctionContext& context, std::string sentence) {
  if (context.assumptions != nullptr) context.assumptions->push_back(std::move(sentence));
}

const Value* BehindCopies(const FunctionContext& context, const Value* value) {
  while (const Value* source = context.numbering->Source(value)) value = source;
  return value;
}

// true = kept, and the mask before a Not in front: Not (Not (m)) is m.
MaskSource KeptWhereTrue(const Value* boolean) {
  const Node* node = boolean->producer;
  if (node != nullptr && IsOp(*node, "Not") && node->input(0) != nullptr) return {node->input(0), Polarity::kTrueMasks};
  return {boolean, Polarity::kTrueKeeps};
}

// The boolean that the exporter started with, where there is one. An error for what is not a mask but a bias.
absl::StatusOr<MaskSource> ReadMask(const FunctionContext& context, const Value* mask) {
  if (context.facts->Of(mask).type == DataType::kBool) return KeptWhereTrue(mask);
  const PossibleValues set = ValuesOf(context, mask);
  if (!set.known) {
    return Refuse(fmt::format("{} is an additive bias, not a mask: it is not proved to hold only 0 and minus infinity",
                              NameInModel(*context.facts, *mask)),
                  "mask-is-bias");
  }
  for (double number : set.values) {
    if (number != 0 && number > kMaskThreshold) {
      return Refuse(fmt::format("{} can hold {:.6g}, which is a bias and not a mask", NameInModel(*context.facts, *mask), number),
                    "mask-is-bias");
    }
  }
  for (const std::string& sentence : set.assumptions) Assume(context, sentence);
  const Node* node = BehindCopies(context, mask)->producer;
  if (node != nullptr && IsOp(*node, "Where") && node->input(0) != nullptr) {
    if (IsZero(context, node->input(1)) && IsMaskFill(context, node->input(2))) return KeptWhereTrue(node->input(0));
    if (IsMaskFill(context, node->input(1)) && IsZero(context, node->input(2))) {
      return MaskSource{BehindCopies(context, node->input(0)), Polarity::kTrueMasks};
    }
  }
  return MaskSource{mask, Polarity::kNegativeMasks};
}

// Dim `axis` of a value, read from an input of the graph that has it where there is one among the first: then it is one
// node for all layers.
Term SharedDim(const FunctionContext& context, const Value* value, int axis) {
  constexpr size_t kInputs = 16;
  const Dim dim = context.facts->Of(value).shape[static_cast<size_t>(axis)];
  const Graph& graph = context.model->graph();
  if (!dim.is_number() && value->graph == &graph) {
    for (size_t i = 0; i < std::min(kInputs, graph.inputs().size()); ++i) {
      const Value* input = graph.inputs()[i];
      const Fact& fact = context.facts->Of(input);
      for (int other = 0; other < fact.rank() && input->initializer == nullptr; ++other) {
        if (context.dims->Equal(fact.shape[static_cast<size_t>(other)], dim)) return DimAsShapeElement(context, input, other);
      }
    }
  }
  return DimAsShapeElement(context, value, axis);
}

// The mask that the source says, as ExplicitMask gives it.
absl::StatusOr<Term> ExplicitMaskOf(const FunctionContext& context, MaskSource source, const Value* query, const Value* key) {
  const Fact& q = context.facts->Of(query);
  const Fact& k = context.facts->Of(key);
  if (q.rank() != 4 || k.rank() != 4) {
    return Refuse("the ranks of query and key are not known to be 4", "shape-not-known");
  }
  Term term = Term::Of(source.value);
  if (const Fact& whole = context.facts->Of(source.value); whole.rank() >= 3 && !whole.shape[whole.rank() - 3].is(1)) {
    const std::optional<Term> one = OneForAllHeads(context).Of(source.value);
    if (!one.has_value()) {
      return Refuse(
          fmt::format("the mask {} may differ from head to head ({} heads), and the kernel takes one mask for all",
                      NameInModel(*context.facts, *source.value), context.facts->dims().ToString(whole.shape[whole.rank() - 3])),
          "mask-per-head");
    }
    term = *one;
    if (term.kind == Term::Kind::kValue) source.value = term.value;
  }
  const Fact& fact = context.facts->Of(source.value);
  RETURN_IF_ERROR(CheckMaskShape(context, *source.value, q));

  const bool as_it_is = term.kind == Term::Kind::kValue;
  // Kernels read three dims as [B, S, T]: these are [1, S, T], and are written with four.
  const bool whole = as_it_is && (fact.rank() == 2 || fact.rank() == 4) &&
                     context.dims->Equal(fact.shape[static_cast<size_t>(fact.rank() - 2)], q.shape[2]) &&
                     context.dims->Equal(fact.shape[static_cast<size_t>(fact.rank() - 1)], k.shape[2]);
  if (source.polarity == Polarity::kTrueKeeps) {
    term = build::Op("Not", {std::move(term)});
  } else if (source.polarity == Polarity::kNegativeMasks) {
    // Elements are 0 or at most -9960: any number between tells them apart.
    term = build::Op("Less", {std::move(term), Term::Number(-1)});
  }
  if (whole) return term;
  return ExpandedToScores(context, std::move(term), as_it_is ? &fact : nullptr, Term::Integer(1), query, key);
}

}  // namespace

std::string_view NameInModel(const Facts& facts, const Value& value) {
  const Value* given = &value;
  while (given->producer != nullptr && given->producer->is_new) {
    const Node& node = *given->producer;
    const bool of_one = IsOfOneOperand(KindOf(facts, node)) || IsOp(node, "Not") || IsOp(node, "Cast") || IsOp(node, "Neg") ||
                        (IsOp(node, "Mul") && node.input(1) != nullptr && node.input(1)->IsConstant());
    if (!of_one || node.input(0) == nullptr) break;
    given = node.input(0);
  }
  return ValueName(*given);
}

bool MasksWithInfinity(const FunctionContext& context, const Value* mask) {
  const PossibleValues set = ValuesOf(context, mask);
  if (!set.known) return false;
  return std::all_of(set.values.begin(), set.values.end(), [](double v) { return v == 0 || std::isinf(v); });
}

std::string AssumedOfBatch(const DimTable& dims, const Fact& mask, const Fact& query) {
  if (!mask.has_rank || mask.rank() != 4 || !query.has_rank || query.rank() != 4) return "";
  const Dim batch = dims.Resolve(mask.shape[0]);
  if (batch.is(1) || dims.Equal(batch, query.shape[0]) || dims.NotEqual(batch, query.shape[0])) return "";
  const std::string of_mask = dims.ToString(batch);
  const std::string of_query = dims.ToString(query.shape[0]);
  return batch.is_number() ? fmt::format("the batch of the query, {}, is {}, that of the mask", of_query, of_mask)
                           : fmt::format("the batch of the mask, {}, is 1 or {}, that of the query", of_mask, of_query);
}

std::string AssumedOfQueries(const DimTable& dims, const Fact& mask, const Fact& query) {
  if (!mask.has_rank || mask.rank() < 2 || !query.has_rank || query.rank() != 4) return "";
  const Dim queries = dims.Resolve(mask.shape[mask.shape.size() - 2]);
  if (queries.is(1) || dims.Equal(queries, query.shape[2])) return "";
  if (dims.NotEqual(queries, query.shape[2]) && dims.NotEqual(queries, Dim::Of(1))) return "";
  return fmt::format("the mask's number of queries {} is 1 or the attention's {}", dims.ToString(queries),
                     dims.ToString(query.shape[2]));
}

// Numbered from the end. Keys need no look: the product with v would fail.
absl::Status CheckMaskShape(const FunctionContext& context, const Value& mask, const Fact& q) {
  const Fact& fact = context.facts->Of(&mask);
  if (!fact.has_rank) {
    return Refuse(fmt::format("the shape of the mask {} is not known", ValueName(mask)), "shape-not-known");
  }
  if (fact.rank() > 4) {
    return Refuse(fmt::format("the mask {} has {} dimensions, at most 4", ValueName(mask), fact.rank()), "mask-rank");
  }
  const DimTable& dims = *context.dims;
  if (fact.rank() == 4 && dims.NotEqual(fact.shape[0], q.shape[0]) && !fact.shape[0].is(1)) {
    return Refuse(
        fmt::format("the mask's batch {} is not the query's {}", dims.ToString(fact.shape[0]), dims.ToString(q.shape[0])),
        "mask-shape");
  }
  if (std::string batch = AssumedOfBatch(dims, fact, q); !batch.empty()) Assume(context, std::move(batch));
  if (fact.rank() < 2) return absl::OkStatus();
  const Dim queries = fact.shape[fact.rank() - 2];
  if (dims.NotEqual(queries, q.shape[2]) && dims.NotEqual(queries, Dim::Of(1))) {
    return Refuse(fmt::format("the mask has {} queries and the attention {}", dims.ToString(queries), dims.ToString(q.shape[2])),
                  "mask-shape");
  }
  if (std::string rows = AssumedOfQueries(dims, fact, q); !rows.empty()) Assume(context, std::move(rows));
  return absl::OkStatus();
}

// Expand broadcasts both ways, so 1 stands for a dim that is right already.
Term ExpandedToScores(const FunctionContext& context, Term mask, const Fact* fact, const Term& heads, const Value* query,
                      const Value* key) {
  const auto dim = [&](const Value* value, int from_the_end) {
    const Dim wanted = context.facts->Of(value).shape[2];
    const bool right = fact != nullptr && fact->rank() >= from_the_end &&
                       context.dims->Equal(fact->shape[static_cast<size_t>(fact->rank() - from_the_end)], wanted);
    return right ? Term::Integer(1) : SharedDim(context, value, 2);
  };
  std::vector<Term> dims;
  if (fact == nullptr || fact->rank() > 2 || IntegerOf(heads) != 1) dims = {Term::Integer(1), heads};
  dims.push_back(dim(query, 2));
  dims.push_back(dim(key, 1));
  return build::Op("Expand", {std::move(mask), build::Vector(dims)});
}

absl::Status CheckMaskFits(const FunctionContext& context, const Value* mask, const Value* query) {
  const Fact& fact = context.facts->Of(mask);
  const Fact& q = context.facts->Of(query);
  if (!fact.has_rank || fact.rank() > 4 || q.rank() != 4) {
    return Refuse(fmt::format("the shape of the mask {} is not known", ValueName(*mask)), "shape-not-known");
  }
  for (int from_the_end = 2; from_the_end <= fact.rank(); ++from_the_end) {
    const Dim dim = fact.shape[static_cast<size_t>(fact.rank() - from_the_end)];
    const Dim wanted = q.shape[static_cast<size_t>(4 - from_the_end)];
    if (dim.is(1) || (dim.known() && wanted.known() && context.dims->Equal(dim, wanted))) continue;
    return Refuse(fmt::format("the mask {} may enlarge the scores: {} is not proved to be 1 or {}", ValueName(*mask),
                              context.dims->ToString(dim), context.dims->ToString(wanted)),
                  "mask-shape");
  }
  return absl::OkStatus();
}

bool OnlyMasks(const FunctionContext& context, const Value* mask) {
  if (context.facts->Of(mask).type == DataType::kBool) return true;
  const PossibleValues set = ValuesOf(context, mask);
  return set.known &&
         std::all_of(set.values.begin(), set.values.end(), [](double number) { return number == 0 || number <= kMaskThreshold; });
}

absl::StatusOr<Term> ExplicitMask(const FunctionContext& context, const Value* mask, const Value* query, const Value* key) {
  ASSIGN_OR_RETURN(MaskSource source, ReadMask(context, mask));
  return ExplicitMaskOf(context, source, query, key);
}

absl::StatusOr<Term> ExplicitDrop(const FunctionContext& context, const Value* drop, const Value* query, const Value* key) {
  return ExplicitMaskOf(context, {drop, Polarity::kTrueMasks}, query, key);
}

}  // namespace ascend_fuse
