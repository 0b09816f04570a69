#include "passes/analyze/binding.h"

#include <algorithm>
#include <optional>

#include "ir/infer/context.h"

namespace ascend_fuse {

namespace {

// What is printed of a polynomial: a longer one says nothing to a person.
constexpr size_t kLongestFormula = 160;

}  // namespace

Binding::Binding(const Model& model, const std::vector<std::pair<std::string, DimRange>>& dims) {
  for (const auto& [name, range] : dims) given_[name] = range.high;
  Facts facts;
  for (const Value* input : model.graph().inputs()) {
    const Fact fact = infer::DeclaredFact(*input, &facts);
    for (int axis = 0; axis < fact.rank(); ++axis) {
      for (const std::string_view symbol : facts.dims().Symbols(fact.shape[static_cast<size_t>(axis)])) {
        const bool first = axis == 0 && fact.rank() > 1;
        const auto [at, added] = batch_.try_emplace(std::string(symbol), first);
        if (!added) at->second = at->second && first;
      }
    }
  }
}

int64_t Binding::NumberOf(std::string_view symbol) {
  const auto known = used_.find(symbol);
  if (known != used_.end()) return known->second;
  const auto given = given_.find(symbol);
  const auto batch = batch_.find(symbol);
  const int64_t number = given != given_.end()                            ? given->second
                         : batch != batch_.end() && batch->second         ? kDefaultBatch
                         : symbol.find("batch") != std::string_view::npos ? kDefaultBatch
                                                                          : kDefaultLength;
  used_.emplace(symbol, number);
  return number;
}

double Binding::Evaluate(Dim dim, const DimTable& dims) {
  if (dim.is_number()) return static_cast<double>(std::max<int64_t>(dim.number(), 0));
  if (!dim.known()) return 0;
  const auto [at, added] = values_.try_emplace(dim.id(), 0);
  if (added) {
    const std::optional<int64_t> value =
        dims.Evaluate(dim, [this](std::string_view symbol) { return std::optional<int64_t>(NumberOf(symbol)); });
    at->second = static_cast<double>(std::max<int64_t>(value.value_or(0), 0));
  }
  return at->second;
}

Amount Binding::Of(Dim dim, const DimTable& dims) {
  Amount quantity = {dim.known() ? dims.ToString(dim) : "", Evaluate(dim, dims)};
  if (quantity.formula.size() > kLongestFormula) quantity.formula.clear();
  return quantity;
}

std::vector<BoundDim> Binding::Used() const {
  std::vector<BoundDim> used;
  std::map<std::string, int64_t, std::less<>> numbers = used_;
  for (const auto& [name, value] : given_) {
    if (batch_.contains(name)) numbers.emplace(name, value);  // a number in all shapes already
  }
  for (const auto& [name, value] : numbers) used.push_back({name, value, given_.contains(name) ? "dim" : "default"});
  return used;
}

}  // namespace ascend_fuse
