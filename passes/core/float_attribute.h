// Fractions in the attributes of nodes of our op plugin. ATC hands them to a plugin as a text of six digits, and old
// releases lose those of more than nine letters (hicann/ge parser/common/convert/pb2json.cc); the items of a list are handed
// over with all digits. So a number that six digits do not hold is written as a list of one.
#pragma once

#include "ir/attribute.h"
#include "ir/model.h"
#include "patterns/operators/declarations.h"

namespace ascend_fuse {

// The attribute of a node of `op` as it is written in the file.
Attribute AsWritten(const DeclaredOperator* op, Attribute attribute);

// The attribute as it is declared: a list of one is the number where a number is declared.
Attribute AsDeclared(const DeclaredOperator* op, Attribute attribute);

// Whether some attribute of the node is not as it is declared.
bool HasListForNumber(const DeclaredOperator* op, const Node& node);

}  // namespace ascend_fuse
