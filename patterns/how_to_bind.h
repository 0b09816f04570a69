// What a user can do about dims that are not known: the end of a sentence that says what cannot be decided.
#pragma once

#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "ir/dim.h"

namespace ascend_fuse {

// "bind it with --dim B=N --dim S=N", of the symbols in `dims`; of a length that the model computes, which --dim cannot say, that
// it is to be declared. `number` stands for what is to be written there.
std::string HowToBind(const DimTable& dims, absl::Span<const Dim> unknown, std::string_view number = "N");

// The same of dims that may be one. Of two names: "..., or say that they are the same with --dim T=S".
std::string HowToEqual(const DimTable& dims, absl::Span<const Dim> compared);

}  // namespace ascend_fuse
