#include "patterns/analysis/mask_form.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/add_once.h"
#include "patterns/analysis/mask.h"

namespace ascend_fuse {
namespace {

using Kind = MaskClause::Kind;

// A mask of transformers takes some hundred steps.
constexpr int64_t kMaximumSteps = 100'000;
constexpr int kMaximumPaths = 2000;
constexpr size_t kMaximumTests = 24;
constexpr int kScoreAxes = 4;
constexpr int kQueryAxis = 2;
constexpr int kKeyAxis = 3;

Literal Opposite(Literal literal) { return {literal.test, !literal.holds}; }

}  // namespace

const MaskClause* MaskForm::Find(Kind kind) const {
  const auto found = std::find_if(clauses.begin(), clauses.end(), [&](const MaskClause& clause) { return clause.kind == kind; });
  return found == clauses.end() ? nullptr : &*found;
}

std::string MaskForms::KeyOf(absl::Span<const Value* const> masks, const Scores& scores, Lengths lengths) const {
  std::string key = lengths == Lengths::kAssumed ? "assumed " : "";
  for (const Value* mask : masks) key += fmt::format("{},", numbering_.Number(mask));
  for (Dim dim : scores) {
    const Dim resolved = dims_.Resolve(dim);
    key += fmt::format(" {}{}", resolved.is_number() ? "" : resolved.known() ? "e" : "?", resolved.id());
  }
  return key;
}

const MaskForm& MaskForms::Of(const Value* mask, const Scores& scores, Lengths lengths) {
  const auto [entry, inserted] = forms_.try_emplace(KeyOf({mask}, scores, lengths));
  if (inserted) entry->second = std::make_unique<MaskForm>(Find(mask, scores, lengths));
  return *entry->second;
}

const MaskForm& MaskForms::Described(absl::Span<const Value* const> masks, const Scores& scores) {
  const MaskForm& proved = Together(masks, scores);
  const bool said = proved.understood && proved.Find(Kind::kAny) == nullptr;
  // Of one query an edge is a matter of the key alone, as padding is; which of them it is may follow from the lengths.
  if (said && proved.Find(Kind::kKeys) == nullptr) return proved;
  const MaskForm& assumed = Together(masks, scores, Lengths::kAssumed);
  if (!assumed.understood || assumed.Find(Kind::kAny) != nullptr) return proved;
  const bool same = std::equal(proved.clauses.begin(), proved.clauses.end(), assumed.clauses.begin(), assumed.clauses.end(),
                               [](const MaskClause& a, const MaskClause& b) { return a.kind == b.kind; });
  return said && same ? proved : assumed;
}

const MaskForm& MaskForms::Together(absl::Span<const Value* const> masks, const Scores& scores, Lengths lengths) {
  if (masks.size() == 1) return Of(masks[0], scores, lengths);
  std::string key = KeyOf(masks, scores, lengths);
  const auto known = forms_.find(key);
  if (known != forms_.end()) return *known->second;
  auto joined = std::make_unique<MaskForm>(Join(masks, scores, lengths));  // which adds the forms of the single ones
  return *(forms_[std::move(key)] = std::move(joined));
}

MaskForm MaskForms::Find(const Value* mask, const Scores& scores, Lengths lengths) {
  MaskForm form;
  const Fact& fact = facts_.Of(mask);
  if (!fact.has_rank || fact.rank() > kScoreAxes) return form;
  IndexFunctions::Indices indices;
  for (int axis = 0; axis < fact.rank(); ++axis) {
    const Dim extent = fact.shape[static_cast<size_t>(axis)];
    const int of_scores = axis + kScoreAxes - fact.rank();
    if (!extent.known()) return form;
    const Dim of_axis = scores[static_cast<size_t>(of_scores)];
    const bool one = dims_.Equal(extent, Dim::Of(1));
    const IndexSum position = functions_.sums().Position(of_scores, one || !of_axis.known() ? extent : of_axis);
    bool whole = one || !of_axis.known() || dims_.Equal(extent, of_axis) || dims_.AtLeast(extent, Dim::Of(2));
    if (!whole && lengths == Lengths::kAssumed && (of_scores == kQueryAxis || of_scores == kKeyAxis)) {
      AddOnce(fmt::format("`{}`, the length of {}, is `{}`, the number of {}, and no 1 that is broadcast", dims_.ToString(extent),
                          ValueName(*mask), dims_.ToString(of_axis), of_scores == kKeyAxis ? "keys" : "queries"),
              &form.assumptions);
      whole = true;
    }
    indices.push_back(whole ? position : functions_.sums().Broadcast(position, extent));
    if (of_scores == kQueryAxis) form.by_query = functions_.sums().NumberOf(position) != 0;
  }
  DecisionTable& decisions = functions_.decisions();
  decisions.SetBudget(kMaximumSteps);
  uint64_t assumptions = 0;
  Decision allowed = functions_.At(mask, indices, &assumptions);
  if (allowed != kNoDecision && fact.type != DataType::kBool) {
    std::vector<Literal> before;
    paths_ = kMaximumPaths;
    allowed = Allowed(Settle(allowed, &before, &assumptions), &form.bias);
  }
  if (allowed == kNoDecision || decisions.TestsOf(allowed).size() > kMaximumTests) return form;
  for (int bit = 0; bit < 64; ++bit) {
    if ((assumptions >> bit & 1) != 0) form.assumptions.push_back(functions_.Sentence(bit));
  }
  FindClauses(allowed, &form);
  return form;
}

MaskForm MaskForms::Join(absl::Span<const Value* const> masks, const Scores& scores, Lengths lengths) {
  MaskForm form;
  DecisionTable& decisions = functions_.decisions();
  decisions.SetBudget(kMaximumSteps);
  Decision allowed = decisions.OfBool(true);
  for (const Value* mask : masks) {
    const MaskForm& part = Of(mask, scores, lengths);
    if (!part.understood) return part;
    decisions.SetBudget(kMaximumSteps);
    for (const MaskClause& clause : part.clauses) allowed = decisions.And(allowed, clause.condition);
    form.bias = form.bias || part.bias;
    form.nothing = form.nothing || part.nothing;
    for (const std::string& sentence : part.assumptions) AddOnce(sentence, &form.assumptions);
    form.by_query = form.by_query || part.by_query;
  }
  if (allowed != kNoDecision && !form.nothing) FindClauses(allowed, &form);
  return form;
}

Decision MaskForms::Settle(Decision added, std::vector<Literal>* before, uint64_t* assumptions) {
  DecisionTable& decisions = functions_.decisions();
  if (added == kNoDecision || --paths_ < 0) return kNoDecision;
  if (decisions.IsLeaf(added)) {
    const Leaf leaf = decisions.LeafOf(added);
    if (leaf.kind != Leaf::Kind::kSum || functions_.sums().DimOf(leaf.sum).known()) return added;
    for (const Literal& literal : *before) {
      const Test test = decisions.TestOf(literal.test);
      if (test.kind != Test::Kind::kZero || !literal.holds) continue;
      const IndexSum opposite = functions_.sums().Scale(test.sum, Dim::Of(-1));
      if (leaf.sum == test.sum || leaf.sum == opposite) return decisions.OfReal(0);
    }
    const Decision bits = functions_.AsBits(leaf.sum, assumptions);
    return bits == kNoDecision ? added : bits;
  }
  const Literal first = decisions.First(added);
  Decision parts[2];
  for (bool holds : {false, true}) {
    before->push_back({first.test, holds});
    parts[holds] = Settle(decisions.Branch(added, holds), before, assumptions);
    before->pop_back();
  }
  return decisions.If(OfLiteral(first), parts[1], parts[0]);
}

Decision MaskForms::Allowed(Decision added, bool* bias) {
  DecisionTable& decisions = functions_.decisions();
  return decisions.Map(added, [&](const Leaf& leaf) {
    double number = leaf.real;
    if (leaf.kind == Leaf::Kind::kSum) {
      const auto whole = functions_.sums().NumberOf(leaf.sum);
      number = static_cast<double>(whole.value_or(1));
    }
    const bool masked = number <= kMaskThreshold;
    if (!masked && (number != 0 || leaf.kind == Leaf::Kind::kRead)) *bias = true;
    return decisions.OfBool(!masked);
  });
}

Decision MaskForms::OfLiteral(Literal literal) {
  DecisionTable& decisions = functions_.decisions();
  const Test test = decisions.TestOf(literal.test);
  const Decision holds = test.kind == Test::Kind::kZero ? decisions.IsZero(test.sum) : decisions.AtMostZero(test.sum);
  return literal.holds ? holds : decisions.Not(holds);
}

// Takes out of `rest` every literal that it implies.
void MaskForms::Reduce(Decision* rest, std::vector<Literal>* literals) {
  DecisionTable& decisions = functions_.decisions();
  bool changed = true;
  while (changed) {
    changed = false;
    for (uint32_t test : decisions.TestsOf(*rest)) {
      for (bool holds : {true, false}) {
        const Literal literal = {test, holds};
        const bool known = std::any_of(literals->begin(), literals->end(),
                                       [&](Literal other) { return decisions.Contradict(other, Opposite(literal)); });
        std::vector<Literal> otherwise = *literals;
        otherwise.push_back(Opposite(literal));
        if (!known && !decisions.NeverHolds(decisions.Given(*rest, Opposite(literal)), otherwise)) continue;
        const Decision without = decisions.Given(*rest, literal);
        if (without == kNoDecision) return;
        *rest = without;
        if (!known) literals->push_back(literal);
        changed = true;
        break;
      }
      if (changed) break;
    }
  }
}

void MaskForms::FindClauses(Decision allowed, MaskForm* form) {
  DecisionTable& decisions = functions_.decisions();
  std::vector<Literal> literals;
  Decision rest = allowed;
  if (decisions.NeverHolds(rest, {})) {
    form->understood = true;
    form->nothing = true;
    return;
  }
  Reduce(&rest, &literals);
  // What another one implies is said already.
  for (size_t i = 0; i < literals.size();) {
    const bool implied = std::any_of(literals.begin(), literals.end(), [&](const Literal& other) {
      return other.test != literals[i].test && decisions.Contradict(other, Opposite(literals[i]));
    });
    if (implied) {
      literals.erase(literals.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  std::vector<Decision> conditions;
  for (const Literal& literal : literals) conditions.push_back(OfLiteral(literal));
  if (rest != decisions.OfBool(true)) conditions.push_back(rest);
  for (Decision condition : conditions) {
    if (condition == kNoDecision) return;  // the work was too much
  }
  form->understood = true;
  for (Decision condition : conditions) {
    form->clauses.push_back(Classify(condition, !form->by_query));
    if (form->clauses.back().kind != Kind::kKeys) continue;
    for (uint32_t test : decisions.TestsOf(condition)) NameReads(decisions.TestOf(test).sum, &form->padding_inputs);
  }
  std::stable_sort(form->clauses.begin(), form->clauses.end(),
                   [](const MaskClause& a, const MaskClause& b) { return a.kind < b.kind; });
}

void MaskForms::NameReads(IndexSum sum, std::vector<std::string>* names) const {
  const IndexTable& sums = functions_.sums();
  for (const IndexTable::Term& term : sums[sum].terms) {
    const IndexAtom& atom = sums.Atom(term.atom);
    if (atom.kind == IndexAtom::Kind::kRead) {
      AddOnce(std::string(ValueName(*atom.value)), names);
    } else {
      for (IndexSum index : atom.indices) NameReads(index, names);
    }
  }
}

int MaskForms::FactorOf(IndexSum sum, int axis) const {
  const IndexTable& sums = functions_.sums();
  for (const IndexTable::Term& term : sums[sum].terms) {
    const IndexAtom& atom = sums.Atom(term.atom);
    if (atom.kind != IndexAtom::Kind::kPosition || atom.axis != axis) continue;
    return term.coefficient.is(1) ? 1 : term.coefficient.is(-1) ? -1 : 0;
  }
  return 0;
}

// (j - i + c) <= 0 or its opposite, without anything else in it.
bool MaskForms::IsEdge(Literal literal, bool one_query, MaskClause* clause) {
  const Test test = functions_.decisions().TestOf(literal.test);
  if (test.kind != Test::Kind::kAtMostZero) return false;
  IndexTable& sums = functions_.sums();
  // The same as sum <= 0.
  const IndexSum sum = literal.holds ? test.sum : sums.Sub(sums.Of(1), test.sum);
  if (sum == kNoSum) return false;
  const int key = FactorOf(sum, kKeyAxis);
  const bool alone = sums[sum].terms.size() == 1 && one_query;
  if (key == 0 || (!alone && (sums[sum].terms.size() != 2 || FactorOf(sum, kQueryAxis) != -key))) return false;
  clause->one_query = alone;
  const Dim constant = sums[sum].constant;
  clause->kind = key > 0 ? Kind::kUpTo : Kind::kFrom;
  clause->offset = key > 0 ? dims_.Sub(Dim::Of(0), constant) : constant;
  return clause->offset.known();
}

// (j + a) / n = (i + b) / n
bool MaskForms::IsChunk(Literal literal, MaskClause* clause) {
  const Test test = functions_.decisions().TestOf(literal.test);
  if (test.kind != Test::Kind::kZero || !literal.holds) return false;
  const IndexTable& sums = functions_.sums();
  const IndexTable::Sum& sum = sums[test.sum];
  if (sum.terms.size() != 2 || !sum.constant.is(0)) return false;
  const IndexAtom& a = sums.Atom(sum.terms[0].atom);
  const IndexAtom& b = sums.Atom(sum.terms[1].atom);
  const bool floors = a.kind == IndexAtom::Kind::kFloorDiv && b.kind == IndexAtom::Kind::kFloorDiv;
  const bool opposite = (sum.terms[0].coefficient.is(1) && sum.terms[1].coefficient.is(-1)) ||
                        (sum.terms[0].coefficient.is(-1) && sum.terms[1].coefficient.is(1));
  if (!floors || !opposite || !dims_.Equal(a.extent, b.extent)) return false;
  const auto moved = [&](IndexSum index, int axis) { return FactorOf(index, axis) == 1 && sums[index].terms.size() == 1; };
  const bool both = (moved(a.indices[0], kQueryAxis) && moved(b.indices[0], kKeyAxis)) ||
                    (moved(a.indices[0], kKeyAxis) && moved(b.indices[0], kQueryAxis));
  if (!both) return false;
  clause->kind = Kind::kChunk;
  clause->size = a.extent;
  return true;
}

// An edge, or key j lies before a number that is the same for all keys.
bool MaskForms::IsPrefix(Decision condition, bool one_query, MaskClause* clause) {
  DecisionTable& decisions = functions_.decisions();
  const std::vector<uint32_t> tests = decisions.TestsOf(condition);
  if (tests.size() != 2) return false;
  for (size_t edge = 0; edge < 2; ++edge) {
    const Test prefix = decisions.TestOf(tests[1 - edge]);
    const IndexTable::Sum& sum = functions_.sums()[prefix.sum];
    if (prefix.kind != Test::Kind::kAtMostZero || (sum.depends & (kOnQuery | kOnHead)) != 0) continue;
    const int factor = FactorOf(prefix.sum, kKeyAxis);
    const bool by_key_alone = std::all_of(sum.terms.begin(), sum.terms.end(), [&](const IndexTable::Term& term) {
      const IndexAtom& atom = functions_.sums().Atom(term.atom);
      return atom.kind == IndexAtom::Kind::kPosition || (atom.depends & kOnKey) == 0;
    });
    for (bool holds : {true, false}) {
      MaskClause found;
      const bool before = by_key_alone && ((holds && factor == 1) || (!holds && factor == -1));
      for (bool up : {true, false}) {
        const Literal first = {tests[edge], up};
        if (!before || !IsEdge(first, one_query, &found) || found.kind != Kind::kUpTo) continue;
        if (decisions.Or(OfLiteral(first), OfLiteral({tests[1 - edge], holds})) != condition) continue;
        *clause = found;
        clause->kind = Kind::kPrefix;
        return true;
      }
    }
  }
  return false;
}

MaskClause MaskForms::Classify(Decision condition, bool one_query) {
  DecisionTable& decisions = functions_.decisions();
  MaskClause clause;
  clause.condition = condition;
  const bool single = decisions.TestsOf(condition).size() == 1;
  const Literal literal = {decisions.First(condition).test,
                           single && decisions.Branch(condition, true) == decisions.OfBool(true)};
  if (single && (IsEdge(literal, one_query, &clause) || IsChunk(literal, &clause))) return clause;
  if (IsPrefix(condition, one_query, &clause)) {
    clause.condition = condition;
    return clause;
  }
  const uint8_t depends = decisions.DependsOn(condition);
  if ((depends & (kOnHead | kOnInnerAxis)) != 0) return clause;
  if ((depends & kOnQuery) == 0) {
    clause.kind = Kind::kKeys;
  } else if ((depends & kOnKey) == 0) {
    clause.kind = Kind::kQueries;
  }
  return clause;
}

MaskForms::Scores ScoresOf(const Facts& facts, const Value* query, const Value* key) {
  const Fact& q = facts.Of(query);
  const Fact& k = facts.Of(key);
  MaskForms::Scores scores;
  if (q.rank() == kScoreAxes) scores = {q.shape[0], q.shape[1], q.shape[2], Dim()};
  if (k.rank() == kScoreAxes) scores[kKeyAxis] = k.shape[kQueryAxis];
  return scores;
}

std::string MaskWord(const MaskForm& form, Dim queries, Dim keys, DimTable& dims) {
  if (!form.understood || form.nothing) return form.bias ? "explicit+bias" : "explicit";
  std::vector<std::string> words;
  const bool window =
      std::any_of(form.clauses.begin(), form.clauses.end(), [](const MaskClause& clause) { return clause.kind == Kind::kFrom; });
  const bool one_query = queries.known() && dims.Equal(queries, Dim::Of(1));
  for (const MaskClause& clause : form.clauses) {
    switch (clause.kind) {
      case Kind::kUpTo:
      case Kind::kFrom:
        if (clause.one_query && !one_query) {
          AddOnce(std::string("padding"), &words);
        } else if (window) {
          AddOnce(std::string("window"), &words);
        } else if (queries.known() && keys.known() && dims.Equal(clause.offset, dims.Sub(keys, queries))) {
          AddOnce(std::string("causal_bottom_right"), &words);
        } else {
          AddOnce(std::string(dims.Equal(clause.offset, Dim::Of(0)) ? "causal_top_left" : "causal"), &words);
        }
        break;
      case Kind::kChunk:
        AddOnce(std::string("chunk"), &words);
        break;
      case Kind::kPrefix:
        AddOnce(std::string("prefix"), &words);
        break;
      case Kind::kKeys:
        AddOnce(std::string("padding"), &words);
        break;
      case Kind::kQueries:
        AddOnce(std::string("query_padding"), &words);
        break;
      case Kind::kAny:
        AddOnce(std::string("explicit"), &words);
        break;
    }
  }
  if (form.bias) words.emplace_back("bias");
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, "+"));
}

}  // namespace ascend_fuse
