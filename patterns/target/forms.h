// The forms of standard operators that ATC does not read as ONNX defines them: which of them a node has. Used
// by target.cc only.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ir/graph.h"
#include "patterns/target/target.h"

namespace ascend_fuse::proto {
class UnreadForm;
}  // namespace ascend_fuse::proto

namespace ascend_fuse::contract {

// INVALID_ARGUMENT names `path`, the code and what is wrong with the row: a field that is missing, a
// condition that is none, an operator, input or attribute that ONNX does not have.
absl::Status CheckForm(const std::string& path, const proto::UnreadForm& row);

class UnreadForms {
 public:
  // The row must stay where it is.
  void Add(const proto::UnreadForm& row);
  // In the order in which the rows were added, at most one of each code.
  std::vector<const UnreadForm*> Of(const Node& node, int64_t opset) const;

 private:
  struct Row {
    const proto::UnreadForm* data = nullptr;
    UnreadForm form;
  };
  std::deque<Row> rows_;
  absl::flat_hash_map<std::string_view, std::vector<const Row*>> by_op_;
};

}  // namespace ascend_fuse::contract
