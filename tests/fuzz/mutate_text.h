// A mutator of texts made of words, numbers, strings and brackets: ONNX text, rules, files of targets, JSON. Words are taken from
// the text, so that names stay names; what is between brackets is copied as a whole.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ascend_fuse::fuzz {

// Changes the text in [data, data + size) in place; the new size, at most `most`. One time in `bytes_in` it is changed as bytes.
size_t MutateText(uint8_t* data, size_t size, size_t most, unsigned seed, unsigned bytes_in);

// A text with lines of both; the size, 0 where the result is too large.
size_t CrossTexts(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out, size_t most, unsigned seed);

}  // namespace ascend_fuse::fuzz
