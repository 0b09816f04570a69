// Quantise norms: a sum, its RMSNorm and the node that makes int8 of the result become one node of our plugin. What the norm
// gives is then not there as a floating-point tensor, so that nothing else may read it; the sum is.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "fmt/format.h"
#include "ir/onnx/encode.h"
#include "passes/core/call_of.h"
#include "passes/core/float_attribute.h"
#include "passes/quantised/constant_codes.h"
#include "passes/quantised/node_writer.h"
#include "passes/quantised/passes.h"

namespace ascend_fuse {
namespace {

constexpr char kStatic[] = "npu.NPUAddRmsNormQuant";
constexpr char kRows[] = "npu.NPUAddRmsNormDynamicQuant";
constexpr int64_t kMostColumns = int64_t{1} << 22;  // of a row of scales that is written

// A sum, and the norm of it that a kernel computes, with or without the sum.
struct SumAndNorm {
  const Node* norm = nullptr;
  const Value* a = nullptr;
  const Value* b = nullptr;
  const Value* gain = nullptr;
  const Value* sum = nullptr;
  double epsilon = 0;
};

std::string_view NameOf(std::string_view op) { return op.substr(op.find('.') + 1); }

class NormQuantiser {
 public:
  explicit NormQuantiser(Workspace& workspace) : workspace_(workspace), writer_(workspace) {
    for (Site& site : workspace.sites) sites_of_[site.value].push_back(&site);
  }

  void Run() {
    std::vector<const Node*> nodes;
    for (const auto& graph : workspace_.model().graphs()) {
      for (const Node* node : graph->nodes()) {
        const bool quantises = OpType(*node) == "NPUQuantize" || OpType(*node) == "NPUDynamicQuant";
        if (!node->dead && Domain(*node) == "npu" && quantises) nodes.push_back(node);
      }
    }
    for (const Node* node : nodes) {
      if (node->dead || !workspace_.MayReplace()) continue;
      const Rewriter::Mark before = workspace_.rewriter().Now();
      const bool taken = OpType(*node) == "NPUQuantize" ? JoinStatic(node) : JoinRows(node);
      if (taken) {
        workspace_.CountReplacement();
      } else {
        workspace_.rewriter().RollBack(before);
      }
    }
  }

 private:
  // Readers of a value but those of its shape, which another value of that shape has, too.
  static int64_t CountRealReaders(const Value& value) {
    int64_t shapes = 0;
    for (const Use& use : LiveUses(value)) shapes += IsOp(*use.user, "Shape") ? 1 : 0;
    return CountReaders(value) - shapes;
  }

  void ReadShapesOf(const Value& value, const Value* like) {
    std::vector<const Node*> readers;
    for (const Use& use : LiveUses(value)) {
      if (IsOp(*use.user, "Shape")) readers.push_back(use.user);
    }
    for (const Node* reader : readers) {
      workspace_.rewriter().SetInput(reader, 0, like);
      workspace_.Refresh(reader);
    }
  }

  // What is normed for this value alone; nullopt where it is something else, or has another reader.
  std::optional<SumAndNorm> Find(const Value* y) const {
    const Node* const norm = y == nullptr ? nullptr : y->producer;
    if (norm == nullptr || Domain(*norm) != "npu" || norm->output(0) != y || CountRealReaders(*y) != 1) return std::nullopt;
    const auto sites = sites_of_.find(y);
    const bool known = sites != sites_of_.end() && std::any_of(sites->second.begin(), sites->second.end(), [](const Site* site) {
                         return site->record.kind == "add_norm" && (site->pending() || site->fused());
                       });
    if (!known) return std::nullopt;
    SumAndNorm found;
    found.norm = norm;
    const std::string_view op = OpType(*norm);
    const auto epsilon = FindAttribute(*norm, "epsilon");
    constexpr double kOfStockParsers = 1e-6;
    found.epsilon = kOfStockParsers;
    if (epsilon.has_value()) found.epsilon = AsDeclared(FindDeclaredOperator("npu", op), *epsilon).f;
    if (op == "NPUAddRmsNorm" || op == "NPUAddRmsNormWithEpsilon") {
      const bool reads_rstd = norm->output_count > 1 && norm->output(1) != nullptr && CountReaders(*norm->output(1)) > 0;
      if (reads_rstd || norm->output_count < 3) return std::nullopt;
      found.a = norm->input(0);
      found.b = norm->input(1);
      found.gain = norm->input(2);
      found.sum = norm->output(2);
    } else if (op == "NPURmsNorm" || op == "NPURmsNormWithEpsilon") {
      found.sum = norm->input(0);
      found.gain = norm->input(1);
      const Node* const add = found.sum == nullptr ? nullptr : found.sum->producer;
      const bool rstd = norm->output_count > 1 && norm->output(1) != nullptr && CountReaders(*norm->output(1)) > 0;
      if (rstd || add == nullptr || !IsOp(*add, "Add") || add->graph != norm->graph) return std::nullopt;
      found.a = add->input(0);
      found.b = add->input(1);
    } else {
      return std::nullopt;
    }
    const bool whole = IsWhole(found.a, y) && IsWhole(found.b, y) && writer_.Of(found.gain).rank() == 1;
    return whole ? std::optional(found) : std::nullopt;
  }

  // What a float32 that was float16 was made of: the same numbers, which the quantiser divides in float32 in any case.
  const Value* Unwidened(const Value* x) const {
    const Node* const cast = x == nullptr ? nullptr : x->producer;
    const bool widens = cast != nullptr && cast->domain == NameId::kEmpty && IsOp(*cast, "Cast") && CountReaders(*x) == 1;
    return widens && writer_.Of(cast->input(0)).type == DataType::kFloat16 ? cast->input(0) : x;
  }

  // Of the shape and the type of what is normed: the kernels repeat nothing.
  bool IsWhole(const Value* x, const Value* y) const {
    const Fact& of_x = writer_.Of(x);
    const Fact& of_y = writer_.Of(y);
    return of_x.has_rank && of_y.has_rank && of_x.type == of_y.type && workspace_.facts().dims().Equal(of_x.shape, of_y.shape);
  }

  NewNode Plan(std::string_view op, const SumAndNorm& sum, const Node& at) const {
    NewNode plan;
    plan.domain = "npu";
    plan.op_type = std::string(NameOf(op));
    plan.name = fmt::format("{}_quantized", Label(at));
    plan.attributes = {
        AsWritten(FindDeclaredOperator("npu", plan.op_type), Attribute::Float("epsilon", static_cast<float>(sum.epsilon)))};
    return plan;
  }

  // The number as often as there are columns, of which the kernel reads one for each.
  const Value* Row(const Node& at, DataType type, double number, int64_t columns, std::string_view word) {
    const std::string one = EncodeNumber(type, number);
    std::string bytes;
    for (int64_t i = 0; i < columns; ++i) bytes += one;
    return RowOfNumbers(workspace_, at, type, bytes, word);
  }

  bool JoinStatic(const Node* node) {
    const Value* const y = Unwidened(node->input(0));
    const auto sum = Find(y);
    if (!sum.has_value() || !workspace_.target()->HasNode(kStatic)) return false;
    const auto scale = writer_.OneNumber(node->input(1));
    const auto zero = node->input(2) == nullptr ? std::optional<double>(0) : writer_.OneNumber(node->input(2));
    const Dim columns = writer_.Of(sum->gain).shape[0];
    if (!scale.has_value() || !zero.has_value() || !columns.is_number() || columns.number() > kMostColumns) return false;
    NewNode plan = Plan(kStatic, *sum, *node);
    plan.inputs = {sum->a, sum->b, sum->gain, Row(*node, DataType::kFloat, *scale, columns.number(), "scales")};
    if (*zero != 0) {
      plan.inputs.push_back(nullptr);
      plan.inputs.push_back(Row(*node, DataType::kInt32, *zero, columns.number(), "zeros"));
    }
    std::vector<TakenOutput> taken = {{0, node->output(0)}};
    if (IsReadBesides(*sum)) taken.push_back({2, sum->sum});
    ReadShapesOf(*y, sum->a);
    const Node* const joined = workspace_.rewriter().Replace(taken, 3, plan);
    workspace_.Refresh(joined);
    return IsTaken(*joined, kStatic, y);
  }

  bool JoinRows(const Node* node) {
    const Value* matrix = node->input(0);
    const Node* const reshape = matrix->producer != nullptr && IsOp(*matrix->producer, "Reshape") ? matrix->producer : nullptr;
    if (reshape != nullptr && CountReaders(*matrix) != 1) return false;
    const auto sum = Find(reshape == nullptr ? matrix : reshape->input(0));
    if (!sum.has_value() || !workspace_.target()->HasNode(kRows) || writer_.Rank(matrix) != 2 || node->input_count > 1)
      return false;
    const Dim columns = writer_.Of(matrix).shape.back();
    if (!workspace_.facts().dims().Equal({&columns, 1}, writer_.Of(sum->gain).shape)) return false;  // it makes other rows
    const Value* const y = sum->norm->output(0);
    NewNode plan = Plan(kRows, *sum, *node);
    plan.inputs = {sum->a, sum->b, sum->gain};
    std::vector<TakenOutput> taken;
    if (IsReadBesides(*sum)) taken.push_back({2, sum->sum});
    const Value* const codes = node->output(0);
    const Value* const scales = node->output(1);
    if (reshape == nullptr) {
      taken.push_back({0, codes});
      taken.push_back({3, scales});
    }
    ReadShapesOf(*y, sum->a);
    constexpr size_t kOutputs = 5;
    const Node* const joined = taken.empty() ? workspace_.rewriter().Insert(plan, kOutputs, node->graph, plan.name)
                                             : workspace_.rewriter().Replace(taken, kOutputs, plan);
    workspace_.Refresh(joined);
    if (!IsTaken(*joined, kRows, y)) return false;
    if (reshape != nullptr) {
      NodeInserter inserter(workspace_, *node);
      const Value* const as_before = reshape->input(1);
      const Value* const one_row = inserter.Numbers({-1});
      writer_.TakeOver(codes, "Reshape", {joined->output(0), as_before}, ReadAttributes(*reshape));
      writer_.TakeOver(scales, "Reshape", {joined->output(3), one_row});
    }
    return true;
  }

  // Whether something reads the sum but the norm.
  static bool IsReadBesides(const SumAndNorm& sum) { return CountReaders(*sum.sum) > (sum.sum->producer == sum.norm ? 0 : 1); }

  // Asks the target, and tells the sites of the norm.
  bool IsTaken(const Node& joined, std::string_view op, const Value* y) {
    const Answer answer =
        workspace_.target()->Check(CallOf(joined, workspace_.facts(), std::string(op)), &workspace_.facts().dims());
    const bool open = !answer.unsettled.empty() && !TakesAllKernels(workspace_.options().quantised);
    if (!answer.legal || open || (workspace_.options().strict && !answer.assumptions.empty())) return false;
    for (Site* site : sites_of_[y]) {
      SiteRecord& record = site->record;
      if (record.kind != "add_norm" && record.kind != "rms_norm") continue;
      site->SetState("fused");
      record.emitted_op = std::string(op);
      site->Say("", "", "");
      for (const std::string& sentence : answer.assumptions) {
        const auto found = std::find(record.assumptions.begin(), record.assumptions.end(), sentence);
        if (found == record.assumptions.end()) record.assumptions.push_back(sentence);
      }
    }
    return true;
  }

  Workspace& workspace_;
  NodeWriter writer_;
  absl::flat_hash_map<const Value*, std::vector<Site*>> sites_of_;  // by what they compute
};

}  // namespace

absl::Status QuantiseNorms(Workspace& workspace) {
  const Target* const target = workspace.target();
  const auto& skip = workspace.options().skip;
  const bool skipped = std::find(skip.begin(), skip.end(), "add_norm") != skip.end();
  const bool none = target == nullptr || (!target->HasNode(kStatic) && !target->HasNode(kRows));
  if (skipped || none || workspace.ChangesNothing()) return absl::OkStatus();
  NormQuantiser(workspace).Run();
  return absl::OkStatus();
}

}  // namespace ascend_fuse
