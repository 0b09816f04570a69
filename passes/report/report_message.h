// A report as the message that its JSON is made of, for messages that hold one; and any message as JSON.
#pragma once

#include <string>

#include "passes/report/report.h"

namespace google::protobuf {
class Message;
}

namespace ascend_fuse {

// Fills in a message of type ascend_fuse.proto.Report; findings too, by name, a message of type Report.Finding.
void WriteReport(const Report& report, google::protobuf::Message* message);
void WriteFinding(const FindingRecord& finding, google::protobuf::Message* message);

// Names of proto/*.proto, the same bytes for the same message.
std::string MessageToJson(const google::protobuf::Message& message);

// Names of the model are UTF-8, or it would not have been loaded. Paths that the user gave need not be: what is not is written
// out.
std::string JsonText(const std::string& text);

}  // namespace ascend_fuse
