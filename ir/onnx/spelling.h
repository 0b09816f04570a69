// How a model is spelled where the graph does not tell: whether a standard node is of domain "" or "ai.onnx", and the
// entries of opset_import one by one. Other readers of the format tell these apart. Implemented in ir/onnx/model_writer.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace ascend_fuse {

class ModelWriter;

// Of one model, which must outlive it.
class Spelling {
 public:
  explicit Spelling(const Model& model);
  ~Spelling();
  Spelling(const Spelling&) = delete;
  Spelling& operator=(const Spelling&) = delete;

  // The domains of opset_import, as they are saved.
  std::vector<std::string> Imports() const;
  // The domain that the node is saved with.
  std::string_view DomainOf(const Node& node) const;

 private:
  std::unique_ptr<ModelWriter> writer_;
};

}  // namespace ascend_fuse
