// The only way to change a graph. Replacing keeps value names, and the nodes replaced stay in memory as dead
// nodes, so that a replacement can be taken back to the byte until Sweep. Every change is noted in a journal, so that
// everything since a mark can be taken back without a trace. Node::order stays a topological order throughout.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/model.h"
#include "ir/names_of_bodies.h"

namespace ascend_fuse {

// What a new node shall be.
struct NewNode {
  std::string op_type;
  std::string domain;      // "" for the default domain
  std::string name;        // a free name near it is taken; "" for none
  bool keep_name = false;  // take the name although a node that this one replaces has it, if no other one of the file has
  std::vector<const Value*> inputs;  // nullptr: absent
  std::vector<Attribute> attributes;
};

// What makes the same node once more, under its name.
NewNode PlanOf(const Node& node);

// Output `index` of a new node is `value`, which another node has computed so far.
struct TakenOutput {
  size_t index = 0;
  const Value* value = nullptr;
};

class Rewriter {
 public:
  explicit Rewriter(Model* model);

  Model& model() { return *model_; }

  // A new node of `graph` computing `output_count` new values, placed right after the producers of its
  // inputs, so that everything computed later may read it. Its values are named `value_name`, made unique,
  // when not empty. With `after`, a place of its own: after that node and all that was inserted so before.
  const Node* Insert(const NewNode& node, size_t output_count, const Graph* graph, std::string_view value_name,
                     const Node* after = nullptr);

  // A new node of `output_count` outputs that becomes the producer of the values of `taken`; its other outputs are new
  // values, named after the first of those. Which output takes which value is always said as a pair: a position in a list
  // of values says nothing about outputs. The nodes that produced the values lose those outputs; every node that nothing
  // alive reads any more is dead. The new node stands where the last of the old producers stood.
  // Users of the values are not touched: not one byte of them changes.
  const Node* Replace(absl::Span<const TakenOutput> taken, size_t output_count, const NewNode& node);
  // The same of a node with one output.
  const Node* ReplaceValue(const Value* value, const NewNode& node);
  // The same of a node with the outputs of `old`, each at its own place; those that another node computes by now stay there.
  const Node* ReplaceNode(const Node& old, const NewNode& node);

  // Writes a node of a replacement anew: a Restore of the new one brings back what one of the old one would.
  const Node* ReplaceMade(const Node& old, const NewNode& node);

  // Writes a dead node anew that a Restore may bring back: the new node, which is dead too, comes back in its place.
  const Node* ReplaceWaiting(const Node& old, const NewNode& node);

  // The values that a Replace gave a new producer, in the order of these replacements; those that were taken back are gone.
  absl::Span<const Value* const> replaced() const { return replaced_; }

  // Takes back a Replace: the old producers compute the values again and the new node is dead.
  // Nodes revived and killed follow liveness. Only the latest replacement of each value can be taken back.
  void Restore(const Node* replacement);

  // Makes input `index` of `node` read `value`.
  void SetInput(const Node* node, size_t index, const Value* value);

  // A constant in memory, placed among the initializers of `graph`; equal constants are made once.
  const Value* Constant(const Graph* graph, DataType type, absl::Span<const int64_t> dims, std::string_view bytes,
                        std::string_view name);
  // The same of a large constant that a few words describe: its bytes are made only where no constant of these words is there
  // yet.
  const Value* Constant(const Graph* graph, DataType type, absl::Span<const int64_t> dims, std::string_view words,
                        absl::FunctionRef<std::string()> bytes, std::string_view name);
  // A scalar; nullptr for a type that EncodeNumber does not write.
  const Value* NumberConstant(const Graph* graph, DataType type, double value, std::string_view name);
  const Value* Int64Constant(const Graph* graph, absl::Span<const int64_t> values, std::string_view name);  // [n]

  // A constant that is `constants` (initializers of one type, dims equal but for `axis`) one after another along
  // `axis`, placed among the initializers of the first one's graph. It refers to their elements; none are copied
  // until the model is saved. INVALID_ARGUMENT with a sentence when their elements are not all there.
  absl::StatusOr<const Value*> Join(absl::Span<const Value* const> constants, int64_t axis, std::string_view name);

  // A constant that is `constant` with other elements along `axis`: what stands at place i is what stood at order[i], or zeros
  // where that is -1. The rest is as of Join.
  absl::StatusOr<const Value*> Reorder(const Value* constant, int64_t axis, absl::Span<const int64_t> order,
                                       std::string_view name);

  // A constant among the initializers of `graph` that is computed from integers (Dequantization, ir/tensor.h) when the model
  // is saved; the same one once. Tensors of `how` may be of any storage. INVALID_ARGUMENT with a sentence when their
  // elements are not all there.
  absl::StatusOr<const Value*> Dequantized(const Graph* graph, DataType type, absl::Span<const int64_t> dims,
                                           const Dequantization& how, std::string_view name);

  // Adds or changes an opset import (version 0 removes it).
  void SetOpsetImport(std::string_view domain, int64_t version);
  // How the default domain is spelled when saving.
  void SpellDefaultDomain(DefaultDomain spelling);
  // Declares an input or output of a graph anew, with an encoded TypeProto.
  void Declare(const Value* value, std::string_view type);
  // No value_info is written: inner values have other shapes than the file says.
  void DropValueInfo();
  // Gives a new node the doc_string and the metadata of the one that it stands for.
  void CopyNotes(const Node& from, const Node* to);
  // Renames operator or domain of a node that a Rewriter made.
  void Rename(const Node* node, std::string_view domain, std::string_view op_type);

  // A moment to come back to.
  struct Mark {
    size_t journal = 0;
    uint64_t changes = 0;
  };
  Mark Now() const { return {journal_.size(), change_count_}; }
  // Takes back everything that was done since `mark`: nodes, values, constants, names, imports and spellings are as
  // they were. Only marks younger than the latest Sweep can be come back to. Ids of nodes and values are not
  // given out again.
  void RollBack(const Mark& mark);

  // Nodes that nothing reads, whose results all have ids from `made_from` on, are dead from here on: what was made on trial and
  // not needed is not a reader of what it reads.
  void DropUnread(uint32_t made_from);
  // The same of one node that was made, also where the input had a value of its name.
  void DropIfUnread(const Node* node);

  // Removes dead nodes for good, and the initializers and value_info that only they used; constants that were made
  // and are not used go too, and what DropUnread finds. What was unused in the input stays. Sorts nodes by their order. Nothing
  // from before can be taken back any more.
  void Sweep(uint32_t made_from = UINT32_MAX);

  // A name no value or node has: `base`, else base_1, base_2 ...
  NameId UniqueName(std::string_view base);

  uint64_t change_count() const { return change_count_; }
  // Grows with everything that is done or taken back: where it has not grown, nothing happened.
  uint64_t edits() const { return edits_; }

 private:
  // What a value's producer was before a Replace.
  struct Undo {
    const Value* value;
    const Node* producer;
    uint32_t output_index;
  };
  const Node* Replace(absl::Span<const TakenOutput> taken, size_t output_count, const NewNode& node, const Node* last);
  // A node that `waits` is dead from the beginning, and brings back nothing that it reads.
  const Node* Create(const NewNode& node, const Graph* graph, size_t output_count, uint64_t order, bool waits = false);
  const Value* CreateValue(const Graph* graph, std::string_view name);
  void NameLostOutputs(const Node* node);
  const Value* KeptConstant(const Graph* graph, DataType type, absl::Span<const int64_t> dims, std::string key,
                            absl::FunctionRef<std::string_view()> bytes, std::string_view name);
  void Note(std::function<void()> undo) {
    ++edits_;
    journal_.push_back(std::move(undo));
  }
  // Sets a field of a node, a value, a graph or the model, and notes what it was. All of them belong to the model, which is
  // not const: this is where a reader's pointer becomes a change.
  template <typename T>
  void Assign(const T* field_of_the_model, std::type_identity_t<T> value) {
    if (*field_of_the_model == value) return;
    T* const field = GraphKey::Mutable(field_of_the_model);
    Note([field, old = *field] { *field = old; });
    *field = value;
  }
  void AddInitializer(const Graph* graph, const Value* value, const Tensor* tensor);
  // A constant of this tensor among the initializers of `graph`.
  const Value* AddTensor(const Graph* graph, Tensor* tensor, std::string_view name);
  void SetProducer(const Value* value, const Node* producer, uint32_t output_index);
  // Of the producers that Restores would give a value, `after` takes the place of `before`.
  void BringBackInstead(const Value* value, const Node* before, const Node* after);
  void KillIfUnused(const Node* node);
  void Revive(const Node* node);
  void KeepOrder(const Node* node);
  // The last place that was given out between the node of the file at or before `node` and the next one.
  uint64_t& LastPlace(const Node& node);
  void KeepBefore(const Value* value, const Node* reader);
  void ShareName(const Node* node, absl::Span<const Node* const> replaced);
  void PartNames(const Node* revived);
  void MarkChanged(const Graph* graph);
  // Before a node of `graph` reads `value`: values of bodies that either may be taken for get other names.
  void KeepSeen(const Value* value, const Graph* graph);

  Model* model_;
  std::vector<std::vector<Undo>> undo_;  // by Node::id
  std::vector<const Value*> replaced_;
  std::vector<std::function<void()>> journal_;
  absl::flat_hash_map<std::string, const Value*> constants_;
  std::vector<const Value*> made_constants_;
  // The last place in use between two neighbours of the file, by graph and Node::order of the first of the two.
  absl::flat_hash_map<std::pair<const Graph*, uint64_t>, uint64_t> last_place_;
  // The nodes of a body that died with the node around it, by that node: those come back with it.
  absl::flat_hash_map<const Node*, std::vector<const Node*>> died_with_;
  // Nodes that have one name, as one took it over from the other: not two of them may be alive.
  absl::flat_hash_map<NameId, std::vector<const Node*>> sharing_;
  absl::flat_hash_map<std::string, uint32_t> next_suffix_;
  void ReadNames();
  absl::flat_hash_set<NameId> taken_;     // every value and node name; filled on first use
  absl::flat_hash_set<NameId> repeated_;  // names that several nodes of the file have
  NamesOfBodies names_of_bodies_;         // those of the file
  uint64_t change_count_ = 0;
  uint64_t edits_ = 0;
};

}  // namespace ascend_fuse
