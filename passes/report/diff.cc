#include "passes/report/diff.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "ir/attribute.h"
#include "passes/core/module_path.h"
#include "passes/core/workspace.h"
#include "passes/report/place_pattern.h"

namespace ascend_fuse {
namespace {

// The nodes of one model that the other one does not have.
class Side {
 public:
  explicit Side(const Model& model) : model_(model) {
    for (const Node* node : model.graph().nodes()) {
      if (node->dead) continue;
      ++count_;
      for (const Value* value : node->outputs()) {
        if (value != nullptr) producers_.emplace(ValueName(*value), node);
      }
    }
    for (const Value* value : model.graph().inputs()) known_.insert({ValueName(*value), value});
    for (const Value* value : model.graph().initializers()) known_.insert({ValueName(*value), value});
  }

  int64_t count() const { return count_; }
  const Model& model() const { return model_; }
  const Node* ProducerOf(std::string_view name) const {
    const auto found = producers_.find(name);
    return found == producers_.end() ? nullptr : found->second;
  }
  bool Has(std::string_view name) const { return producers_.contains(name) || known_.contains(name); }

 private:
  const Model& model_;
  int64_t count_ = 0;
  absl::flat_hash_map<std::string_view, const Node*> producers_;
  absl::flat_hash_map<std::string_view, const Value*> known_;
};

bool SameNode(const Node& a, const Node& b) {
  if (OperatorKey(a) != OperatorKey(b) || a.input_count != b.input_count || a.output_count != b.output_count) return false;
  for (size_t i = 0; i < a.input_count; ++i) {
    const Value* x = a.input(i);
    const Value* y = b.input(i);
    if ((x == nullptr) != (y == nullptr) || (x != nullptr && ValueName(*x) != ValueName(*y))) return false;
  }
  for (size_t i = 0; i < a.output_count; ++i) {
    const Value* x = a.output(i);
    const Value* y = b.output(i);
    if ((x == nullptr) != (y == nullptr) || (x != nullptr && ValueName(*x) != ValueName(*y))) return false;
  }
  const auto encoded = [](const Node& node) {
    std::vector<std::string_view> attributes;
    for (const Attribute& attribute : ReadAttributes(node)) attributes.push_back(attribute.encoded);
    std::sort(attributes.begin(), attributes.end());
    return attributes;
  };
  return encoded(a) == encoded(b);
}

// Sets of changed nodes that belong together, of both models.
class Groups {
 public:
  size_t Add() {
    parent_.push_back(parent_.size());
    return parent_.size() - 1;
  }
  size_t Of(size_t one) {
    while (parent_[one] != one) one = parent_[one] = parent_[parent_[one]];
    return one;
  }
  void Join(size_t a, size_t b) { parent_[Of(a)] = Of(b); }

 private:
  std::vector<size_t> parent_;
};

std::vector<const Node*> Changed(const Side& side, const Side& other) {
  std::vector<const Node*> changed;
  for (const Node* node : side.model().graph().nodes()) {
    if (node->dead) continue;
    const Node* match = nullptr;
    for (const Value* value : node->outputs()) {
      if (value != nullptr && match == nullptr) match = other.ProducerOf(ValueName(*value));
    }
    if (match == nullptr || !SameNode(*node, *match)) changed.push_back(node);
  }
  return changed;
}

class Differ {
 public:
  Differ(const Model& before, const Model& after) : before_(before), after_(after) {}

  ModelDiff Run() {
    ModelDiff diff;
    diff.nodes_before = before_.count();
    diff.nodes_after = after_.count();
    Frame(&diff);
    const std::vector<const Node*> old_nodes = Changed(before_, after_);
    const std::vector<const Node*> new_nodes = Changed(after_, before_);
    for (const Node* node : new_nodes) number_[node] = groups_.Add();
    for (const Node* node : old_nodes) number_[node] = groups_.Add();
    // Within one model nodes belong together where one reads of the other what only this model knows; across both where
    // they compute one value.
    Connect(new_nodes, before_);
    Connect(old_nodes, after_);
    for (const Node* node : new_nodes) {
      for (const Value* value : node->outputs()) {
        const Node* old = value != nullptr ? before_.ProducerOf(ValueName(*value)) : nullptr;
        if (old != nullptr && number_.contains(old)) groups_.Join(number_[node], number_[old]);
      }
    }
    absl::flat_hash_map<size_t, size_t> place_of;
    const auto place = [&](const Node* node) -> Difference& {
      const auto [at, is_new] = place_of.try_emplace(groups_.Of(number_[node]), diff.places.size());
      if (is_new) diff.places.emplace_back();
      return diff.places[at->second];
    };
    for (const Node* node : new_nodes) {
      Difference& difference = place(node);
      difference.after.push_back(OperatorKey(*node));
      for (const Value* value : node->outputs()) {
        if (value != nullptr && before_.Has(ValueName(*value))) difference.values.emplace_back(ValueName(*value));
      }
    }
    for (const Node* node : old_nodes) {
      Difference& difference = place(node);
      difference.before.push_back(OperatorKey(*node));
      if (difference.module.empty()) difference.module = ModulePath(*node);
    }
    for (const Node* node : new_nodes) {
      Difference& difference = place(node);
      if (difference.module.empty()) difference.module = ModulePath(*node);
    }
    return diff;
  }

 private:
  void Connect(const std::vector<const Node*>& nodes, const Side& other) {
    for (const Node* node : nodes) {
      for (size_t i = 0; i < node->input_count; ++i) {
        const Value* value = node->input(i);
        if (value == nullptr || value->producer == nullptr || other.Has(ValueName(*value))) continue;
        const auto producer = number_.find(value->producer);
        if (producer != number_.end()) groups_.Join(number_[node], producer->second);
      }
    }
  }

  void Frame(ModelDiff* diff) const {
    const auto imports = [](const Model& model) {
      std::map<std::string, int64_t> versions;
      for (const OpsetImport& import : model.opset_imports()) versions[std::string(model.Text(import.domain))] = import.version;
      return versions;
    };
    const auto old_imports = imports(before_.model());
    const auto new_imports = imports(after_.model());
    for (const auto& [domain, version] : old_imports) {
      const auto now = new_imports.find(domain);
      const std::string name = domain.empty() ? "ai.onnx" : domain;
      if (now == new_imports.end()) {
        diff->frame.push_back(fmt::format("the import of {} {} is gone", name, version));
      } else if (now->second != version) {
        diff->frame.push_back(fmt::format("{} is imported at {} instead of {}", name, now->second, version));
      }
    }
    for (const auto& [domain, version] : new_imports) {
      if (old_imports.contains(domain)) continue;
      diff->frame.push_back(fmt::format("{} {} is imported", domain.empty() ? "ai.onnx" : domain, version));
    }
    Ports(before_.model().graph().inputs(), after_.model().graph().inputs(), "input", diff);
    Ports(before_.model().graph().outputs(), after_.model().graph().outputs(), "output", diff);
  }

  static void Ports(const std::vector<const Value*>& before, const std::vector<const Value*>& after, std::string_view what,
                    ModelDiff* diff) {
    const auto find = [](const std::vector<const Value*>& values, std::string_view name) -> const Value* {
      const auto at = std::find_if(values.begin(), values.end(), [&](const Value* value) { return ValueName(*value) == name; });
      return at == values.end() ? nullptr : *at;
    };
    for (const Value* value : before) {
      const Value* now = find(after, ValueName(*value));
      if (now == nullptr) {
        diff->frame.push_back(fmt::format("the {} {} is gone", what, ValueName(*value)));
      } else if (value->declared_type != now->declared_type) {
        diff->frame.push_back(fmt::format("the {} {} has another type or shape", what, ValueName(*value)));
      }
    }
    for (const Value* value : after) {
      if (find(before, ValueName(*value)) == nullptr)
        diff->frame.push_back(fmt::format("the {} {} is new", what, ValueName(*value)));
    }
  }

  Side before_;
  Side after_;
  Groups groups_;
  absl::flat_hash_map<const Node*, size_t> number_;  // of a changed node, in groups_
};

// More than these are not read one by one.
constexpr size_t kWordsInOrder = 24;

// "Mul, 2 Add, Mul" in the order of the nodes; of very many how often each occurs: "90 nodes: 38 Constant, 20 Unsqueeze".
std::string Counted(const std::vector<std::string>& operators) {
  std::vector<std::pair<std::string, size_t>> runs, totals;
  for (const std::string& name : operators) {
    if (runs.empty() || runs.back().first != name) runs.emplace_back(name, 0);
    ++runs.back().second;
    auto total = std::find_if(totals.begin(), totals.end(), [&](const auto& other) { return other.first == name; });
    if (total == totals.end()) total = totals.insert(total, {name, 0});
    ++total->second;
  }
  if (runs.empty()) return "nothing";
  const bool many = runs.size() > kWordsInOrder;
  if (many) std::stable_sort(totals.begin(), totals.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  for (const auto& [name, count] : many ? totals : runs) words.push_back(count == 1 ? name : fmt::format("{} {}", count, name));
  return fmt::format("{}{}", many ? fmt::format("{} nodes: ", operators.size()) : "", fmt::join(words, ", "));
}

}  // namespace

ModelDiff Diff(const Model& before, const Model& after) { return Differ(before, after).Run(); }

std::string DiffToText(const ModelDiff& diff) {
  if (diff.empty()) return "no difference\n";
  std::string text = fmt::format("nodes {} -> {}\n", diff.nodes_before, diff.nodes_after);
  for (const std::string& sentence : diff.frame) text += sentence + "\n";
  struct Line {
    std::string place, before, after;
    size_t count = 0;
    std::string first;  // the place as it is
  };
  std::vector<Line> lines;
  std::map<std::string, size_t> line_of;
  for (const Difference& difference : diff.places) {
    const std::string value = difference.values.empty() ? "" : difference.values.back();
    const std::string place = !difference.module.empty() ? difference.module : !value.empty() ? value : "no name of both models";
    Line line = {PlacePattern(place), Counted(difference.before), Counted(difference.after), 1, place};
    const std::string key = fmt::format("{}\n{}\n{}", line.place, line.before, line.after);
    const auto [at, is_new] = line_of.try_emplace(key, lines.size());
    if (is_new) {
      lines.push_back(std::move(line));
    } else {
      ++lines[at->second].count;
    }
  }
  for (const Line& line : lines) {
    text += line.count == 1 ? fmt::format("\n{}\n", line.first) : fmt::format("\n{} x {}\n", line.count, line.place);
    text += fmt::format("  - {}\n  + {}\n", line.before, line.after);
  }
  return text;
}

}  // namespace ascend_fuse
