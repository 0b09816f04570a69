// Attributes, shapes and elements as JSON for passes in C and Python.
#include "tools/c/json.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "fmt/format.h"

namespace ascend_fuse::c {

std::string JsonText(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e || c == '"' || c == '\\') {
      text += fmt::format("\\u{:04x}", byte);
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string JsonFloat(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

namespace {

std::string JsonValue(const Attribute& attribute) {
  switch (attribute.type) {
    case AttributeType::kInt:
      return fmt::format("{}", attribute.i);
    case AttributeType::kFloat:
      return JsonFloat(attribute.f);
    case AttributeType::kString:
      return JsonText(attribute.s);
    case AttributeType::kInts:
      return JsonList(attribute.ints, [](int64_t number) { return fmt::format("{}", number); });
    case AttributeType::kFloats:
      return JsonList(attribute.floats, [](float number) { return JsonFloat(number); });
    default:  // tensors, graphs, types: there, and not read
      return "null";
  }
}

}  // namespace

std::string JsonObject(absl::Span<const Attribute> attributes) {
  std::string text = "{";
  for (const Attribute& attribute : attributes) {
    if (text.size() > 1) text += ',';
    text += JsonText(attribute.name) + ':' + JsonValue(attribute);
  }
  return text + '}';
}

}  // namespace ascend_fuse::c
