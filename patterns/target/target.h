// Asks a target whether a node is legal there. Chips and CANN versions are data (patterns/targets/*.txtpb);
// nothing about a chip is written in code.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/attribute.h"
#include "ir/data_type.h"
#include "ir/dim.h"
#include "ir/infer/facts.h"

namespace ascend_fuse {

struct TargetOptions {
  // A file of patterns/targets, ATC's --soc_version (Ascend910B4), or a path to a .txtpb.
  std::string chip = "ascend910b";
  std::string cann = "8.1";                   // likewise: a version, or a path
  bool plugin = false;                        // our op plugin is installed: its nodes may be emitted
  std::string precision_mode = "force_fp16";  // ATC's own words
  std::string style;                          // "", "D", "N", "X"

  friend bool operator==(const TargetOptions&, const TargetOptions&) = default;
};

// One operand of a planned node.
struct CallInput {
  bool present = false;
  DataType type = DataType::kUndefined;
  bool has_rank = false;
  std::vector<Dim> shape;
};

// A planned node: "npu.NPURmsNorm" with its inputs and attributes.
struct Call {
  std::string op;
  std::vector<CallInput> inputs;
  std::vector<Attribute> attributes;
  bool in_branch = false;  // of an If
};

struct Answer {
  bool legal = false;
  std::vector<std::string> assumptions;  // bounds on symbolic dims that could not be decided, as sentences
  std::string code;                      // of patterns/codes.txtpb: what kind of refusal this is
  bool certain = true;                   // false: a dim or shape that is not known may make the call legal
  std::string because;                   // why not: one sentence
  std::string source;                    // where that statement is written
  std::string unsettled;                 // of a legal one: what no source settles of the node on this chip; an assumption too
};

// What the compiler does by itself with a standard operator or a recognised construct.
struct GeConstruct {
  std::string because;  // a sentence naming the pass or parser
  std::string source;
  // Conditions on the place: see GeConstructRow of proto/contract.proto.
  bool static_shapes = false;
  bool plain_linear = false;
  std::string computed_by;
  int64_t last_opset = 0;
};

// Why nothing takes a construct.
struct LeftReason {
  std::string because;
  std::string source;
  std::string code;
};

// A standard operator with a parser and a kernel.
struct StandardOp {
  std::string because;
  std::string source;
};

// A form of a standard operator that ATC of this release does not read as ONNX defines it, or that does not run on the
// AI Core of the chip.
struct UnsupportedForm {
  // See UnsupportedForm of proto/contract.proto.
  enum class Effect { kNoParser, kRefused, kMisread, kLosesType, kNoKernel, kAiCpu, kHost, kSlow };
  std::string code;  // stable: "no-parser", "reduce-axes-input" ...
  Effect effect = Effect::kNoParser;
  std::string form;     // continues the operator in a sentence: "with axes as an input", or ""
  std::string because;  // what happens: a clause
  std::string instead;  // what to do: a clause, or ""
  std::string source;
  std::string error;  // the code that ATC prints: "E19999", or ""
  // Whether it surely is so. If not, `open` says why: the node was not decided, or the sources do not settle it.
  bool certain = true;
  std::string open;
  bool unsettled = false;  // the sources do not say whether it is so

  // It is read as ONNX defines it, and computed: elsewhere than on the AI Core, or slowly.
  bool IsRight() const { return effect == Effect::kAiCpu || effect == Effect::kHost || effect == Effect::kSlow; }
};

class Target {
 public:
  // NOT_FOUND names the chips and CANN versions there are; INVALID_ARGUMENT names line and column in a user's
  // target file that does not parse, or the row of it that is wrong. Rows of built-in files are compiled when
  // they are first asked for.
  static absl::StatusOr<Target> Load(const TargetOptions& options);
  // One target for all who ask with the same options, as one process over many models does: the last ones that were asked
  // for are kept. With a file of a user, it is loaded each time. Errors are those of Load.
  static absl::StatusOr<std::shared_ptr<const Target>> Shared(const TargetOptions& options);
  ~Target();
  Target(Target&&) noexcept;
  Target& operator=(Target&&) noexcept;

  const std::string& chip() const;
  const std::string& cann() const;
  const TargetOptions& options() const;

  // Whether the node may be emitted. Under force_fp16 (and the other modes that lower precision) a float
  // operand is judged by the kernel's float16 row, unless operands of float32 and of a half-precision type stand
  // side by side: no mode lowers what a Cast made float32. A bound on a symbolic dim that `dims` cannot decide is
  // an assumption; an exactness that cannot be decided (multiple of, equal to) is a refusal.
  Answer Check(const Call& call, const DimTable& dims) const;
  // The same with a table that may grow: also decides whether a symbolic dim (2*s3) is a multiple of a
  // number.
  Answer Check(const Call& call, DimTable* dims) const;

  // Why an input may not be left out before one that is given, in a branch of an If; nullopt where it may.
  std::optional<LeftReason> EmptyInputInBranch() const;

  // Whether GE builds `construct` ("linear_bias", "layer_norm", "add_rms_norm", "conv_batch_norm" ...)
  // itself.
  std::optional<GeConstruct> FusedByGe(std::string_view construct) const;

  // Why nothing on this chip computes `construct` as one, where the chip's data says so.
  std::optional<LeftReason> WhyLeft(std::string_view construct) const;

  // The standard operator `op` ("HardSwish") of a value of this type, where ATC's parser maps it to one kernel at this opset.
  // Where it does so at other opsets only, or the kernel takes other types, `outside` is given the reason; else it is left as
  // it is.
  std::optional<StandardOp> Standard(std::string_view op, DataType type, int64_t opset, LeftReason* outside = nullptr) const;

  // The forms of `node`, of the default domain, that this release does not read as ONNX defines them or the chip does not
  // run on its AI Core, where the model imports `opset`; at most one of each code, one that is certain before one
  // that is not. Without `facts`, what depends on types, shapes and constants is possible. They live as long as the
  // target.
  std::vector<const UnsupportedForm*> UnsupportedForms(const Node& node, int64_t opset, const Facts* facts = nullptr) const;

  // Whether a stock plugin registers the operator of the default domain at some opset; true of every one where the data
  // does not say.
  bool IsParsed(std::string_view op) const;

  // True when ATC's parser of this CANN version reads nodes of domain "npu" beside nodes of the empty domain
  // (style N).
  bool ParsesNpuDomain() const;
  // True when `op` ("npu.NPURmsNorm") has a default-domain alias at this opset (style D).
  bool HasAlias(std::string_view op, int64_t opset) const;
  // False for a node whose alias is its only name: it is written in the default domain in every style.
  bool HasNpuName(std::string_view op) const;
  // The highest default-domain opset <= `opset` at which all of `ops` have an alias, or 0.
  int64_t AliasOpset(const std::vector<std::string>& ops, int64_t opset) const;

  // Whether the precision mode surely leaves float and bfloat16 their range of exponents, in kernels that
  // take them.
  bool KeepsRange() const;

  // The highest opset of the default domain at which standard operators have a parser.
  int64_t MaxOpset() const;

  // Compiles and checks every row now. Errors are those that Load reports of a user's file; for tests of the
  // data.
  absl::Status CheckData() const;

  // Sentences a user should see with this target: a CANN version that does not know the chip ...
  const std::vector<std::string>& warnings() const;

  // True for a node that ATC reads only with our op plugin installed; asked of targets loaded with it.
  bool NeedsPlugin(std::string_view op) const;

  // The npu nodes this target has a row for, in the order of its file; refused ones left out.
  std::vector<std::string> Nodes() const;
  bool HasNode(std::string_view op) const;  // whether `op` is one of them

  // ATC's words for --soc_version of this chip, as far as they are known, and the one that the target was named by, or "".
  std::vector<std::string> Socs() const;
  std::string NamedSoc() const;
  // Whether ATC takes ranges of dims (--input_shape="x:1~8") for this chip.
  bool TakesShapeRanges() const;

  // What the target accepts, as a person reads it: its nodes, what GE does, what ATC does not read.
  std::string Describe() const;
  // The same of one operator, "npu.NPURmsNorm", "NPURmsNorm" or "ReduceMean". NOT_FOUND where nothing is known of it.
  absl::StatusOr<std::string> DescribeOperator(const std::string& op) const;
  // All chips and CANN versions, with titles.
  static std::string DescribeAll();

  // Names of all chips (files of patterns/targets), CANN versions.
  static std::vector<std::string> Chips();
  static std::vector<std::string> CannVersions();

 private:
  struct Impl;
  explicit Target(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend_fuse
