// Models as official ONNX text (onnx/onnx:docs/Syntax.md), read back by ir/text/parser.h and, as long as no
// constant was elided, by onnx.parser. Differences to the official printer: attributes are printed without
// their type where the value tells it, defaults of function attributes are printed, operator and domain names
// that are not identifiers are quoted.
#pragma once

#include <cstdint>
#include <string>

#include "ir/model.h"

namespace ascend_fuse {

struct PrintOptions {  // what the text shows
  // Constants with more elements are elided: {... "hash"} or, when all elements are equal, {1.0, ...}.
  // -1: every element is printed.
  int64_t max_elements = 16;
  // Constants of more bytes are elided without being read: {...}.
  int64_t hash_bytes = int64_t{1} << 20;
  // float16 and bfloat16 elements as numbers; the official syntax has them as bit patterns only.
  bool half_as_number = false;
  bool node_names = true;   // [name] y = Op (x)
  bool value_infos = true;  // declared types of inner values
};

std::string PrintModelText(const Model& model, const PrintOptions& options = {});  // which the parser reads

// One line without the node's name, bodies as their size:
//   y, y_rstd = npu.NPURmsNorm <epsilon = 0.000001> (x, gamma)
std::string PrintNode(const Node& node);

// The declared type, "float16[B, S, 64]"; "" if the model declares none.
std::string PrintDeclaredType(const Value& value);

// The shortest decimal that reads back as the same number, with a point or an exponent: 2.0, 0.000001, 1e-7,
// inf, nan.
std::string FormatFloat(float value);
std::string FormatDouble(double value);

}  // namespace ascend_fuse
