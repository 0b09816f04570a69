// The data of the cost model: what operators compute and move, figures of chips and of kernels, each with its source. Read from
// patterns/cost/costs.txtpb.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ascend_fuse {

// Where the work of an operator is done: see WorkKind of proto/costs.proto.
enum class WorkKind : uint8_t { kNone, kMatrix, kAttention, kVector, kMove, kView, kControl };
inline constexpr size_t kWorkKinds = 7;
// "matrix", "attention", "vector", "move", "view", "control"; "unknown" for kNone.
std::string_view WorkKindName(WorkKind kind);

// See Formula of proto/costs.proto.
enum class WorkFormula : uint8_t {
  kNone,
  kProduct,
  kConvolution,
  kTransposedConvolution,
  kLetters,
  kScores,
  kRecurrence,
  kGeneralProduct,
  kTwoProducts
};

// See OperatorWork of proto/costs.proto.
struct OperatorWork {
  WorkKind kind = WorkKind::kNone;
  WorkFormula formula = WorkFormula::kNone;
  int64_t per_output = 0;
  int64_t per_input = 0;
  bool reads_what_it_writes = false;
  bool scatters = false;
  int64_t instructions = 0;
  std::string one_by_one_on;
  double cube_share = 0;  // 0: what products reach
};

// That of an operator, "Softmax" or "npu.NPURmsNorm"; nullptr where there is no row.
const OperatorWork* FindOperatorWork(std::string_view op);

// When the heads of an attention are padded for its kernel: see HeadPadding of proto/costs.proto.
struct HeadPadding {
  int64_t multiple_of = 1;
  double at_most = 1;
  std::string because;
  std::string source;
};

// That of an Ascend node, by its type ("NPUPromptFlashAttention"); nullptr for one whose heads are not padded.
const HeadPadding* FindHeadPadding(std::string_view op_type);

struct CostFigure {
  double value = 0;
  std::string source;
};

// See ChipCost of proto/costs.proto.
struct ChipCost {
  std::string name;
  CostFigure cube;
  CostFigure bandwidth;
  std::vector<CostFigure> memory;
  CostFigure scores;
  CostFigure vector;
};

// How kernels are started.
enum class LaunchMode : uint8_t { kStatic, kDynamic, kSingle };
std::string_view LaunchModeName(LaunchMode mode);

// See CostParameters of proto/costs.proto.
struct CostParameters {
  std::array<CostFigure, kWorkKinds> fixed;  // by WorkKind, microseconds
  std::array<CostFigure, 3> launch;          // by LaunchMode, microseconds
  CostFigure cube_share;
  CostFigure bandwidth_share;
  CostFigure ai_cpu_fixed;
  CostFigure ai_cpu_rate;
  CostFigure scalar_rate;
  CostFigure tokens_first_from;
  CostFigure tokens_first;
  CostFigure uncertainty;
};

const CostParameters& CostModelParameters();
// The figures of a chip by the name of its file in patterns/targets; those of ascend910b for one that has none, and then
// `known` is false.
const ChipCost& FindChipCost(std::string_view chip, bool* known = nullptr);

// One row of patterns/cost/measurements.txtpb: see Measurement of proto/costs.proto.
struct Measurement {
  std::string name;
  std::string chip;
  LaunchMode launch = LaunchMode::kStatic;
  std::string before;
  std::string after;
  int64_t times = 1;
  double measured_before = 0;
  double measured_after = 0;
  bool whole = false;
  std::string assumed;
  std::string source;
  std::string fails;
  bool ai_cpu = false;
  std::vector<std::string> nodes;  // the Ascend nodes whose speed it tells of
  std::string tells_of;            // or the kind of opportunity
  bool is_measured() const { return measured_before > 0; }
};

// What a site is: see SiteTest of proto/costs.proto.
enum class SiteTest : uint8_t { kAny, kRowsChosenByRouter };

// A figure that cannot be predicted: see LeftOut of proto/costs.proto.
struct LeftOutFigure {
  std::string what;
  std::string source;
  std::vector<std::string> nodes;
  double measured_before = 0;
  double measured_after = 0;
  SiteTest where = SiteTest::kAny;
  bool is_measured() const { return measured_before > 0; }
};

struct Measurements {
  std::vector<Measurement> rows;
  std::vector<LeftOutFigure> left_out;
};

const Measurements& PublishedMeasurements();

// Whether a kernel takes dims that are known when the model runs only.
enum class KernelShapes : uint8_t { kUnknown, kDynamic, kStatic };

struct KernelOfNode {
  std::string name;  // an operator of GE; "" where the kernel list of the chip has none
  KernelShapes shapes = KernelShapes::kUnknown;
  std::string source;
};

// Which kernel computes a node, "Softmax" or "npu.NPURmsNorm", on a chip: patterns/cost/kernels.txtpb.
KernelOfNode FindKernel(std::string_view op, std::string_view chip);

}  // namespace ascend_fuse
