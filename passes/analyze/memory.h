// Memory: weights by type and module, the peak of activations by liveness, caches of keys and values.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "passes/analyze/analysis.h"
#include "passes/analyze/binding.h"
#include "passes/analyze/reach.h"
#include "patterns/cost/costs.h"

namespace ascend_fuse {

// What lies in memory while the nodes run in the order of the file: what was computed and is still read, and the inputs and
// outputs of the model to the end. Views share the memory of what they look at; constants are weights, not activations.
ActivationRecord MeasureActivations(const Model& model, const Reach& reach, Facts& facts, Binding* binding);

// Weights that the outputs depend on. Tensors of one place in a file are one.
void MeasureWeights(const Model& model, const Reach& reach, const absl::flat_hash_map<const Value*, std::string>& modules,
                    MemoryRecord* memory);

// Inputs that come back with more elements along one axis, or with some written into.
void MeasureCaches(const Model& model, const Reach& reach, Facts& facts, Binding* binding, MemoryRecord* memory);

// `lowers`: float32 is computed in float16.
void MeasureFit(const ChipCost& chip, bool lowers, MemoryRecord* memory);

}  // namespace ascend_fuse
