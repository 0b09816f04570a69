// Local functions of a model: which node calls which, and the body that one call of a function runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/model.h"

namespace ascend_fuse::onnx {
class FunctionProto;
}

namespace ascend_fuse {

// What a function computes for one call: its attributes replaced by the call's values, inputs that the call leaves
// out absent.
struct FunctionBody {
  // A constant whose elements stay in the file of the model that has the function.
  struct FileConstant {
    std::string name;  // of the value in the body
    DataType type = DataType::kUndefined;
    std::vector<int64_t> dims;
    FileRange elements;
  };

  std::unique_ptr<Model> model;  // with the function's opset imports
  // The first inputs of model->graph() are those that the call gives, in order; one for each of `constants` follows.
  size_t given = 0;
  std::vector<FileConstant> constants;
};

class LocalFunctions {
 public:
  // Bytes of all functions that are decoded, constants of 4 KB and more left out.
  static constexpr int64_t kMaxBytes = int64_t{64} << 20;

  // The model must outlive this.
  explicit LocalFunctions(const Model& model);
  ~LocalFunctions();

  bool empty() const { return functions_.empty(); }
  size_t size() const { return functions_.size(); }
  const LocalFunction& function(size_t index) const { return *functions_[index].source; }
  // "domain.name", and ":overload" where it has one.
  std::string Describe(size_t index) const;

  // The function that a node calls, of this model or of a body; -1 if it calls none.
  int64_t Find(const Node& node) const;

  // How large a function is and what it calls, for each call in it, in bodies too.
  struct Size {
    int64_t nodes = 0;
    int64_t bytes = 0;
    std::vector<size_t> calls;
  };
  // INVALID_ARGUMENT or RESOURCE_EXHAUSTED with a sentence when the function cannot be read.
  absl::StatusOr<Size> SizeOf(size_t index);

  // Equal for calls that run the same body, or that BodyFor refuses alike.
  std::string KeyOf(size_t index, const Node& call) const;

  // INVALID_ARGUMENT with what is wrong with the function or the call: "the call gives 3 inputs ...".
  absl::StatusOr<FunctionBody> BodyFor(size_t index, const Node& call);

 private:
  struct Function {
    const LocalFunction* source = nullptr;
    bool twice = false;  // another one has its domain, name and overload
    bool decoded = false;
    absl::Status error;
    std::unique_ptr<onnx::FunctionProto> proto;  // without the nodes of `constants`
    std::vector<FunctionBody::FileConstant> constants;
  };

  int64_t Find(std::string_view domain, std::string_view name, std::string_view overload) const;
  absl::Status Decode(Function* function);

  const Model& model_;
  std::vector<Function> functions_;
  absl::flat_hash_map<std::string_view, absl::flat_hash_map<std::string_view, std::vector<size_t>>> by_domain_and_name_;
  int64_t bytes_ = 0;
};

}  // namespace ascend_fuse
