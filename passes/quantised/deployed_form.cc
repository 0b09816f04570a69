#include "passes/quantised/deployed_form.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "ir/constant_tensor.h"
#include "ir/rounding.h"
#include "ir/status_macros.h"
#include "passes/core/call_of.h"
#include "passes/quantised/int8_codes.h"
#include "passes/quantised/int8_weight.h"

namespace ascend_fuse {
namespace {

constexpr char kQuant[] = "npu.AscendQuant";
constexpr char kDequant[] = "npu.AscendDequant";
constexpr char kForm[] = "DOC atlasamct_16_0148 and 0160; hicann/amct:amct_pytorch/classic/graph_based/amct_pytorch/optimizer";
constexpr int64_t kHalf = 128;          // how far codes of uint8 lie above those of int8
constexpr int64_t kLeastChannels = 16;  // up to so many, GE computes in floating point

bool IsStatic(const Fact& fact) {
  return fact.has_rank && std::all_of(fact.shape.begin(), fact.shape.end(), [](Dim dim) { return dim.is_number(); });
}

class DeployedEmission {
 public:
  DeployedEmission(CodeWriter& writer, const Node* node, const Int8Product& product, bool conv)
      : writer_(writer), workspace_(writer.workspace()), node_(*node), product_(product), conv_(conv) {}

  absl::StatusOr<KernelTry> Run() {
    RETURN_IF_ERROR(ReadActivation());
    if (conv_) RETURN_IF_ERROR(CheckConv());
    ASSIGN_OR_RETURN(const Int8Weight weight, Int8Weight::Read(workspace_.model(), product_.weight, product_.by_rows));
    if (!weight.centered()) return NotWritten("codes of its weight less their zero point are not all of int8");
    ASSIGN_OR_RETURN(const Value* scale, Scale(weight));
    ASSIGN_OR_RETURN(const Value* codes, Quantized());
    ASSIGN_OR_RETURN(const Value* filter, weight.Constant(workspace_, node_, conv_));
    const Value* const sums = Product(codes, filter);
    NewNode plan;
    plan.domain = "npu";
    plan.op_type = "AscendDequant";
    plan.name = fmt::format("{}_dequant", Label(node_));
    plan.inputs = {sums, scale};
    const DataType type = writer_.Of(product_.x.scale).type;
    plan.attributes = {Attribute::Int("dtype", type == DataType::kFloat16 ? 1 : 0)};
    const Value* const y = NodeInserter(workspace_, node_).Insert(plan);
    KernelTry taken;
    RETURN_IF_ERROR(Legal(y, kDequant, &taken));
    if (!taken.because.empty()) return taken;
    taken.taken = true;
    taken.op = kDequant;
    taken.by_ge = "GE makes one product of integers of AscendQuant, the product and AscendDequant";
    taken.source = kForm;
    taken.value = writer_.Cast(node_, y, type);
    if (zero_ != 0) {
      taken.assumptions.push_back(
          "passes of GE, whose source is closed, take the zero point of AscendQuant off the sums, as they do it for models of "
          "AMCT");
    }
    if (!conv_ && weight.scale_count() > 1) {
      taken.assumptions.push_back("AscendDequant after a linear takes a scale for each column, as it does after a convolution");
    }
    return taken;
  }

 private:
  absl::Status ReadActivation() {
    const DataType type = writer_.Of(product_.x.codes).type;
    kept_ = writer_.FindKept(product_.x.codes);
    const auto scale = writer_.OneNumber(product_.x.scale);
    const auto zero = product_.x.zero == nullptr ? std::optional<double>(0) : writer_.OneNumber(product_.x.zero);
    if (!scale.has_value() || !zero.has_value())
      return NotWritten("the scale of its activation is computed, or differs along an axis");
    if (type != DataType::kInt8 && type != DataType::kUint8)
      return NotWritten(fmt::format("its activation is quantised to {}", DataTypeName(type)));
    if (kept_ == nullptr || kept_->source == nullptr || kept_->source_zero != nullptr ||
        !writer_.SameFactor(kept_->zero, product_.x.zero) || !writer_.SameFactor(kept_->source_scale, product_.x.scale)) {
      return NotWritten(
          "its codes are moved, joined or read by another scale after they are made, and AscendQuant makes them of numbers");
    }
    if (!IsStatic(writer_.Of(kept_->source)))
      return NotWritten("the form is for fixed shapes, and that of its activation is not known (--fix writes them)");
    scale_ = *scale;
    zero_ = static_cast<int64_t>(*zero) - (type == DataType::kUint8 ? kHalf : 0);
    constexpr double kLeast = 6.103515625e-05;
    if (!(1 / scale_ >= kLeast) || 1 / scale_ > *LargestFinite(DataType::kFloat16))
      return NotWritten(fmt::format("float16, in which AscendQuant multiplies, does not hold 1 / {}", scale_));
    return absl::OkStatus();
  }

  absl::Status CheckConv() const {
    const Fact& x = writer_.Of(kept_->source);
    const Fact& filter = writer_.Of(product_.weight.codes);
    if (x.rank() != 4 || filter.rank() != 4) return NotWritten("the form is for convolutions of two dims");
    if (IntAttribute(node_, "group").value_or(1) != 1) return NotWritten("the form is not proven for convolutions in groups");
    if (x.shape[1].number() <= kLeastChannels)
      return NotWritten(fmt::format("it has {} channels, and GE computes 16 or fewer in floating point", x.shape[1].number()));
    return absl::OkStatus();
  }

  // Bits 31 to 0 are a float32 of which 19 are read, the others are 0.
  absl::StatusOr<const Value*> Scale(const Int8Weight& weight) {
    std::vector<uint64_t> scales;
    for (int64_t i = 0; i < static_cast<int64_t>(weight.scale_count()); ++i) {
      const double scale = static_cast<double>(static_cast<float>(scale_) * static_cast<float>(weight.ScaleOf(i)));
      const std::optional<uint32_t> bits = RoundedScale(scale);
      if (!bits.has_value()) return NotWritten(fmt::format("a result in float16 does not hold what a scale of {} makes", scale));
      scales.push_back(*bits);
    }
    return RowOfNumbers(workspace_, node_, DataType::kUint64,
                        {reinterpret_cast<const char*>(scales.data()), scales.size() * sizeof(uint64_t)}, "scale");
  }

  // AscendQuant of what was quantised, once for all products that read it.
  absl::StatusOr<const Value*> Quantized() {
    if (kept_->deployed != nullptr) return kept_->deployed;
    NewNode plan;
    plan.domain = "npu";
    plan.op_type = "AscendQuant";
    plan.name = fmt::format("{}_quant", Label(node_));
    plan.inputs = {kept_->source};
    plan.attributes = {Attribute::Float("scale", static_cast<float>(1 / scale_)),
                       Attribute::Float("offset", static_cast<float>(zero_)), Attribute::String("dst_type", "INT8")};
    const Value* const codes = NodeInserter(workspace_, node_).Insert(plan);
    KernelTry refused;
    RETURN_IF_ERROR(Legal(codes, kQuant, &refused));
    if (!refused.because.empty()) return NotWritten(refused.because);
    kept_->deployed = codes;
    writer_.with_int8.push_back(product_.x.codes);
    return codes;
  }

  absl::Status Legal(const Value* value, const char* op, KernelTry* refused) {
    const Answer answer =
        workspace_.target()->Check(CallOf(*value->producer, workspace_.facts(), op), &workspace_.facts().dims());
    if (!answer.legal) *refused = KernelTry::Refused(answer.code, answer.because, answer.source);
    return absl::OkStatus();
  }

  const Value* Product(const Value* codes, const Value* weight) {
    if (!conv_) {
      const Value* const sums = writer_.Op(node_, "MatMul", {codes, weight});
      return product_.bias == nullptr ? sums : writer_.Op(node_, "Add", {sums, product_.bias});
    }
    std::vector<const Value*> inputs = {codes, weight};
    if (product_.bias != nullptr) inputs.push_back(product_.bias);
    std::vector<Attribute> attributes = ReadAttributes(node_);
    std::erase_if(attributes, [](const Attribute& attribute) { return attribute.name == "channels_last"; });
    return writer_.Op(node_, "Conv", std::move(inputs), std::move(attributes));
  }

  CodeWriter& writer_;
  Workspace& workspace_;
  const Node& node_;
  const Int8Product& product_;
  bool conv_;
  KeptCodes* kept_ = nullptr;
  double scale_ = 1;
  int64_t zero_ = 0;
};

KernelTry TryDeployedForm(CodeWriter& writer, const Node* node, const Int8Product& product, bool conv) {
  Workspace& workspace = writer.workspace();
  const auto ge = workspace.target()->FusedByGe(conv ? "int8_conv" : "int8_linear");
  if (!ge.has_value()) return {};
  if (!TakesAllKernels(workspace.options().quantised)) {
    return KernelTry::Refused(
        "kernel-unsettled",
        "AscendQuant and AscendDequant around it compute in float16, where one code of a hundred differs by one; "
        "--quantised fast takes them",
        ge->source);
  }
  if (workspace.target()->KeepsRange())
    return KernelTry::Refused("kernel-unsettled",
                              "AscendQuant and AscendDequant compute in float16, which the precision mode rules out", ge->source);
  if (!writer.why_no_int8_kernel.empty()) return KernelTry::Refused("opset-kept", writer.why_no_int8_kernel, ge->source);
  const Rewriter::Mark before = workspace.rewriter().Now();
  const size_t noted = writer.with_int8.size();
  auto made = DeployedEmission(writer, node, product, conv).Run();
  if (made.ok() && made->taken && workspace.options().strict && !made->assumptions.empty()) {
    made = KernelTry::Refused("assumption-refused", fmt::format("--strict: it would assume that {}", made->assumptions[0]),
                              ge->source);
  }
  if (made.ok() && made->taken) {
    NoteNames(writer, {kQuant, kDequant});
    return *std::move(made);
  }
  workspace.rewriter().RollBack(before);
  ForgetInt8(writer, noted);
  return made.ok() ? *std::move(made) : KernelTry::Refused("weight-not-taken", std::string(made.status().message()), ge->source);
}

}  // namespace

const Value* InDeployedForm(CodeWriter& writer, const Node* node, const Int8Product& product, bool conv) {
  if (!writer.rounds() || writer.workspace().target() == nullptr) return nullptr;
  KernelTry answer = TryDeployedForm(writer, node, product, conv);
  const Value* const value = answer.value;
  if (answer.taken || !answer.because.empty()) writer.told[node->output()] = std::move(answer);
  return value;
}

}  // namespace ascend_fuse
