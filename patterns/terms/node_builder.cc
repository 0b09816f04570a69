#include "patterns/terms/node_builder.h"
#include "ir/whole_number.h"

namespace ascend_fuse::build {

Term Op(std::string op_type, std::vector<Term> inputs, std::vector<std::pair<std::string, Term>> attributes) {
  return Term::Node({"", std::move(op_type), std::move(attributes), std::move(inputs), 1});
}

Term Numbers(const std::vector<int64_t>& numbers) {
  std::vector<Term> items;
  for (int64_t number : numbers) items.push_back(Term::Integer(number));
  return Term::List(std::move(items));
}

Term Vector(const std::vector<Term>& elements) {
  std::vector<Term> parts;
  std::vector<Term> numbers;
  for (const Term& element : elements) {
    if (element.kind == Term::Kind::kNumber) {
      numbers.push_back(element);
      continue;
    }
    if (!numbers.empty()) parts.push_back(Term::List(std::move(numbers)));
    numbers.clear();
    parts.push_back(element);
  }
  if (parts.empty()) return Term::List(std::move(numbers));
  if (!numbers.empty()) parts.push_back(Term::List(std::move(numbers)));
  return parts.size() == 1 ? parts[0] : Concat(std::move(parts), 0);
}

std::vector<int64_t> IntegersOf(const std::vector<Term>& items) {
  std::vector<int64_t> numbers;
  for (const Term& item : items) {
    numbers.push_back(item.kind == Term::Kind::kDim ? item.dim.number() : WholeNumber(item.number));
  }
  return numbers;
}

Term Cast(Term x, DataType to) { return Op("Cast", {std::move(x)}, {{"to", Term::Of(to)}}); }

Term Concat(std::vector<Term> parts, int64_t axis) { return Op("Concat", std::move(parts), {{"axis", Term::Integer(axis)}}); }

Term Gather(Term x, Term indices, int64_t axis) {
  return Op("Gather", {std::move(x), std::move(indices)}, {{"axis", Term::Integer(axis)}});
}

Term Reshape(Term x, Term dims) { return Op("Reshape", {std::move(x), std::move(dims)}); }

Term Reshape(Term x, const std::vector<int64_t>& dims) { return Reshape(std::move(x), Numbers(dims)); }

Term Shape(Term x) { return Op("Shape", {std::move(x)}); }

Term ReduceSum(Term x, const std::vector<int64_t>& axes, int64_t keepdims) {
  return Op("ReduceSum", {std::move(x)}, {{"axes", Numbers(axes)}, {"keepdims", Term::Integer(keepdims)}});
}

Term Slice(Term x, int64_t first, int64_t last, int64_t axis, int64_t step) {
  std::vector<std::pair<std::string, Term>> attributes = {
      {"starts", Numbers({first})}, {"ends", Numbers({last})}, {"axes", Numbers({axis})}};
  if (step != 1) attributes.emplace_back("steps", Numbers({step}));
  return Op("Slice", {std::move(x)}, std::move(attributes));
}

Term Squeeze(Term x, const std::vector<int64_t>& axes) { return Op("Squeeze", {std::move(x)}, {{"axes", Numbers(axes)}}); }

Term Transpose(Term x, const std::vector<int64_t>& perm) { return Op("Transpose", {std::move(x)}, {{"perm", Numbers(perm)}}); }

Term Unsqueeze(Term x, const std::vector<int64_t>& axes) { return Op("Unsqueeze", {std::move(x)}, {{"axes", Numbers(axes)}}); }

Term Constant(DataType type, const std::vector<int64_t>& dims, double fill) {
  return Op("@Constant", {}, {{"type", Term::Of(type)}, {"dims", Numbers(dims)}, {"fill", Term::Number(fill)}});
}

Term AboveDiagonal(int64_t rows, int64_t columns) {
  return Op("@Constant", {},
            {{"type", Term::Of(DataType::kBool)}, {"dims", Numbers({rows, columns})}, {"above_diagonal", Term::Integer(1)}});
}

Term Elements(DataType type, const std::vector<int64_t>& dims, const std::vector<int64_t>& elements) {
  return Op("@Constant", {}, {{"type", Term::Of(type)}, {"dims", Numbers(dims)}, {"elements", Numbers(elements)}});
}

Term Floats(const std::vector<int64_t>& dims, const std::vector<double>& elements) {
  std::vector<Term> items;
  for (const double element : elements) items.push_back(Term::Number(element));
  return Op("@Constant", {},
            {{"type", Term::Of(DataType::kFloat)}, {"dims", Numbers(dims)}, {"elements", Term::List(std::move(items))}});
}

}  // namespace ascend_fuse::build
