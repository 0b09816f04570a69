// What passes give each other, by name.
#pragma once

#include <cstdint>
#include <string_view>

namespace ascend_fuse {

// What holds of the workspace from some pass on, so that later ones may rely on it.
enum class Given : uint8_t {
  kFacts,           // types, shapes and small elements of every value
  kNumbers,         // which values are the same computation
  kSites,           // every construct, each as one recognised operator
  kDecisions,       // what becomes of every site
  kFinalOperators,  // no recognised operator is left
  kFinalNodes,      // at the opset and in the forms that are written
  kStyle,           // how domains are spelled
};
// "facts", "numbers" ...
std::string_view GivenName(Given given);

}  // namespace ascend_fuse
