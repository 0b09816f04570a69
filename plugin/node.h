// A node of an ONNX model as ATC hands it to a plugin: its inputs, outputs and attributes, and what is wrong with it.
//
// Nothing here takes or gives a std::string of the toolkit, so that the library works with either setting of
// _GLIBCXX_USE_CXX11_ABI.
#ifndef ASCEND_FUSE_PLUGIN_NODE_H_
#define ASCEND_FUSE_PLUGIN_NODE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "graph/operator.h"

namespace ascend_fuse_plugin {

// One attribute of the node. What has another type than these cannot be asked for.
struct Attribute {
  enum class Type { kFloat, kInt, kText, kOther };
  Type type;
  double number;  // of kFloat, and of kInt where it is exact
  int64_t integer;
  std::string text;
  bool has_value;  // false where ATC could not hand the value over
};

// Asks a node for what its parser knows. The first thing that is wrong is told on stderr, and Accepted is false from then on.
class Node {
 public:
  Node(const char* op_type, const ge::Operator& source);

  // The first `required` of the inputs must be given; more than the named ones is refused.
  void TakesInputs(size_t required, std::initializer_list<const char*> names);
  void TakesOutputs(size_t most);

  // The value of an attribute. The one without a default is refused where the node does not give it; a value that is not one
  // of `only` is refused, if there are any.
  int64_t Int(const char* name, std::initializer_list<int64_t> only = {});
  int64_t Int(const char* name, int64_t fallback, std::initializer_list<int64_t> only = {});
  float Float(const char* name);
  float Float(const char* name, float fallback, std::initializer_list<float> only = {});
  std::string Text(const char* name, std::initializer_list<const char*> only = {});
  std::string Text(const char* name, const char* fallback, std::initializer_list<const char*> only = {});

  // True where nothing was wrong. An attribute that was not asked for is refused here: it is one of a newer plugin.
  bool Accepted();

 private:
  void Refuse(const std::string& sentence);
  const Attribute* Find(const char* name, Attribute::Type type, const char* type_name, bool required);
  int64_t OneOf(const char* name, int64_t value, std::initializer_list<int64_t> only);
  std::string OneOf(const char* name, const std::string& value, std::initializer_list<const char*> only);

  const std::string op_type_;
  std::string name_;
  std::vector<bool> inputs_;  // given or ""
  size_t outputs_;
  std::map<std::string, Attribute> attributes_;
  std::map<std::string, bool> asked_;
  bool accepted_;
};

}  // namespace ascend_fuse_plugin

#endif  // ASCEND_FUSE_PLUGIN_NODE_H_
