// Prints a protobuf message as JSON for scripts: field names as in the .proto, 64-bit integers as numbers, states as
// words.
#ifndef FUSION_CLIENT_CLI_PROTO_JSON_H_
#define FUSION_CLIENT_CLI_PROTO_JSON_H_

#include <google/protobuf/message.h>

#include <string>

namespace fusion {

// Unset messages are left out; unset scalars are printed. `indent` -1 prints one line. There is no newline at the end.
std::string ProtoToJson(const google::protobuf::Message& message, int indent = 2);

}  // namespace fusion

#endif  // FUSION_CLIENT_CLI_PROTO_JSON_H_
