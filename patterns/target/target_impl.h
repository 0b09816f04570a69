// What a target is made of. Used by target.cc and describe.cc only.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "patterns/target/compile.h"
#include "patterns/target/forms.h"
#include "patterns/target/load.h"
#include "patterns/target/target.h"

namespace ascend_fuse::proto {
class Alias;
class GeConstructRow;
class LeftRow;
class PrecisionMode;
class Refusal;
class StandardOp;
}  // namespace ascend_fuse::proto

namespace ascend_fuse {

inline constexpr std::string_view kEmptyInputInBranch = "empty-input-in-branch";  // a code

struct Target::Impl {
  // One node of the contract. Rows of built-in files are compiled when they are first asked for.
  struct NodeRows {
    std::string path;  // as errors name the file
    const proto::NodeContract* data = nullptr;
    bool is_compiled = false;
    absl::Status error;
    contract::CompiledNode compiled;
  };

  TargetOptions options;
  std::vector<contract::OpenedFile<proto::TargetFile>> files;  // the chip's own file first, then its bases
  std::vector<contract::OpenedFile<proto::CannFile>> cann_files;
  const proto::CannFile* cann = nullptr;  // the first of cann_files
  std::string chip;
  std::vector<std::string> warnings;
  std::list<proto::NodeContract> copies;  // of rows that are written as `like` another
  std::mutex compiling;
  std::map<std::string, NodeRows, std::less<>> nodes;
  std::vector<std::string> node_order;
  std::map<std::string, const proto::GeConstructRow*, std::less<>> ge_constructs;
  std::map<std::string, const proto::LeftRow*, std::less<>> left;
  std::map<std::string, const proto::StandardOp*, std::less<>> standard;
  contract::UnsupportedForms unsupported;
  const proto::PrecisionMode* mode = nullptr;
  std::optional<bool> parses_npu_domain;
  const proto::Refusal* other_nodes = nullptr;
  const proto::Refusal* empty_input_in_branch = nullptr;
  std::set<std::string> unknown_nodes;
  std::string kernels;  // the CANN version that `cann` of a row speaks of
  int64_t max_opset = 0;
  std::vector<const proto::Alias*> aliases;  // of the CANN version and its bases

  absl::Status FindMode();
  void ReadCann();
  template <typename Files>
  absl::Status AddUnsupportedForms(const Files& of);
  absl::StatusOr<const proto::NodeContract*> Like(const std::string& path, const proto::NodeContract& node);
  absl::Status AddNodes(const contract::OpenedFile<proto::TargetFile>& opened, const std::set<std::string>& without);
  absl::Status AddFiles();
  absl::StatusOr<const contract::CompiledNode*> Compiled(NodeRows* rows);
  std::string TypeRefusal(const Call& call, const contract::CompiledNode& node) const;
  Answer Check(const Call& call, const DimTable& dims, DimTable* growing);
  // What is left of an answer where the node stands.
  Answer CheckPlace(const Call& call, Answer answer) const;
};

}  // namespace ascend_fuse
