// Operators on strings, and the vectorizer.
#include <algorithm>

#include "ir/infer/context.h"

namespace ascend_fuse::infer {
namespace {

void StringConcat(NodeContext& c) {
  c.SetType(0, DataType::kString);
  if (c.in(0).has_rank && c.in(1).has_rank) c.SetShape(0, c.Broadcast(c.in(0).shape, c.in(1).shape));
}

void RegexFullMatch(NodeContext& c) {
  c.SetType(0, DataType::kBool);
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

void StringSplit(NodeContext& c) {  // -> parts[..., most parts], number of parts
  c.SetType(0, DataType::kString);
  c.SetType(1, DataType::kInt64);
  if (!c.in(0).has_rank) return;
  Shape shape = c.shape(0);
  c.SetShape(1, shape);
  shape.push_back(Dim());
  c.SetShape(0, shape);
}

void StringNormalizer(NodeContext& c) {  // [C] or [1, C]; stop words disappear
  c.SetType(0, DataType::kString);
  if (!c.in(0).has_rank || c.in(0).shape.empty()) return;
  Shape shape = c.shape(0);
  if (FindAttribute(c.node(), "stopwords").has_value()) shape.back() = Dim();
  c.SetShape(0, shape);
}

void TfIdfVectorizer(NodeContext& c) {  // [C] or [N, C]: C becomes the size of the vocabulary
  c.SetType(0, DataType::kFloat);
  const auto indexes = c.Ints("ngram_indexes");
  if (!c.in(0).has_rank || c.in(0).shape.empty()) return;
  Shape shape = c.shape(0);
  shape.back() = Dim();
  if (indexes.has_value() && !indexes->empty()) {
    const int64_t last = *std::max_element(indexes->begin(), indexes->end());
    shape.back() = c.dims().Add(Dim::Of(last), Dim::Of(1));
  }
  c.SetShape(0, shape);
}

void Tokenizer(NodeContext& c) {  // com.microsoft: one more dim, of the most tokens
  c.SetType(0, DataType::kString);
  if (!c.in(0).has_rank) return;
  Shape shape = c.shape(0);
  shape.push_back(Dim());
  c.SetShape(0, shape);
}

void MurmurHash3(NodeContext& c) {
  c.SetType(0, c.Int("positive", 1) != 0 ? DataType::kUint32 : DataType::kInt32);
  if (c.in(0).has_rank) c.SetShape(0, c.in(0).shape);
}

constexpr Entry kOps[] = {
    {"", "StringConcat", StringConcat},
    {"", "RegexFullMatch", RegexFullMatch},
    {"", "StringSplit", StringSplit},
    {"", "StringNormalizer", StringNormalizer},
    {"", "TfIdfVectorizer", TfIdfVectorizer},
    {"com.microsoft", "Tokenizer", Tokenizer},
    {"com.microsoft", "MurmurHash3", MurmurHash3},
};

}  // namespace

absl::Span<const Entry> TextOps() { return kOps; }

}  // namespace ascend_fuse::infer
