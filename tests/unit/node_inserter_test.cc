// Nodes that are planned and inserted beside others.
#include "passes/core/node_inserter.h"

#include <string>

#include "gtest/gtest.h"
#include "ir/text/parser.h"
#include "passes/core/workspace.h"
#include "tests/unit/models.h"

namespace ascend_fuse {
namespace {

TEST(NodeInserterTest, APlanOutlivesItsTerm) {
  const std::string encoded = *EncodeModelText(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Relu (x) })");
  const auto model = testing::MustLoad(encoded);
  const auto workspace = Workspace::Create(model.get(), nullptr, {});
  ASSERT_TRUE(workspace.ok()) << workspace.status();
  const Node& relu = *model->graph().nodes().front();
  const Term term = build::Transpose(Term::Of(relu.input(0)), {0, 2, 1});
  const NewNode plan = NodeInserter(**workspace, relu).Plan(term);
  ASSERT_EQ(plan.attributes.size(), 1u);
  EXPECT_EQ(plan.attributes[0].name, "perm");
  EXPECT_NE(plan.attributes[0].name.data(), term.node->attributes[0].first.data());  // attributes do not own their names
}

}  // namespace
}  // namespace ascend_fuse
