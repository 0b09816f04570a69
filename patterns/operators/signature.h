// The row notation of contracts and declared operators, "(T[..., D] x, T[D] gamma?) => (T y)", and the small expressions
// of limits, "B*N", "H/num_heads": parsed when a row is compiled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/data_type.h"

namespace ascend_fuse {

// A product of factors over another: letters, attributes, numbers, bytes(operand).
struct LimitExpression {
  struct Factor {
    int64_t number = -1;
    std::string name;
    bool bytes = false;
    bool divide = false;
  };
  std::vector<Factor> factors;
  std::string text;
};

// One axis of a shape in a row.
struct AxisPattern {
  enum class Kind {
    kAny,
    kEllipsis,
    kOneOf,
    kOnes,     // "1...L": as many 1 as `ellipsis` has dims; in rows for inference only
    kProduct,  // "D/2": `product`; in rows for inference only
  };
  struct Atom {
    int64_t number = -1;  // or, when negative:
    std::string name;     // a letter or an integer attribute
  };
  Kind kind = Kind::kAny;
  std::string ellipsis;     // "...L" -> "L"
  std::vector<Atom> atoms;  // kOneOf: alternatives
  bool or_more = false;     // "S+"
  bool checked = false;     // "1|B?": the kernel stops at any other, so what cannot be decided is assumed
  LimitExpression product;  // kProduct
  std::string text;
};

struct ShapePattern {
  std::vector<AxisPattern> axes;
  std::string text;
};

struct OperandPattern {
  std::string name;
  std::vector<DataType> types;  // empty: any
  std::string type_variable;    // "T" until expanded
  bool has_shape = false;
  ShapePattern shape;
  bool optional = false;
};

struct SignaturePattern {
  std::vector<OperandPattern> inputs;
  std::vector<OperandPattern> outputs;
};

// Errors name the column.
absl::StatusOr<SignaturePattern> ParseSignature(std::string_view text);
// The same with what inference needs more (SignatureRow of proto/operators.proto): several lists of dims in a shape,
// and `1...L` and products.
absl::StatusOr<SignaturePattern> ParseInferenceSignature(std::string_view text);
absl::StatusOr<ShapePattern> ParseShapePattern(std::string_view text);
absl::StatusOr<LimitExpression> ParseLimitExpression(std::string_view text);

}  // namespace ascend_fuse
