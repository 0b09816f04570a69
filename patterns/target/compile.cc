#include "patterns/target/compile.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "ir/data_type.h"
#include "proto/contract.pb.h"

namespace ascend_fuse::contract {
namespace {

// Checks that what a rule names exists, so that a typo in a target file is found when the row is
// compiled.
class Compiler {
 public:
  Compiler(const std::string& path, const proto::NodeContract& node) : path_(path), node_(node) {}

  absl::StatusOr<CompiledNode> Run() {
    compiled_.data = &node_;
    if (node_.op().empty()) return Error("a node without op");
    for (const auto& rule : node_.attribute()) attributes_.insert(rule.name());
    for (const std::string& text : node_.accepts()) {
      if (auto status = AddRows(text, nullptr); !status.ok()) return status;
    }
    for (const proto::Row& row : node_.row()) {
      if (auto status = AddRows(row.accepts(), &row); !status.ok()) return status;
    }
    if (compiled_.rows.empty() && !node_.has_refused()) return Error("no `accepts`, no `row` and no `refused`");
    for (const auto& rule : node_.attribute()) {
      CompiledAttribute attribute{&rule, {}};
      if (auto status = Conditions(rule.when(), &attribute.when); !status.ok()) return status;
      compiled_.attributes.push_back(std::move(attribute));
    }
    for (const auto& rule : node_.input()) {
      if (operands_.count(rule.name()) == 0) return Error(fmt::format("no row has an input `{}`", rule.name()));
      CompiledInput input{&rule, {}, {}};
      for (const std::string& text : rule.shape()) {
        auto shape = ParseShapePattern(text);
        if (!shape.ok()) return Error(std::string(shape.status().message()));
        input.shapes.push_back(*std::move(shape));
      }
      if (auto status = Conditions(rule.when(), &input.when); !status.ok()) return status;
      compiled_.inputs.push_back(std::move(input));
    }
    for (const auto& limit : node_.limit()) {
      if (auto status = AddLimit(limit, &compiled_.limits); !status.ok()) return status;
    }
    return std::move(compiled_);
  }

 private:
  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("{}: node {}: {}", path_, node_.op(), what));
  }

  absl::Status AddRows(const std::string& text, const proto::Row* row) {
    auto signature = ParseSignature(text);
    if (!signature.ok()) return Error(std::string(signature.status().message()));
    for (const auto& operand : signature->inputs) {
      operands_.insert(operand.name);
      for (const auto& axis : operand.shape.axes) {
        for (const auto& atom : axis.atoms) {
          if (atom.number < 0) letters_.insert(atom.name);
        }
      }
    }
    CompiledRow compiled;
    compiled.text = text;
    if (row != nullptr) {
      if (auto status = Conditions(row->when(), &compiled.when); !status.ok()) return status;
      for (const auto& limit : row->limit()) {
        if (auto status = AddLimit(limit, &compiled.limits); !status.ok()) return status;
      }
    }
    // One row for each type that the type variable stands for.
    std::string variable;
    for (const auto& operand : signature->inputs) {
      if (operand.type_variable.empty() || operand.type_variable == variable) continue;
      if (!variable.empty()) return Error(fmt::format("`{}`: only one type variable is allowed", text));
      variable = operand.type_variable;
    }
    if (variable.empty()) {
      compiled.signature = *std::move(signature);
      compiled_.rows.push_back(std::move(compiled));
      return absl::OkStatus();
    }
    for (const auto& types : node_.types()) {
      if (types.name() != variable) continue;
      for (const std::string& name : types.is()) {
        const DataType type = DataTypeFromName(name);
        if (type == DataType::kUndefined) return Error(fmt::format("`{}` is not a type", name));
        CompiledRow copy = compiled;
        copy.signature = *signature;
        for (auto* operands : {&copy.signature.inputs, &copy.signature.outputs}) {
          for (auto& operand : *operands) {
            if (operand.type_variable == variable) operand.types = {type};
          }
        }
        compiled_.rows.push_back(std::move(copy));
      }
      return absl::OkStatus();
    }
    return Error(fmt::format("`{}`: no `types` says what {} is", text, variable));
  }

  absl::Status Expression(const std::string& text, LimitExpression* expression) {
    auto parsed = ParseLimitExpression(text);
    if (!parsed.ok()) return Error(std::string(parsed.status().message()));
    for (const auto& factor : parsed->factors) {
      if (factor.number >= 0) continue;
      const bool known =
          factor.bytes ? operands_.count(factor.name) > 0 : letters_.count(factor.name) > 0 || attributes_.count(factor.name) > 0;
      if (!known) return Error(fmt::format("`{}`: nothing is called {}", text, factor.name));
    }
    *expression = *std::move(parsed);
    return absl::OkStatus();
  }

  template <typename List>
  absl::Status Conditions(const List& list, std::vector<CompiledWhen>* result) {
    for (const proto::When& when : list) {
      CompiledWhen compiled{&when, {}, {}};
      for (const std::string& name : {when.present(), when.absent(), when.type_of()}) {
        if (!name.empty() && operands_.count(name) == 0) {
          return Error(fmt::format("`when`: no row has an input `{}`", name));
        }
      }
      if (!when.attribute().empty() && attributes_.count(when.attribute()) == 0) {
        return Error(fmt::format("`when`: there is no rule for an attribute `{}`", when.attribute()));
      }
      if ((!when.multiple().empty() || !when.not_multiple().empty()) && when.by() <= 0) {
        return Error("`when`: `multiple` needs `by`, a positive number");
      }
      if (!when.multiple().empty()) {
        if (auto status = Expression(when.multiple(), &compiled.multiple); !status.ok()) return status;
      }
      if (!when.not_multiple().empty()) {
        if (auto status = Expression(when.not_multiple(), &compiled.not_multiple); !status.ok()) return status;
      }
      result->push_back(std::move(compiled));
    }
    return absl::OkStatus();
  }

  absl::Status AddLimit(const proto::Limit& limit, std::vector<CompiledLimit>* limits) {
    CompiledLimit compiled;
    compiled.data = &limit;
    const std::pair<const std::string*, LimitExpression*> parts[] = {{&limit.of(), &compiled.of},
                                                                     {&limit.at_most(), &compiled.at_most},
                                                                     {&limit.at_least(), &compiled.at_least},
                                                                     {&limit.multiple_of(), &compiled.multiple_of},
                                                                     {&limit.equals(), &compiled.equals}};
    for (const auto& [text, expression] : parts) {
      if (text->empty()) continue;
      if (auto status = Expression(*text, expression); !status.ok()) return status;
    }
    if (compiled.of.factors.empty()) return Error("a limit without `of`");
    if (auto status = Conditions(limit.when(), &compiled.when); !status.ok()) return status;
    limits->push_back(std::move(compiled));
    return absl::OkStatus();
  }

  const std::string& path_;
  const proto::NodeContract& node_;
  CompiledNode compiled_;
  std::set<std::string> operands_, letters_, attributes_;
};

}  // namespace

absl::StatusOr<CompiledNode> CompileNode(const std::string& path, const proto::NodeContract& node) {
  return Compiler(path, node).Run();
}

}  // namespace ascend_fuse::contract
