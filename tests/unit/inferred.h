// A model as text with what inference says of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "ir/infer/facts.h"
#include "ir/text/parser.h"
#include "patterns/operators/inference.h"
#include "tests/unit/named_value.h"

namespace ascend_fuse::testing {

class Inferred {
 public:
  explicit Inferred(std::string_view graph, InferOptions options = {}, int opset = 18) {
    const std::string text = fmt::format(
        "<ir_version: 8, opset_import: [\"\" : {}, \"npu\" : 1, \"ascend_fuse\" : 1, \"com.microsoft\" : "
        "1]>\n{}",
        opset, graph);
    absl::StatusOr<std::unique_ptr<Model>> model = ParseModelText(text);
    EXPECT_TRUE(model.ok()) << model.status().message() << "\n" << text;
    if (!model.ok()) return;
    model_ = *std::move(model);
    facts_ = Infer(*model_, WithDeclaredOperators(options));
  }

  const Value* Find(std::string_view name) const { return NamedValue(*model_, name); }
  // "float[batch, 4]"
  std::string operator[](std::string_view name) const { return facts_.Describe(Find(name)); }
  // "batch, 1, seq"; "-" when they are not known.
  std::string Elements(std::string_view name) const {
    const Fact& fact = facts_.Of(Find(name));
    if (fact.elements == nullptr) return "-";
    std::string text;
    for (Dim dim : fact.elements->integers) text += (text.empty() ? "" : ", ") + facts_.dims().ToString(dim);
    for (double value : fact.elements->floats) text += fmt::format("{}{}", text.empty() ? "" : ", ", value);
    return text;
  }
  const Fact& fact(std::string_view name) const { return facts_.Of(Find(name)); }

  Model& model() { return *model_; }
  Facts& facts() { return facts_; }
  const Facts& facts() const { return facts_; }

 private:
  std::unique_ptr<Model> model_;
  Facts facts_;
};

}  // namespace ascend_fuse::testing
