// Stands for ATC in tests of plugin/: loads the library, and hands nodes to its parsers. tests/python/test_op_plugin.py
// writes one request a line, fields between tabs: key, name of the node, inputs, outputs (names between commas), and the
// JSON text of its attributes, or "-" for none. The answer is a line "made", the GE type and what was set; or "refused",
// after the lines that the plugin wrote. Without a request it lists what is registered.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "graph/operator.h"
#include "register/register.h"

namespace ge {

struct OperatorData {
  std::string name;
  std::map<std::string, std::string> texts;               // of the node
  std::map<std::string, std::vector<std::string>> lists;  // of the node
  std::map<std::string, std::string> set;                 // of the GE operator: "dim" -> "int64 -1"
  std::vector<std::string> dynamic;                       // "key 1 at 1"
};

AscendString::AscendString(const char_t* name) : name_(std::make_shared<std::string>(name)) {}
const char_t* AscendString::GetString() const { return name_ == nullptr ? "" : name_->c_str(); }

Operator::Operator(const char_t* name, const char_t*) : data(std::make_shared<OperatorData>()) { data->name = name; }

graphStatus Operator::GetName(AscendString& name) const {
  name = AscendString(data->name.c_str());
  return GRAPH_SUCCESS;
}

namespace {

template <typename T>
std::string Said(const char* type, const T& value) {
  std::ostringstream text;
  text.precision(9);
  text << type << " " << value;
  return text.str();
}

}  // namespace

Operator& Operator::SetAttr(const char_t* name, int64_t value) {
  data->set[name] = Said("int64", value);
  return *this;
}
Operator& Operator::SetAttr(const char_t* name, int32_t value) {
  data->set[name] = Said("int32", value);
  return *this;
}
Operator& Operator::SetAttr(const char_t* name, uint32_t value) {
  data->set[name] = Said("uint32", value);
  return *this;
}
Operator& Operator::SetAttr(const char_t* name, float32_t value) {
  data->set[name] = Said("float", value);
  return *this;
}
Operator& Operator::SetAttr(const char_t* name, bool value) {
  data->set[name] = Said("bool", value);
  return *this;
}
Operator& Operator::SetAttr(const char_t* name, const AscendString& value) {
  data->set[name] = Said("text", value.GetString());
  return *this;
}

graphStatus Operator::GetAttr(const char_t* name, AscendString& value) const {
  if (data->texts.count(name) == 0) return GRAPH_FAILED;
  value = AscendString(data->texts[name].c_str());
  return GRAPH_SUCCESS;
}
graphStatus Operator::GetAttr(const char_t* name, std::vector<AscendString>& values) const {
  if (data->lists.count(name) == 0) return GRAPH_FAILED;
  values.clear();
  for (const std::string& text : data->lists[name]) values.push_back(AscendString(text.c_str()));
  return GRAPH_SUCCESS;
}

void Operator::DynamicInputRegisterByIndex(const char_t* name, const uint32_t num, size_t index) {
  data->dynamic.push_back(std::string(name) + " " + std::to_string(num) + " at " + std::to_string(index));
}

}  // namespace ge

namespace domi {

struct Registration {
  std::string type;
  bool onnx = false;
  bool tvm = false;
  std::vector<std::string> keys;
  ParseParamByOpFunc parse;
};

OpRegistrationData::OpRegistrationData(const char* om_optype) : data(std::make_shared<Registration>()) { data->type = om_optype; }
OpRegistrationData& OpRegistrationData::FrameworkType(const domi::FrameworkType& type) {
  data->onnx = type == ONNX;
  return *this;
}
OpRegistrationData& OpRegistrationData::OriginOpType(const std::vector<ge::AscendString>& types) {
  for (const ge::AscendString& type : types) data->keys.push_back(type.GetString());
  return *this;
}
OpRegistrationData& OpRegistrationData::ParseParamsByOperatorFn(const ParseParamByOpFunc& function) {
  data->parse = function;
  return *this;
}
OpRegistrationData& OpRegistrationData::ImplyType(const domi::ImplyType& type) {
  data->tvm = type == domi::ImplyType::TVM;
  return *this;
}

namespace {

// Static objects of other files register in it: it is made when it is first asked for.
std::map<std::string, Registration>& Registry() {
  static std::map<std::string, Registration> registry;
  return registry;
}

}  // namespace

OpReceiver::OpReceiver(OpRegistrationData& data) {
  for (const std::string& key : data.data->keys) Registry()[key] = *data.data;
}

}  // namespace domi

namespace {

std::vector<std::string> Fields(const std::string& line, char separator) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == separator) {
      fields.push_back("");
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

void Answer(const std::vector<std::string>& fields) {
  const auto found = domi::Registry().find(fields[0]);
  if (found == domi::Registry().end()) {
    std::cout << "unregistered" << std::endl;
    return;
  }
  ge::Operator source(fields[1].c_str(), fields[0].c_str()), target(fields[1].c_str(), found->second.type.c_str());
  if (!fields[2].empty()) source.data->lists["input"] = Fields(fields[2], ',');
  if (!fields[3].empty()) source.data->lists["output"] = Fields(fields[3], ',');
  if (fields[4] != "-") source.data->texts["attribute"] = fields[4];
  if (found->second.parse(source, target) != domi::SUCCESS) {
    std::cout << "refused" << std::endl;
    return;
  }
  std::cout << "made\t" << found->second.type;
  for (const auto& attribute : target.data->set) std::cout << "\t" << attribute.first << " = " << attribute.second;
  for (const std::string& dynamic : target.data->dynamic) std::cout << "\tdynamic " << dynamic;
  std::cout << std::endl;
}

}  // namespace

int main(int argc, char**) {
  dup2(STDOUT_FILENO, STDERR_FILENO);
  if (argc > 1) {
    for (const auto& entry : domi::Registry()) {
      std::cout << entry.first << "\t" << entry.second.type << "\t" << (entry.second.onnx && entry.second.tvm) << std::endl;
    }
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> fields = Fields(line, '\t');
    if (fields.size() != 5) return 1;
    Answer(fields);
  }
  return 0;
}
