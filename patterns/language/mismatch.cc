#include "patterns/language/mismatch.h"

#include <algorithm>
#include <vector>

#include "patterns/language/matcher.h"

namespace ascend_fuse {
namespace {

bool TakesVariables(const Pattern& pattern) {
  return std::all_of(pattern.arguments.begin(), pattern.arguments.end(),
                     [](const auto& argument) { return argument->kind == Pattern::Kind::kVariable; });
}

// Whether another alternative is about this operator with the same operands, which says better what is wrong with the node.
bool IsSpelledOtherwise(const Definition& definition, const Pattern& pattern, std::string_view op_type) {
  return TakesVariables(pattern) &&
         std::any_of(definition.alternatives.begin(), definition.alternatives.end(), [&](const auto& alternative) {
           const Pattern& other = *alternative.pattern;
           return other.kind == Pattern::Kind::kOperator && other.name == op_type && TakesVariables(other);
         });
}

}  // namespace

std::optional<Match> MatchButOne(Matcher& matcher, const Rule& rule, const Value* root, Mismatch* mismatch) {
  std::optional<Match> match;
  // A wrong number of the right operator says more than another operator.
  for (const bool operators : {false, true}) {
    *mismatch = Mismatch();
    Pardon pardon(operators, mismatch);
    matcher.SetPardon(&pardon);
    match = matcher.Run(rule, root);
    matcher.SetPardon(nullptr);
    if (match.has_value()) break;
  }
  if (match.has_value() && mismatch->node != nullptr) std::erase(match->covered, mismatch->node);
  if (match.has_value()) mismatch->evidence += static_cast<int>(match->covered.size());
  return match;
}

bool Pardon::Take(const SourcePosition& position, const Node* node, absl::FunctionRef<std::string()> expected,
                  absl::FunctionRef<std::string()> found, Next next) {
  if (taken_ || node == nullptr) return false;
  taken_ = true;
  if (!next()) {
    taken_ = false;
    return false;
  }
  mismatch_ = {node, position, expected(), found(), evidence_};
  return true;
}

bool Pardon::MayBe(const Pattern& pattern, const Node& node, const Definition* spelled) const {
  if (taken_ || !operators_ || pattern.arguments.empty() || node.subgraph_count > 0) return false;
  if (node.input_count < pattern.arguments.size()) return false;
  if (node.input_count > pattern.arguments.size() && pattern.attributes.empty()) return false;
  return spelled == nullptr || !IsSpelledOtherwise(*spelled, pattern, OpType(node));
}

bool Pardon::TakeOperator(const Pattern& pattern, const Node& node, const Definition* spelled, Next next) {
  return MayBe(pattern, node, spelled) &&
         Take(pattern.position, &node, [&] { return pattern.name; }, [&] { return std::string(OpType(node)); }, next);
}

bool Pardon::Evident(Next next) {
  ++evidence_;
  if (next()) return true;
  --evidence_;
  return false;
}

}  // namespace ascend_fuse
