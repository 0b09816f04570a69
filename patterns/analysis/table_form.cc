#include "patterns/analysis/table_form.h"

#include <algorithm>
#include <cmath>

#include "ir/constant_tensor.h"

namespace ascend_fuse {
namespace {

// Constants are looked into up to this many elements, all of a model up to four times as many.
constexpr int64_t kMaximumTable = int64_t{1} << 24;
constexpr size_t kMaximumSteps = 8;

int64_t CountOf(absl::Span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// Calls visit (place in row-major order, indices) for every element.
template <typename Visit>
bool EachElement(absl::Span<const int64_t> dims, Visit visit) {
  std::vector<int64_t> index(dims.size(), 0);
  const int64_t count = CountOf(dims);
  for (int64_t at = 0; at < count; ++at) {
    if (!visit(static_cast<size_t>(at), index)) return false;
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
  return true;
}

std::vector<int64_t> StridesOf(absl::Span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

int64_t Dot(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The element is a function of one sum of indices, or such a sum itself.
TableForm FindForm(absl::Span<const int64_t> dims, const std::vector<double>& values) {
  TableForm form;
  const std::vector<int64_t> strides = StridesOf(dims);
  std::vector<size_t> axes;  // along which it is not constant
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const bool constant = dims[axis] == 1 || EachElement(dims, [&](size_t at, const std::vector<int64_t>& index) {
                            return index[axis] == 0 || values[at] == values[at - static_cast<size_t>(strides[axis])];
                          });
    if (!constant) axes.push_back(axis);
  }
  form.coefficients.assign(dims.size(), 0);
  form.start = values[0];
  const auto whole = [](double x) { return std::trunc(x) == x && std::fabs(x) < 1e9; };
  bool affine = whole(form.start);
  for (size_t axis : axes) {
    const double step = values[static_cast<size_t>(strides[axis])] - values[0];
    affine = affine && whole(step);
    if (affine) form.coefficients[axis] = static_cast<int64_t>(step);
  }
  form.affine = affine && EachElement(dims, [&](size_t at, const std::vector<int64_t>& index) {
                  return values[at] == form.start + static_cast<double>(Dot(form.coefficients, index));
                });
  if (form.affine || axes.empty()) {
    form.known = form.affine;
    return form;
  }
  if (axes.size() > 2) return form;
  // Of one axis, or of the difference of two.
  form.coefficients.assign(dims.size(), 0);
  form.coefficients[axes.back()] = 1;
  int64_t first = 0;
  if (axes.size() == 2) {
    form.coefficients[axes[0]] = -1;
    first = 1 - dims[axes[0]];
  }
  const auto count = static_cast<size_t>(dims[axes.back()] - first);
  std::vector<double> of_sum(count, std::nan(""));
  const bool function = EachElement(dims, [&](size_t at, const std::vector<int64_t>& index) {
    double& value = of_sum[static_cast<size_t>(Dot(form.coefficients, index) - first)];
    if (std::isnan(value)) value = values[at];
    return value == values[at];
  });
  if (!function) return form;
  for (size_t i = 0; i < count; ++i) {
    const int64_t sum = first + static_cast<int64_t>(i);
    if (form.steps.empty() || form.steps.back().second != of_sum[i]) form.steps.emplace_back(sum, of_sum[i]);
    form.steps.back().first = sum;
    if (form.steps.size() > kMaximumSteps) return form;
  }
  form.known = true;
  return form;
}

}  // namespace

const TableForm& TableForms::Of(const Value* value) {
  const auto [entry, inserted] = forms_.try_emplace(numbering_.Number(value));
  if (!inserted) return *entry->second;
  entry->second = std::make_unique<TableForm>();
  const Fact& fact = facts_.Of(value);
  std::vector<int64_t> dims;
  for (Dim dim : fact.shape) {
    if (!dim.is_number() || dim.number() < 1) return *entry->second;
    dims.push_back(dim.number());
  }
  std::vector<double> values;
  if (fact.elements != nullptr) {
    values.assign(fact.elements->floats.begin(), fact.elements->floats.end());
    for (Dim element : fact.elements->integers) {
      if (!element.is_number()) return *entry->second;
      values.push_back(static_cast<double>(element.number()));
    }
  } else {
    const Tensor tensor = *ConstantTensor(*value);
    const int64_t count = tensor.ElementCount();
    if (count < 0 || count > kMaximumTable) return *entry->second;
    elements_ += count;
    if (elements_ > 4 * kMaximumTable) return *entry->second;
    if (IsFloat(tensor.type)) {
      auto numbers = ReadFloats(model_, tensor, kMaximumTable);
      if (numbers.ok()) values = *std::move(numbers);
    } else if (auto numbers = ReadIntegers(model_, tensor, kMaximumTable); numbers.ok()) {
      values.assign(numbers->begin(), numbers->end());
    }
  }
  if (values.empty() || static_cast<int64_t>(values.size()) != CountOf(dims)) return *entry->second;
  const bool unclear = std::any_of(values.begin(), values.end(),
                                   [&](double x) { return std::isnan(x) || (!IsFloat(fact.type) && std::fabs(x) > 9e15); });
  if (!unclear) *entry->second = FindForm(dims, values);
  return *entry->second;
}

}  // namespace ascend_fuse
