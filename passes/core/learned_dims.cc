#include "passes/core/learned_dims.h"

#include <utility>

namespace ascend_fuse {

KnownDims KnownDimsOf(const Model& model, Facts& facts) {
  KnownDims known;
  DimTable& dims = facts.dims();
  const auto add = [&](std::string name, Dim dim) {
    const auto [entry, is_new] = known.try_emplace(std::move(name));
    if (!is_new) return;
    const Dim now = dims.Resolve(dim);
    if (now.is_number()) entry->second.number = now.number();
    entry->second.text = now.known() ? dims.ToString(now) : entry->first;
  };
  Facts unbound;
  for (const Value* input : model.graph().inputs()) {
    for (std::string& name : NamesOfDims(*input, &unbound)) {
      const Dim dim = dims.Find(name);
      add(std::move(name), dim);
    }
  }
  for (const Value* result : ResultsOfBodies(model)) {
    const Fact& fact = facts.Of(result);
    for (size_t i = 0; i < fact.shape.size(); ++i) add(NameOfUnnamed(*result, i), fact.shape[i]);
  }
  return known;
}

std::vector<LearnedDim> LearnedSince(const KnownDims& before, const KnownDims& now) {
  std::vector<LearnedDim> learned;
  std::map<std::string, std::string> first_of;  // the first name of each text
  for (const auto& [name, dim] : now) {
    const auto was = before.find(name);
    if (was == before.end() || was->second.number.has_value()) continue;
    if (dim.number.has_value()) {
      learned.push_back({name, dim.number, ""});
      continue;
    }
    const auto [first, is_new] = first_of.try_emplace(dim.text, name);
    if (is_new || before.at(first->second).text == was->second.text) continue;
    learned.push_back({name, std::nullopt, first->second});
  }
  return learned;
}

Facts InferKeeping(const Model& model, InferOptions told, KeptDims* kept) {
  told.learned_dims.insert(told.learned_dims.end(), kept->learned.begin(), kept->learned.end());
  Facts again = Infer(model, told);
  KnownDims now = KnownDimsOf(model, again);
  const std::vector<LearnedDim> lost = LearnedSince(now, kept->known);
  if (!lost.empty()) {
    kept->learned.insert(kept->learned.end(), lost.begin(), lost.end());
    told.learned_dims.insert(told.learned_dims.end(), lost.begin(), lost.end());
    again = Infer(model, told);
    now = KnownDimsOf(model, again);
  }
  kept->known = std::move(now);
  return again;
}

}  // namespace ascend_fuse
