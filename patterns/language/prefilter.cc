#include "patterns/language/prefilter.h"

#include <deque>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"

namespace ascend_fuse {
namespace {

// Operators above each other that are looked at. With 5, every process makes 6,100 forms of the library instead of 2,300.
constexpr int kMaximumDepth = 4;
// Definitions inside each other between two operators.
constexpr int kMaximumNesting = 20;

}  // namespace

class Prefilter::Compiler {
 public:
  Compiler(const std::vector<Definition>& definitions, Prefilter* filter) : definitions_(definitions), filter_(*filter) {}

  // The form of what a rule calls `name`.
  Prefilter::FormId OfName(const Rule& rule, const std::string& name) {
    rule_ = &rule;
    scopes_.clear();
    known_.clear();
    const int statement = rule.scope.statement[rule.scope.Find(name)];
    return OfPattern(*rule.match[statement].pattern, nullptr, 0, 0);
  }

 private:
  using Branches = std::vector<Prefilter::Branch>;
  // A definition where it is used: what stands for its parameters.
  struct Use {
    const Pattern* call = nullptr;
    const Use* outer = nullptr;
    const std::vector<const Pattern*>* first = nullptr;  // FirstPlaces of the alternative at hand
  };

  Prefilter::FormId OfPattern(const Pattern& pattern, const Use* use, int depth, int nesting) {
    const std::tuple key(&pattern, use, depth);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    Branches branches;
    Prefilter::FormId id = Prefilter::kAnything;
    if (depth < kMaximumDepth && Collect(pattern, use, depth, nesting, &branches)) {
      id = static_cast<Prefilter::FormId>(filter_.forms_.size());
      Prefilter::Form& form = filter_.forms_.emplace_back();
      for (const Prefilter::Branch& branch : branches) {
        if (branch.operator_number != 0) form.operators |= uint64_t{1} << (branch.operator_number % 64);
        form.has_number = form.has_number || branch.operator_number == 0;
      }
      form.first_branch = static_cast<uint32_t>(filter_.branches_.size());
      form.branch_count = static_cast<uint32_t>(branches.size());
      filter_.branches_.insert(filter_.branches_.end(), branches.begin(), branches.end());
    }
    known_.emplace(key, id);
    return id;
  }

  // Adds what `pattern` can be; false when it can be anything.
  bool Collect(const Pattern& pattern, const Use* use, int depth, int nesting, Branches* branches) {
    if (nesting > kMaximumNesting) return false;
    switch (pattern.kind) {
      case Pattern::Kind::kWildcard:
      case Pattern::Kind::kAbsent:
        return false;
      case Pattern::Kind::kLiteral:
        branches->push_back({0, 0, 0, pattern.number});
        return true;
      case Pattern::Kind::kVariable:
        return CollectVariable(pattern, use, depth, nesting, branches);
      case Pattern::Kind::kAlternatives:
        for (const PatternPointer& argument : pattern.arguments) {
          if (!Collect(*argument, use, depth, nesting + 1, branches)) return false;
        }
        return true;
      case Pattern::Kind::kDefinition: {
        for (const Definition::Alternative& alternative : definitions_[pattern.definition].alternatives) {
          Use& inner = scopes_.emplace_back();
          inner.call = &pattern;
          inner.outer = use;
          inner.first = &FirstPlaces(alternative, pattern.arguments.size());
          if (!Collect(*alternative.pattern, &inner, depth, nesting + 1, branches)) return false;
        }
        return !pattern.optional || Collect(*pattern.arguments[0], use, depth, nesting + 1, branches);
      }
      case Pattern::Kind::kOperator: {
        std::vector<FormId> arguments;
        for (const PatternPointer& argument : pattern.arguments) {
          arguments.push_back(OfPattern(*argument, use, depth + 1, nesting + 1));
        }
        branches->push_back({pattern.operator_number, static_cast<uint16_t>(arguments.size()),
                             static_cast<uint32_t>(filter_.arguments_.size()), 0});
        filter_.arguments_.insert(filter_.arguments_.end(), arguments.begin(), arguments.end());
        return true;
      }
    }
    return false;
  }

  bool CollectVariable(const Pattern& pattern, const Use* use, int depth, int nesting, Branches* branches) {
    if (use != nullptr) {
      const auto slot = static_cast<size_t>(pattern.slot);
      if (slot >= use->first->size() || (*use->first)[slot] != &pattern) return false;
      return Collect(*use->call->arguments[slot], use->outer, depth, nesting + 1, branches);
    }
    // A line of match is looked for where its name is met first. Which place that is, is clear only if there is one.
    const int statement = rule_->scope.statement[pattern.slot];
    if (statement < 0) return false;
    int places = 0;
    for (const MatchStatement& line : rule_->match) places += Count(*line.pattern, pattern.slot);
    return places == 1 && Collect(*rule_->match[statement].pattern, nullptr, depth, nesting + 1, branches);
  }

  // By parameter: the one place in the alternative that is matched against the argument. Any other place is compared
  // with what was found there.
  const std::vector<const Pattern*>& FirstPlaces(const Definition::Alternative& alternative, size_t parameters) {
    auto [found, is_new] = first_places_.try_emplace(&alternative);
    for (size_t i = 0; is_new && i < parameters; ++i) {
      const Pattern* first = nullptr;
      FindFirst(*alternative.pattern, static_cast<int>(i), &first);
      found->second.push_back(first);
    }
    return found->second;
  }

  // How often a pattern names `slot` of its scope.
  static int Count(const Pattern& pattern, int slot) {
    int count = pattern.kind == Pattern::Kind::kVariable && pattern.slot == slot ? 1 : 0;
    for (const PatternPointer& argument : pattern.arguments) count += Count(*argument, slot);
    return count;
  }

  // The place that names `slot` and is matched before any other, if there is one. Arguments of operators are matched in
  // the order written, those of a definition in the order in which it uses them. True when no later place can be it.
  static bool FindFirst(const Pattern& pattern, int slot, const Pattern** first) {
    if (pattern.kind == Pattern::Kind::kVariable && pattern.slot == slot) {
      *first = &pattern;
      return true;
    }
    if (pattern.kind == Pattern::Kind::kDefinition) {
      const int count = Count(pattern, slot);
      if (count == 0) return false;
      if (count > 1) return true;
    }
    for (const PatternPointer& argument : pattern.arguments) {
      if (FindFirst(*argument, slot, first)) return true;
    }
    return false;
  }

  const std::vector<Definition>& definitions_;
  Prefilter& filter_;
  const Rule* rule_ = nullptr;
  std::deque<Use> scopes_;
  absl::node_hash_map<const Definition::Alternative*, std::vector<const Pattern*>> first_places_;
  absl::flat_hash_map<std::tuple<const Pattern*, const Use*, int>, Prefilter::FormId> known_;
};

void Prefilter::Add(const std::vector<Definition>& definitions, Rule* rule) {
  Compiler compiler(definitions, this);
  rule->root_form = compiler.OfName(*rule, rule->outputs[0]);
}

}  // namespace ascend_fuse
