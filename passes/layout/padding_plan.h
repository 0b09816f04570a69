// How the heads of an attention are padded: what is found out before anything is written.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ir/infer/facts.h"
#include "passes/layout/zero_padding.h"

namespace ascend_fuse {

// An input of a node.
struct PaddedReader {
  const Node* node = nullptr;
  size_t index = 0;

  bool operator<(const PaddedReader& other) const { return std::pair(node->id, index) < std::pair(other.node->id, other.index); }
};

struct PaddingPlan {
  const Node* attention = nullptr;
  absl::flat_hash_map<const Value*, ZeroPadding> padding;
  std::set<PaddedReader> wants;
  std::set<const Node*> nodes;                                  // to be written
  std::vector<const Node*> shapes;                              // read the dims of what is padded
  std::map<PaddedReader, std::pair<size_t, Places>> constants;  // axis and places
  bool sliced = false;                                          // the result is cut back by a Slice

  // That of a value that is as it was has no places.
  ZeroPadding PaddingOf(const Value* value, const Facts& facts) const;
  // Of what the node reads first, which may be a constant that is padded for this node alone.
  ZeroPadding PaddingOfFirst(const Node& node, const Facts& facts) const;
  std::vector<ZeroPadding> OutputsOf(const Node& node, const Facts& facts) const;
};

// An initializer, transposed or cast on the way.
bool IsMadeOfConstant(const Facts& facts, const Value* value);

// Goes back from the attention to the projections of query, key and value, and on to the one of the result.
class PaddingSearch {
 public:
  PaddingSearch(Facts& facts, const Node* attention, int64_t width) : facts_(facts), width_(width) {
    plan_.attention = attention;
  }

  // FAILED_PRECONDITION with a clause where zeros cannot be put there, or something else would see them.
  absl::StatusOr<PaddingPlan> Run();

 private:
  // Later values first; those that nothing computes last.
  struct Later {
    bool operator()(const Value* a, const Value* b) const;
  };
  struct Asked {
    PaddedReader reader;
    std::vector<PaddedPart> parts;
  };

  absl::Status Ask(PaddedReader reader, const ZeroPadding& padding);
  absl::Status Ask(PaddedReader reader, std::vector<PaddedPart> parts);
  absl::Status AskConstant(PaddedReader reader, const Value* value, const std::vector<PaddedPart>& parts);
  absl::Status Settle(const Value* value, const std::vector<Asked>& asked);
  absl::Status FollowDims(const Use& use, const ZeroPadding& padding);
  absl::Status AskOperands(const Node* node);
  absl::Status AddOther(const Value* value, const Use& use, std::vector<std::vector<PaddedPart>>* by_axis,
                        std::vector<const Node*>* beside);
  absl::Status FollowResult();
  std::optional<Use> OneReader(const Value& value, std::vector<const Node*>* shapes) const;

  Facts& facts_;
  const int64_t width_;
  PaddingPlan plan_;
  std::map<const Value*, std::vector<Asked>, Later> asked_;
};

}  // namespace ascend_fuse
