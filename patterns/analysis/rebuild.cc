#include "patterns/analysis/rebuild.h"

#include <string>
#include <utility>

#include "ir/attribute.h"

namespace ascend_fuse {

std::optional<Term> Rebuilt(const Node& node, std::vector<Term> inputs, uint32_t output) {
  if (node.subgraph_count != 0) return std::nullopt;
  DeferredNode copy;
  copy.domain = std::string(Domain(node));
  copy.op_type = std::string(OpType(node));
  copy.inputs = std::move(inputs);
  copy.output_count = static_cast<int>(node.output_count);
  for (const Attribute& attribute : ReadAttributes(node)) {
    std::optional<Term> term = TermOfAttribute(attribute);
    if (!term.has_value()) return std::nullopt;
    copy.attributes.emplace_back(std::string(attribute.name), *std::move(term));
  }
  Term term = Term::Node(std::move(copy));
  term.output = static_cast<int>(output);
  return term;
}

}  // namespace ascend_fuse
