// Verify finds every single fault wherever it is, and says at which node and value; what the Rewriter does is never refused.
// Signature finds every change of the inputs and outputs of a graph.
#include "ir/verify.h"

#include <functional>
#include <optional>

#include "absl/strings/match.h"
#include "tests/unit/models.h"
#include "tests/unit/random_rewrites.h"

namespace ascend_fuse {
namespace {

using namespace ascend_fuse::testing;  // NOLINT

// No code of the library can make these faults: it has no pointer that would let it.
template <typename T>
T& ToBreak(const T& of_a_model) {
  return const_cast<T&>(of_a_model);
}

// What the sentence must name.
using Named = std::vector<std::string>;

// A place in the model to make a fault at.
struct Place {
  Model& model;
  RandomRewrites& random;

  // A read of a value that a node computes, in any graph that is alive; nullptr: this fault cannot be made here.
  const Use* Read(const std::function<bool(const Use&)>& fits) {
    std::vector<const Use*> reads;
    for (const Node* node : random.Nodes()) {
      for (const Use& use : node->inputs()) {
        if (use.value != nullptr && use.value->producer != nullptr && fits(use)) reads.push_back(&use);
      }
    }
    return reads.empty() ? nullptr : reads[random.Below(reads.size())];
  }
  const Use* AnyRead() {
    return Read([](const Use&) { return true; });
  }
};

Named NamesOf(const Use& use) {
  return {"'" + std::string(ValueName(*use.value)) + "'", "'" + std::string(NodeName(*use.user)) + "'"};
}
bool InOneGraph(const Use& use) { return use.user->graph == use.value->graph; }

struct Fault {
  const char* name;
  std::function<std::optional<Named>(Place)> make;
};

// Long because it is a list, one entry a kind of fault.
std::vector<Fault> Faults() {
  return {
      {"a cycle of two",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.Read([](const Use& read) {
           return InOneGraph(read) && read.value->producer->input_count > 0 && read.user->output() != nullptr &&
                  read.user->output()->producer == read.user;
         });
         if (use == nullptr) return std::nullopt;
         const Node* first = use->value->producer;
         GraphBuilder(&at.model).SetInput(first, 0, use->user->output());
         return NamesOf(first->inputs()[0]);
       }},
      {"a node that reads itself",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.Read([](const Use& read) { return read.value->producer->input_count > 0; });
         if (use == nullptr) return std::nullopt;
         GraphBuilder(&at.model).SetInput(use->value->producer, 0, use->value);
         return NamesOf(use->value->producer->inputs()[0]);
       }},
      {"a body that reads what the node around it computes",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.Read([](const Use& read) {
           const Node* owner = read.user->graph->owner();
           return owner != nullptr && owner->output() != nullptr && owner->output()->producer == owner;
         });
         if (use == nullptr) return std::nullopt;
         GraphBuilder(&at.model).SetInput(use->user, use->index, use->user->graph->owner()->output());
         return NamesOf(*use);
       }},
      {"a producer that stands after a reader",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.Read(InOneGraph);
         if (use == nullptr) return std::nullopt;
         // Moved right after the reader: what it reads stands before it still.
         ToBreak(use->value->producer->order) = use->user->order + 1;
         return Named{"before"};
       }},
      {"an initializer that a node computes",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         const_cast<std::vector<const Value*>&>(use->value->graph->initializers()).push_back(use->value);
         return Named{NamesOf(*use)[0], "twice"};
       }},
      {"a graph input that a node computes",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         const_cast<std::vector<const Value*>&>(use->value->graph->inputs()).push_back(use->value);
         return Named{NamesOf(*use)[0], "twice"};
       }},
      {"a node that stands twice",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         const Node* node = use->value->producer;
         const_cast<std::vector<const Node*>&>(node->graph->nodes()).push_back(node);
         return Named{"'" + std::string(NodeName(*node)) + "'", "twice"};
       }},
      {"a read of the body beside it",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.Read([](const Use& read) {
           const Node* owner = read.user->graph->owner();
           return owner != nullptr && owner->subgraph_count == 2;
         });
         if (use == nullptr) return std::nullopt;
         const Node* owner = use->user->graph->owner();
         const Graph* other = owner->subgraphs()[owner->subgraphs()[0] == use->user->graph ? 1 : 0];
         for (const Node* node : other->nodes()) {
           if (node->dead || node->output() == nullptr || node->output()->producer != node) continue;
           GraphBuilder(&at.model).SetInput(use->user, use->index, node->output());
           return NamesOf(*use);
         }
         return std::nullopt;
       }},
      {"a read into a body",
       [](Place at) -> std::optional<Named> {
         const Use* inner = at.Read([](const Use& read) { return read.value->graph->owner() != nullptr; });
         const Use* outer = at.Read([](const Use& read) { return read.user->graph->owner() == nullptr; });
         if (inner == nullptr || outer == nullptr) return std::nullopt;
         GraphBuilder(&at.model).SetInput(outer->user, outer->index, inner->value);
         return NamesOf(*outer);
       }},
      {"a body that has the name of what it reads from around it",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.Read([](const Use& read) {
           return !InOneGraph(read) && read.user->output() != nullptr && read.user->output()->producer == read.user;
         });
         if (use == nullptr) return std::nullopt;
         ToBreak(*use->user->output()).name = use->value->name;
         return Named{NamesOf(*use)[0], "its own"};
       }},
      {"a body that gives a value of another body",
       [](Place at) -> std::optional<Named> {
         const Use* inner = at.Read([](const Use& read) { return read.value->graph->owner() != nullptr; });
         if (inner == nullptr) return std::nullopt;
         const_cast<std::vector<const Value*>&>(at.model.graph().outputs()).push_back(inner->value);
         return Named{NamesOf(*inner)[0], "the main graph"};
       }},
      {"a value name given twice",
       [](Place at) -> std::optional<Named> {
         const Use* one = at.AnyRead();
         if (one == nullptr) return std::nullopt;
         const Use* two =
             at.Read([one](const Use& read) { return read.value->graph == one->value->graph && read.value != one->value; });
         if (two == nullptr) return std::nullopt;
         ToBreak(two->value->name) = one->value->name;
         return Named{NamesOf(*one)[0]};
       }},
      {"a made node with the name of another",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.Read([](const Use& read) { return !NodeName(*read.user).empty(); });
         if (use == nullptr) return std::nullopt;
         const Node* made = at.random.rewriter().Insert(Spec("Made", {}), 1, &at.model.graph(), "made_for_its_name");
         ToBreak(made->name) = use->user->name;
         return Named{NamesOf(*use)[1], "two nodes"};
       }},
      {"a dead producer",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         ToBreak(use->value->producer->dead) = true;
         return Named{"any more"};
       }},
      {"a value swapped under its use",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         const Value* other = at.model.graph().inputs()[0];
         if (use == nullptr) return std::nullopt;
         Named named = {NamesOf(*use)[0]};
         const_cast<Use*>(use)->value = other;
         return named;
       }},
      {"a use that is not in the list",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         *use->previous = nullptr;
         return Named{NamesOf(*use)[0]};
       }},
      {"a use with a broken link",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         const_cast<Use*>(use)->previous = nullptr;
         return NamesOf(*use);
       }},
      {"a use that says another place",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         const_cast<Use*>(use)->index += 1;
         return NamesOf(*use);
       }},
      {"a value that says another place among the outputs",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         ToBreak(use->value->output_index) += 1;
         return Named{NamesOf(*use)[0], "'" + std::string(NodeName(*use->value->producer)) + "'"};
       }},
      {"an output that is not there any more",
       [](Place at) -> std::optional<Named> {
         const Use* use = at.AnyRead();
         if (use == nullptr) return std::nullopt;
         ToBreak(use->value->producer->outputs_begin[use->value->output_index]) = nullptr;
         return Named{NamesOf(*use)[0], "not defined"};
       }},
  };
}

// Of the file as it is, and after some valid steps.
TEST(VerifyTest, EverySingleFaultIsFound) {
  for (const Fault& fault : Faults()) {
    int made = 0;
    for (uint32_t seed = 0; seed < 20; ++seed) {
      for (const std::unique_ptr<Model>& model : ModelsToRewrite()) {
        RandomRewrites random(model.get(), seed);
        std::string steps = fmt::format("\n{}, seed {} of {}", fault.name, seed, model->Text(model->graph().name()));
        for (uint32_t i = 0; i < seed % 10; ++i) steps += "\n" + random.Step();
        ASSERT_TRUE(Verify(*model).ok()) << Verify(*model) << steps;
        const std::optional<Named> named = fault.make({*model, random});
        if (!named.has_value()) continue;
        ++made;
        const absl::Status status = Verify(*model);
        ASSERT_EQ(status.code(), absl::StatusCode::kInternal) << steps;
        for (const std::string& name : *named) EXPECT_HAS(std::string(status.message()), name) << steps;
      }
    }
    EXPECT_GT(made, 10) << fault.name;
  }
}

TEST(SignatureTest, EveryChangeOfInputsAndOutputsIsFound) {
  using Change = std::function<void(std::vector<const Value*>&, Model&)>;
  const std::vector<Change> changes = {
      [](std::vector<const Value*>& ports, Model&) { ports.pop_back(); },
      [](std::vector<const Value*>& ports, Model&) { ports.push_back(ports[0]); },
      [](std::vector<const Value*>& ports, Model&) { std::swap(ports[0], ports[1]); },
      [](std::vector<const Value*>& ports, Model& model) { ToBreak(ports[1]->name) = model.names().InternCopy("renamed"); },
      [](std::vector<const Value*>& ports, Model&) { ToBreak(ports[0]->declared_type) = "\x0a\x02\x08\x0b"; },
      [](std::vector<const Value*>& ports, Model&) { ToBreak(ports[0]->declared_type) = {}; },
      [](std::vector<const Value*>& ports, Model& model) { ports[0] = model.graph().nodes()[0]->output(); },
  };
  for (const bool of_inputs : {true, false}) {
    for (size_t i = 0; i < changes.size(); ++i) {
      const auto model = Loaded(kNested);
      const Signature signature(*model);
      ASSERT_TRUE(signature.Check(*model).ok());
      changes[i](const_cast<std::vector<const Value*>&>(of_inputs ? model->graph().inputs() : model->graph().outputs()), *model);
      const absl::Status status = signature.Check(*model);
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << i;
      EXPECT_HAS(std::string(status.message()), of_inputs ? "input" : "output");
    }
  }
}

TEST(SignatureTest, RewritingKeepsIt) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    for (const std::unique_ptr<Model>& model : ModelsToRewrite()) {
      const Signature signature(*model);
      RandomRewrites random(model.get(), seed);
      for (int i = 0; i < 20; ++i) random.Step();
      EXPECT_TRUE(signature.Check(*model).ok()) << signature.Check(*model);
    }
  }
}

}  // namespace
}  // namespace ascend_fuse
