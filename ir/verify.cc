#include "ir/verify.h"

#include <string>
#include <vector>

#include "fmt/format.h"
#include "ir/names_of_bodies.h"
#include "ir/status_macros.h"

namespace ascend_fuse {
namespace {

std::string Described(const Node& node) { return fmt::format("{} '{}'", OpType(node), NodeName(node)); }

std::string_view FirstOutput(const Node& node) {
  return node.output() != nullptr ? ValueName(*node.output()) : std::string_view();
}

std::string GraphName(const Graph& graph) {
  return graph.owner() != nullptr ? "a body of " + Described(*graph.owner()) : std::string("the main graph");
}

class Verifier {
 public:
  explicit Verifier(const Model& model)
      : model_(model),
        defined_by_(model.value_count(), nullptr),
        value_names_(model.names().size(), 0),
        node_names_(model.names().size(), NodeNames::kNone) {}

  absl::Status Run() {
    for (const auto& graph : model_.graphs()) {
      if (IsDead(*graph)) continue;
      RETURN_IF_ERROR(Define(*graph));
    }
    for (const auto& graph : model_.graphs()) {
      if (IsDead(*graph)) continue;
      RETURN_IF_ERROR(CheckNames(*graph));
      RETURN_IF_ERROR(CheckNodes(*graph));
      RETURN_IF_ERROR(CheckOutputs(*graph));
    }
    return absl::OkStatus();
  }

 private:
  // The body of a node that is dead, or inside one.
  static bool IsDead(const Graph& graph) {
    for (const Graph* at = &graph; at->owner() != nullptr; at = at->owner()->graph) {
      if (at->owner()->dead) return true;
    }
    return false;
  }

  // Notes where every value of the graph is defined, and that it is defined once.
  absl::Status Define(const Graph& graph) {
    for (const Value* value : graph.inputs()) {
      RETURN_IF_ERROR(DefineOnce(*value, graph, "an input of the graph"));
    }
    for (const Value* value : graph.initializers()) {
      if (value->is_graph_input) continue;  // its default
      RETURN_IF_ERROR(DefineOnce(*value, graph, "an initializer"));
    }
    for (const Node* node : graph.nodes()) {
      if (node->dead) continue;
      if (node->graph != &graph) {
        return absl::InternalError(fmt::format("{} stands in a graph that it does not belong to", Described(*node)));
      }
      for (size_t i = 0; i < node->output_count; ++i) {
        const Value* value = node->output(i);
        if (value == nullptr || value->producer != node) continue;  // a later node took this output over
        if (value->output_index != i) {
          return absl::InternalError(
              fmt::format("'{}' has lost its place among the outputs of {}", ValueName(*value), Described(*node)));
        }
        RETURN_IF_ERROR(DefineOnce(*value, graph, "an output of", node));
      }
    }
    return absl::OkStatus();
  }

  absl::Status DefineOnce(const Value& value, const Graph& graph, std::string_view as, const Node* node = nullptr) {
    const auto place = [&] { return node != nullptr ? fmt::format("{} {}", as, Described(*node)) : std::string(as); };
    if (value.graph != &graph) {
      return absl::InternalError(fmt::format("'{}' is {} in a graph that it does not belong to", ValueName(value), place()));
    }
    const Graph*& defined = defined_by_[value.id];
    if (defined != nullptr) {
      return absl::InternalError(fmt::format("'{}' is defined twice, the second time as {}", ValueName(value), place()));
    }
    defined = &graph;
    return CheckUses(value);
  }

  // That the list of the uses of a value is whole and holds uses of that value only.
  static absl::Status CheckUses(const Value& value) {
    const Use* const* link = &value.uses;
    for (const Use* use = value.uses; use != nullptr; link = &use->next, use = use->next) {
      if (use->value == &value && use->previous == link && use->user != nullptr) continue;
      return absl::InternalError(fmt::format("the uses of '{}' hold one that is not a use of it: {}", ValueName(value),
                                             use->user != nullptr ? Described(*use->user) : "of no node"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckNames(const Graph& graph) {
    ++graph_number_;
    auto add = [&](const Value& value) -> absl::Status {
      uint32_t& last = value_names_[static_cast<size_t>(value.name)];
      if (last == graph_number_) {
        return absl::InternalError(
            fmt::format("two values of a graph are named '{}', one of them {}", ValueName(value),
                        value.producer != nullptr ? "computed by " + Described(*value.producer) : "an input or initializer"));
      }
      last = graph_number_;
      return absl::OkStatus();
    };
    for (const Value* value : graph.inputs()) {
      RETURN_IF_ERROR(add(*value));
    }
    for (const Value* value : graph.initializers()) {
      if (value->is_graph_input) continue;
      RETURN_IF_ERROR(add(*value));
    }
    for (const Node* node : graph.nodes()) {
      if (node->dead) continue;
      for (const Value* value : node->outputs()) {
        if (value == nullptr || value->producer != node) continue;
        RETURN_IF_ERROR(add(*value));
      }
      if (node->name == NameId::kEmpty) continue;
      // Exporters may repeat names of nodes; what is made must not add to that.
      NodeNames& named = node_names_[static_cast<size_t>(node->name)];
      if (named == NodeNames::kMade || (named == NodeNames::kOfTheFile && node->is_new)) {
        return absl::InternalError(fmt::format("two nodes are named '{}', one of them {} computing '{}'", NodeName(*node),
                                               Described(*node), FirstOutput(*node)));
      }
      named = node->is_new ? NodeNames::kMade : NodeNames::kOfTheFile;
    }
    return absl::OkStatus();
  }

  absl::Status CheckNodes(const Graph& graph) {
    for (const Node* node : graph.nodes()) {
      if (node->dead) continue;
      for (size_t i = 0; i < node->input_count; ++i) {
        const Use& use = node->inputs_begin[i];
        if (use.value == nullptr) continue;
        if (use.user != node || use.index != i || use.previous == nullptr || *use.previous != &use) {
          return absl::InternalError(
              fmt::format("input {} of {} is not a use of '{}'", i, Described(*node), ValueName(*use.value)));
        }
        RETURN_IF_ERROR(CheckRead(*use.value, *node));
      }
      for (const Graph* body : node->subgraphs()) {
        if (body != nullptr && body->owner() != node) {
          return absl::InternalError(fmt::format("a body of {} belongs to another node", Described(*node)));
        }
      }
    }
    return absl::OkStatus();
  }

  // That `value` is defined where `reader` can see it, and earlier.
  absl::Status CheckRead(const Value& value, const Node& reader) {
    const Node* producer = value.producer;
    if (producer != nullptr && producer->dead) {
      return absl::InternalError(
          fmt::format("{} reads '{}', which nothing computes any more", Described(reader), ValueName(value)));
    }
    if (defined_by_[value.id] == nullptr) {
      return absl::InternalError(fmt::format("{} reads '{}', which is not defined", Described(reader), ValueName(value)));
    }
    const Node* at = &reader;  // what stands for the reader in the graph of the value
    while (at != nullptr && at->graph != value.graph) at = at->graph->owner();
    if (at == nullptr) {
      return absl::InternalError(fmt::format("{} reads '{}', which is defined in a graph that it does not stand in",
                                             Described(reader), ValueName(value)));
    }
    if (producer == nullptr || (producer != at && StandsBefore(*producer, *at))) return CheckSeen(value, *reader.graph);
    return absl::InternalError(fmt::format("{} reads '{}' before {} computes it, or in a cycle", Described(reader),
                                           ValueName(value), Described(*producer)));
  }

  // That what reads `value` by its name in `graph` finds it (Rewriter::KeepSeen).
  absl::Status CheckSeen(const Value& value, const Graph& graph) {
    const Value* const own = names_of_bodies_.FoundInstead(value, graph);
    if (own == nullptr) return absl::OkStatus();
    return absl::InternalError(
        fmt::format("what is written in {} would read its own '{}' in place of the value of that name around it",
                    GraphName(*own->graph), ValueName(value)));
  }

  absl::Status CheckOutputs(const Graph& graph) {
    for (const Value* value : graph.outputs()) {
      if (value->producer != nullptr && value->producer->dead) {
        return absl::InternalError(fmt::format("the graph output '{}' is computed by nothing any more", ValueName(*value)));
      }
      if (defined_by_[value->id] == nullptr) {
        return absl::InternalError(fmt::format("the graph output '{}' is not defined", ValueName(*value)));
      }
      const Graph* around = &graph;
      while (around != nullptr && around != value->graph) {
        around = around->owner() != nullptr ? around->owner()->graph : nullptr;
      }
      if (around == nullptr) {
        return absl::InternalError(fmt::format("the graph output '{}' of {} is defined in a graph that is not around it",
                                               ValueName(*value), GraphName(graph)));
      }
      RETURN_IF_ERROR(CheckSeen(*value, graph));
    }
    return absl::OkStatus();
  }

  const Model& model_;
  std::vector<const Graph*> defined_by_;  // by Value::id: the graph in which it is defined
  NamesOfBodies names_of_bodies_;
  enum class NodeNames : uint8_t { kNone, kOfTheFile, kMade };
  std::vector<uint32_t> value_names_;  // by NameId: the number of the last graph in which a value has that name
  std::vector<NodeNames> node_names_;  // by NameId
  uint32_t graph_number_ = 0;
};

}  // namespace

std::vector<Signature::Port> Signature::PortsOf(const std::vector<const Value*>& values) {
  std::vector<Port> ports;
  for (const Value* value : values) ports.push_back({value, value->name, value->declared_type});
  return ports;
}

Signature::Signature(const Model& model) : inputs_(PortsOf(model.graph().inputs())), outputs_(PortsOf(model.graph().outputs())) {}

absl::Status Signature::Check(const Model& model) const {
  auto check = [](const std::vector<Port>& ports, const std::vector<const Value*>& values,
                  std::string_view what) -> absl::Status {
    if (ports.size() != values.size()) {
      return absl::InternalError(fmt::format("the graph had {} {}s and has {}", ports.size(), what, values.size()));
    }
    for (size_t i = 0; i < ports.size(); ++i) {
      const Port& port = ports[i];
      if (values[i] != port.value || values[i]->name != port.name || values[i]->declared_type != port.declared_type) {
        return absl::InternalError(fmt::format("{} {} of the graph is another one, or has another name, type or shape: '{}'",
                                               what, i, ValueName(*values[i])));
      }
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(check(inputs_, model.graph().inputs(), "input"));
  return check(outputs_, model.graph().outputs(), "output");
}

absl::Status Verify(const Model& model) { return Verifier(model).Run(); }

}  // namespace ascend_fuse
