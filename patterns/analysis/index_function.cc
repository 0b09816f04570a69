#include "patterns/analysis/index_function.h"

#include <algorithm>

#include "fmt/format.h"
#include "ir/constant_tensor.h"

namespace ascend_fuse {
namespace {

constexpr int kMaximumDepth = 400;
constexpr size_t kMaximumSentences = 64;
constexpr size_t kMaximumReads = 3;

}  // namespace

std::optional<InputAssumption::Kind> AssumptionFromName(std::string_view name) {
  using Kind = InputAssumption::Kind;
  static constexpr std::pair<std::string_view, Kind> kWords[] = {
      {"ones", Kind::kOnes}, {"binary", Kind::kBinary}, {"left_padded", Kind::kLeftPadded}, {"right_padded", Kind::kRightPadded}};
  std::string written(name);
  std::replace(written.begin(), written.end(), '-', '_');
  for (const auto& [word, kind] : kWords) {
    if (word == written) return kind;
  }
  return std::nullopt;
}

IndexFunctions::IndexFunctions(const Model& model, const Facts& facts, DimTable* dims, const ValueNumbering& numbering,
                               absl::Span<const InputAssumption> assumptions)
    : facts_(facts),
      dims_(*dims),
      numbering_(numbering),
      assumptions_(assumptions.begin(), assumptions.end()),
      sums_(dims),
      decisions_(&sums_),
      tables_(model, facts, numbering),
      leaves_(dims, &decisions_, [this](IndexSum sum) { return AsBits(sum, &used_); }) {}

Decision IndexFunctions::At(const Value* value, const Indices& indices, uint64_t* assumptions) {
  used_ = 0;
  const Decision decision = At(value, indices);
  *assumptions |= used_;
  return decision;
}

std::optional<int> IndexFunctions::AssumptionBit(const std::string& sentence) {
  const auto found = std::find(sentences_.begin(), sentences_.end(), sentence);
  if (found != sentences_.end()) return static_cast<int>(found - sentences_.begin());
  if (sentences_.size() == kMaximumSentences) return std::nullopt;
  sentences_.push_back(sentence);
  return static_cast<int>(sentences_.size() - 1);
}

const InputAssumption* IndexFunctions::Assumed(const Value* value) const {
  if (!value->is_graph_input || value->graph->owner() != nullptr) return nullptr;
  for (const InputAssumption& assumption : assumptions_) {
    if (assumption.input == ValueName(*value)) return &assumption;
  }
  return nullptr;
}

bool IndexFunctions::Complete(const Indices& indices) {
  return std::find(indices.begin(), indices.end(), kNoSum) == indices.end();
}

Decision IndexFunctions::At(const Value* value, const Indices& indices) {
  if (value == nullptr || decisions_.exhausted() || !Complete(indices)) return kNoDecision;
  while (const Value* source = numbering_.Source(value)) value = source;
  const std::pair key(numbering_.Number(value), indices);
  if (const auto known = elements_.find(key); known != elements_.end()) {
    used_ |= known->second.assumptions;
    return known->second.decision;
  }
  const uint64_t outer = used_;
  used_ = 0;
  ++depth_;
  const Decision decision = Compute(value, indices);
  --depth_;
  if (decision != kNoDecision) elements_[key] = {decision, used_};
  used_ |= outer;
  return decision;
}

Decision IndexFunctions::Compute(const Value* value, const Indices& indices) {
  const Fact& fact = FactOf(value);
  if (!fact.has_rank || static_cast<size_t>(fact.rank()) != indices.size()) return kNoDecision;
  Decision decision = FromFacts(value, indices);
  if (decision == kNoDecision) decision = FromTable(value, indices);
  if (decision == kNoDecision && depth_ < kMaximumDepth) decision = Follow(value, indices);
  return decision != kNoDecision || decisions_.exhausted() ? decision : ReadElement(value, indices);
}

Decision IndexFunctions::Follow(const Value* value, const Indices& indices) {
  const Node* node = value->producer;
  if (node == nullptr || node->subgraph_count != 0) return kNoDecision;
  if (const Movement* movement = facts_.MovementOf(value); movement != nullptr) {
    return Move(*movement, *node, value->output_index, indices);
  }
  if (node->domain != NameId::kEmpty) return kNoDecision;
  const Handler handler = HandlerOf(OpType(*node));
  return handler == nullptr ? kNoDecision : (this->*handler)(*node, value->output_index, indices);
}

Decision IndexFunctions::ReadElement(const Value* value, const Indices& indices) {
  const DataType type = FactOf(value).type;
  if (const InputAssumption* assumed = Assumed(value); assumed != nullptr) {
    const bool ones = assumed->kind == InputAssumption::Kind::kOnes;
    const auto bit = AssumptionBit(ones ? fmt::format("the input {} holds only ones (--assume)", ValueName(*value))
                                        : fmt::format("the input {} holds only 0 and 1 (--assume)", ValueName(*value)));
    if (bit.has_value() && (ones || type != DataType::kBool)) {
      used_ |= uint64_t{1} << *bit;
      const Decision one = leaves_.Number(type, 1);
      return ones ? one : decisions_.If(decisions_.IsZero(sums_.Read(value, indices)), leaves_.Number(type, 0), one);
    }
  }
  const IndexSum read = sums_.Read(value, indices);
  if (type == DataType::kBool) return decisions_.Not(decisions_.IsZero(read));
  if (IsInteger(type)) return decisions_.OfSum(read);
  if (!IsFloat(type)) return kNoDecision;
  Leaf leaf;
  leaf.kind = Leaf::Kind::kRead;
  leaf.reads = {read};
  return decisions_.OfLeaf(std::move(leaf));
}

Decision IndexFunctions::FromFacts(const Value* value, const Indices& indices) {
  const Fact& fact = FactOf(value);
  if (fact.is_splat) return leaves_.Number(fact.type, fact.splat);
  if (fact.elements == nullptr) return kNoDecision;
  int64_t place = 0;
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const auto index = sums_.NumberOf(indices[axis]);
    const Dim extent = fact.shape[axis];
    if (!index.has_value() || !extent.is_number() || *index < 0 || *index >= extent.number()) return kNoDecision;
    place = place * extent.number() + *index;
  }
  const auto at = static_cast<size_t>(place);
  if (at < fact.elements->floats.size()) return leaves_.Number(fact.type, fact.elements->floats[at]);
  if (at >= fact.elements->integers.size() || !fact.elements->integers[at].known()) return kNoDecision;
  const Dim element = fact.elements->integers[at];
  if (element.is_number()) return leaves_.Number(fact.type, static_cast<double>(element.number()));
  return fact.type == DataType::kBool ? kNoDecision : decisions_.OfSum(sums_.Of(element));
}

Decision IndexFunctions::FromTable(const Value* value, const Indices& indices) {
  const Fact& fact = FactOf(value);
  if (fact.elements == nullptr && !ConstantTensor(*value).has_value()) return kNoDecision;
  const TableForm& form = tables_.Of(value);
  if (!form.known) return kNoDecision;
  IndexSum sum = sums_.Of(0);
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    sum = sums_.Add(sum, sums_.Scale(indices[axis], Dim::Of(form.coefficients[axis])));
  }
  if (form.affine) {
    sum = sums_.Add(sum, sums_.Of(static_cast<int64_t>(form.start)));
    if (const auto number = sums_.NumberOf(sum)) return leaves_.Number(fact.type, static_cast<double>(*number));
    if (fact.type == DataType::kBool) return decisions_.Not(decisions_.IsZero(sum));
    return IsFloat(fact.type) ? leaves_.SafeSum(fact.type, sum) : decisions_.OfSum(sum);
  }
  Decision decision = leaves_.Number(fact.type, form.steps.back().second);
  for (size_t i = form.steps.size() - 1; i-- > 0;) {
    const Decision below = decisions_.AtMostZero(sums_.Sub(sum, sums_.Of(form.steps[i].first)));
    decision = decisions_.If(below, leaves_.Number(fact.type, form.steps[i].second), decision);
  }
  return decision;
}

IndexSum IndexFunctions::SumAt(const Value* value, const Indices& indices) {
  if (value == nullptr) return kNoSum;
  const Decision decision = At(value, indices);
  if (decision == kNoDecision || !decisions_.IsLeaf(decision)) return kNoSum;
  return leaves_.SumOf(decisions_.LeafOf(decision));
}

IndexSum IndexFunctions::ScalarOf(const Value* value) {
  if (value == nullptr || !FactOf(value).has_rank) return kNoSum;
  return SumAt(value, Indices(static_cast<size_t>(FactOf(value).rank()), sums_.Of(0)));
}

IndexFunctions::Indices IndexFunctions::OperandIndices(const Fact& operand, const Fact& result, const Indices& indices) {
  if (!operand.has_rank || !result.has_rank || operand.rank() > result.rank()) return {kNoSum};
  Indices own;
  for (int axis = 0; axis < operand.rank(); ++axis) {
    const auto behind = static_cast<size_t>(axis + result.rank() - operand.rank());
    own.push_back(BroadcastIndex(indices[behind], operand.shape[static_cast<size_t>(axis)], result.shape[behind]));
  }
  return own;
}

IndexSum IndexFunctions::BroadcastIndex(IndexSum index, Dim extent, Dim wanted) {
  if (!extent.known()) return kNoSum;
  if (dims_.Equal(extent, Dim::Of(1)) || (wanted.known() && dims_.Equal(wanted, Dim::Of(1)))) return sums_.Of(0);
  if ((wanted.known() && dims_.Equal(extent, wanted)) || dims_.AtLeast(extent, Dim::Of(2))) return index;
  return sums_.Broadcast(index, extent);
}

IndexSum IndexFunctions::FromTheEnd(IndexSum index, Dim extent) {
  if (index == kNoSum || sums_.AtLeast(index, 0)) return index;
  return sums_.AtMost(index, -1) ? sums_.Add(index, sums_.Of(extent)) : kNoSum;
}

Decision IndexFunctions::AsBits(IndexSum sum, uint64_t* assumptions) {
  if (sum == kNoSum) return kNoDecision;
  const std::vector<IndexTable::Term> terms = sums_[sum].terms;
  if (terms.empty()) return decisions_.OfSum(sum);
  if (terms.size() > kMaximumReads) return kNoDecision;
  const IndexAtom atom = sums_.Atom(terms[0].atom);
  if (atom.kind != IndexAtom::Kind::kRead || !atom.value->is_graph_input || atom.value->graph->owner() != nullptr ||
      !IsInteger(FactOf(atom.value).type)) {
    return kNoDecision;
  }
  const auto bit = AssumptionBit(fmt::format("the integer input {} holds only 0 and 1, as a mask does", ValueName(*atom.value)));
  if (!bit.has_value()) return kNoDecision;
  *assumptions |= uint64_t{1} << *bit;
  const IndexSum read = sums_.Read(atom.value, atom.indices);
  const IndexSum rest = sums_.Sub(sum, sums_.Scale(read, terms[0].coefficient));
  return decisions_.If(decisions_.IsZero(read), AsBits(rest, assumptions),
                       AsBits(sums_.Add(rest, sums_.Of(terms[0].coefficient)), assumptions));
}

IndexFunctions::Handler IndexFunctions::HandlerOf(std::string_view op) {
  using F = IndexFunctions;
  static const auto* const handlers = new absl::flat_hash_map<std::string_view, Handler>({
      {"Trilu", &F::Trilu},  {"Range", &F::Range},        {"CumSum", &F::CumSum},  {"Where", &F::Where},
      {"Cast", &F::Cast},    {"CastLike", &F::Cast},      {"Not", &F::Unary},      {"Neg", &F::Unary},
      {"Abs", &F::Unary},    {"Log", &F::Unary},          {"IsNaN", &F::Unary},    {"IsInf", &F::Unary},
      {"And", &F::Binary},   {"Or", &F::Binary},          {"Xor", &F::Binary},     {"Equal", &F::Binary},
      {"Less", &F::Binary},  {"LessOrEqual", &F::Binary}, {"Greater", &F::Binary}, {"GreaterOrEqual", &F::Binary},
      {"Add", &F::Variadic}, {"Sub", &F::Variadic},       {"Mul", &F::Variadic},   {"Div", &F::Variadic},
      {"Mod", &F::Variadic}, {"Sum", &F::Variadic},       {"Max", &F::Variadic},   {"Min", &F::Variadic},
  });
  const auto found = handlers->find(op);
  return found == handlers->end() ? nullptr : found->second;
}

}  // namespace ascend_fuse
