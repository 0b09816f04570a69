// What a run came to, besides its sites: what passes note for the report.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "passes/core/records.h"

namespace ascend_fuse {

struct RunResult {
  std::vector<NearMissRecord> near_misses;
  std::vector<PassRecord> runs;               // the passes that have run, with time and number of changes
  std::map<std::string, int64_t> decomposed;  // how many nodes of com.microsoft were written in others, by operator
  // Forms that ATC does not read, written in others: by code and operator, the names of the nodes.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> adapted;
  // What the rest of the graph was rid of: by kind (a code) and operator, the names of the nodes as they were.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> tidied;
  int64_t opset_before = 0;      // where the opset of the model was converted; else 0
  std::string opset_because;     // what is to be had at the new opset, where it was raised for that: "where ... is an operator"
  std::string opset_not_raised;  // why it was not raised although sites wait for that: the end of a sentence
  int64_t converted = 0;         // how many nodes have another form for that
  std::string opset_kept;        // why it was not converted though another one is read better: a sentence
  int64_t keys_shared = 0;       // attentions that are left and repeat keys or values no more
  int64_t folded = 0;            // nodes that --fix made constants of
  std::string style;             // D, N or X; "" without NPU nodes
  int64_t calls_kept = 0;        // calls of local functions that stand again, because nothing was fused
  int64_t nodes_before = 0;      // with the nodes of functions in place of their calls
  WeightBytes weights_before;
  std::vector<WarningRecord> warnings;  // what was found in the result, in the order in which the report tells it
  std::vector<FindingRecord> findings;  // of these what ATC surely refuses or misreads
};

}  // namespace ascend_fuse
