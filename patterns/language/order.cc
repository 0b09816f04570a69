#include "patterns/language/order.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"

namespace ascend_fuse {
namespace {

// Definitions may be recursive through an operator.
constexpr int kMaximumSizeDepth = 20;
constexpr int kMaximumRootDepth = 50;

// Sizes of patterns, that of each definition computed once for each depth at which it can stand.
class Sizes {
 public:
  explicit Sizes(const std::vector<Definition>& definitions)
      : definitions_(definitions), known_(definitions.size() * (kMaximumSizeDepth + 2), -1) {}

  int Of(const Pattern& pattern, int depth) {
    if (depth > kMaximumSizeDepth) return 0;
    int size = 0;
    for (const auto& argument : pattern.arguments) {
      const int part = Of(*argument, depth + 1);
      size = pattern.kind == Pattern::Kind::kAlternatives ? std::max(size, part) : size + part;
    }
    if (pattern.kind == Pattern::Kind::kOperator) return size + 1;
    if (pattern.kind != Pattern::Kind::kDefinition) return size;
    return size + OfDefinition(static_cast<size_t>(pattern.definition), depth + 1);
  }

 private:
  int OfDefinition(size_t index, int depth) {
    if (depth > kMaximumSizeDepth) return 0;
    int& known = known_[index * (kMaximumSizeDepth + 2) + static_cast<size_t>(depth)];
    if (known >= 0) return known;
    int largest = 0;
    for (const auto& alternative : definitions_[index].alternatives) {
      largest = std::max(largest, Of(*alternative.pattern, depth));
    }
    return known = largest;
  }

  const std::vector<Definition>& definitions_;
  std::vector<int> known_;
};

void CollectRoots(const std::vector<Definition>& definitions, const Rule& rule, const Pattern& pattern, int depth,
                  std::vector<std::string>* roots) {
  if (depth > kMaximumRootDepth) return;
  auto collect = [&](const Pattern& inner) { CollectRoots(definitions, rule, inner, depth + 1, roots); };
  switch (pattern.kind) {
    case Pattern::Kind::kOperator:
      roots->push_back(pattern.domain.empty() ? pattern.name : pattern.domain + "." + pattern.name);
      break;
    case Pattern::Kind::kAlternatives:
      for (const auto& argument : pattern.arguments) collect(*argument);
      break;
    case Pattern::Kind::kDefinition: {
      const Definition& definition = definitions[static_cast<size_t>(pattern.definition)];
      for (const auto& alternative : definition.alternatives) {
        if (alternative.pattern->kind != Pattern::Kind::kVariable) {
          collect(*alternative.pattern);
          continue;
        }
        for (size_t i = 0; i < definition.parameters.size(); ++i) {
          if (definition.parameters[i].name == alternative.pattern->name) collect(*pattern.arguments[i]);
        }
      }
      if (pattern.optional) collect(*pattern.arguments[0]);
      break;
    }
    case Pattern::Kind::kVariable:
      if (pattern.slot >= 0 && rule.scope.statement[static_cast<size_t>(pattern.slot)] >= 0) {
        collect(*rule.match[static_cast<size_t>(rule.scope.statement[static_cast<size_t>(pattern.slot)])].pattern);
      }
      break;
    default:
      break;
  }
}

}  // namespace

absl::Status OrderRules(const std::vector<Definition>& definitions, std::vector<Rule>* rules) {
  Sizes sizes(definitions);
  std::vector<Rule>& all = *rules;
  absl::flat_hash_map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < all.size(); ++i) {
    by_name[all[i].name] = i;
    if (all[i].size >= 0) continue;
    all[i].size = 0;
    for (const MatchStatement& statement : all[i].match) all[i].size += sizes.Of(*statement.pattern, 0);
  }
  // Rules are large: their places are sorted, and each is moved once.
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(-all[a].size, all[a].place) < std::pair(-all[b].size, all[b].place); });
  for (size_t round = 0; round < all.size(); ++round) {
    bool moved = false;
    for (size_t i = 0; i < order.size(); ++i) {
      const Rule& rule = all[order[i]];
      if (rule.preferred_over.empty()) continue;
      const auto other = by_name.find(rule.preferred_over);
      if (other == by_name.end()) {
        return absl::InvalidArgumentError(
            fmt::format("{}: preferred_over: there is no rule '{}'", rule.position.ToString(), rule.preferred_over));
      }
      const auto to = std::find(order.begin(), order.end(), other->second);
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(i);
      if (to >= from) continue;
      std::rotate(to, from, from + 1);
      moved = true;
    }
    if (!moved) break;
  }
  std::vector<Rule> sorted;
  sorted.reserve(all.size());
  for (const size_t place : order) sorted.push_back(std::move(all[place]));
  all = std::move(sorted);
  return absl::OkStatus();
}

std::vector<std::string> OperatorsOf(const std::vector<Definition>& definitions, const Rule& rule, const std::string& name) {
  std::vector<std::string> found;
  const size_t slot = static_cast<size_t>(rule.scope.Find(name));
  CollectRoots(definitions, rule, *rule.match[static_cast<size_t>(rule.scope.statement[slot])].pattern, 0, &found);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace ascend_fuse
