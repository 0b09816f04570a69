// Attributes, shapes and elements as JSON. Every byte of a text is the character of its number, so that texts that are not UTF-8
// come through as they are.
#pragma once

#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "ir/attribute.h"

namespace ascend_fuse::c {

std::string JsonText(std::string_view bytes);
// With a point or an exponent; NaN, Infinity and -Infinity as Python and JavaScript spell them.
std::string JsonFloat(double number);
std::string JsonObject(absl::Span<const Attribute> attributes);

// `write` gives the JSON of one element.
template <typename List, typename Write>
std::string JsonList(const List& list, Write write) {
  std::string text = "[";
  for (const auto& element : list) {
    if (text.size() > 1) text += ',';
    text += write(element);
  }
  return text + ']';
}

}  // namespace ascend_fuse::c
