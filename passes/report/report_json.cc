// A report as JSON and back, by way of proto/report.proto. Writing and reading walk the same list of fields.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "absl/status/status.h"
#include "fmt/format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "ir/onnx/wire_check.h"
#include "ir/text/visible.h"
#include "passes/report/report.h"
#include "passes/report/report_fields.h"
#include "passes/report/report_message.h"
#include "proto/report.pb.h"

namespace ascend_fuse {
namespace {

constexpr const char* kTypePrefix = "type.googleapis.com";

// JSON prints 64 bits as text.
int32_t Narrow(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max())); }

std::string Text(const std::string& text) { return JsonText(text); }

// Writes the fields of a record to the message that has fields of these names.
template <typename Record>
void Write(const Record& record, google::protobuf::Message* message) {
  const auto* reflection = message->GetReflection();
  EachField(record, [&](const char* name, const auto& value) {
    using Type = std::remove_cvref_t<decltype(value)>;
    const auto* field = message->GetDescriptor()->FindFieldByName(name);
    if constexpr (std::is_same_v<Type, std::string>) {
      reflection->SetString(message, field, Text(value));
    } else if constexpr (std::is_same_v<Type, bool>) {
      reflection->SetBool(message, field, value);
    } else if constexpr (std::is_same_v<Type, double>) {
      reflection->SetDouble(message, field, value);
    } else if constexpr (std::is_same_v<Type, int64_t>) {
      reflection->SetInt32(message, field, Narrow(value));
    } else {
      for (const std::string& item : value) reflection->AddString(message, field, Text(item));
    }
  });
}

template <typename Record, typename Message>
Record Read(const Message& message) {
  Record record;
  const auto* reflection = message.GetReflection();
  EachField(record, [&](const char* name, auto& value) {
    using Type = std::remove_cvref_t<decltype(value)>;
    const auto* field = message.GetDescriptor()->FindFieldByName(name);
    if constexpr (std::is_same_v<Type, std::string>) {
      value = reflection->GetString(message, field);
    } else if constexpr (std::is_same_v<Type, bool>) {
      value = reflection->GetBool(message, field);
    } else if constexpr (std::is_same_v<Type, double>) {
      value = reflection->GetDouble(message, field) + 0.0;  // -0 becomes 0; the writer prints it as an integer, without the sign
    } else if constexpr (std::is_same_v<Type, int64_t>) {
      value = reflection->GetInt32(message, field);
    } else {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        value.push_back(reflection->GetRepeatedString(message, field, i));
      }
    }
  });
  return record;
}

template <typename Record, typename Messages>
void WriteAll(const std::vector<Record>& records, Messages* messages) {
  for (const Record& record : records) Write(record, messages->Add());
}

template <typename Record, typename Messages>
void ReadAll(const Messages& messages, std::vector<Record>* records) {
  for (const auto& message : messages) records->push_back(Read<Record>(message));
}

proto::Report ToProto(const Report& report) {
  proto::Report out;
  out.set_schema(kReportSchema);
  out.set_model(Text(report.model));
  Write(report.target, out.mutable_target());
  out.mutable_summary()->mutable_nodes()->set_before(Narrow(report.nodes_before));
  out.mutable_summary()->mutable_nodes()->set_after(Narrow(report.nodes_after));
  proto::Report::WeightBytes& weights = *out.mutable_summary()->mutable_weights();
  weights.set_before(report.weights_before.all);
  weights.set_after(report.weights_after.all);
  weights.set_read_before(report.weights_before.read);
  weights.set_read_after(report.weights_after.read);
  for (const ReportKindCount& count : report.kinds) {
    Write(count, &(*out.mutable_summary()->mutable_sites())[Text(count.kind)]);
  }
  WriteAll(report.sites, out.mutable_sites());
  WriteAll(report.near_misses, out.mutable_near_misses());
  WriteAll(report.passes, out.mutable_passes());
  WriteAll(report.contradictions, out.mutable_contradictions());
  WriteAll(report.warnings, out.mutable_warnings());
  WriteAll(report.findings, out.mutable_findings());
  WriteAll(report.adapted, out.mutable_adapted());
  WriteAll(report.tidied, out.mutable_tidied());
  WriteAll(report.gains, out.mutable_gains());
  return out;
}

}  // namespace

std::string JsonText(const std::string& text) { return IsUtf8(text) ? text : Visible(text); }

void WriteReport(const Report& report, google::protobuf::Message* message) { message->CopyFrom(ToProto(report)); }

void WriteFinding(const FindingRecord& finding, google::protobuf::Message* message) { Write(finding, message); }

std::string ReportToJson(const Report& report) { return MessageToJson(ToProto(report)); }

std::string MessageToJson(const google::protobuf::Message& message) {
  // MessageToJsonString writes maps in any order; from deterministic bytes the order is that of the keys.
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver(
      google::protobuf::util::NewTypeResolverForDescriptorPool(kTypePrefix, google::protobuf::DescriptorPool::generated_pool()));
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      resolver.get(), fmt::format("{}/{}", kTypePrefix, message.GetDescriptor()->full_name()), bytes, &json, options);
  // Every string is UTF-8 by now; should the library find something else, the JSON says so.
  if (!status.ok()) return "{\"warnings\": [{\"message\": \"the report cannot be written as JSON\"}]}\n";
  return VisibleJson(json);
}

absl::StatusOr<Report> ReportFromJson(const std::string& json) {
  proto::Report message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(fmt::format("not a report: {}", std::string(status.message())));
  }
  if (message.schema() != kReportSchema) {
    return absl::InvalidArgumentError(
        fmt::format("a report of schema {}, and this program reads schema {}: write it again with this version", message.schema(),
                    kReportSchema));
  }
  Report report;
  report.model = message.model();
  report.target = Read<ReportTarget>(message.target());
  report.nodes_before = message.summary().nodes().before();
  report.nodes_after = message.summary().nodes().after();
  const proto::Report::WeightBytes& weights = message.summary().weights();
  report.weights_before = {weights.before(), weights.read_before()};
  report.weights_after = {weights.after(), weights.read_after()};
  ReadAll(message.sites(), &report.sites);
  ReadAll(message.near_misses(), &report.near_misses);
  ReadAll(message.passes(), &report.passes);
  ReadAll(message.contradictions(), &report.contradictions);
  ReadAll(message.warnings(), &report.warnings);
  ReadAll(message.findings(), &report.findings);
  ReadAll(message.adapted(), &report.adapted);
  ReadAll(message.tidied(), &report.tidied);
  ReadAll(message.gains(), &report.gains);
  report.Summarize();
  return report;
}

}  // namespace ascend_fuse
