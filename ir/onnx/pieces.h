// What a file to be written consists of: ranges of the input file, new bytes, and weights that are joined while writing.
// Private to ir/onnx.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/tensor.h"
#include "ir/wire.h"

namespace ascend_fuse {

// The bytes of a file to be written, as pieces.
class Pieces {
 public:
  enum Kind : uint8_t { kFile, kBuffer, kView, kElements };
  struct Piece {
    Kind kind;
    union {
      int64_t offset;        // kFile: in the input; kBuffer: in buffer()
      const char* data;      // kView
      const Tensor* tensor;  // kElements
    };
    int64_t size;
  };

  // [offset, offset + size) of the input file; neighbours become one piece.
  void File(int64_t offset, int64_t size) {
    if (size == 0) return;
    total_ += size;
    if (!pieces_.empty()) {
      Piece& last = pieces_.back();
      if (last.kind == kFile && last.offset + last.size == offset) {
        last.size += size;
        return;
      }
    }
    Add(kFile, offset, size);
  }
  // Bytes that live as long as the model.
  void View(std::string_view bytes) {
    if (bytes.size() < 64) return Copy(bytes);
    total_ += static_cast<int64_t>(bytes.size());
    Add(kView, 0, static_cast<int64_t>(bytes.size()));
    pieces_.back().data = bytes.data();
  }
  // The elements of a tensor that is joined, or lies in external data.
  void Elements(const Tensor& tensor, int64_t size) {
    total_ += size;
    Add(kElements, 0, size);
    pieces_.back().tensor = &tensor;
  }
  void Copy(std::string_view bytes) {
    if (bytes.empty()) return;
    total_ += static_cast<int64_t>(bytes.size());
    const auto at = static_cast<int64_t>(buffer_.size());
    buffer_.append(bytes.data(), bytes.size());
    if (!pieces_.empty()) {
      Piece& last = pieces_.back();
      if (last.kind == kBuffer && last.offset + last.size == at) {
        last.size += static_cast<int64_t>(bytes.size());
        return;
      }
    }
    Add(kBuffer, at, static_cast<int64_t>(bytes.size()));
  }
  void Bytes(int number, std::string_view body) {
    Header(number, static_cast<int64_t>(body.size()));
    View(body);
  }
  void Int(int number, int64_t value) {
    scratch_.clear();
    wire::AppendInt(&scratch_, static_cast<uint32_t>(number), value);
    Copy(scratch_);
  }
  // Tag and length of a length-delimited field.
  void Header(int number, int64_t size) {
    scratch_.clear();
    wire::AppendTag(&scratch_, static_cast<uint32_t>(number), wire::kBytes);
    wire::AppendVarint(&scratch_, static_cast<uint64_t>(size));
    Copy(scratch_);
  }

  // A message whose length is known at End.
  struct Mark {
    size_t piece;
    int64_t total;
  };
  Mark Begin(int number) {
    scratch_.clear();
    wire::AppendTag(&scratch_, static_cast<uint32_t>(number), wire::kBytes);
    Copy(scratch_);
    Add(kBuffer, static_cast<int64_t>(buffer_.size()), 0);
    buffer_.append(10, '\0');  // room for the length; not merged with anything, as the piece is still empty
    return {pieces_.size() - 1, total_};
  }
  void End(const Mark& mark) {
    scratch_.clear();
    wire::AppendVarint(&scratch_, static_cast<uint64_t>(total_ - mark.total));
    Piece& piece = pieces_[mark.piece];
    std::memcpy(buffer_.data() + piece.offset, scratch_.data(), scratch_.size());
    piece.size = static_cast<int64_t>(scratch_.size());
    total_ += piece.size;
  }

  int64_t total() const { return total_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::string_view buffer() const { return buffer_; }

 private:
  void Add(Kind kind, int64_t offset, int64_t size) {
    Piece piece;
    piece.kind = kind;
    piece.offset = offset;
    piece.size = size;
    pieces_.push_back(piece);
  }

  std::vector<Piece> pieces_;
  std::string buffer_;
  std::string scratch_;
  int64_t total_ = 0;
};

}  // namespace ascend_fuse
