// What a pass in C is given, valid while the pass runs.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "passes/core/workspace.h"
#include "tools/c/ascend_fuse.h"

struct ascend_fuse_graph {
  ascend_fuse::Workspace* workspace = nullptr;
  void* user = nullptr;
  absl::flat_hash_map<const ascend_fuse::Node*, std::string> sites;  // the kind of the site that a node stands for
  // What the last call gave.
  std::string text;
  std::vector<const ascend_fuse::Node*> nodes;
  std::vector<const ascend_fuse::Value*> values;
  // Of the next node, with the texts that they point to.
  std::vector<ascend_fuse::Attribute> attributes;
  std::deque<std::string> attribute_texts;
};

namespace ascend_fuse::c {

// Calls the function of a caller over the workspace; CANCELLED where it says so.
absl::Status CallPass(int (*run)(ascend_fuse_graph* graph), void* user, Workspace& workspace);

}  // namespace ascend_fuse::c
