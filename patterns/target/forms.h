// The forms of standard operators that ATC does not read as ONNX defines them, or that run elsewhere than on the AI Core:
// which of them a node has. Used by target.cc only.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ir/graph.h"
#include "ir/infer/facts.h"
#include "patterns/target/target.h"

namespace ascend_fuse::proto {
class ParsedOperator;
class UnsupportedForm;
}  // namespace ascend_fuse::proto

namespace ascend_fuse::contract {

// INVALID_ARGUMENT names `path`, the code and what is wrong with the row: a field that is missing, a
// condition that is not one, an operator, input or attribute that ONNX does not have.
absl::Status CheckForm(const std::string& path, const proto::UnsupportedForm& row);

class UnsupportedForms {
 public:
  // The row must stay where it is.
  void Add(const proto::UnsupportedForm& row);
  // A row of an operator that is there already adds nothing. Where there is none at all, every operator is parsed.
  void AddParsed(const proto::ParsedOperator& row, const std::string& source);
  // In the order in which the rows were added, at most one of each code. `is_node`: the node is known otherwise (as one
  // of domain npu written in the default domain), so that it has a parser whatever `parsed` says. Opsets above
  // `max_opset` do not concern single operators.
  std::vector<const UnsupportedForm*> Of(const Node& node, int64_t opset, int64_t max_opset, bool is_node,
                                         const Facts* facts) const;
  // The rows of an operator, and the opsets at which it is parsed: for listing.
  std::vector<const proto::UnsupportedForm*> RowsOf(std::string_view op) const;
  const proto::ParsedOperator* ParsedOf(std::string_view op) const;
  std::vector<std::string> Operators() const;  // that have rows, sorted
  bool KnowsParsed() const { return !parsed_.empty(); }

 private:
  struct Row {
    const proto::UnsupportedForm* data = nullptr;
    UnsupportedForm certain;
    UnsupportedForm possible;
  };
  struct Parsed {
    const proto::ParsedOperator* data = nullptr;
    UnsupportedForm outside;  // of the opsets
  };
  const UnsupportedForm* Judge(const Row& row, const Node& node, int64_t opset, const Facts* facts) const;
  const UnsupportedForm* WithoutParser(std::string_view op, int64_t opset, int64_t max_opset) const;

  std::deque<Row> rows_;
  std::deque<Parsed> parsed_rows_;
  absl::flat_hash_map<std::string_view, std::vector<const Row*>> by_op_;
  absl::flat_hash_map<std::string_view, const Parsed*> parsed_;
};

}  // namespace ascend_fuse::contract
