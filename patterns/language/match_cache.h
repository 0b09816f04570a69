// What matchers of one model share, so that a rule asks a node nothing that another rule asked before: which operator of
// the rules it is, and the schema in force. Both follow from a node's names and the opset alone, so rewriting the graph
// does not make them wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph.h"
#include "ir/schema.h"
#include "patterns/language/rule_set.h"

namespace ascend_fuse {

class MatchCache {
 public:
  explicit MatchCache(const Model& model) : model_(model) {}

  // As what operators of the rules a node is read.
  struct Operator {
    uint16_t number = 0;         // RuleSet::OperatorNumber; 0: no pattern names it
    uint16_t number_of_two = 0;  // with two inputs, this one too: a Sum of two is an Add (GELU before opset 14,
                                 // docs/sources/export-patterns.md X13)
    bool Is(const Node& node, uint16_t wanted) const {
      return wanted != 0 && (number == wanted || (number_of_two == wanted && node.input_count == 2));
    }
  };

  // The operators of one set of rules, by kind of node. Valid as long as the cache.
  class Operators {
   public:
    Operators(MatchCache* cache, const RuleSet& rules) : cache_(cache), rules_(&rules) {}
    const RuleSet& rules() const { return *rules_; }
    Operator Of(const Node& node) {
      const size_t kind = cache_->KindOf(node);
      if (kind >= of_kind_.size()) Add();
      return of_kind_[kind];
    }

   private:
    void Add();
    MatchCache* cache_;
    const RuleSet* rules_;
    std::vector<Operator> of_kind_;
  };
  Operators* OperatorsOf(const RuleSet& rules);

  // ir/schema.h, of the opset that the model imports now.
  const Schema* SchemaOf(const Node& node);

  // Whether the operands of the node's operator may change places, which is the same at every opset.
  bool IsCommutative(const Node& node) {
    Kind& kind = kinds_[KindOf(node)];
    if (!kind.is_commutative.has_value()) {
      const Schema* schema = SchemaOf(node);
      if (schema == nullptr) return false;
      kind.is_commutative = schema->commutative;
    }
    return *kind.is_commutative;
  }

 private:
  // Domain and operator of nodes, numbered as they are met.
  struct Kind {
    NameId domain = NameId::kEmpty;
    NameId op_type = NameId::kEmpty;
    int64_t version = -1;  // for which `schema` was found; -1: not yet
    const Schema* schema = nullptr;
    std::optional<bool> is_commutative = {};
  };
  size_t KindOf(const Node& node) {
    const auto name = static_cast<size_t>(node.op_type);
    if (name < kind_of_op_type_.size()) {
      const size_t kind = kind_of_op_type_[name];
      if (kind != kNoKind && kinds_[kind].domain == node.domain) return kind;
    }
    return FindKind(node);
  }
  size_t FindKind(const Node& node);

  static constexpr uint32_t kNoKind = UINT32_MAX;
  const Model& model_;
  std::vector<Kind> kinds_;
  std::vector<uint32_t> kind_of_op_type_;                           // by NameId: the kind that was met first
  absl::flat_hash_map<std::pair<NameId, NameId>, size_t> kind_of_;  // domain, op_type
  std::vector<std::unique_ptr<Operators>> operators_;               // one for each set of rules
};

}  // namespace ascend_fuse
