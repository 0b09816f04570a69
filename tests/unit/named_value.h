// The value of a name, wherever in a model it stands.
#pragma once

#include <string_view>

#include "gtest/gtest.h"
#include "ir/model.h"

namespace ascend_fuse::testing {

// An input, a constant, or what a node gives, in any graph of the model. Without one the test fails, and nullptr comes back.
inline const Value* NamedValue(const Model& model, std::string_view name) {
  for (const auto& graph : model.graphs()) {
    for (const Value* value : graph->inputs()) {
      if (ValueName(*value) == name) return value;
    }
    for (const Value* value : graph->initializers()) {
      if (ValueName(*value) == name) return value;
    }
    for (const Node* node : graph->nodes()) {
      for (const Value* value : node->outputs()) {
        if (value != nullptr && ValueName(*value) == name) return value;
      }
    }
  }
  ADD_FAILURE() << "no value " << name;
  return nullptr;
}

}  // namespace ascend_fuse::testing
