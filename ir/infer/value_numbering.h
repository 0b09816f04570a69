// Values modulo noise and repetition: which values are the same computation, and which nodes do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/infer/facts.h"

namespace ascend_fuse {

// What each value was found to be a copy of, and by which node: once another node computes the value, it is a copy no more.
class Copies {
 public:
  const Value* SourceOf(const Value* value) const {
    if (value->id >= copies_.size() || copies_[value->id].node != value->producer) return nullptr;
    return copies_[value->id].source;
  }
  void Set(const Value& copy, const Value* source) { copies_[copy.id] = {source, copy.producer}; }
  void Reserve(size_t values) { copies_.reserve(values); }
  void Resize(size_t values) { copies_.resize(values); }

 private:
  struct Copy {
    const Value* source = nullptr;
    const Node* node = nullptr;
  };
  std::vector<Copy> copies_;  // by Value::id
};

// A product or a sum, by kind of operator: a copy where its other operand is all ones or zeros.
bool IsWeighting(const Node& node);

// Value numbering over the inferred facts. Noise (design.md section 3): Identity, Dropout at inference, Cast to
// the same type or to a wider one and back, full-range Slice, Expand and Tile to the same shape, Pad by nothing,
// Transposes that cancel, chains of Reshape, Squeeze, Unsqueeze and Flatten that come back to the shape they
// started from, Concat, Sum, Max, Min or Mean of one, Split into one, operands that change nothing (times 1,
// plus 0, and true, or false), and a ScatterND that overwrites everything. Noise between two nodes that cancel
// is looked through as well.
class ValueNumbering {
 public:
  // One pass over all graphs; linear. Dead nodes are passed over. What indices count may be a sum of dims, which is made in the
  // table of `facts`; nothing that is known changes.
  ValueNumbering(const Model& model, Facts& facts);

  // Numbers the outputs of a node that was made later, and the constants among its inputs, as the constructor
  // would; the facts of its outputs must be known by then. A value that has a number keeps it: one whose
  // producer was replaced is the value it was. Nodes are added in the order in which they were made. The cost
  // does not depend on the size of the model.
  void Add(const Node& node, Facts& facts);
  // The same for an initializer that was made later. One that has a number keeps it.
  void AddConstant(const Value& value, const Facts& facts);

  // Equal numbers: the same value in every run, or one differs from the other by noise only. Small tensors of
  // equal type, shape and elements are the same, constants as well as shapes that inference proves equal, and
  // initializers that are one range of an external file. An attribute at its default may be written or not.
  uint32_t Number(const Value* value) const { return IsNumbered(*value) ? numbers_[value->id] : value->id; }
  bool Same(const Value* a, const Value* b) const { return a == b || Number(a) == Number(b); }

  // The value that `value` is a mere copy of through one node of noise, or nullptr. A value whose producer was replaced is
  // what the new one computes: it keeps its number, and is a copy no more.
  const Value* Source(const Value* value) const { return copies_.SourceOf(value); }
  // Of the values with the number of `value`, the one that was numbered first; of those of the file it is the one that is
  // computed first.
  const Value* First(const Value* value) const;

 private:
  // No value has this id. A value without a number is the first of its class: it counts as numbered by its id.
  static constexpr uint32_t kNoNumber = UINT32_MAX;

  bool IsNumbered(const Value& value) const { return value.id < numbers_.size() && numbers_[value.id] != kNoNumber; }
  void Grow(const Value& value);
  void Assign(const Value& value, uint32_t number);  // unless it has one
  // Each tells whether it has numbered the node's outputs.
  bool NumberAsCopy(const Node& node, Facts& facts);
  bool NumberByElements(const Node& node, const Facts& facts);
  void NumberByComputation(const Node& node);
  // The number of the small tensors with these elements, be they numbers or dims; kNoNumber if not all are known.
  uint32_t NumberOfElements(const Value& value, const Facts& facts);

  std::vector<uint32_t> numbers_;  // by Value::id
  Copies copies_;
  std::vector<const Value*> firsts_;                             // by number
  absl::flat_hash_map<std::string, uint32_t> known_tensors_;     // elements or place in a file -> number
  absl::flat_hash_map<std::string, size_t> known_computations_;  // operator, inputs, attributes -> place in computed_
  std::string key_;                                              // of what is looked up; its memory serves all of them
  std::vector<uint32_t> computed_;  // numbers of the outputs of each known computation, one after another
};

// The numbers of all values. Two values of one number have the same shape in every run, though inference may have a symbol of its
// own for each (the rows of two NonZeros of one tensor): such dims are unified in `facts`, and what is equal because of that is
// numbered alike. Values of bodies are left as they are, which may never run.
std::unique_ptr<ValueNumbering> NumberValues(const Model& model, Facts* facts);

}  // namespace ascend_fuse
