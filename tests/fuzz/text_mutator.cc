// How libFuzzer changes the inputs of a target that reads text: linked into each of them.
#include "tests/fuzz/mutate_text.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return ascend_fuse::fuzz::MutateText(data, size, most, seed, 4);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out,
                                            size_t most, unsigned seed) {
  return ascend_fuse::fuzz::CrossTexts(a, a_size, b, b_size, out, most, seed);
}
