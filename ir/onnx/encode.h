// New attributes and constants in the file's encoding.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"

namespace ascend_fuse {

// The attributes as consecutive `attribute` fields of NodeProto (tag, length, body each), in the given order.
// An attribute with `encoded` set and `type` kept from ReadAttributes is copied from there.
std::string EncodeAttributes(const Model& model, const std::vector<Attribute>& attributes);

// A TensorProto body. Elements in memory or in the model file are written as raw_data; external ones stay
// references. Empty when the elements cannot be read.
std::string EncodeTensor(const Model& model, const Tensor& tensor);

// The fields doc_string and metadata of a node, as bytes of a NodeProto.
std::string EncodedNotes(const Node& node);

// One little-endian element: of a floating-point type rounded to nearest even, of int32 and int64 toward zero and
// to the nearest that there is (0 for NaN). Empty for other types.
std::string EncodeNumber(DataType type, double value);
// The number that these bytes are, of float16, bfloat16, float or double; false for other types.
bool DecodeFloat(DataType type, const char* bytes, double* value);

}  // namespace ascend_fuse
