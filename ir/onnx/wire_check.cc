// One table of what the fields of each message hold, and one walk over it.
#include "ir/onnx/wire_check.h"

#include <cstring>

#include "fmt/format.h"
#include "ir/onnx/tensor_proto.h"
#include "ir/status_macros.h"
#include "proto/onnx.pb.h"

namespace ascend_fuse {
namespace {

enum class Holds : uint8_t {
  kAnything,  // bytes, single numbers and unknown fields
  kText,
  kVarints,
  kFixed32s,
  kFixed64s,
  kMessage,
};

struct Rule {
  Holds holds = Holds::kAnything;
  MessageKind kind = MessageKind::kNone;
};

constexpr uint32_t kFields = 32;
constexpr size_t kKinds = static_cast<size_t>(MessageKind::kKinds);

struct Table {
  const char* names[kKinds] = {};
  Rule rules[kKinds][kFields] = {};

  constexpr void Name(MessageKind kind, const char* name) { names[static_cast<size_t>(kind)] = name; }
  constexpr void Set(MessageKind kind, Holds holds, std::initializer_list<int> numbers) {
    for (const int number : numbers) rules[static_cast<size_t>(kind)][number] = {holds, MessageKind::kNone};
  }
  constexpr void Text(MessageKind kind, std::initializer_list<int> numbers) { Set(kind, Holds::kText, numbers); }
  constexpr void Message(MessageKind kind, MessageKind inner, std::initializer_list<int> numbers) {
    for (const int number : numbers) rules[static_cast<size_t>(kind)][number] = {Holds::kMessage, inner};
  }
  constexpr const Rule& RuleOf(MessageKind kind, uint32_t number) const { return rules[static_cast<size_t>(kind)][number]; }
};

constexpr void SetGraphs(Table* table) {
  using namespace onnx;  // NOLINT: the generated field numbers
  using M = MessageKind;
  using P = ModelProto;
  table->Name(M::kModel, "ModelProto");
  table->Text(M::kModel,
              {P::kProducerNameFieldNumber, P::kProducerVersionFieldNumber, P::kDomainFieldNumber, P::kDocStringFieldNumber});
  table->Message(M::kModel, M::kOpsetId, {P::kOpsetImportFieldNumber});
  table->Message(M::kModel, M::kGraph, {P::kGraphFieldNumber});
  table->Message(M::kModel, M::kEntry, {P::kMetadataPropsFieldNumber});
  table->Message(M::kModel, M::kTraining, {P::kTrainingInfoFieldNumber});
  table->Message(M::kModel, M::kFunction, {P::kFunctionsFieldNumber});
  table->Message(M::kModel, M::kDeviceConfiguration, {P::kConfigurationFieldNumber});

  using G = GraphProto;
  table->Name(M::kGraph, "GraphProto");
  table->Text(M::kGraph, {G::kNameFieldNumber, G::kDocStringFieldNumber});
  table->Message(M::kGraph, M::kNode, {G::kNodeFieldNumber});
  table->Message(M::kGraph, M::kTensor, {G::kInitializerFieldNumber});
  table->Message(M::kGraph, M::kSparseTensor, {G::kSparseInitializerFieldNumber});
  table->Message(M::kGraph, M::kValueInfo, {G::kInputFieldNumber, G::kOutputFieldNumber, G::kValueInfoFieldNumber});
  table->Message(M::kGraph, M::kAnnotation, {G::kQuantizationAnnotationFieldNumber});
  table->Message(M::kGraph, M::kEntry, {G::kMetadataPropsFieldNumber});

  using N = NodeProto;
  table->Name(M::kNode, "NodeProto");
  table->Text(M::kNode, {N::kInputFieldNumber, N::kOutputFieldNumber, N::kNameFieldNumber, N::kOpTypeFieldNumber,
                         N::kDomainFieldNumber, N::kOverloadFieldNumber, N::kDocStringFieldNumber});
  table->Message(M::kNode, M::kAttribute, {N::kAttributeFieldNumber});
  table->Message(M::kNode, M::kEntry, {N::kMetadataPropsFieldNumber});
  table->Message(M::kNode, M::kNodeDevices, {N::kDeviceConfigurationsFieldNumber});

  using A = AttributeProto;
  table->Name(M::kAttribute, "AttributeProto");
  table->Text(M::kAttribute, {A::kNameFieldNumber, A::kRefAttrNameFieldNumber, A::kDocStringFieldNumber});
  table->Set(M::kAttribute, Holds::kFixed32s, {A::kFloatsFieldNumber});
  table->Set(M::kAttribute, Holds::kVarints, {A::kIntsFieldNumber});
  table->Message(M::kAttribute, M::kTensor, {A::kTFieldNumber, A::kTensorsFieldNumber});
  table->Message(M::kAttribute, M::kGraph, {A::kGFieldNumber, A::kGraphsFieldNumber});
  table->Message(M::kAttribute, M::kSparseTensor, {A::kSparseTensorFieldNumber, A::kSparseTensorsFieldNumber});
  table->Message(M::kAttribute, M::kType, {A::kTpFieldNumber, A::kTypeProtosFieldNumber});

  using F = FunctionProto;
  table->Name(M::kFunction, "FunctionProto");
  table->Text(M::kFunction, {F::kNameFieldNumber, F::kInputFieldNumber, F::kOutputFieldNumber, F::kAttributeFieldNumber,
                             F::kDocStringFieldNumber, F::kDomainFieldNumber, F::kOverloadFieldNumber});
  table->Message(M::kFunction, M::kAttribute, {F::kAttributeProtoFieldNumber});
  table->Message(M::kFunction, M::kNode, {F::kNodeFieldNumber});
  table->Message(M::kFunction, M::kOpsetId, {F::kOpsetImportFieldNumber});
  table->Message(M::kFunction, M::kValueInfo, {F::kValueInfoFieldNumber});
  table->Message(M::kFunction, M::kEntry, {F::kMetadataPropsFieldNumber});

  using T = TrainingInfoProto;
  table->Name(M::kTraining, "TrainingInfoProto");
  table->Message(M::kTraining, M::kGraph, {T::kInitializationFieldNumber, T::kAlgorithmFieldNumber});
  table->Message(M::kTraining, M::kEntry, {T::kInitializationBindingFieldNumber, T::kUpdateBindingFieldNumber});
}

constexpr void SetTensors(Table* table) {
  using namespace onnx;  // NOLINT: the generated field numbers
  using M = MessageKind;
  using T = TensorProto;
  table->Name(M::kTensor, "TensorProto");
  table->Text(M::kTensor, {T::kNameFieldNumber, T::kDocStringFieldNumber});
  table->Set(M::kTensor, Holds::kVarints,
             {T::kDimsFieldNumber, T::kInt32DataFieldNumber, T::kInt64DataFieldNumber, T::kUint64DataFieldNumber});
  table->Set(M::kTensor, Holds::kFixed32s, {T::kFloatDataFieldNumber});
  table->Set(M::kTensor, Holds::kFixed64s, {T::kDoubleDataFieldNumber});
  table->Message(M::kTensor, M::kSegment, {T::kSegmentFieldNumber});
  table->Message(M::kTensor, M::kEntry, {T::kExternalDataFieldNumber, T::kMetadataPropsFieldNumber});
  table->Name(M::kSegment, "TensorProto.Segment");
  table->Name(M::kSparseTensor, "SparseTensorProto");
  table->Message(M::kSparseTensor, M::kTensor, {SparseTensorProto::kValuesFieldNumber, SparseTensorProto::kIndicesFieldNumber});
  table->Set(M::kSparseTensor, Holds::kVarints, {SparseTensorProto::kDimsFieldNumber});
  table->Name(M::kEntry, "StringStringEntryProto");
  table->Text(M::kEntry, {StringStringEntryProto::kKeyFieldNumber, StringStringEntryProto::kValueFieldNumber});
  table->Name(M::kOpsetId, "OperatorSetIdProto");
  table->Text(M::kOpsetId, {OperatorSetIdProto::kDomainFieldNumber});
  table->Name(M::kAnnotation, "TensorAnnotation");
  table->Text(M::kAnnotation, {TensorAnnotation::kTensorNameFieldNumber});
  table->Message(M::kAnnotation, M::kEntry, {TensorAnnotation::kQuantParameterTensorNamesFieldNumber});
}

constexpr void SetTypes(Table* table) {
  using namespace onnx;  // NOLINT: the generated field numbers
  using M = MessageKind;
  using V = ValueInfoProto;
  table->Name(M::kValueInfo, "ValueInfoProto");
  table->Text(M::kValueInfo, {V::kNameFieldNumber, V::kDocStringFieldNumber});
  table->Message(M::kValueInfo, M::kType, {V::kTypeFieldNumber});
  table->Message(M::kValueInfo, M::kEntry, {V::kMetadataPropsFieldNumber});
  table->Name(M::kType, "TypeProto");
  table->Text(M::kType, {TypeProto::kDenotationFieldNumber});
  table->Message(M::kType, M::kTensorType, {TypeProto::kTensorTypeFieldNumber, TypeProto::kSparseTensorTypeFieldNumber});
  table->Message(M::kType, M::kHolderType, {TypeProto::kSequenceTypeFieldNumber, TypeProto::kOptionalTypeFieldNumber});
  table->Message(M::kType, M::kMapType, {TypeProto::kMapTypeFieldNumber});
  table->Message(M::kType, M::kOpaqueType, {TypeProto::kOpaqueTypeFieldNumber});
  static_assert(TypeProto_Tensor::kShapeFieldNumber == static_cast<int>(TypeProto_SparseTensor::kShapeFieldNumber));
  static_assert(TypeProto_Sequence::kElemTypeFieldNumber == static_cast<int>(TypeProto_Optional::kElemTypeFieldNumber));
  table->Name(M::kTensorType, "TypeProto.Tensor");
  table->Message(M::kTensorType, M::kShape, {TypeProto_Tensor::kShapeFieldNumber});
  table->Name(M::kHolderType, "TypeProto.Sequence");
  table->Message(M::kHolderType, M::kType, {TypeProto_Sequence::kElemTypeFieldNumber});
  table->Name(M::kMapType, "TypeProto.Map");
  table->Message(M::kMapType, M::kType, {TypeProto_Map::kValueTypeFieldNumber});
  table->Name(M::kOpaqueType, "TypeProto.Opaque");
  table->Text(M::kOpaqueType, {TypeProto_Opaque::kDomainFieldNumber, TypeProto_Opaque::kNameFieldNumber});
  table->Name(M::kShape, "TensorShapeProto");
  table->Message(M::kShape, M::kDim, {TensorShapeProto::kDimFieldNumber});
  table->Name(M::kDim, "TensorShapeProto.Dimension");
  table->Text(M::kDim, {TensorShapeProto_Dimension::kDimParamFieldNumber, TensorShapeProto_Dimension::kDenotationFieldNumber});
}

constexpr void SetDevices(Table* table) {
  using namespace onnx;  // NOLINT: the generated field numbers
  using M = MessageKind;
  using N = NodeDeviceConfigurationProto;
  table->Name(M::kNodeDevices, "NodeDeviceConfigurationProto");
  table->Text(M::kNodeDevices, {N::kConfigurationIdFieldNumber});
  table->Message(M::kNodeDevices, M::kSharding, {N::kShardingSpecFieldNumber});
  using S = ShardingSpecProto;
  table->Name(M::kSharding, "ShardingSpecProto");
  table->Text(M::kSharding, {S::kTensorNameFieldNumber});
  table->Set(M::kSharding, Holds::kVarints, {S::kDeviceFieldNumber});
  table->Message(M::kSharding, M::kDeviceGroup, {S::kIndexToDeviceGroupMapFieldNumber});
  table->Message(M::kSharding, M::kShardedDim, {S::kShardedDimFieldNumber});
  table->Name(M::kDeviceGroup, "IntIntListEntryProto");
  table->Set(M::kDeviceGroup, Holds::kVarints, {IntIntListEntryProto::kValueFieldNumber});
  table->Name(M::kShardedDim, "ShardedDimProto");
  table->Message(M::kShardedDim, M::kSimpleSharding, {ShardedDimProto::kSimpleShardingFieldNumber});
  table->Name(M::kSimpleSharding, "SimpleShardedDimProto");
  table->Text(M::kSimpleSharding, {SimpleShardedDimProto::kDimParamFieldNumber});
  table->Name(M::kDeviceConfiguration, "DeviceConfigurationProto");
  table->Text(M::kDeviceConfiguration,
              {DeviceConfigurationProto::kNameFieldNumber, DeviceConfigurationProto::kDeviceFieldNumber});
}

constexpr Table MakeTable() {
  Table table;
  SetGraphs(&table);
  SetTensors(&table);
  SetTypes(&table);
  SetDevices(&table);
  return table;
}
constexpr Table kTable = MakeTable();

absl::Status Refuse(const wire::Field& field, MessageKind kind, const char* what) {
  return absl::InvalidArgumentError(
      fmt::format("damaged: field {} of {} at byte {} {}, so that protobuf cannot read the file. Export the model again, or "
                  "check the download",
                  field.number, kTable.names[static_cast<size_t>(kind)], field.start, what));
}

absl::Status TooDeep(int64_t position) {
  return absl::InvalidArgumentError(fmt::format(
      "messages are nested more than {} deep at byte {}, so that protobuf cannot read the file", kMaxLevel, position));
}

bool IsAscii(const char* data, size_t size) {
  uint64_t all = 0;
  uint64_t word = 0;
  if (size < 8) {
    for (size_t i = 0; i < size; ++i) all |= static_cast<uint8_t>(data[i]);
    return (all & 0x80) == 0;
  }
  for (size_t at = 0; at + 8 < size; at += 8) {
    std::memcpy(&word, data + at, 8);
    all |= word;
  }
  std::memcpy(&word, data + size - 8, 8);
  return ((all | word) & 0x8080808080808080u) == 0;
}

// A varint of at most `most` bytes; nullptr where there is none.
const uint8_t* ShortVarint(const uint8_t* at, const uint8_t* end, int most, uint64_t* value) {
  *value = 0;
  for (int i = 0; i < most && at < end; ++i) {
    const uint8_t byte = *at++;
    *value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) return at;
  }
  return nullptr;
}

// Whether a message that is whole in memory is right and has the forms that writers give it, which is nearly always so: a
// dynamo export has five messages of metadata at each node. False asks for the exact check.
bool IsPlain(const uint8_t* at, const uint8_t* end, MessageKind kind, int level) {
  if (level > kMaxLevel) return false;
  const Rule* const rules = kTable.rules[static_cast<size_t>(kind)];
  uint64_t value = 0;
  while (at < end) {
    at = ShortVarint(at, end, 2, &value);
    if (at == nullptr || value < 8 || value >= uint64_t{8} * kFields) return false;
    const uint64_t type = value & 7;
    const Rule rule = rules[value >> 3];
    if (type == wire::kBytes) {
      at = ShortVarint(at, end, 4, &value);
      if (at == nullptr || value > static_cast<uint64_t>(end - at)) return false;
      const uint8_t* const body = at;
      at += value;
      if (rule.holds == Holds::kText) {
        if (!IsAscii(reinterpret_cast<const char*>(body), value)) return false;
      } else if (rule.holds == Holds::kMessage) {
        if (!IsPlain(body, at, rule.kind, level + 1)) return false;
      } else if (rule.holds != Holds::kAnything) {
        return false;
      }
    } else if (type == wire::kVarint) {
      at = ShortVarint(at, end, 10, &value);
      if (at == nullptr) return false;
    } else {
      return false;
    }
  }
  return true;
}

absl::Status CheckList(const wire::Field& field, MessageKind kind, Holds holds) {
  if (field.type != wire::kBytes) return absl::OkStatus();  // one number, as lists that are not packed have them
  const int64_t unit = holds == Holds::kFixed32s ? 4 : holds == Holds::kFixed64s ? 8 : 1;
  if (field.size % unit != 0) return Refuse(field, kind, "ends inside a number");
  // The numbers of a payload that stays in the file were looked at when they were left out.
  if (holds != Holds::kVarints || field.has_hole()) return absl::OkStatus();
  int open = 0;
  if (!AreVarints(field.text(), &open)) return Refuse(field, kind, "has a number longer than 10 bytes");
  return open == 0 ? absl::OkStatus() : Refuse(field, kind, "ends inside a number");
}

}  // namespace

bool IsUtf8(std::string_view text) {
  if (IsAscii(text.data(), text.size())) return true;
  const auto* at = reinterpret_cast<const uint8_t*>(text.data());
  const uint8_t* const end = at + text.size();
  while (at < end) {
    const uint8_t first = *at++;
    if (first < 0x80) continue;
    // The bytes that follow, and the range of the first of them, which rules out what has a shorter form.
    const int more = first >= 0xC2 && first <= 0xDF   ? 1
                     : first >= 0xE0 && first <= 0xEF ? 2
                     : first >= 0xF0 && first <= 0xF4 ? 3
                                                      : 0;
    if (more == 0 || end - at < more) return false;
    const uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (*at < low || *at > high) return false;
    for (int i = 1; i < more; ++i) {
      if ((at[i] & 0xC0) != 0x80) return false;
    }
    at += more;
  }
  return true;
}

bool AreVarints(std::string_view part, int* open) {
  int count = *open;
  for (const char byte : part) {
    count = (byte & 0x80) != 0 ? count + 1 : 0;
    if (count == 10) return false;
  }
  *open = count;
  return true;
}

absl::Status CheckField(const wire::Field& field, MessageKind kind, int level) {
  if (field.type == wire::kGroup && level + static_cast<int>(field.value) > kMaxLevel) return TooDeep(field.start);
  if (field.number >= kFields) return absl::OkStatus();
  const Rule& rule = kTable.RuleOf(kind, field.number);
  switch (rule.holds) {
    case Holds::kAnything:
      return absl::OkStatus();
    case Holds::kText:
      if (field.type != wire::kBytes || IsUtf8(field.text())) return absl::OkStatus();
      return Refuse(field, kind, "is not UTF-8 text");
    case Holds::kMessage:
      return CheckMessage(field, rule.kind, level + 1);
    default:
      return CheckList(field, kind, rule.holds);
  }
}

absl::Status CheckMessage(const wire::Field& message, MessageKind kind, int level) {
  if (message.type != wire::kBytes) return absl::OkStatus();  // to libprotobuf an unknown field
  if (!message.has_hole() && IsPlain(message.data, message.data + message.size, kind, level)) return absl::OkStatus();
  if (level > kMaxLevel) return TooDeep(message.start);
  wire::Cursor cursor(message);
  wire::Field field;
  while (cursor.Next(&field)) {
    RETURN_IF_ERROR(CheckField(field, kind, level));
  }
  return cursor.error() != nullptr ? WireError(cursor) : absl::OkStatus();
}

}  // namespace ascend_fuse
