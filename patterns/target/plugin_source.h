// The op plugin as source: a parser for every node that stock ATC does not read, written from patterns/operators.txtpb and
// the files of plugin/ that are the same for every node.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {

struct PluginOptions {
  std::string cann;                // nodes that this CANN version surely has no GE operator for are left out; empty: none
  std::vector<std::string> nodes;  // these only ("NPUSwiGlu"); empty: all
};

struct PluginFile {
  std::string path;  // relative to the folder of the plugin
  std::string text;
  bool executable = false;
};

// The version that the plugin of this program has: the newest that a declaration names as its first.
int PluginVersion();

// The nodes that the plugin registers, in the order of their declarations.
std::vector<const DeclaredOperator*> PluginNodes();

// All files. NOT_FOUND for a CANN version or a node that does not exist.
absl::StatusOr<std::vector<PluginFile>> PluginFiles(const PluginOptions& options);

}  // namespace ascend_fuse
