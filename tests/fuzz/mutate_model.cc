#include "tests/fuzz/mutate_model.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/arena.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/strict_onnx.pb.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace ascend_fuse::fuzz {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int64_t kNumbers[] = {0,
                                1,
                                2,
                                -1,
                                -2,
                                3,
                                4,
                                7,
                                8,
                                11,
                                13,
                                16,
                                17,
                                18,
                                24,
                                64,
                                127,
                                128,
                                255,
                                1024,
                                65535,
                                2147483647,
                                -2147483648LL,
                                4294967296LL,
                                INT64_MAX,
                                INT64_MIN};
constexpr const char* kWords[] = {
    "",        "ai.onnx",  "com.microsoft", "npu",          "axes",     "axis",     "value", "perm",   "to",
    "epsilon", "N",        "batch",         "a + b",        "8*s",      "location", "Add",   "Mul",    "MatMul",
    "Reshape", "Cast",     "Softmax",       "ReduceMean",   "Constant", "If",       "Loop",  "Expand", "Slice",
    "Gather",  "Identity", "\x1b[2J",       "\xe2\x80\xae", "\xff"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  // The model lies on an arena: what a change takes out of it stays where it is until the arena ends, so the messages are
  // collected once.
  void Mutate(strict_onnx::ModelProto* model) {
    Collect(model);
    for (size_t changes = 1 + Below(4); changes > 0; --changes) Change(messages_[Below(messages_.size())]);
  }

  // Takes over a few elements of the lists of another graph.
  void Take(const strict_onnx::GraphProto& from, strict_onnx::GraphProto* to) {
    for (int i = 1 + Below(6); i > 0; --i) {
      if (from.node_size() > 0) *to->add_node() = from.node(static_cast<int>(Below(static_cast<size_t>(from.node_size()))));
      if (from.initializer_size() > 0 && Below(2) == 0) {
        *to->add_initializer() = from.initializer(static_cast<int>(Below(static_cast<size_t>(from.initializer_size()))));
      }
    }
  }

 private:
  size_t Below(size_t count) { return count == 0 ? 0 : random_() % count; }

  void Collect(Message* message) {
    messages_.push_back(message);
    const Reflection* reflection = message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    for (const FieldDescriptor* field : fields) {
      const int count = field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
      for (int i = 0; i < count && messages_.size() < 20000; ++i) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          Collect(field->is_repeated() ? reflection->MutableRepeatedMessage(message, field, i)
                                       : reflection->MutableMessage(message, field));
        } else if (field->type() == FieldDescriptor::TYPE_STRING) {
          strings_.push_back(field->is_repeated() ? reflection->GetRepeatedString(*message, field, i)
                                                  : reflection->GetString(*message, field));
        }
      }
    }
  }

  void Change(Message* message) {
    const Descriptor* descriptor = message->GetDescriptor();
    const Reflection* reflection = message->GetReflection();
    if (Below(64) == 0) return AddUnknown(reflection->MutableUnknownFields(message));
    // Most often a field that is there.
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    const FieldDescriptor* field =
        fields.empty() || Below(4) == 0
            ? descriptor->field(static_cast<int>(Below(static_cast<size_t>(descriptor->field_count()))))
            : fields[Below(fields.size())];
    if (!field->is_repeated()) {
      if (Below(4) == 0) return reflection->ClearField(message, field);
      return Set(message, field, -1);
    }
    const int size = reflection->FieldSize(*message, field);
    switch (size == 0 ? 0 : Below(4)) {
      case 0:
        return Set(message, field, size);
      case 1:
        return reflection->SwapElements(message, field, static_cast<int>(Below(static_cast<size_t>(size))), size - 1);
      case 2:
        return reflection->RemoveLast(message, field);
      default:
        return Set(message, field, static_cast<int>(Below(static_cast<size_t>(size))));
    }
  }

  // Gives a field another value: `at` < 0 of a single one, the size of a list for a new element.
  void Set(Message* message, const FieldDescriptor* field, int at) {
    const Reflection* reflection = message->GetReflection();
    const bool adds = at >= 0 && at == reflection->FieldSize(*message, field);
    const int64_t number = Below(3) == 0 ? static_cast<int64_t>(Below(32)) : kNumbers[Below(std::size(kNumbers))];
#define AF_SET(Type, value)                             \
  at < 0 ? reflection->Set##Type(message, field, value) \
  : adds ? reflection->Add##Type(message, field, value) \
         : reflection->SetRepeated##Type(message, field, at, value)
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        AF_SET(Int32, static_cast<int32_t>(number));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        AF_SET(Int64, number);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        AF_SET(UInt64, static_cast<uint64_t>(number));
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        AF_SET(Float, static_cast<float>(number) / 3);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        AF_SET(Double, static_cast<double>(number) / 3);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        AF_SET(EnumValue, static_cast<int>(Below(20)));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        AF_SET(String, Text(*message, field, at));
        break;
      default:
        SetMessage(message, field, at, adds);
        break;
    }
#undef AF_SET
  }

  std::string Text(const Message& message, const FieldDescriptor* field, int at) {
    if (Below(8) == 0) return kWords[Below(std::size(kWords))];
    if (field->type() == FieldDescriptor::TYPE_STRING && !strings_.empty()) return strings_[Below(strings_.size())];
    const Reflection* reflection = message.GetReflection();
    std::string bytes = at < 0                                       ? reflection->GetString(message, field)
                        : at < reflection->FieldSize(message, field) ? reflection->GetRepeatedString(message, field, at)
                                                                     : std::string();
    if (bytes.empty()) return std::string(Below(16), '\0');
    bytes[Below(bytes.size())] = static_cast<char>(Below(256));
    if (Below(4) == 0) bytes.resize(Below(bytes.size() + 8));
    return bytes;
  }

  // A copy of another message of that type, or an empty one.
  void SetMessage(Message* message, const FieldDescriptor* field, int at, bool adds) {
    const Reflection* reflection = message->GetReflection();
    std::vector<const Message*> same;
    for (const Message* other : messages_) {
      if (other->GetDescriptor() == field->message_type()) same.push_back(other);
    }
    const Message* source = same.empty() || Below(6) == 0 ? nullptr : same[Below(same.size())];
    if (source != nullptr && source->ByteSizeLong() > 20000) source = nullptr;
    std::string bytes;
    if (source != nullptr) bytes = source->SerializePartialAsString();
    Message* to = at < 0 ? reflection->MutableMessage(message, field)
                  : adds ? reflection->AddMessage(message, field)
                         : reflection->MutableRepeatedMessage(message, field, at);
    if (source != nullptr) to->ParsePartialFromString(bytes);
  }

  void AddUnknown(google::protobuf::UnknownFieldSet* fields) {
    const int number = 1 + static_cast<int>(Below(40));
    switch (Below(4)) {
      case 0:
        return fields->AddVarint(number, static_cast<uint64_t>(kNumbers[Below(std::size(kNumbers))]));
      case 1:
        return fields->AddFixed32(number, 1);
      case 2:
        return fields->AddLengthDelimited(number, std::string(Below(20), '\x0a'));
      default:
        for (size_t depth = 1 + Below(20); depth > 0; --depth) fields = fields->AddGroup(number);
    }
  }

  std::mt19937 random_;
  std::vector<Message*> messages_;
  std::vector<std::string> strings_;
};

// An arena whose first block is the same memory each time; one at a time.
class Memory {
 public:
  strict_onnx::ModelProto* NewModel() { return google::protobuf::Arena::CreateMessage<strict_onnx::ModelProto>(&arena_); }

 private:
  static google::protobuf::ArenaOptions Options() {
    alignas(16) static char block[1 << 20];
    google::protobuf::ArenaOptions options;
    options.initial_block = block;
    options.initial_block_size = sizeof(block);
    return options;
  }
  google::protobuf::Arena arena_{Options()};
};

size_t Write(const strict_onnx::ModelProto& model, uint8_t* data, size_t most) {
  const std::string bytes = model.SerializePartialAsString();
  if (bytes.empty() || bytes.size() > most) return 0;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

// Without what libprotobuf says of bytes that are not UTF-8, which here are made by the thousand.
bool Read(const uint8_t* data, size_t size, strict_onnx::ModelProto* model) {
  const google::protobuf::LogSilencer silence;
  return model->ParseFromArray(data, static_cast<int>(size));
}

}  // namespace

size_t MutateModel(uint8_t* data, size_t size, size_t most, unsigned seed, unsigned bytes_in) {
  Memory memory;
  strict_onnx::ModelProto* model = memory.NewModel();
  if (seed % bytes_in != 0 && Read(data, size, model)) {
    Mutator(seed).Mutate(model);
    const google::protobuf::LogSilencer silence;
    if (const size_t written = Write(*model, data, most); written > 0) return written;
  }
  return LLVMFuzzerMutate(data, size, most);
}

size_t CrossModels(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size, uint8_t* out, size_t most, unsigned seed) {
  Memory memory;
  strict_onnx::ModelProto* first = memory.NewModel();
  strict_onnx::ModelProto* second = memory.NewModel();
  if (!Read(a, a_size, first) || !Read(b, b_size, second)) return 0;
  Mutator(seed).Take(second->graph(), first->mutable_graph());
  const google::protobuf::LogSilencer silence;
  return Write(*first, out, most);
}

}  // namespace ascend_fuse::fuzz
