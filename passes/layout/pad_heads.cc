#include "passes/layout/pad_heads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "fmt/format.h"
#include "ir/movement/axis.h"
#include "ir/status_macros.h"
#include "passes/core/beside.h"
#include "passes/core/call_of.h"
#include "passes/layout/attention_layout.h"
#include "patterns/analysis/linear.h"
#include "patterns/target/target.h"

namespace ascend_fuse {

namespace {

constexpr size_t kMostNodes = 64;  // from the attention to the projections
constexpr size_t kMostSteps = 12;  // from it to what reads the result

absl::Status No(std::string_view clause) { return absl::FailedPreconditionError(std::string(clause)); }

// Later values first; those that nothing computes last.
struct Later {
  bool operator()(const Value* a, const Value* b) const {
    if (a->producer == b->producer) return a->id > b->id;
    if (a->producer == nullptr || b->producer == nullptr) return b->producer == nullptr;
    return StandsBefore(*b->producer, *a->producer);
  }
};

// The parts of one axis of `size` elements that readers ask for, together. nullopt where two ask for different things.
std::optional<Places> Together(std::vector<PaddedPart> parts, const Dim size) {
  if (std::all_of(parts.begin(), parts.end(), [](const PaddedPart& part) { return part.places.empty(); })) return Places();
  if (!size.is_number()) return std::nullopt;
  for (PaddedPart& part : parts) {
    if (part.length < 0) part.length = size.number();
    if (part.places.empty()) part.places = PlacesOfHeads(part.length, part.length, part.length);
  }
  std::sort(parts.begin(), parts.end(),
            [](const PaddedPart& a, const PaddedPart& b) { return std::pair(a.start, a.length) < std::pair(b.start, b.length); });
  Places places;
  int64_t end = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PaddedPart& part = parts[i];
    if (i > 0 && part.start == parts[i - 1].start && part.length == parts[i - 1].length) {
      if (part.places != parts[i - 1].places) return std::nullopt;
      continue;
    }
    if (part.start < end) return std::nullopt;
    for (; end < part.start; ++end) places.push_back(end);
    for (const int64_t from : part.places) places.push_back(from < 0 ? -1 : part.start + from);
    end = part.start + part.length;
  }
  for (; end < size.number(); ++end) places.push_back(end);
  const bool as_it_is = static_cast<int64_t>(places.size()) == size.number();
  return as_it_is ? Places() : places;
}

}  // namespace

// How one attention is padded. First everything is found out, then everything is written.
class PaddingPlan {
 public:
  PaddingPlan(HeadPadder& padder, Node* attention, int64_t width)
      : padder_(padder), workspace_(padder.workspace_), facts_(padder.workspace_.facts()), attention_(attention), width_(width) {}

  absl::StatusOr<PaddedHeads> Run() {
    for (size_t i = 0; i < kAttentionOperands; ++i) {
      const Fact& fact = facts_.Of(attention_->input(i));
      const Dim size = fact.rank() == 4 ? facts_.dims().Resolve(fact.shape[3]) : Dim();
      if (!size.is_number() || size.number() < 2) return No("the size of its heads is not known");
      if (size.number() == width_) continue;
      const ZeroPadding padding = {{}, {}, {}, PlacesOfHeads(size.number(), size.number(), width_)};
      RETURN_IF_ERROR(Ask({attention_, i}, padding));
    }
    RETURN_IF_ERROR(FollowResult());
    while (!asked_.empty()) {
      // All outputs of one node, and then its operands.
      Node* const producer = asked_.begin()->first->producer;
      while (!asked_.empty() && asked_.begin()->first->producer == producer) {
        Value* value = asked_.begin()->first;
        const std::vector<Asked> asked = std::move(asked_.begin()->second);
        asked_.erase(asked_.begin());
        RETURN_IF_ERROR(Settle(value, asked));
      }
      RETURN_IF_ERROR(AskOperands(producer));
    }
    RETURN_IF_ERROR(Write());
    return result_;
  }

 private:
  struct Reader {
    Node* node = nullptr;
    size_t index = 0;

    bool operator<(const Reader& other) const { return std::pair(node->id, index) < std::pair(other.node->id, other.index); }
  };
  struct Asked {
    Reader reader;
    std::vector<PaddedPart> parts;
  };

  // --- what has to be padded ---

  absl::Status Ask(Reader reader, const ZeroPadding& padding) {
    std::vector<PaddedPart> parts;
    for (const Places& places : padding) parts.push_back({0, -1, places});
    return Ask(reader, std::move(parts));
  }

  absl::Status Ask(Reader reader, std::vector<PaddedPart> parts) {
    Value* value = reader.node->input(reader.index);
    if (value == nullptr || facts_.Of(value).rank() != static_cast<int>(parts.size())) {
      return No(fmt::format("the shape of an input of {} '{}' is not known", OpType(*reader.node), Label(*reader.node)));
    }
    if (value->IsConstant()) return AskConstant(reader, value, parts);
    if (value->producer == nullptr) return No(fmt::format("{} is an input", ValueName(*value)));
    if (value->graph != attention_->graph) return No(fmt::format("{} stands in another graph", ValueName(*value)));
    if (padding_.contains(value)) return No(fmt::format("{} is read in front of what it is made of", ValueName(*value)));
    wants_.insert(reader);
    asked_[value].push_back({reader, std::move(parts)});
    return absl::OkStatus();
  }

  // A constant is padded for this reader alone.
  absl::Status AskConstant(Reader reader, Value* value, const std::vector<PaddedPart>& parts) {
    int64_t axis = -1;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].places.empty()) continue;
      if (axis >= 0 || parts[i].length >= 0) return No(fmt::format("{} is read in parts", ValueName(*value)));
      axis = static_cast<int64_t>(i);
    }
    if (axis < 0) return absl::OkStatus();
    // Large ones are not kept twice; layers that share a weight are treated alike.
    if (facts_.Of(value).rank() > 1) {
      std::vector<const Use*> readers;
      AddReaders(*value, &readers);
      for (const Use* use : readers) {
        const bool alike = use->index == readers[0]->index && use->user->op_type == readers[0]->user->op_type;
        if (!alike)
          return No(fmt::format("{} '{}' reads the weight {} too", OpType(*use->user), Label(*use->user), ValueName(*value)));
      }
    }
    constants_[reader] = {static_cast<size_t>(axis), parts[static_cast<size_t>(axis)].places};
    return absl::OkStatus();
  }

  // Exporters write a weight of several layers as one, and Identity of it for each of the others.
  static void AddReaders(const Value& value, std::vector<const Use*>* readers, size_t depth = 0) {
    for (const Use& use : LiveUses(value)) {
      if (IsOp(*use.user, "Identity") && use.user->output() != nullptr && depth < kMostSteps) {
        AddReaders(*use.user->output(), readers, depth + 1);
      } else {
        readers->push_back(&use);
      }
    }
  }

  // The value's padding is what its readers ask for; what computes it is asked for the same.
  absl::Status Settle(Value* value, const std::vector<Asked>& asked) {
    if (value->is_graph_output) return No(fmt::format("{} is an output of the graph", ValueName(*value)));
    std::vector<std::vector<PaddedPart>> by_axis(asked[0].parts.size());
    std::set<Reader> readers;
    for (const Asked& one : asked) {
      readers.insert(one.reader);
      for (size_t axis = 0; axis < by_axis.size(); ++axis) by_axis[axis].push_back(one.parts[axis]);
    }
    const bool constant = IsMadeOfConstant(value);
    std::vector<Node*> beside;  // read other parts of it, as they were
    for (const Use& use : LiveUses(*value)) {
      if (readers.contains({use.user, use.index})) continue;
      // A weight that is turned for several layers is turned once more.
      const Reader& first = *readers.begin();
      if (constant && use.index == first.index && use.user->op_type == first.node->op_type) continue;
      RETURN_IF_ERROR(AddOther(value, use, &by_axis, &beside));
    }
    ZeroPadding padding;
    for (size_t axis = 0; axis < by_axis.size(); ++axis) {
      std::optional<Places> places = Together(by_axis[axis], facts_.dims().Resolve(facts_.Of(value).shape[axis]));
      if (!places.has_value()) return No(fmt::format("{} is read in two ways", ValueName(*value)));
      if (static_cast<int64_t>(places->size()) > kMostPlaces) return No(fmt::format("{} is too wide", ValueName(*value)));
      padding.push_back(*std::move(places));
    }
    if (!IsPadded(padding)) return absl::OkStatus();
    padding_[value] = padding;
    nodes_.insert(beside.begin(), beside.end());
    return absl::OkStatus();
  }

  absl::Status AskOperands(Node* node) {
    std::vector<ZeroPadding> outputs = OutputsOf(*node);
    if (std::none_of(outputs.begin(), outputs.end(), IsPadded)) return absl::OkStatus();
    if (nodes_.size() >= kMostNodes) return No("the projections are too far away");
    nodes_.insert(node);
    const auto operands = OperandsOf(facts_, *node, outputs);
    if (!operands.ok()) return operands.status();
    for (const PaddedOperand& operand : *operands) {
      RETURN_IF_ERROR(Ask({node, operand.index}, operand.parts));
    }
    return absl::OkStatus();
  }

  ZeroPadding PaddingOf(const Value* value) const {
    const auto known = padding_.find(value);
    if (known != padding_.end()) return known->second;
    return ZeroPadding(static_cast<size_t>(std::max(value != nullptr ? facts_.Of(value).rank() : 0, 0)));
  }

  std::vector<ZeroPadding> OutputsOf(const Node& node) const {
    std::vector<ZeroPadding> outputs;
    for (const Value* output : node.outputs()) outputs.push_back(PaddingOf(output));
    return outputs;
  }

  // A reader of the value that is not on the way to the attention.
  absl::Status AddOther(const Value* value, const Use& use, std::vector<std::vector<PaddedPart>>* by_axis,
                        std::vector<Node*>* beside) {
    const absl::Status refused = No(fmt::format("{} '{}' reads {} too", OpType(*use.user), Label(*use.user), ValueName(*value)));
    if (use.user->graph != attention_->graph) return refused;
    if (IsOp(*use.user, "Shape")) {
      shapes_.push_back(use.user);
      return absl::OkStatus();
    }
    const bool cuts = IsOp(*use.user, "Slice") || IsOp(*use.user, "Gather");
    if (!cuts || use.index != 0 || facts_.Of(use.user->output()).rank() < 0) return refused;
    const ZeroPadding none(static_cast<size_t>(facts_.Of(use.user->output()).rank()));
    const auto operands = OperandsOf(facts_, *use.user, {&none, 1});
    if (!operands.ok() || (*operands)[0].parts.size() != by_axis->size()) return refused;
    for (size_t axis = 0; axis < by_axis->size(); ++axis) (*by_axis)[axis].push_back((*operands)[0].parts[axis]);
    beside->push_back(use.user);
    return absl::OkStatus();
  }

  // --- what reads the result ---

  // From the attention on to a product with a weight, which takes the zeros out again; without one a Slice does.
  absl::Status FollowResult() {
    Value* value = attention_->output();
    const Fact& fact = facts_.Of(value);
    const Dim size = fact.rank() == 4 ? facts_.dims().Resolve(fact.shape[3]) : Dim();
    if (!size.is_number()) return No("the size of its result is not known");
    nodes_.insert(attention_);
    if (size.number() == width_) return absl::OkStatus();
    std::vector<std::pair<Value*, ZeroPadding>> path = {
        {value, {{}, {}, {}, PlacesOfHeads(size.number(), size.number(), width_)}}};
    std::vector<Node*> shapes;
    while (path.size() <= kMostSteps) {
      const auto& [at, padding] = path.back();
      const std::optional<Use> use = OneReader(*at, &shapes);
      if (!use.has_value()) break;
      const auto other = OtherFactorOf(facts_, *use->user, use->index, padding);
      if (other.has_value()) {
        if (!IsMadeOfConstant(use->user->input(other->index))) break;
        if (!Ask({use->user, other->index}, other->parts).ok()) break;
        for (const auto& [along, own] : path) {
          padding_[along] = own;
          nodes_.insert(along->producer);
        }
        nodes_.insert(use->user);
        shapes_.insert(shapes_.end(), shapes.begin(), shapes.end());
        return absl::OkStatus();
      }
      std::optional<ZeroPadding> next = ResultOf(facts_, *use->user, use->index, padding);
      if (!next.has_value()) break;
      path.emplace_back(use->user->output(), *std::move(next));
    }
    result_.sliced = true;
    return absl::OkStatus();
  }

  // The reader of the value, where it has one besides those of its dims.
  std::optional<Use> OneReader(const Value& value, std::vector<Node*>* shapes) const {
    std::optional<Use> one;
    if (value.is_graph_output) return std::nullopt;
    for (const Use& use : LiveUses(value)) {
      if (use.user->graph != attention_->graph) return std::nullopt;
      if (IsOp(*use.user, "Shape")) {
        shapes->push_back(use.user);
      } else if (one.has_value()) {
        return std::nullopt;
      } else {
        one = use;
      }
    }
    return one;
  }

  // An initializer, turned or cast on the way.
  static bool IsMadeOfConstant(const Value* value) {
    while (value != nullptr && value->producer != nullptr &&
           (IsOp(*value->producer, "Transpose") || IsOp(*value->producer, "Cast") || IsOp(*value->producer, "Identity"))) {
      value = value->producer->input(0);
    }
    return value != nullptr && value->IsConstant();
  }

  // --- writing ---

  absl::Status Write() {
    std::vector<Node*> nodes(nodes_.begin(), nodes_.end());
    std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return StandsBefore(*a, *b); });
    for (Node* node : nodes) {
      RETURN_IF_ERROR(WriteNode(node));
    }
    for (Node* shape : shapes_) WriteShape(shape);
    for (const Node* node : nodes) {
      const bool of_constant = node->output_count > 0 && IsMadeOfConstant(node->output());
      if (!node->dead && !of_constant) return No(fmt::format("{} '{}' is still needed", OpType(*node), Label(*node)));
    }
    std::sort(result_.weights.begin(), result_.weights.end());
    return absl::OkStatus();
  }

  absl::Status WriteNode(Node* node) {
    const std::vector<ZeroPadding> outputs = OutputsOf(*node);
    absl::StatusOr<NewNode> plan =
        node == attention_ ? PlanOf(*node) : PaddedNode(*node, outputs, PaddingOf(node->input(0)), workspace_);
    if (!plan.ok()) return plan.status();
    for (size_t i = 0; i < node->input_count; ++i) {
      const auto made = made_.find(node->input(i));
      // Other readers of a turned weight keep it.
      const bool wanted = made != made_.end() && (wants_.contains({node, i}) || !IsMadeOfConstant(node->input(i)));
      if (wanted) plan->inputs[i] = made->second;
      const auto constant = constants_.find({node, i});
      if (constant == constants_.end()) continue;
      const auto padded = PaddedConstant(node->input(i), constant->second.first, constant->second.second);
      if (!padded.ok()) return padded.status();
      plan->inputs[i] = *padded;
    }
    const bool slices = node == attention_ && result_.sliced;
    if (!slices && std::none_of(outputs.begin(), outputs.end(), IsPadded)) {
      Node* written = workspace_.rewriter().ReplaceNode(*node, *plan);
      workspace_.Know(written);
      if (node == attention_) result_.attention = written;
      return absl::OkStatus();
    }
    plan->keep_name = plan->keep_name && !IsMadeOfConstant(node->output());  // which other layers may read
    Node* written = workspace_.rewriter().Insert(*plan, node->output_count, node->graph,
                                                 fmt::format("{}_padded", ValueName(*node->output())));
    workspace_.Know(written);
    if (node == attention_) result_.attention = written;
    if (slices) return WriteSlice(written->output());
    for (size_t i = 0; i < node->output_count; ++i) {
      if (node->output(i) == nullptr) continue;
      made_[node->output(i)] = written->output(i);
      if (!IsPadded(outputs[i])) Redirect(*node->output(i), written->output(i));
    }
    return absl::OkStatus();
  }

  // The result as it was, of the one with zeros.
  absl::Status WriteSlice(Value* padded) {
    Value* result = attention_->output();
    const int64_t size = facts_.dims().Resolve(facts_.Of(result).shape[3]).number();
    NewNode slice;
    slice.op_type = "Slice";
    slice.name = fmt::format("{}_slice", ValueName(*result));
    slice.inputs = {padded};
    if (workspace_.model().OpsetVersion() >= 10) {
      Beside beside(workspace_, result->graph, ValueName(*result));
      for (const int64_t number : {int64_t{0}, size, int64_t{3}}) slice.inputs.push_back(beside.Numbers({number}));
    } else {
      slice.attributes = {Attribute::Ints("starts", {0}), Attribute::Ints("ends", {size}), Attribute::Ints("axes", {3})};
    }
    workspace_.Know(workspace_.rewriter().ReplaceValue(result, slice));
    return absl::OkStatus();
  }

  // What reads a part that is as it was reads the new one.
  void Redirect(const Value& old, Value* now) {
    std::vector<std::pair<Node*, size_t>> uses;
    for (const Use& use : LiveUses(old)) {
      if (!nodes_.contains(use.user)) uses.emplace_back(use.user, use.index);
    }
    for (const auto& [user, index] : uses) {
      workspace_.rewriter().SetInput(user, index, now);
      workspace_.Know(user);
    }
  }

  // The dims of a value that is padded now are those that it had.
  void WriteShape(Node* shape) {
    if (shape->dead) return;
    const Value* value = shape->input(0);
    const auto made = made_.find(value);
    if (made == made_.end()) return;
    const ZeroPadding padding = PaddingOf(value);
    const auto dims = facts_.Of(value).shape;
    const auto rank = static_cast<int64_t>(padding.size());
    const int64_t start = ClampBound(IntAttribute(*shape, "start").value_or(0), rank);
    const int64_t end = ClampBound(IntAttribute(*shape, "end").value_or(rank), rank);
    std::vector<int64_t> less;
    for (int64_t i = start; i < end; ++i) {
      const Places& places = padding[static_cast<size_t>(i)];
      const Dim dim = facts_.dims().Resolve(dims[static_cast<size_t>(i)]);
      less.push_back(places.empty() ? 0 : dim.number() - static_cast<int64_t>(places.size()));
    }
    if (std::all_of(less.begin(), less.end(), [](int64_t number) { return number == 0; }) || OtherDimsAlone(*shape, less)) {
      workspace_.rewriter().SetInput(shape, 0, made->second);
      workspace_.Know(shape);
      return;
    }
    NewNode now = PlanOf(*shape);
    now.inputs = {made->second};
    Node* written = workspace_.rewriter().Insert(now, 1, shape->graph, fmt::format("{}_padded", ValueName(*shape->output())));
    workspace_.Know(written);
    NewNode add;
    add.op_type = "Add";
    add.name = fmt::format("{}_add", ValueName(*shape->output()));
    add.inputs = {written->output(), Beside(workspace_, *shape).Numbers(less)};
    workspace_.Know(workspace_.rewriter().ReplaceValue(shape->output(), add));
  }

  // Whether all that is read of the shape is one dim each, and none that is padded.
  bool OtherDimsAlone(const Node& shape, const std::vector<int64_t>& less) const {
    if (shape.output()->is_graph_output) return false;
    for (const Use& use : LiveUses(*shape.output())) {
      const Value* index = IsOp(*use.user, "Gather") && use.index == 0 ? use.user->input(1) : nullptr;
      const Elements* elements = index != nullptr ? facts_.Of(index).elements : nullptr;
      if (elements == nullptr || elements->integers.size() != 1 || !elements->integers[0].is_number()) return false;
      int64_t at = elements->integers[0].number();
      if (at < 0) at += static_cast<int64_t>(less.size());
      if (at < 0 || at >= static_cast<int64_t>(less.size()) || less[static_cast<size_t>(at)] != 0) return false;
    }
    return true;
  }

  absl::StatusOr<Value*> PaddedConstant(Value* constant, size_t axis, const Places& places) {
    auto& known = padder_.padded_[{constant, axis}];
    for (const auto& [own, value] : known) {
      if (own == places) return value;
    }
    absl::StatusOr<Value*> padded = workspace_.rewriter().Reorder(constant, static_cast<int64_t>(axis), places,
                                                                  fmt::format("{}_padded", ValueName(*constant)));
    if (!padded.ok()) return padded.status();
    InferConstant(*padded, &facts_);
    known.emplace_back(places, *padded);
    result_.weights.emplace_back(ValueName(*constant));
    return padded;
  }

  HeadPadder& padder_;
  Workspace& workspace_;
  Facts& facts_;
  Node* const attention_;
  const int64_t width_;
  PaddedHeads result_;
  std::map<Value*, std::vector<Asked>, Later> asked_;
  std::set<Reader> wants_;
  absl::flat_hash_map<const Value*, ZeroPadding> padding_;
  std::set<Node*> nodes_;                                  // to be written
  std::vector<Node*> shapes_;                              // read the dims of what is padded
  std::map<Reader, std::pair<size_t, Places>> constants_;  // axis and places
  absl::flat_hash_map<const Value*, Value*> made_;
};

absl::StatusOr<PaddedHeads> HeadPadder::Pad(Node* attention, int64_t width) { return PaddingPlan(*this, attention, width).Run(); }

absl::StatusOr<int64_t> HeadsTaken(const Node& kernel, Workspace& workspace) {
  const HeadPadding* padding = FindHeadPadding(OpType(kernel));
  if (padding == nullptr || StringAttribute(kernel, "input_layout") != "BNSD") return 0;
  const std::string op = fmt::format("npu.{}", OpType(kernel));
  Call call = CallOf(kernel, workspace.facts(), op);
  int64_t least = kMostPlaces;
  int64_t most = 0;
  for (size_t i = 0; i < kAttentionOperands; ++i) {
    if (call.inputs.size() < kAttentionOperands || call.inputs[i].shape.size() != 4) return 0;
    const Dim size = workspace.facts().dims().Resolve(call.inputs[i].shape[3]);
    if (!size.is_number()) return 0;
    least = std::min(least, size.number());
    most = std::max(most, size.number());
  }
  const int64_t rounded = (most + padding->multiple_of - 1) / padding->multiple_of * padding->multiple_of;
  for (const int64_t width : {most, rounded}) {
    for (size_t i = 0; i < kAttentionOperands; ++i) call.inputs[i].shape[3] = Dim::Of(width);
    if (!workspace.target()->Check(call, &workspace.facts().dims()).legal) continue;
    if (static_cast<double>(width) <= static_cast<double>(least) * padding->at_most) return width;
    return No(fmt::format("heads of {} would be {} wide, more than {} times their size", least, width, padding->at_most));
  }
  return 0;
}

}  // namespace ascend_fuse
