#include "tests/conformance/test_case.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/model_file.h"
#include "compiler/onnx/tensor_import.h"
#include "compiler/ops/onnx_dtype.h"
#include "compiler/ops/refused.h"
#include "runtime/base/status_macros.h"

namespace fusion::conformance {
namespace {

absl::StatusOr<NamedTensor> ReadTensor(const std::string& path, const onnx::ValueInfoProto& info) {
  if (!info.type().has_tensor_type()) {
    return absl::UnimplementedError(absl::StrCat("'", info.name(), "' is no tensor"));
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  onnx::TensorProto proto;
  if (!file || !proto.ParseFromString(bytes.str()))
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  ASSIGN_OR_RETURN(Tensor tensor, onnx_import::TakeTensor(&proto, path, nullptr));
  // The data files keep bfloat16 bits as uint16.
  if (tensor.dtype() == DType::kU16 && info.type().tensor_type().elem_type() == onnx::TensorProto::BFLOAT16) {
    const auto owner = std::make_shared<Tensor>(tensor);  // shared: the new tensor borrows the old one's bytes
    tensor = Tensor(DType::kBF16, owner->shape(), owner->data(), owner);
  }
  return NamedTensor{info.name(), std::move(tensor)};
}

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
    const std::string reason =
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
  for (const auto& info : model->graph().input()) {
    if (initializers.count(info.name()) != 0) continue;
    ASSIGN_OR_RETURN(NamedTensor tensor,
                     ReadTensor(absl::StrCat(folder, "/test_data_set_0/input_", count++, ".pb"), info));
    test.inputs.push_back(std::move(tensor));
  }
  count = 0;
  for (const auto& info : model->graph().output()) {
    ASSIGN_OR_RETURN(NamedTensor tensor,
                     ReadTensor(absl::StrCat(folder, "/test_data_set_0/output_", count++, ".pb"), info));
    test.expected.push_back(std::move(tensor));
  }
  return test;
}

onnx_import::ImportRequest RequestFor(const TestCase& test, int attempt) {
  onnx_import::ImportRequest request;
  request.model_path = test.model_path;
  request.model_name = test.name;
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
