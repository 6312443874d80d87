#include "client/cli/proto_json.h"

#include <google/protobuf/descriptor.h>

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"

namespace fusion {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

Json MessageToJson(const Message& message);

// `index` -1 means a singular field.
Json FieldToJson(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection* reflection = message.GetReflection();
#define FUSION_FIELD(CASE, GET) \
  case FieldDescriptor::CASE:   \
    return Json(index < 0 ? reflection->Get##GET(message, field) : reflection->GetRepeated##GET(message, field, index));
  switch (field->cpp_type()) {
    FUSION_FIELD(CPPTYPE_INT32, Int32)
    FUSION_FIELD(CPPTYPE_INT64, Int64)
    FUSION_FIELD(CPPTYPE_UINT32, UInt32)
    FUSION_FIELD(CPPTYPE_UINT64, UInt64)
    FUSION_FIELD(CPPTYPE_DOUBLE, Double)
    FUSION_FIELD(CPPTYPE_FLOAT, Float)
    FUSION_FIELD(CPPTYPE_BOOL, Bool)
    FUSION_FIELD(CPPTYPE_STRING, String)
#undef FUSION_FIELD
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* value =
          index < 0 ? reflection->GetEnum(message, field) : reflection->GetRepeatedEnum(message, field, index);
      return Json(absl::AsciiStrToLower(value->name()));
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(index < 0 ? reflection->GetMessage(message, field)
                                     : reflection->GetRepeatedMessage(message, field, index));
  }
  return Json();
}

Json MessageToJson(const Message& message) {
  const Reflection* reflection = message.GetReflection();
  Json json = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->is_map()) {
      Json map = Json::object();
      for (int k = 0; k < reflection->FieldSize(message, field); ++k) {
        const Message& entry = reflection->GetRepeatedMessage(message, field, k);
        const Json key = FieldToJson(entry, entry.GetDescriptor()->field(0), -1);
        map[key.is_string() ? key.get<std::string>() : key.dump()] =
            FieldToJson(entry, entry.GetDescriptor()->field(1), -1);
      }
      json[field->name()] = map;
    } else if (field->is_repeated()) {
      Json list = Json::array();
      for (int k = 0; k < reflection->FieldSize(message, field); ++k) list.push_back(FieldToJson(message, field, k));
      json[field->name()] = list;
    } else if (!field->has_presence() || reflection->HasField(message, field)) {
      json[field->name()] = FieldToJson(message, field, -1);
    }
  }
  return json;
}

}  // namespace

std::string ProtoToJson(const Message& message, int indent) {
  return MessageToJson(message).dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fusion
