// The work of a node, from what is known of its operands: floating-point operations and bytes as functions of the model's dims.
// Nothing here knows a chip.
#pragma once

#include <string>
#include <string_view>

#include "ir/infer/facts.h"
#include "patterns/cost/costs.h"

namespace ascend_fuse {

struct Work {
  WorkKind kind = WorkKind::kNone;
  bool has_row = true;  // costs.txtpb knows the operator; else one operation for each element of the first result is counted
  Dim flops;            // a product and the sum that it goes into are two; unknown where a shape is
  Dim bytes;            // read and written, in the types of the model; every operand once
  Dim float_bytes;      // those of them in float32, of which a precision mode may make half
  Dim scores;           // of an attention: batch * heads * queries * keys; else 0
  Dim instructions;     // vector instructions, where they are counted; else 0
  Dim elements;         // of the first result; of a scatter those that it writes
  Dim shortest;         // of an attention with the heads after the tokens: queries or keys, whichever are fewer; else 0
  std::string_view one_by_one_on;  // see OperatorWork of proto/costs.proto
  double cube_share = 0;           // the same
  bool known() const { return flops.known() && bytes.known(); }
};

// "MatMul", "npu.NPURmsNorm": the name of costs.txtpb, of a node of the default domain that is an Ascend node too.
std::string WorkName(const Node& node);

// Adds expressions to the dims of `facts`.
Work WorkOf(const Node& node, Facts* facts);

// The product of a shape, and what it takes in memory in bytes; unknown where a dim is.
Dim ElementsOf(const Fact& fact, DimTable* dims);
Dim BytesOf(const Fact& fact, DimTable* dims);

}  // namespace ascend_fuse
