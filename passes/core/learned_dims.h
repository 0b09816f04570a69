// What the names of dims are known to stand for, and what of that was learned between two points of a run: a fused node asks for
// equal dims where the subgraph in its place did not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/infer/facts.h"
#include "ir/model.h"

namespace ascend_fuse {

// What a name stands for, by name: names that stand for one dim have one text.
struct KnownDim {
  std::optional<int64_t> number;
  std::string text;
};
using KnownDims = std::map<std::string, KnownDim>;

// Of every name that a dim of an input of the model's graph mentions, and of the dims of what an If, Loop or Scan of it gives.
// Dims without a name are called NameOfUnnamed.
KnownDims KnownDimsOf(const Model& model, Facts& facts);

// What `now` knows and `before` does not: names that are numbers, and names that are one dim. Both are of the same model.
std::vector<LearnedDim> LearnedSince(const KnownDims& before, const KnownDims& now);

// What inferences of one kind knew of input dims, and what of that nodes said that are gone.
struct KeptDims {
  KnownDims known;
  std::vector<LearnedDim> learned;
};

// Infers the model again. What is `known` stays known, also where the node that said so is gone: what would be lost is added to
// `learned`, which is told besides `told`.
Facts InferKeeping(const Model& model, InferOptions told, KeptDims* kept);

}  // namespace ascend_fuse
