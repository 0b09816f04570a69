// What ATC makes of a model as it stands, whoever wrote it: what it refuses, what it reads as something else without a
// word, what runs elsewhere than on the AI Core, and constants that float16 does not hold. Facts come from the data of
// the target; nothing here knows how a node came into the model.
#pragma once

#include <string>
#include <vector>

#include "ir/infer/facts.h"
#include "ir/model.h"
#include "passes/core/records.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

// What a finding says of one node; `text` is its sentence.
FindingRecord FindingOf(const Node& node, const std::string& code, const std::string& effect, std::string text);
// The word of a FindingRecord for an effect.
std::string EffectWord(UnsupportedForm::Effect effect);
// Whether ATC reads it as ONNX defines it, and it is computed elsewhere than on the AI Core, or slowly.
bool RunsElsewhere(const FindingRecord& finding);
// Whether ATC ends with an error or makes another model of it, as far as is known.
bool IsFatal(const FindingRecord& finding);

// Forms of standard operators, operators without a parser, calls of local functions, and the contract of npu nodes.
std::vector<FindingRecord> FindInNodes(const Model& model, Facts& facts, const Target& target);
// Imports, names, empty inputs and outputs, branches of If, element types.
std::vector<FindingRecord> FindInStructure(const Model& model, const Target& target);
// NaN in any constant; and where the precision mode may lower float32, numbers that float16 does not hold. Reads the
// elements of every floating-point constant of at most `kMostElements` elements.
inline constexpr int64_t kMostElements = int64_t{1} << 24;
std::vector<FindingRecord> FindInConstants(const Model& model, const Target& target);
// The same in short, for `optimize`, which reads small constants only: NaN, and positive numbers that float16 does not
// hold. Negative ones are what masks are made of, and -inf does there what they do.
std::vector<WarningRecord> CheckConstants(const Model& model, const Target& target);

}  // namespace ascend_fuse
