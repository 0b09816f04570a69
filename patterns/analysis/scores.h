// The way from the weights of an attention back to the product of query and key: softmax, masks, scale and whatever else
// lies between, in any order and any grouping of axes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "patterns/analysis/axis_map.h"
#include "patterns/analysis/product.h"
#include "patterns/analysis/softmax.h"

namespace ascend_fuse {

// What is done to the scores for a mask or a bias.
struct ScoreMask {
  enum class Kind {
    kAdded,
    kSubtracted,
    kKeeps,       // a boolean: where it is true the score stays, elsewhere it becomes minus infinity
    kDrops,       // the other way round
    kMultiplied,  // numbers 0 and 1: where it is 0 the score becomes 0, and something large is subtracted
  };
  Kind kind = Kind::kAdded;
  const Value* value = nullptr;
  AxisList axes;      // those of the scores at that place, which the mask is broadcast to
  double factor = 1;  // of numbers that are added: the sum is multiplied with it, so that they are like the scores
};

// A tensor that the scores are multiplied with, or divided by: a scale for every head, or for every query.
struct ScoreFactor {
  const Value* value = nullptr;
  AxisList axes;  // those of the scores at that place, which the factor is broadcast to
  bool divides = false;
  const Node* node = nullptr;  // which multiplies
};

struct ScorePath {
  double scale = 1;
  double weight = 1;                 // what the weights are multiplied with after the softmax
  double softcap = 0;                // scores become softcap * tanh (scores / softcap), before all masks; 0: they do not
  bool guard = false;                // rows without any allowed key are made 0
  std::vector<ScoreMask> masks;      // the first one that is applied last
  std::vector<ScoreFactor> factors;  // before all masks
  std::vector<AxisList> stages;      // the axes of the scores at the masks and elsewhere, those at masks first
  Atoms keys;                        // in the order of the softmax
  std::string unfused;               // not empty: what it does besides, which no kernel does, as a sentence
  const Value* mixer = nullptr;      // mixes the heads: then nothing before that was read
  bool mixes_weights = false;        // after the softmax
  Product product;                   // of query and key
  AxisList axes;                     // of its result
  std::vector<const Node*> nodes;
};

// Whether a softmax computes `value`, with at most a few casts, guards, moves of data and changes after it: whether it is
// worth to ask FollowScores. `way` gets the nodes up to it.
bool LeadsToSoftmax(const FunctionContext& context, const Value* value, std::vector<const Node*>* way = nullptr);

// weights: what is multiplied by the value, with the atoms of its axes; keys: the atoms of the axes that the product with
// the value sums over; leading: those that both operands of it have. FAILED_PRECONDITION with a sentence about the node that is
// not a part of an attention. `reached` gets the nodes that were read, also then. `undivided`: the weights are exponentials, and
// what is made of them is divided by their sum.
absl::StatusOr<ScorePath> FollowScores(const FunctionContext& context, AtomTable* atoms, AxisView weights, const Atoms& keys,
                                       const Atoms& leading, const std::optional<SoftmaxView>& undivided,
                                       std::vector<const Node*>* reached);

}  // namespace ascend_fuse
