// What adapters in C++ share (passes/legalise/adapt.h), and those that have files of their own.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "passes/legalise/adapt.h"

namespace ascend_fuse {

// Puts an operator of the default domain with these inputs and attributes in the place of the node.
void Rewrite(Workspace& workspace, const Node* node, std::string op_type, std::vector<const Value*> inputs,
             std::vector<Attribute> attributes);
// Puts a constant of these elements, row-major as ONNX stores them, in the place of the node.
void RewriteAsConstant(Workspace& workspace, const Node* node, DataType type, absl::Span<const int64_t> dims,
                       std::string_view bytes);
// The node as it is, but for its attributes, and without empty inputs at the end.
void Renew(Workspace& workspace, const Node* node, std::vector<Attribute> attributes);
std::vector<Attribute> AttributesWithout(const Node& node, std::initializer_list<std::string_view> names);

// OneHot with indices that may be depth or more: a comparison with 0, 1, ... depth - 1 (adapt_indices.cc).
bool WriteOneHotAsComparison(Workspace& workspace, const Node* node);
// ScatterND and ScatterElements with a reduction, of constant indices no two of which are the same: what is there is gathered,
// combined and written (adapt_indices.cc).
bool WriteScatterOfSums(Workspace& workspace, const Node* node);
// Resize by whole factors as the form of nearest that is read, nearest of known lengths as a Gather along each axis, and
// scales or sizes of some axes as those of all (adapt_resize.cc).
bool WriteResize(Workspace& workspace, const Node* node);

}  // namespace ascend_fuse
