// The registration interface of ATC's plugins, as its documentation declares it, for tests of plugin/.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "graph/ascend_string.h"
#include "graph/operator.h"

namespace domi {

using Status = uint32_t;
const Status SUCCESS = 0;
const Status FAILED = 0xFFFFFFFF;

enum FrameworkType { CAFFE = 0, MINDSPORE = 1, TENSORFLOW = 3, ANDROID_NN, ONNX };
enum class ImplyType : unsigned int { BUILDIN = 0, TVM, CUSTOM, AI_CPU };

using ParseParamByOpFunc = std::function<domi::Status(const ge::Operator&, ge::Operator&)>;

struct Registration;  // of the tests

class OpRegistrationData {
 public:
  OpRegistrationData(const std::string& om_optype);
  OpRegistrationData(const char* om_optype);
  OpRegistrationData& FrameworkType(const domi::FrameworkType& type);
  OpRegistrationData& OriginOpType(const std::initializer_list<std::string>& types);
  OpRegistrationData& OriginOpType(const std::vector<ge::AscendString>& types);
  OpRegistrationData& ParseParamsByOperatorFn(const ParseParamByOpFunc& function);
  OpRegistrationData& ImplyType(const domi::ImplyType& type);

  std::shared_ptr<Registration> data;  // of the tests
};

class OpReceiver {
 public:
  OpReceiver(OpRegistrationData& data);
};

}  // namespace domi

#define REGISTER_CUSTOM_OP(name) REGISTER_CUSTOM_OP_UNIQ_HELPER(__COUNTER__, name)
#define REGISTER_CUSTOM_OP_UNIQ_HELPER(counter, name) REGISTER_CUSTOM_OP_UNIQ(counter, name)
#define REGISTER_CUSTOM_OP_UNIQ(counter, name) \
  static OpReceiver register_op##counter __attribute__((unused)) = OpRegistrationData(name)
