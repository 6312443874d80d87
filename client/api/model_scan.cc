#include "client/api/model_scan.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <onnx/onnx_pb.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// The messages of onnx.proto on the way to nodes and tensors.
enum class Message { kModel, kGraph, kFunction, kNode, kAttribute, kSparseTensor, kTensor };

struct Descent {
  Message parent;
  int field;
  Message child;
};
constexpr Descent kDescents[] = {
    {Message::kModel, onnx::ModelProto::kGraphFieldNumber, Message::kGraph},
    {Message::kModel, onnx::ModelProto::kFunctionsFieldNumber, Message::kFunction},
    {Message::kGraph, onnx::GraphProto::kNodeFieldNumber, Message::kNode},
    {Message::kGraph, onnx::GraphProto::kInitializerFieldNumber, Message::kTensor},
    {Message::kGraph, onnx::GraphProto::kSparseInitializerFieldNumber, Message::kSparseTensor},
    {Message::kFunction, onnx::FunctionProto::kNodeFieldNumber, Message::kNode},
    {Message::kNode, onnx::NodeProto::kAttributeFieldNumber, Message::kAttribute},
    {Message::kAttribute, onnx::AttributeProto::kTFieldNumber, Message::kTensor},
    {Message::kAttribute, onnx::AttributeProto::kTensorsFieldNumber, Message::kTensor},
    {Message::kAttribute, onnx::AttributeProto::kGFieldNumber, Message::kGraph},
    {Message::kAttribute, onnx::AttributeProto::kGraphsFieldNumber, Message::kGraph},
    {Message::kAttribute, onnx::AttributeProto::kSparseTensorFieldNumber, Message::kSparseTensor},
    {Message::kAttribute, onnx::AttributeProto::kSparseTensorsFieldNumber, Message::kSparseTensor},
    {Message::kSparseTensor, onnx::SparseTensorProto::kValuesFieldNumber, Message::kTensor},
    {Message::kSparseTensor, onnx::SparseTensorProto::kIndicesFieldNumber, Message::kTensor},
};

const Descent* FindDescent(Message parent, int field) {
  for (const Descent& descent : kDescents) {
    if (descent.parent == parent && descent.field == field) return &descent;
  }
  return nullptr;
}

class Scanner {
 public:
  // The recursion limit of CodedInputStream, 100, is the one that a parser of the whole message obeys.
  explicit Scanner(absl::string_view bytes)
      : input_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {
    input_.PushLimit(static_cast<int>(bytes.size()));
  }

  absl::StatusOr<ModelScan> Run() {
    RETURN_IF_ERROR(Scan(Message::kModel, 0));
    if (!has_graph_) return absl::InvalidArgumentError("it holds no graph");
    return std::move(scan_);
  }

 private:
  // Reads the fields of one message, whose end is the stream's limit. `depth` is 1 for the main graph.
  absl::Status Scan(Message message, int depth) {
    std::string op_type;
    ExternalTensor tensor;
    bool external = false;
    while (const uint32_t tag = input_.ReadTag()) {
      const int field = WireFormatLite::GetTagFieldNumber(tag);
      const WireFormatLite::WireType type = WireFormatLite::GetTagWireType(tag);
      if (field == 0) return Malformed();
      if (message == Message::kTensor && field == onnx::TensorProto::kDataLocationFieldNumber &&
          type == WireFormatLite::WIRETYPE_VARINT) {
        uint32_t location = 0;
        if (!input_.ReadVarint32(&location)) return Malformed();
        external = location == onnx::TensorProto::EXTERNAL;
        continue;
      }
      if (type != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        if (!WireFormatLite::SkipField(&input_, tag)) return Malformed();
        continue;
      }
      int length_bytes = 0;
      if (!input_.ReadVarintSizeAsInt(&length_bytes)) return Malformed();
      if (length_bytes > input_.BytesUntilLimit()) {
        return absl::InvalidArgumentError(absl::StrCat("the file is cut off: a field of ", length_bytes,
                                                       " bytes begins where ", input_.BytesUntilLimit(), " are left"));
      }
      if (const Descent* descent = FindDescent(message, field); descent != nullptr) {
        const auto [limit, levels_left] = input_.IncrementRecursionDepthAndPushLimit(length_bytes);
        if (levels_left < 0) return absl::InvalidArgumentError("its messages nest deeper than protobuf allows");
        RETURN_IF_ERROR(Scan(descent->child, depth + 1));
        if (!input_.DecrementRecursionDepthAndPopLimit(limit)) return Malformed();
        has_graph_ |= message == Message::kModel && descent->child == Message::kGraph;
      } else if (message == Message::kModel && field == onnx::ModelProto::kOpsetImportFieldNumber) {
        onnx::OperatorSetIdProto opset;
        if (!Parse(length_bytes, &opset)) return Malformed();
        if (opset.domain().empty() || opset.domain() == "ai.onnx") scan_.opset = opset.version();
      } else if (message == Message::kNode && field == onnx::NodeProto::kOpTypeFieldNumber) {
        if (!input_.ReadString(&op_type, length_bytes)) return Malformed();
      } else if (message == Message::kTensor && field == onnx::TensorProto::kNameFieldNumber) {
        if (!input_.ReadString(&tensor.tensor, length_bytes)) return Malformed();
      } else if (message == Message::kTensor && field == onnx::TensorProto::kExternalDataFieldNumber) {
        onnx::StringStringEntryProto entry;
        if (!Parse(length_bytes, &entry)) return Malformed();
        if (entry.key() == "location") tensor.location = entry.value();
      } else if (!input_.Skip(length_bytes)) {  // weights, for the most part: the stream moves on without reading them
        return Malformed();
      }
    }
    if (!input_.ConsumedEntireMessage()) return Malformed();
    if (external) scan_.external.push_back(std::move(tensor));
    if (message == Message::kNode && depth == 2 && op_type != "Constant") ++scan_.nodes;
    return absl::OkStatus();
  }

  bool Parse(int length_bytes, google::protobuf::Message* message) {
    const CodedInputStream::Limit limit = input_.PushLimit(length_bytes);
    const bool parsed = message->MergeFromCodedStream(&input_) && input_.ConsumedEntireMessage();
    input_.PopLimit(limit);
    return parsed;
  }

  absl::Status Malformed() const {
    return absl::InvalidArgumentError(
        input_.BytesUntilLimit() == 0
            ? absl::StrCat("the file is cut off, or damaged before byte ", input_.CurrentPosition())
            : absl::StrCat("the field before byte ", input_.CurrentPosition(), " is malformed"));
  }

  CodedInputStream input_;
  ModelScan scan_;
  bool has_graph_ = false;
};

}  // namespace

absl::StatusOr<ModelScan> ScanModel(absl::string_view bytes) {
  if (bytes.size() > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("not an ONNX model: protobuf's messages end at 2 GiB, this file has ", bytes.size(),
                     " bytes; export its weights as external data"));
  }
  absl::StatusOr<ModelScan> scan = Scanner(bytes).Run();
  if (!scan.ok()) return Annotate(scan.status(), "not an ONNX model");
  return scan;
}

}  // namespace fusion
