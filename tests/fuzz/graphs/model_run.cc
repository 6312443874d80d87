#include "tests/fuzz/graphs/model_run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/interpret.h"
#include "compiler/onnx/import.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "runtime/base/status_macros.h"
#include "tests/conformance/cut_to_extents.h"
#include "tests/fuzz/graphs/other_indices.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr int kOpset = 21;
constexpr int64_t kMostElements = 1 << 22;  // of a value of a node that is run alone

void CollectReads(const onnx::NodeProto& node, const std::set<std::string>& defined, std::set<std::string>* reads) {
  for (const std::string& name : node.input()) {
    if (!name.empty() && defined.count(name) == 0) reads->insert(name);
  }
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    std::set<std::string> inside = defined;
    for (const auto& input : attribute.g().input()) inside.insert(input.name());
    for (const auto& inner : attribute.g().node()) {
      CollectReads(inner, inside, reads);
      inside.insert(inner.output().begin(), inner.output().end());
    }
    for (const auto& output : attribute.g().output()) {
      if (inside.count(output.name()) == 0) reads->insert(output.name());
    }
  }
}

// Returns the data as a model stores it: elements narrower than a byte lie side by side, the first in the lowest bits.
std::string RawData(const Tensor& tensor) {
  const auto* bytes = static_cast<const char*>(tensor.data());
  const int bits = DTypeBits(tensor.dtype());
  if (bits >= 8) return std::string(bytes, static_cast<size_t>(tensor.size_bytes()));
  std::string packed((tensor.num_elements() * bits + 7) / 8, '\0');
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    for (int bit = 0; bit < bits; ++bit) {
      const int64_t to = i * bits + bit;
      if ((bytes[i] >> bit & 1) != 0) packed[to / 8] = static_cast<char>(packed[to / 8] | 1 << to % 8);
    }
  }
  return packed;
}

}  // namespace

onnx::ModelProto EmptyModel() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  auto* standard = model.add_opset_import();
  standard->set_domain("");
  standard->set_version(kOpset);
  auto* contrib = model.add_opset_import();
  contrib->set_domain("com.microsoft");
  contrib->set_version(1);
  model.mutable_graph()->set_name("g");
  return model;
}

onnx::TensorProto ToProto(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(ops::OnnxNumber(tensor.dtype())));
  for (const int64_t extent : tensor.shape()) proto.add_dims(extent);
  const int64_t count = tensor.num_elements();
  switch (tensor.dtype()) {
    case DType::kF32:
      for (int64_t i = 0; i < count; ++i) proto.add_float_data(tensor.as<float>()[i]);
      break;
    case DType::kI64:
      for (int64_t i = 0; i < count; ++i) proto.add_int64_data(tensor.GetInt(i));
      break;
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
    case DType::kU8:
    case DType::kU16:
    case DType::kBool:
      for (int64_t i = 0; i < count; ++i) proto.add_int32_data(static_cast<int32_t>(tensor.GetInt(i)));
      break;
    default:
      proto.set_raw_data(RawData(tensor));
  }
  if (count == 0) proto.set_raw_data("");
  return proto;
}

onnx::ValueInfoProto TypeProto(const std::string& name, DType dtype, const Shape& shape) {
  onnx::ValueInfoProto info;
  info.set_name(name);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(static_cast<int>(ops::OnnxNumber(dtype)));
  type->mutable_shape();
  for (const int64_t extent : shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
  return info;
}

absl::StatusOr<ecg::Graph> ImportModel(const onnx::ModelProto& model) {
  const std::string bytes = model.SerializeAsString();
  const int fd = memfd_create("model", MFD_CLOEXEC);
  if (fd < 0) return absl::ResourceExhaustedError("cannot make a file in memory");
  const bool written = write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  onnx_import::ImportRequest request;
  request.model_path = absl::StrCat("/proc/self/fd/", fd);
  request.model_name = "model.onnx";
  absl::StatusOr<onnx_import::ImportedModel> imported = absl::ResourceExhaustedError("cannot write a file in memory");
  if (written) imported = onnx_import::ImportOnnx(request);
  close(fd);
  RETURN_IF_ERROR(imported.status());
  return std::move(imported->graph);
}

std::vector<std::string> Reads(const onnx::NodeProto& node) {
  std::set<std::string> reads;
  CollectReads(node, {}, &reads);
  return {reads.begin(), reads.end()};
}

absl::StatusOr<TensorsByName> RunNode(const onnx::NodeProto& node, const TensorsByName& values) {
  onnx::ModelProto model = EmptyModel();
  onnx::GraphProto* graph = model.mutable_graph();
  for (const std::string& name : Reads(node)) {
    const auto value = values.find(name);
    if (value == values.end()) return absl::InvalidArgumentError(absl::StrCat("nothing computes '", name, "'"));
    *graph->add_initializer() = ToProto(name, value->second);
  }
  *graph->add_node() = node;
  std::vector<std::string> names;
  for (const std::string& name : node.output()) {
    if (name.empty()) continue;
    names.push_back(name);
    graph->add_output()->set_name(name);
  }
  ASSIGN_OR_RETURN(const ecg::Graph imported, ImportModel(model));
  for (const ecg::Value& value : imported.values()) {
    if (NumElements(value.type.shape) > kMostElements) {
      return absl::ResourceExhaustedError(absl::StrCat(node.op_type(), ": a value has too many elements"));
    }
  }
  ASSIGN_OR_RETURN(const ecg::LoweredGraph lowered, ecg::LoweredGraph::Make(imported));
  ASSIGN_OR_RETURN(const std::vector<Tensor> all, lowered.Run({}));
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, conformance::CutToExtents(imported, all));
  if (const std::optional<te::Program> other = WithOtherIndices(lowered.program())) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> all_others, lowered.RunAs(*other, {}));
    ASSIGN_OR_RETURN(const std::vector<Tensor> others, conformance::CutToExtents(imported, all_others));
    if (!SameTensors(outputs, others)) {
      return absl::InvalidArgumentError(absl::StrCat(node.op_type(), ": an index lies outside of what it indexes"));
    }
  }
  TensorsByName results;
  for (size_t o = 0; o < names.size(); ++o) results[names[o]] = std::move(outputs[o]);
  return results;
}

}  // namespace fusion::fuzz
