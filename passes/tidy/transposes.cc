// Transposes: a Transpose of a Transpose that nothing else reads is one Transpose. Those that undo each other are copies.
#include <cstdint>
#include <vector>

#include "passes/tidy/kinds.h"
#include "passes/tidy/links.h"

namespace ascend_fuse {
std::optional<Tidied> AskTransposes(TidyContext& context, const Node& node) {
  const Node* const before = Before(node, 0, "Transpose");
  if (before == nullptr || before->input(0) == nullptr || !ReadOnce(*before->output())) return std::nullopt;
  const std::vector<int64_t> second = PermOf(context, node);
  const std::vector<int64_t> first = PermOf(context, *before);
  if (second.empty() || first.size() != second.size()) return std::nullopt;
  std::vector<int64_t> both;
  for (const int64_t axis : second) both.push_back(first.at(static_cast<size_t>(axis)));
  return Tidied::Of(build::Transpose(Term::Of(before->input(0)), both));
}

}  // namespace ascend_fuse
