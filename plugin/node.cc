#include "node.h"

#include <cstdio>
#include <utility>

#include "attributes.h"
#include "graph/ascend_string.h"
#include "version.h"

namespace ascend_fuse_plugin {
namespace {

std::string Number(int64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%lld", static_cast<long long>(value));
  return text;
}

std::string Number(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", static_cast<double>(value));
  return text;
}

std::string TextOf(const ge::AscendString& text) { return text.GetString() == nullptr ? "" : text.GetString(); }

}  // namespace

// ATC gives a parser the fields of the ONNX node as attributes: "input" and "output" are the names, "attribute" is a text.
Node::Node(const char* op_type, const ge::Operator& source) : op_type_(op_type), outputs_(0), accepted_(true) {
  ge::AscendString name;
  if (source.GetName(name) == ge::GRAPH_SUCCESS) name_ = TextOf(name);
  std::vector<ge::AscendString> names;
  if (source.GetAttr("input", names) == ge::GRAPH_SUCCESS) {
    for (size_t i = 0; i < names.size(); ++i) inputs_.push_back(!TextOf(names[i]).empty());
  }
  while (!inputs_.empty() && !inputs_.back()) inputs_.pop_back();
  names.clear();
  if (source.GetAttr("output", names) == ge::GRAPH_SUCCESS) outputs_ = names.size();
  ge::AscendString json;
  if (source.GetAttr("attribute", json) != ge::GRAPH_SUCCESS) return;
  if (!ReadAttributes(TextOf(json), &attributes_)) Refuse("its attributes cannot be read as ATC hands them over");
}

void Node::Refuse(const std::string& sentence) {
  if (!accepted_) return;
  accepted_ = false;
  std::fprintf(stderr, "[ERROR] ascend-fuse op plugin, version %d: node '%s' (%s): %s\n", ASCEND_FUSE_PLUGIN_VERSION,
               name_.c_str(), op_type_.c_str(), sentence.c_str());
}

void Node::TakesInputs(size_t required, std::initializer_list<const char*> names) {
  if (inputs_.size() > names.size()) {
    Refuse("it has " + Number(static_cast<int64_t>(inputs_.size())) + " inputs, and this version knows " +
           Number(static_cast<int64_t>(names.size())) + ": a newer version of the plugin may know more");
    return;
  }
  std::initializer_list<const char*>::const_iterator name = names.begin();
  for (size_t i = 0; i < required; ++i, ++name) {
    if (i >= inputs_.size() || !inputs_[i]) Refuse(std::string("the input ") + *name + " is not given");
  }
}

void Node::TakesOutputs(size_t most) {
  if (outputs_ <= most) return;
  Refuse("it has " + Number(static_cast<int64_t>(outputs_)) + " outputs, and this version knows " +
         Number(static_cast<int64_t>(most)) + ": a newer version of the plugin may know more");
}

// nullptr where it is not given, or wrong.
const Attribute* Node::Find(const char* name, Attribute::Type type, const char* type_name, bool required) {
  asked_[name] = true;
  const std::map<std::string, Attribute>::const_iterator found = attributes_.find(name);
  if (found == attributes_.end()) {
    if (required) Refuse(std::string("the attribute ") + name + " is not given");
    return nullptr;
  }
  if (found->second.type != type) {
    Refuse(std::string("the attribute ") + name + " is not of type " + type_name);
    return nullptr;
  }
  if (!found->second.has_value) {
    Refuse(std::string("ATC does not hand over the value of the attribute ") + name);
    return nullptr;
  }
  return &found->second;
}

int64_t Node::OneOf(const char* name, int64_t value, std::initializer_list<int64_t> only) {
  std::string words;
  for (int64_t word : only) {
    if (word == value) return value;
    words += (words.empty() ? "" : ", ") + Number(word);
  }
  if (!words.empty()) {
    Refuse(std::string("the attribute ") + name + " is " + Number(value) + ", and this version knows " + words);
  }
  return value;
}

std::string Node::OneOf(const char* name, const std::string& value, std::initializer_list<const char*> only) {
  std::string words;
  for (const char* word : only) {
    if (word == value) return value;
    words += (words.empty() ? "'" : ", '") + std::string(word) + "'";
  }
  if (!words.empty()) Refuse(std::string("the attribute ") + name + " is '" + value + "', and this version knows " + words);
  return value;
}

int64_t Node::Int(const char* name, std::initializer_list<int64_t> only) {
  const Attribute* attribute = Find(name, Attribute::Type::kInt, "INT", true);
  return attribute == nullptr ? 0 : OneOf(name, attribute->integer, only);
}

int64_t Node::Int(const char* name, int64_t fallback, std::initializer_list<int64_t> only) {
  const Attribute* attribute = Find(name, Attribute::Type::kInt, "INT", false);
  return attribute == nullptr ? fallback : OneOf(name, attribute->integer, only);
}

float Node::Float(const char* name) {
  const Attribute* attribute = Find(name, Attribute::Type::kFloat, "FLOAT", true);
  return attribute == nullptr ? 0.0F : static_cast<float>(attribute->number);
}

float Node::Float(const char* name, float fallback, std::initializer_list<float> only) {
  const Attribute* attribute = Find(name, Attribute::Type::kFloat, "FLOAT", false);
  if (attribute == nullptr) return fallback;
  const float value = static_cast<float>(attribute->number);
  std::string words;
  for (float word : only) {
    if (!(word < value) && !(value < word)) return value;
    words += (words.empty() ? "" : ", ") + Number(word);
  }
  if (!words.empty()) {
    Refuse(std::string("the attribute ") + name + " is " + Number(value) + ", and this version knows " + words);
  }
  return value;
}

std::string Node::Text(const char* name, std::initializer_list<const char*> only) {
  const Attribute* attribute = Find(name, Attribute::Type::kText, "STRING", true);
  return attribute == nullptr ? std::string() : OneOf(name, attribute->text, only);
}

std::string Node::Text(const char* name, const char* fallback, std::initializer_list<const char*> only) {
  const Attribute* attribute = Find(name, Attribute::Type::kText, "STRING", false);
  return attribute == nullptr ? std::string(fallback) : OneOf(name, attribute->text, only);
}

bool Node::Accepted() {
  for (const auto& attribute : attributes_) {
    if (asked_.count(attribute.first) == 0) {
      Refuse("the attribute " + attribute.first + " is not known: the model was written for a newer version of the plugin");
    }
  }
  return accepted_;
}

}  // namespace ascend_fuse_plugin
