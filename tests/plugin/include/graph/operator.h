// The part of ge::Operator that plugin/ uses, as its documentation declares it, for tests. Declared beside it are the
// overloads for std::string that the toolkit has too: a call that chose one of them would depend on the ABI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/ascend_string.h"

namespace ge {

using float32_t = float;
using graphStatus = uint32_t;
const graphStatus GRAPH_SUCCESS = 0;
const graphStatus GRAPH_FAILED = 0xFFFFFFFF;

struct OperatorData;  // of the tests

class Operator {
 public:
  Operator(const char_t* name, const char_t* type);

  graphStatus GetName(AscendString& name) const;

  Operator& SetAttr(const char_t* name, int64_t value);
  Operator& SetAttr(const char_t* name, int32_t value);
  Operator& SetAttr(const char_t* name, uint32_t value);
  Operator& SetAttr(const char_t* name, float32_t value);
  Operator& SetAttr(const char_t* name, bool value);
  Operator& SetAttr(const char_t* name, const AscendString& value);
  Operator& SetAttr(const std::string& name, int64_t value);
  Operator& SetAttr(const std::string& name, const std::string& value);
  graphStatus GetAttr(const char_t* name, AscendString& value) const;
  graphStatus GetAttr(const char_t* name, std::vector<AscendString>& values) const;
  graphStatus GetAttr(const std::string& name, std::string& value) const;

  void DynamicInputRegisterByIndex(const char_t* name, const uint32_t num, size_t index);
  void DynamicInputRegisterByIndex(const std::string& name, const uint32_t num, size_t index);

  std::shared_ptr<OperatorData> data;  // of the tests
};

}  // namespace ge
