// Sequences and optionals whose elements are known, without them: what takes an element of a sequence, joins or counts its
// elements, reads the tensors themselves. Operators about sequences run on the host, those about optionals have no parser.
// What a loop gathers, or a position that is computed, stays.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/movement/axis.h"
#include "passes/core/node_inserter.h"
#include "passes/legalise/adapters.h"

namespace ascend_fuse {
namespace {

// How many producers of one sequence are looked at.
constexpr int kMostSteps = 256;
constexpr size_t kMostElements = 4096;

std::optional<int64_t> NumberOf(const Workspace& workspace, const Value* value) {
  const Fact& fact = workspace.facts().Of(value);
  if (fact.elements == nullptr || fact.elements->integers.size() != 1) return std::nullopt;
  const Dim number = fact.elements->integers[0];
  return number.is_number() ? std::optional(number.number()) : std::nullopt;
}

bool Has(const Node& node, size_t i) { return i < node.input_count && node.input(i) != nullptr; }

// A tensor of a sequence: a value, or a part of one that is still to be sliced.
struct Element {
  const Value* value = nullptr;
  int64_t axis = -1;  // -1: the whole value
  int64_t first = 0;
  int64_t size = 0;
  bool squeezed = false;
};

const Value* Made(NodeInserter& inserter, const Element& element) {
  if (element.axis < 0) return element.value;
  const Value* const part =
      inserter.Op("Slice", {element.value, inserter.Numbers({element.first}), inserter.Numbers({element.first + element.size}),
                            inserter.Numbers({element.axis})});
  return element.squeezed ? inserter.Squeeze(part, {element.axis}) : part;
}

using Elements = std::optional<std::vector<Element>>;

class Sequences {
 public:
  explicit Sequences(const Workspace& workspace) : workspace_(workspace) {}

  // The tensors of a sequence, in their order.
  Elements Of(const Value* sequence, int steps = 0) const {
    const Node* node = sequence->producer;
    if (node == nullptr || steps > kMostSteps || node->domain != NameId::kEmpty) return std::nullopt;
    if (IsOp(*node, "SequenceEmpty")) return std::vector<Element>();
    if (IsOp(*node, "SequenceConstruct")) {
      std::vector<Element> elements;
      for (const Use& use : node->inputs()) elements.push_back({use.value});
      return elements;
    }
    if (IsOp(*node, "SplitToSequence")) return Parts(*node);
    if (IsOp(*node, "Identity") || IsOp(*node, "Optional")) {
      if (!Has(*node, 0)) return std::nullopt;
      return Of(node->input(0), steps + 1);
    }
    const bool inserts = IsOp(*node, "SequenceInsert");
    if (!inserts && !IsOp(*node, "SequenceErase")) return std::nullopt;
    auto elements = Of(node->input(0), steps + 1);
    if (!elements.has_value() || elements->size() >= kMostElements) return std::nullopt;
    const size_t at = inserts ? 2 : 1;
    const int64_t count = static_cast<int64_t>(elements->size());
    int64_t place = inserts ? count : count - 1;
    if (Has(*node, at)) {
      const auto number = NumberOf(workspace_, node->input(at));
      if (!number.has_value()) return std::nullopt;
      if (!inserts || *number != count) place = NormalizePosition(*number, count);
    }
    if (place < 0) return std::nullopt;
    if (inserts) {
      elements->insert(elements->begin() + place, Element{node->input(1)});
    } else {
      elements->erase(elements->begin() + place);
    }
    return elements;
  }

 private:
  // SplitToSequence (x, split) <axis, keepdims>: slices. Without split each is one element long, and has the axis only where
  // keepdims says so.
  Elements Parts(const Node& node) const {
    const Fact& x = workspace_.facts().Of(node.input(0));
    const int64_t given = IntAttribute(node, "axis").value_or(0);
    if (!x.has_rank) return std::nullopt;
    const int64_t axis = NormalizeAxis(given, x.rank());
    if (axis < 0) return std::nullopt;
    const Dim length = workspace_.facts().dims().Resolve(x.shape[static_cast<size_t>(axis)]);
    std::vector<int64_t> sizes;
    bool squeezed = false;
    if (!Has(node, 1) || workspace_.facts().Of(node.input(1)).rank() == 0) {
      const auto part = Has(node, 1) ? NumberOf(workspace_, node.input(1)) : std::optional<int64_t>(1);
      if (!length.is_number() || !part.has_value() || *part < 1) return std::nullopt;
      if (length.number() / *part >= static_cast<int64_t>(kMostElements)) return std::nullopt;
      for (int64_t left = length.number(); left > 0; left -= *part) sizes.push_back(std::min(left, *part));
      squeezed = !Has(node, 1) && IntAttribute(node, "keepdims").value_or(1) == 0;
    } else {
      const Fact& split = workspace_.facts().Of(node.input(1));
      if (split.elements == nullptr) return std::nullopt;
      for (const Dim size : split.elements->integers) {
        if (!size.is_number() || size.number() < 0) return std::nullopt;
        sizes.push_back(size.number());
      }
    }
    std::vector<Element> parts;
    int64_t first = 0;
    for (const int64_t size : sizes) {
      parts.push_back({node.input(0), axis, first, size, squeezed});
      first += size;
    }
    return parts;
  }

  const Workspace& workspace_;
};

// SequenceAt (s, i): the element.
bool WriteAt(Workspace& workspace, const Node* node) {
  const auto number = NumberOf(workspace, node->input(1));
  if (!number.has_value()) return false;
  const Elements elements = Sequences(workspace).Of(node->input(0));
  if (!elements.has_value()) return false;
  const int64_t place = NormalizePosition(*number, static_cast<int64_t>(elements->size()));
  if (place < 0) return false;
  NodeInserter inserter(workspace, *node);
  Rewrite(workspace, node, "Identity", {Made(inserter, (*elements)[static_cast<size_t>(place)])}, {});
  return true;
}

// ConcatFromSequence (s) <axis, new_axis>: a Concat of the elements, with an axis more where they are stacked.
bool WriteConcat(Workspace& workspace, const Node* node) {
  const auto axis = IntAttribute(*node, "axis");
  const Elements elements = Sequences(workspace).Of(node->input(0));
  if (!axis.has_value() || !elements.has_value() || elements->empty()) return false;
  const bool stacked = IntAttribute(*node, "new_axis").value_or(0) != 0;
  NodeInserter inserter(workspace, *node);
  std::vector<const Value*> parts;
  for (const Element& element : *elements) {
    const Value* const part = Made(inserter, element);
    parts.push_back(stacked ? inserter.Unsqueeze(part, {*axis}) : part);
  }
  Rewrite(workspace, node, "Concat", std::move(parts), {Attribute::Int("axis", *axis)});
  return true;
}

bool WriteLength(Workspace& workspace, const Node* node) {
  const Elements elements = Sequences(workspace).Of(node->input(0));
  if (!elements.has_value()) return false;
  const int64_t count = static_cast<int64_t>(elements->size());
  RewriteAsConstant(workspace, node, DataType::kInt64, {}, {reinterpret_cast<const char*>(&count), sizeof count});
  return true;
}

// What an optional holds: the input of Optional, or from opset 18 on a tensor that is not an optional; nullptr where that is not
// known.
const Value* Held(const Workspace& workspace, const Node& node) {
  if (!Has(node, 0)) return nullptr;
  const Value* const given = node.input(0);
  const Node* const maker = given->producer;
  if (maker != nullptr && IsOp(*maker, "Optional")) return Has(*maker, 0) ? maker->input(0) : nullptr;
  return workspace.facts().Of(given).type != DataType::kUndefined && workspace.facts().Of(given).has_rank ? given : nullptr;
}

bool WriteHeld(Workspace& workspace, const Node* node) {
  const Value* const held = Held(workspace, *node);
  if (held == nullptr) return false;
  Rewrite(workspace, node, "Identity", {held}, {});
  return true;
}

bool WriteIsHeld(Workspace& workspace, const Node* node) {
  const bool nothing = !Has(*node, 0);
  const Node* const maker = nothing ? nullptr : node->input(0)->producer;
  const bool empty = nothing || (maker != nullptr && IsOp(*maker, "Optional") && !Has(*maker, 0));
  if (!empty && Held(workspace, *node) == nullptr) return false;
  const char truth = empty ? 0 : 1;
  RewriteAsConstant(workspace, node, DataType::kBool, {}, {&truth, 1});
  return true;
}

constexpr struct {
  std::string_view op;
  std::string_view code;
  bool (*write)(Workspace& workspace, const Node* node);
} kReaders[] = {
    {"SequenceAt", "on-host", WriteAt},
    {"ConcatFromSequence", "on-host", WriteConcat},
    {"SequenceLength", "on-host", WriteLength},
    {"OptionalGetElement", "no-parser", WriteHeld},
    {"OptionalHasElement", "no-parser", WriteIsHeld},
};

}  // namespace

void AdaptSequences(Workspace& workspace) {
  std::vector<std::pair<const Node*, size_t>> found;  // first all, then the changes
  for (const auto& graph : workspace.model().graphs()) {
    for (const Node* node : graph->nodes()) {
      if (node->dead || node->domain != NameId::kEmpty || node->output_count != 1) continue;
      for (size_t i = 0; i < std::size(kReaders); ++i) {
        if (IsOp(*node, kReaders[i].op)) found.emplace_back(node, i);
      }
    }
  }
  for (const auto& [node, reader] : found) {
    const auto forms = workspace.target()->UnsupportedForms(*node, workspace.model().OpsetVersion(), &workspace.facts());
    const std::string code(kReaders[reader].code);
    const bool has_form =
        std::any_of(forms.begin(), forms.end(), [&](const UnsupportedForm* form) { return form->code == code; });
    const std::string label(Label(*node));
    const std::string op(OpType(*node));
    if (has_form && !node->dead && kReaders[reader].write(workspace, node)) workspace.result.adapted[{code, op}].push_back(label);
  }
}

}  // namespace ascend_fuse
