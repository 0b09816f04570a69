#include "patterns/language/match_cache.h"

#include <memory>

#include "ir/model.h"

namespace ascend_fuse {

void MatchCache::Operators::Add() {
  const Model& model = cache_->model_;
  for (size_t i = of_kind_.size(); i < cache_->kinds_.size(); ++i) {
    const Kind& kind = cache_->kinds_[i];
    Operator found;
    found.number = rules_->OperatorNumber(model.Text(kind.domain), model.Text(kind.op_type));
    const std::string_view second = kind.domain == NameId::kEmpty ? SecondName(model.Text(kind.op_type)) : "";
    if (!second.empty()) found.number_of_two = rules_->OperatorNumber("", second);
    of_kind_.push_back(found);
  }
}

MatchCache::Operators* MatchCache::OperatorsOf(const RuleSet& rules) {
  for (const auto& operators : operators_) {
    if (&operators->rules() == &rules) return operators.get();
  }
  operators_.push_back(std::make_unique<Operators>(this, rules));
  return operators_.back().get();
}

size_t MatchCache::FindKind(const Node& node) {
  const auto [place, is_new] = kind_of_.try_emplace({node.domain, node.op_type}, kinds_.size());
  if (is_new) {
    kinds_.push_back({node.domain, node.op_type});
    const auto name = static_cast<size_t>(node.op_type);
    if (name >= kind_of_op_type_.size()) kind_of_op_type_.resize(name + 1, kNoKind);
    if (kind_of_op_type_[name] == kNoKind) kind_of_op_type_[name] = static_cast<uint32_t>(place->second);
  }
  return place->second;
}

const Schema* MatchCache::SchemaOf(const Node& node) {
  const int64_t opset = VersionInForce(model_, node.domain);
  Kind& kind = kinds_[KindOf(node)];
  if (kind.version != opset) {
    kind.version = opset;
    kind.schema = FindSchema(model_.Text(node.domain), model_.Text(node.op_type), opset);
  }
  return kind.schema;
}

}  // namespace ascend_fuse
