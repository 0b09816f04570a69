// A mutator that knows what a model is, in the way of libprotobuf-mutator: it changes fields of a ModelProto, so that most of
// what it makes is read to its end. Names are taken from the model, so that nodes stay connected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ascend_fuse::fuzz {

// Changes the model in [data, data + size) in place; the new size, at most `most`. Bytes that are not a model, and one time in
// `bytes_in`, are changed as bytes.
size_t MutateModel(uint8_t* data, size_t size, size_t most, unsigned seed, unsigned bytes_in);

// A model with parts of both; the size, 0 where one is not a model or the result is too large.
size_t CrossModels(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out, size_t most, unsigned seed);

}  // namespace ascend_fuse::fuzz
