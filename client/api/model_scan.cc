#include "client/api/model_scan.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr int kMaxDepth = 100;  // protobuf's own limit on nesting

struct Field {
  uint32_t number = 0;
  uint32_t wire_type = 0;
  uint64_t value = 0;       // of a varint field
  absl::string_view bytes;  // of a length-delimited field
};

// Steps through the fields of one message.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view message) : rest_(message) {}

  bool AtEnd() const { return rest_.empty(); }

  absl::Status Next(Field* field) {
    uint64_t tag = 0;
    RETURN_IF_ERROR(ReadVarint(&tag));
    field->number = static_cast<uint32_t>(tag >> 3);
    field->wire_type = tag & 7;
    if (field->number == 0) return absl::InvalidArgumentError("a field has number 0");
    switch (field->wire_type) {
      case 0:
        return ReadVarint(&field->value);
      case 1:
        return Skip(8);
      case 2: {
        uint64_t length = 0;
        RETURN_IF_ERROR(ReadVarint(&length));
        if (length > rest_.size()) {
          return absl::InvalidArgumentError(absl::StrCat("the file is cut off: a field of ", length,
                                                         " bytes begins where ", rest_.size(), " are left"));
        }
        field->bytes = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return absl::OkStatus();
      }
      case 5:
        return Skip(4);
      default:
        return absl::InvalidArgumentError(absl::StrCat("unknown wire type ", field->wire_type));
    }
  }

 private:
  absl::Status Skip(size_t bytes) {
    if (rest_.size() < bytes) return absl::InvalidArgumentError("the file is cut off");
    rest_.remove_prefix(bytes);
    return absl::OkStatus();
  }

  absl::Status ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) return absl::InvalidArgumentError("the file is cut off");
      const uint8_t byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 0x7f) << (shift < 64 ? shift : 0);
      if (byte < 0x80) return absl::OkStatus();
    }
    return absl::InvalidArgumentError("a number is longer than 10 bytes");
  }

  absl::string_view rest_;
};

// The messages of onnx.proto that matter here; Descend knows their field numbers.
enum class Message { kModel, kGraph, kNode, kAttribute, kTensor, kSparseTensor, kFunction };

// Sets `child` to the message type of field `number` of `message`. Returns false if nothing in the field matters here.
bool Descend(Message message, uint32_t number, Message* child) {
  switch (message) {
    case Message::kModel:
      if (number == 7) return *child = Message::kGraph, true;
      if (number == 25) return *child = Message::kFunction, true;
      return false;
    case Message::kGraph:
      if (number == 1) return *child = Message::kNode, true;
      if (number == 5) return *child = Message::kTensor, true;
      if (number == 15) return *child = Message::kSparseTensor, true;
      return false;
    case Message::kFunction:
      if (number == 7) return *child = Message::kNode, true;
      return false;
    case Message::kNode:
      if (number == 5) return *child = Message::kAttribute, true;
      return false;
    case Message::kAttribute:
      if (number == 5 || number == 10) return *child = Message::kTensor, true;
      if (number == 6 || number == 11) return *child = Message::kGraph, true;
      if (number == 22 || number == 23) return *child = Message::kSparseTensor, true;
      return false;
    case Message::kSparseTensor:
      if (number == 1 || number == 2) return *child = Message::kTensor, true;
      return false;
    case Message::kTensor:
      return false;
  }
  return false;
}

absl::Status ScanTensor(absl::string_view bytes, ModelScan* scan) {
  ExternalTensor tensor;
  bool external = false;
  Field field;
  for (FieldReader reader(bytes); !reader.AtEnd();) {
    RETURN_IF_ERROR(reader.Next(&field));
    if (field.number == 8 && field.wire_type == 2) tensor.tensor = std::string(field.bytes);
    if (field.number == 14 && field.wire_type == 0) external = field.value == 1;
    if (field.number != 13 || field.wire_type != 2) continue;
    std::string key, value;
    Field entry;
    for (FieldReader entries(field.bytes); !entries.AtEnd();) {
      RETURN_IF_ERROR(entries.Next(&entry));
      if (entry.wire_type == 2 && entry.number == 1) key = std::string(entry.bytes);
      if (entry.wire_type == 2 && entry.number == 2) value = std::string(entry.bytes);
    }
    if (key == "location") tensor.location = value;
  }
  if (external) scan->external.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status Scan(absl::string_view bytes, Message message, int depth, ModelScan* scan) {
  if (depth > kMaxDepth) return absl::InvalidArgumentError("messages nest deeper than 100");
  if (message == Message::kTensor) return ScanTensor(bytes, scan);
  bool constant = false;
  Field field;
  for (FieldReader reader(bytes); !reader.AtEnd();) {
    RETURN_IF_ERROR(reader.Next(&field));
    if (field.wire_type != 2) continue;
    if (message == Message::kNode && field.number == 4) constant = field.bytes == "Constant";
    if (message == Message::kModel && field.number == 8) {
      std::string domain;
      int64_t version = 0;
      Field part;
      for (FieldReader opset(field.bytes); !opset.AtEnd();) {
        RETURN_IF_ERROR(opset.Next(&part));
        if (part.number == 1 && part.wire_type == 2) domain = std::string(part.bytes);
        if (part.number == 2 && part.wire_type == 0) version = static_cast<int64_t>(part.value);
      }
      if (domain.empty() || domain == "ai.onnx") scan->opset = version;
    }
    Message child;
    if (!Descend(message, field.number, &child)) continue;
    RETURN_IF_ERROR(Scan(field.bytes, child, depth + 1, scan));
  }
  // The main graph is at depth 1, its nodes at 2.
  if (message == Message::kNode && depth == 2 && !constant) ++scan->nodes;
  return absl::OkStatus();
}

bool HasGraph(absl::string_view bytes) {
  Field field;
  for (FieldReader reader(bytes); !reader.AtEnd();) {
    if (!reader.Next(&field).ok()) return false;
    if (field.number == 7 && field.wire_type == 2) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<ModelScan> ScanModel(absl::string_view bytes) {
  ModelScan scan;
  const absl::Status status = Scan(bytes, Message::kModel, 0, &scan);
  if (!status.ok()) return Annotate(status, "not an ONNX model");
  if (!HasGraph(bytes)) return absl::InvalidArgumentError("not an ONNX model: it holds no graph");
  return scan;
}

}  // namespace fusion
