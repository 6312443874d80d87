#include "tests/conformance/test_case.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/bind_inputs.h"
#include "compiler/onnx/model_file.h"
#include "compiler/onnx/tensor_import.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/refused.h"
#include "onnx/onnx-data_pb.h"
#include "runtime/base/status_macros.h"

namespace fusion::conformance {
namespace {

template <typename Proto>
absl::StatusOr<Proto> ReadProto(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  Proto proto;
  if (!file || !proto.ParseFromString(bytes.str()))
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  return proto;
}

// Reads one input or output of a case and names its tensors as import does.
class ValueReader {
 public:
  ValueReader(std::vector<NamedTensor>* tensors, std::map<std::string, int64_t>* dims)
      : tensors_(tensors), dims_(dims) {}

  absl::Status Read(const std::string& path, const onnx::ValueInfoProto& info) {
    const onnx::TypeProto& type = info.type();
    if (type.has_tensor_type()) {
      ASSIGN_OR_RETURN(onnx::TensorProto proto, ReadProto<onnx::TensorProto>(path));
      return Add(info.name(), type, &proto);
    }
    if (type.has_sequence_type()) {
      ASSIGN_OR_RETURN(onnx::SequenceProto proto, ReadProto<onnx::SequenceProto>(path));
      return Add(info.name(), type, &proto);
    }
    if (!type.has_optional_type()) return absl::UnimplementedError(absl::StrCat("'", info.name(), "' is a map"));
    ASSIGN_OR_RETURN(onnx::OptionalProto proto, ReadProto<onnx::OptionalProto>(path));
    (*dims_)[info.name() + "?"] = proto.has_tensor_value() || proto.has_sequence_value() ? 1 : 0;
    const onnx::TypeProto& element = type.optional_type().elem_type();
    if (proto.has_sequence_value()) return Add(info.name(), element, proto.mutable_sequence_value());
    if (proto.has_tensor_value()) return Add(info.name(), element, proto.mutable_tensor_value());
    return absl::OkStatus();
  }

 private:
  absl::Status Add(const std::string& name, const onnx::TypeProto& type, onnx::SequenceProto* proto) {
    (*dims_)[name + "[]"] = proto->tensor_values_size();
    for (int i = 0; i < proto->tensor_values_size(); ++i) {
      RETURN_IF_ERROR(
          Add(onnx_import::ElementName(name, i), type.sequence_type().elem_type(), proto->mutable_tensor_values(i)));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const std::string& name, const onnx::TypeProto& type, onnx::TensorProto* proto) {
    ASSIGN_OR_RETURN(Tensor tensor, onnx_import::TakeTensor(proto, name, nullptr));
    // The data files keep bfloat16 bits as uint16.
    if (tensor.dtype() == DType::kU16 && type.tensor_type().elem_type() == onnx::TensorProto::BFLOAT16) {
      const auto owner = std::make_shared<Tensor>(tensor);  // shared: the new tensor borrows the old one's bytes
      tensor = Tensor(DType::kBF16, owner->shape(), owner->data(), owner);
    }
    tensors_->push_back({name, std::move(tensor)});
    return absl::OkStatus();
  }

  std::vector<NamedTensor>* tensors_;
  std::map<std::string, int64_t>* dims_;
};
bool IsRefusedType(int64_t number) { return number != 0 && !ops::DTypeFromOnnx(number).has_value(); }

}  // namespace

std::string WhyIneligible(const std::string& folder, int64_t max_opset) {
  const auto model = onnx_import::ReadModel(folder + "/model.onnx", folder);
  if (!model.ok()) return "";
  for (const auto& opset : (*model)->opset_import()) {
    const bool standard = opset.domain().empty() || opset.domain() == "ai.onnx";
    if (standard && opset.version() > max_opset) return absl::StrCat("opset above ", max_opset);
  }
  const onnx::GraphProto& graph = (*model)->graph();
  for (const auto& node : graph.node()) {
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    std::string reason =
        ops::RefusalReason(standard ? node.op_type() : absl::StrCat(node.domain(), ".", node.op_type()));
    if (!reason.empty()) return reason;
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() == "to" && IsRefusedType(attribute.i())) return "element type";
    }
  }
  for (const auto* values : {&graph.input(), &graph.output()}) {
    for (const auto& info : *values) {
      if (IsRefusedType(info.type().tensor_type().elem_type())) return "element type";
    }
  }
  return "";
}

absl::StatusOr<TestCase> ReadTestCase(const std::string& folder) {
  TestCase test;
  test.name = std::filesystem::path(folder).filename().string();
  test.model_path = folder + "/model.onnx";
  ASSIGN_OR_RETURN(auto model, onnx_import::ReadModel(test.model_path, test.name));
  std::set<std::string> initializers;
  for (const auto& tensor : model->graph().initializer()) initializers.insert(tensor.name());
  int count = 0;
  ValueReader inputs(&test.inputs, &test.dims);
  for (const auto& info : model->graph().input()) {
    if (initializers.count(info.name()) != 0) continue;
    RETURN_IF_ERROR(inputs.Read(absl::StrCat(folder, "/test_data_set_0/input_", count++, ".pb"), info));
  }
  count = 0;
  std::map<std::string, int64_t> of_outputs;  // not needed: they follow from the inputs
  ValueReader outputs(&test.expected, &of_outputs);
  for (const auto& info : model->graph().output()) {
    RETURN_IF_ERROR(outputs.Read(absl::StrCat(folder, "/test_data_set_0/output_", count++, ".pb"), info));
  }
  return test;
}

onnx_import::ImportRequest RequestFor(const TestCase& test, int attempt) {
  onnx_import::ImportRequest request;
  request.model_path = test.model_path;
  request.model_name = test.name;
  request.dims = test.dims;
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    const Tensor& tensor = test.inputs[i].tensor;
    const bool small = tensor.shape().size() <= 1;
    const bool constant =
        small && ((attempt >= 1 && IsInteger(tensor.dtype())) || (attempt >= 2 && i > 0) || attempt >= 3);
    if (constant) {
      request.constant_inputs[test.inputs[i].name] = tensor;
    } else {
      request.shapes[test.inputs[i].name] = tensor.shape();
    }
  }
  return request;
}

absl::StatusOr<ImportedCase> ImportCase(const TestCase& test) {
  absl::Status first;
  for (int attempt = 0; attempt < kImportAttempts; ++attempt) {
    const onnx_import::ImportRequest request = RequestFor(test, attempt);
    auto imported = onnx_import::ImportOnnx(request);
    if (imported.ok()) {
      ImportedCase result;
      for (const NamedTensor& input : test.inputs) {
        if (request.constant_inputs.count(input.name) == 0) result.inputs.push_back(input.tensor);
      }
      result.graph = std::move(imported->graph);
      return result;
    }
    if (attempt == 0) first = imported.status();
    if (!absl::IsUnimplemented(imported.status())) return imported.status();
  }
  return first;
}

}  // namespace fusion::conformance
