// The Builder as a whole, its random choices, and the nodes and values it makes.
#include <tuple>

#include "fmt/format.h"
#include "tools/backwards/builder.h"

namespace ascend_fuse::backwards {

std::optional<Specimen> Builder::Run(const RuleSet& rules, const Rule& rule, std::string* why) {
  Frame* frame = NewFrame(&rules, &rule, &rule.scope, rule.name);
  std::optional<Specimen> specimen;
  if (BuildRule(frame) && Shape() && Number() && Type() && Round() && CheckConditions()) specimen = Write(frame);
  // Choices made on the way to a failure count as tried.
  for (const auto& [key, option] : choices_) coverage_.choices[key][static_cast<size_t>(option)].tried++;
  if (!specimen.has_value()) {
    *why = failure_.empty() ? "no reason" : failure_;
    return std::nullopt;
  }
  for (const auto& [key, option] : choices_) coverage_.choices[key][static_cast<size_t>(option)].built++;
  specimen->choices = choices_;
  return specimen;
}

bool Builder::Fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  return false;
}

Frame* Builder::NewFrame(const RuleSet* rules, const Rule* rule, const Scope* scope, const std::string& path) {
  Frame& frame = frames_.emplace_back();
  frame.rules = rules;
  frame.rule = rule;
  frame.scope = scope;
  frame.slots.resize(scope->names.size());
  frame.closures.resize(scope->names.size());
  frame.path = path;
  return &frame;
}

int Builder::Choose(const std::string& key, const std::vector<std::string>& names, const std::vector<bool>& possible) {
  std::vector<int> open;
  for (size_t i = 0; i < names.size(); ++i) {
    if (possible.empty() || possible[i]) open.push_back(static_cast<int>(i));
  }
  if (open.empty()) return -1;
  if (names.size() == 1) return 0;
  auto [entry, fresh] = coverage_.choices.try_emplace(key);
  std::vector<Coverage::Option>& options = entry->second;
  if (fresh) options.resize(names.size());
  for (size_t i = 0; i < names.size() && fresh; ++i) {
    options[i].name = names[i];
    options[i].unreached = coverage_.unreached.count(WithoutPlace(fmt::format("{}: {}", key, names[i]))) > 0;
  }
  int option = random_.Pick(open);
  if (random_.Chance(60)) {
    // What was matched least, then what was tried least.
    for (int i : open) {
      const auto& a = options[static_cast<size_t>(i)];
      const auto& b = options[static_cast<size_t>(option)];
      if (std::make_tuple(a.unreached, a.matched, a.tried) < std::make_tuple(b.unreached, b.matched, b.tried)) option = i;
    }
  }
  choices_.emplace_back(key, option);
  return option;
}

std::string Builder::Place(const std::string& path, const SourcePosition& position, const std::string& what) {
  const size_t slash = position.file.rfind('/');
  return fmt::format("{} > {}@{}:{}", path, what, slash == std::string::npos ? position.file : position.file.substr(slash + 1),
                     fmt::format("{}:{}", position.line, position.column));
}

int Builder::NewValue(const std::string& name) {
  GraphValue value;
  value.name = name;
  values_.push_back(value);
  types_.push_back(static_cast<int>(types_.size()));
  known_types_.push_back(DataType::kUndefined);
  return static_cast<int>(values_.size()) - 1;
}

int Builder::AddNode(GraphNode node, size_t outputs) {
  const int index = static_cast<int>(nodes_.size());
  int first = kUnknown;
  for (size_t i = 0; i < outputs; ++i) {
    const int value = NewValue(fmt::format("v{}", values_.size()));
    values_[static_cast<size_t>(value)].node = index;
    values_[static_cast<size_t>(value)].output = static_cast<int>(i);
    node.outputs.push_back(value);
    if (first == kUnknown) first = value;
  }
  nodes_.push_back(std::move(node));
  return first;
}

int Builder::Make(const std::string& op, const std::vector<int>& inputs, std::vector<Parameter> parameters) {
  const int value = NewValue(fmt::format("v{}", values_.size()));
  Define({value}, op, inputs, std::move(parameters));
  return value;
}

GraphNode* Builder::Define(const std::vector<int>& outputs, const std::string& op, const std::vector<int>& inputs,
                           std::vector<Parameter> parameters) {
  GraphNode node;
  node.op = op;
  node.schema = FindSchema("", op, opset_);
  node.inputs = inputs;
  node.parameters = std::move(parameters);
  for (size_t i = 0; i < outputs.size(); ++i) {
    GraphValue& value = values_[static_cast<size_t>(outputs[i])];
    value.node = static_cast<int>(nodes_.size());
    value.output = static_cast<int>(i);
  }
  node.outputs = outputs;
  nodes_.push_back(std::move(node));
  changed_ = true;
  return &nodes_.back();
}

int Builder::NewConstant(const std::string& name) {
  const int value = NewValue(name);
  values_[static_cast<size_t>(value)].constant = true;
  return value;
}

GraphNode* Builder::Producer(int value) {
  const int node = value == kUnknown ? kUnknown : values_[static_cast<size_t>(value)].node;
  return node == kUnknown ? nullptr : &nodes_[static_cast<size_t>(node)];
}

void Builder::CutInto(int whole, const std::vector<int>& parts, bool strided) {
  channels_.push_back(parts[0]);
  rows_.push_back(parts[0]);
  const int count = static_cast<int>(parts.size());
  if (!strided && random_.Chance(30)) {
    GraphNode* node = Define(parts, "Split", {whole});
    node->half = 0;
    node->parts = count;
    return;
  }
  for (int i = 0; i < count; ++i) {
    GraphNode* node = Define({parts[static_cast<size_t>(i)]}, "Slice", {whole});
    node->half = i;
    node->parts = count;
    node->strided = strided;
  }
}

std::vector<int> Builder::Cut(int whole, int count, bool strided) {
  std::vector<int> parts;
  for (int i = 0; i < count; ++i) parts.push_back(NewValue(fmt::format("part{}", values_.size())));
  CutInto(whole, parts, strided);
  return parts;
}

int Builder::Negative(int value) {
  if (random_.Chance(70)) return Make("Neg", {value});
  const int minus = NewValue("minus");
  GraphValue& number = values_[static_cast<size_t>(minus)];
  number.scalar = number.number_fixed = true;
  number.number = -1;
  return Make("Mul", {value, minus});
}

int Builder::NewTarget() {
  const int value = NewValue("dims");
  values_[static_cast<size_t>(value)].target = true;
  return value;
}

}  // namespace ascend_fuse::backwards
