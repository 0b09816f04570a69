#include "attributes.h"

#include <cctype>
#include <cstdlib>
#include <locale>
#include <sstream>
#include <utility>
#include <vector>

namespace ascend_fuse_plugin {
namespace {

// The types of AttributeProto that are read.
const int64_t kFloatType = 1;
const int64_t kIntType = 2;
const int64_t kTextType = 3;
const int64_t kFloatsType = 6;

// A value of JSON, as far as attributes are made of them. What is deeper than kDepth is not an attribute of ours.
struct Value {
  enum class Kind { kNothing, kNumber, kText, kList, kObject };
  Kind kind = Kind::kNothing;
  std::string text;  // of a number as it is written
  std::vector<Value> items;
  std::map<std::string, Value> members;

  const Value* Member(const char* name) const {
    const std::map<std::string, Value>::const_iterator found = members.find(name);
    return found == members.end() ? nullptr : &found->second;
  }
};

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text), at_(0) {}

  bool Read(Value* value) { return ReadValue(value, 0) && AtEnd(); }

 private:
  static const int kDepth = 16;

  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  static bool InWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.'; }

  bool Take(char wanted) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool ReadValue(Value* value, int depth) {
    SkipSpace();
    if (at_ == text_.size() || depth > kDepth) return false;
    if (text_[at_] == '{') return ReadObject(value, depth);
    if (text_[at_] == '[') return ReadList(value, depth);
    if (text_[at_] == '"') {
      value->kind = Value::Kind::kText;
      return ReadText(&value->text);
    }
    // A number, or true, false or null, which no attribute of ours is.
    const size_t start = at_;
    while (at_ < text_.size() && InWord(text_[at_])) ++at_;
    value->text = text_.substr(start, at_ - start);
    const bool number = !value->text.empty() && std::string("-0123456789").find(value->text[0]) != std::string::npos;
    value->kind = number ? Value::Kind::kNumber : Value::Kind::kNothing;
    return at_ != start;
  }

  bool ReadList(Value* value, int depth) {
    value->kind = Value::Kind::kList;
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      value->items.push_back(Value());
      if (!ReadValue(&value->items.back(), depth + 1)) return false;
    } while (Take(','));
    return Take(']');
  }

  bool ReadObject(Value* value, int depth) {
    value->kind = Value::Kind::kObject;
    if (!Take('{')) return false;
    if (Take('}')) return true;
    do {
      std::string name;
      SkipSpace();
      if (!ReadText(&name) || !Take(':') || !ReadValue(&value->members[name], depth + 1)) return false;
    } while (Take(','));
    return Take('}');
  }

  // Other characters than those of ASCII stay as they are: no word that a parser of ours knows has one.
  bool ReadText(std::string* text) {
    if (at_ == text_.size() || text_[at_] != '"') return false;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '"') {
        ++at_;
        return true;
      }
      if (text_[at_] == '\\') {
        *text += '\\';
        if (++at_ == text_.size()) return false;
      }
      *text += text_[at_];
    }
    return false;
  }

  const std::string text_;
  size_t at_;
};

bool ToNumber(const std::string& text, double* number) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  stream >> *number;
  return !stream.fail() && stream.eof();
}

bool ToInteger(const std::string& text, int64_t* integer) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  stream >> *integer;
  return !stream.fail() && stream.eof();
}

Attribute FromValue(const Value& value, int64_t type) {
  Attribute attribute = {Attribute::Type::kOther, 0, 0, "", true};
  if (type == kIntType) {
    attribute.type = Attribute::Type::kInt;
    const Value* i = value.Member("i");
    attribute.has_value = i == nullptr || (i->kind == Value::Kind::kNumber && ToInteger(i->text, &attribute.integer));
  } else if (type == kTextType) {
    attribute.type = Attribute::Type::kText;
    const Value* s = value.Member("s");
    attribute.has_value = s == nullptr || s->kind == Value::Kind::kText;
    if (s != nullptr) attribute.text = s->text;
  } else if (type == kFloatType) {
    attribute.type = Attribute::Type::kFloat;
    const Value* f = value.Member("f");
    attribute.has_value = f == nullptr || ToNumber(f->text, &attribute.number);
  } else if (type == kFloatsType) {
    const Value* floats = value.Member("floats");
    if (floats != nullptr && floats->items.size() == 1) {
      attribute.type = Attribute::Type::kFloat;
      attribute.has_value = ToNumber(floats->items[0].text, &attribute.number);
    }
  }
  return attribute;
}

}  // namespace

bool ReadAttributes(const std::string& json, std::map<std::string, Attribute>* attributes) {
  Value root;
  if (!Reader(json).Read(&root)) return false;
  const Value* list = root.kind == Value::Kind::kObject ? root.Member("attribute") : &root;
  if (list == nullptr || list->kind != Value::Kind::kList) return false;
  for (size_t i = 0; i < list->items.size(); ++i) {
    const Value* name = list->items[i].Member("name");
    const Value* type = list->items[i].Member("type");
    int64_t number = 0;
    if (name == nullptr || type == nullptr || !ToInteger(type->text, &number)) return false;
    attributes->insert(std::make_pair(name->text, FromValue(list->items[i], number)));
  }
  return true;
}

}  // namespace ascend_fuse_plugin
