// The entry to the generator, and what all its parts use.
#include "tools/backwards/generator.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <regex>

#include "ir/onnx/encode.h"
#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

double Random::Normal() {
  const double u = std::max(Uniform(), 1e-12);
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * Uniform());
}

std::string WithoutPlace(const std::string& choice) {
  static const std::regex kPlace("@[\\w.]+:\\d+:\\d+| \\(line \\d+\\)");
  return std::regex_replace(choice, kPlace, "");
}

onnx::TensorProto FloatTensor(const std::string& name, DataType type, const std::vector<int64_t>& dims,
                              const std::vector<double>& elements) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(static_cast<int>(type));
  for (int64_t dim : dims) tensor.add_dims(dim);
  std::string bytes;
  for (double element : elements) bytes += EncodeNumber(type, element);
  tensor.set_raw_data(bytes);
  return tensor;
}

onnx::TensorProto IntTensor(const std::string& name, const std::vector<int64_t>& dims, const std::vector<int64_t>& elements) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : dims) tensor.add_dims(dim);
  tensor.set_raw_data(std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * 8));
  return tensor;
}

std::optional<Specimen> Generator::Generate(const RuleSet& rules, const Rule& rule, Random* random, Coverage* coverage,
                                            std::string* why) {
  const int opset = kOpsets[random->Below(static_cast<int>(std::size(kOpsets)))];
  const DataType type = random->Chance(65) ? DataType::kFloat : DataType::kFloat16;
  Builder builder(library_, random, coverage, opset, type);
  return builder.Run(rules, rule, why);
}

}  // namespace ascend_fuse::backwards
