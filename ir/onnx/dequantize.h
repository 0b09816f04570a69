// The elements of a tensor of Storage::kDequantized, computed from its integers while they are read. Private to ir/onnx.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ir/model.h"

namespace ascend_fuse {

// The scales, or the zero points, of the elements that are being read: those of one place along the outer axis, or all of them
// where every place has the same, where they do not begin at a whole byte, or where places are not visited one after another.
class FactorWindow {
 public:
  // `tensor` may be nullptr: then every factor is `otherwise`.
  FactorWindow(const Model& model, const Tensor* tensor, int bits, const FactorSteps& steps, bool whole, double otherwise);
  // Reads on to this place along the outer axis; unless all are read, places come one after another.
  absl::Status MoveTo(int64_t outer);
  double At(int64_t group, int64_t inner) const {
    return values_.empty() ? otherwise_ : values_[static_cast<size_t>(base_ + group * steps_.group + inner * steps_.inner)];
  }

 private:
  absl::Status Read(int64_t count);

  const Tensor* tensor_;
  int bits_;
  FactorSteps steps_;
  double otherwise_;
  bool whole_ = false;
  std::unique_ptr<ElementReader> reader_;
  std::vector<double> values_;
  int64_t base_ = 0;
};

class DequantizingReader {
 public:
  DequantizingReader(const Model& model, const Tensor& tensor);
  ~DequantizingReader();

  // The next `count` bytes of the elements. DATA_LOSS and others as of ElementReader.
  absl::Status Next(int64_t count, char* to);

 private:
  absl::Status FillBlock();
  absl::Status FillRow();
  bool FillTile();
  absl::Status AppendRun(const char* packed, int64_t first, int64_t count);
  void Append(double code, double zero, double scale);
  void AppendPlain(const char* packed, int64_t first, int64_t count, double zero, float scale);
  double CodeAt(const char* packed, int64_t index) const;
  int64_t GroupOf(int64_t place) const {
    return how_.groups.empty() ? place / how_.block : how_.groups[static_cast<size_t>(place)];
  }

  const Dequantization& how_;
  DataType type_;
  std::unique_ptr<ElementReader> codes_;
  FactorWindow scales_;
  FactorWindow zeros_;
  bool are_plain_;      // integers of 4 or 8 bits that become numbers of at most 32
  int64_t left_ = 0;    // codes that were not read yet
  int64_t outer_ = -1;  // where the next code stands
  int64_t place_ = 0;
  int64_t inner_ = 0;
  std::unique_ptr<char[]> whole_;  // all codes, where places are not visited one after another
  uint32_t nibbles_ = 0;           // an element of packed codes ...
  int packed_ = 0;                 // ... and how many there are in it
  std::string block_;              // elements that are ready ...
  size_t used_ = 0;                // ... and how many bytes of them were given out
};

}  // namespace ascend_fuse
