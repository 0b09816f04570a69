// Codes of quantised tensors as floating-point numbers: the whole number that a code is, less its zero point. Int8 and its like
// have few kernels, and every such number is one of float16 and float32. So a quantised tensor stays floating-point between
// the node that makes it and those that read it, and is cast to integers only where something else reads the integers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "passes/quantised/constant_codes.h"
#include "passes/quantised/kernel_try.h"
#include "passes/quantised/node_writer.h"

namespace ascend_fuse {

// What is known of a tensor of codes.
struct KeptCodes {
  const Value* centered = nullptr;  // the codes less `zero`, float32; or
  const Value* real = nullptr;      // the numbers before they were quantised as these `scale` and `zero` say
  const Value* scale = nullptr;
  const Value* zero = nullptr;
  const Value* source = nullptr;  // what was quantised in the graph with one scale and one zero point
  const Value* source_scale = nullptr;
  const Value* source_zero = nullptr;  // where that is computed: as a whole number, float32
  const Value* int8 = nullptr;         // the codes as int8 (int8_codes.h)
  bool by_node = false;                // ... which NPUQuantize gives
  const Value* rows = nullptr;         // the codes of each row of `source` by its own range, [M, K], and ...
  const Value* rows_scale = nullptr;   // ... their scales
  const Value* deployed = nullptr;     // int8 as well, which AscendQuant gives, for products that GE makes of it alone
};

class CodeWriter : public NodeWriter {
 public:
  explicit CodeWriter(Workspace& workspace) : NodeWriter(workspace) {}
  // What the report tells of kernels: by what a product computes.
  absl::flat_hash_map<const Value*, KernelTry> told;
  // Why no product is put on a kernel that is known in the default domain up to some opset; "" where it may.
  std::string why_no_int8_kernel;
  int64_t highest_opset = 0;  // at which every kernel that was taken has a name; 0: none was that ends before the model's
  std::string highest_named;  // which kernel that is of
  bool rounds() const { return workspace().options().quantised != Quantised::kFloat; }

  // The real numbers that the codes stand for, of the type of the scale or of `type`. A constant is computed when the model is
  // saved. FAILED_PRECONDITION with a sentence where that cannot be written.
  absl::StatusOr<const Value*> Real(const Node& at, const QuantisedTensor& codes, DataType type = DataType::kUndefined);
  // The codes less their zero point, float32.
  absl::StatusOr<const Value*> Centered(const Node& at, const QuantisedTensor& codes);
  // Output `index` of the node becomes the codes of x, of its own type. The node is replaced.
  absl::Status Quantize(const Node* node, const Value* x, const QuantisedTensor& as);
  // The codes of a value are these numbers, float32: it is cast from them.
  void TakeCodes(const Value* codes, const Value* raw);
  // These numbers, float32, as codes of the type: a new value that is kept.
  const Value* KeepCodes(const Node& at, const Value* raw, DataType type);
  // Codes that are kept are those of `real` by this scale and zero point, which are computed; `zero_number`: the latter as a
  // number.
  void KnowScale(const Value* codes, const Value* scale, const Value* zero, const Value* real, const Value* zero_number);
  void NoteOfCodes(const Value* real) { of_codes_.insert(real); }
  void NoteReal(const Value* real, const QuantisedTensor& of) { reals_[real] = of; }
  // What a real value was dequantised of, and what is known of codes; nullptr for others.
  const QuantisedTensor* CodesOf(const Value* real) const;
  KeptCodes* FindKept(const Value* codes);
  std::vector<const Value*> with_int8;  // codes that have them, made by whatever node
  // Whether a real value was made of codes that are kept: its activations are quantised.
  bool ComesOfCodes(const Value* real) const { return of_codes_.contains(real); }
  // The node as one on other values: a node that moves codes, on the codes as they are kept. False where it reads no codes.
  absl::StatusOr<bool> Carry(const Node* node);

  // The integers as float32.
  absl::StatusOr<const Value*> FloatOf(const Node& at, const Value* integers);
  // A scale or a zero point in float32 as it broadcasts along an axis of a tensor of that rank.
  absl::StatusOr<const Value*> Along(const Node& at, const Value* factor, int64_t axis, int64_t rank);
  // What was noted since is forgotten: the nodes were taken back.
  size_t Noted() const { return noted_.size(); }
  void Forget(size_t since);

 private:
  void Keep(const Value* codes, const KeptCodes& kept);
  absl::StatusOr<const Value*> Saturated(const Node& at, const Value* x, const QuantisedTensor& as, DataType type);

  absl::flat_hash_map<const Value*, KeptCodes> kept_;
  std::vector<const Value*> noted_;
  absl::flat_hash_map<const Value*, QuantisedTensor> reals_;
  absl::flat_hash_set<const Value*> of_codes_;
};

}  // namespace ascend_fuse
