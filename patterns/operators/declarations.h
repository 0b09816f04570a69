// The operators that are not operators of ONNX: our own (domain ascend_fuse) and the Ascend nodes (domain npu, and the
// default domain, where they have the same names), and the kinds of sites. Each is declared once, in
// patterns/operators.txtpb; rules are checked against it, inference and docs/operators.md follow from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attribute.h"
#include "patterns/operators/signature.h"

namespace ascend_fuse {

// A kind of site: what the annotation `kind` of a rule names, and reports count.
struct SiteKind {
  std::string name;                     // "add_norm"
  std::string title;                    // "a residual sum and the norm that reads it"
  std::vector<std::string> native;      // operators that are of this kind by themselves: "Gelu", "ascend_fuse.Glu"
  std::vector<std::string> sum_before;  // kinds of the norms whose sum a site of this kind is
  std::vector<std::string> constructs;  // names of its special forms in targets and in `ge_construct`: "add_rms_norm"

  bool IsSumBefore(std::string_view norm) const;
};

struct DeclaredAttribute {
  std::string name;
  AttributeType type = AttributeType::kUndefined;  // kInt, kFloat or kString
  bool required = false;
  std::optional<std::string> default_text;
  std::vector<std::string> only;  // the words or numbers there are; empty: any
  std::string ge;                 // the attribute of the GE operator that is set from it; empty: it is not read
  std::string ge_type;            // "bool", where the GE attribute is of another type
  std::string doc;
  int since = 0;  // the version of our plugin that reads it first; 0: that of the node
};

// An attribute, or its default, is one of `is` (where there are any) and none of `is_not`.
struct AttributeCondition {
  std::string attribute;
  std::vector<std::string> is;
  std::vector<std::string> is_not;
};

// One row of operands and outputs, and when it holds.
struct SignatureRow {
  SignaturePattern signature;
  std::string text;
  std::vector<AttributeCondition> when;  // all must hold
};

// What a parser of ATC makes of an Ascend node.
struct GeOperator {
  std::string op;                  // "RmsNorm"
  std::string parser;              // "stock", "plugin" or "none"
  std::vector<std::string> fixed;  // "epsilon = 1e-6"
  std::vector<std::string> sources;
  // Of parser "plugin" only:
  int since = 0;                     // the version of our plugin that registers it first
  std::string release;               // CANN before this release surely lacks the GE operator
  std::vector<std::string> chips;    // those with a kernel of it
  std::vector<std::string> dynamic;  // inputs of the GE operator that are lists; one of each is given
};

// When a node rotates the two halves of a head: see RotatedHalves of proto/operators.proto.
struct RotatedHalves {
  std::string attribute;  // empty: always
  int64_t is = 0;
};

struct DeclaredOperator {
  std::string name;                // "npu.NPURmsNorm"
  std::string domain;              // "npu"
  std::string op_type;             // "NPURmsNorm"
  std::vector<SignatureRow> rows;  // operands and outputs have the same names in all; none where they are not known
  std::vector<DeclaredAttribute> attributes;
  std::string computes;
  std::string doc;
  std::optional<GeOperator> ge;  // of npu nodes
  std::string never_emitted;     // why no rule makes it
  bool keeps_facts = false;      // facts that are known of its output are kept
  // It computes along the last axis of so many inputs, whatever the order of the others is; 0: nothing is said.
  size_t along_last_axis = 0;
  std::string joined_with_sum;  // as what GE joins it, where both summands of the sum that it reads have one shape
  std::optional<RotatedHalves> rotated_halves;

  const DeclaredAttribute* FindAttribute(std::string_view attribute) const;
};

// The kinds of sites, in the order in which reports list them.
const std::vector<SiteKind>& SiteKinds();
const SiteKind* FindSiteKind(std::string_view name);

// All declarations, in the order of the file.
const std::vector<DeclaredOperator>& DeclaredOperators();

// The declaration of an operator of domain "npu", "ascend_fuse" or "" (the alias of an Ascend node); nullptr if there is
// none. One hash probe.
const DeclaredOperator* FindDeclaredOperator(std::string_view domain, std::string_view op_type);

}  // namespace ascend_fuse
