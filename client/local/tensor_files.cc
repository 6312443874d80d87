#include "client/local/tensor_files.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_codes.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/npy.h"
#include "runtime/base/random_inputs.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

std::optional<DType> FromOnnx(int type) {
  switch (type) {
    case onnx::TensorProto::FLOAT:
      return DType::kF32;
    case onnx::TensorProto::DOUBLE:
      return DType::kF64;
    case onnx::TensorProto::FLOAT16:
      return DType::kF16;
    case onnx::TensorProto::BFLOAT16:
      return DType::kBF16;
    case onnx::TensorProto::INT8:
      return DType::kI8;
    case onnx::TensorProto::INT16:
      return DType::kI16;
    case onnx::TensorProto::INT32:
      return DType::kI32;
    case onnx::TensorProto::INT64:
      return DType::kI64;
    case onnx::TensorProto::UINT8:
      return DType::kU8;
    case onnx::TensorProto::UINT16:
      return DType::kU16;
    case onnx::TensorProto::UINT32:
      return DType::kU32;
    case onnx::TensorProto::UINT64:
      return DType::kU64;
    case onnx::TensorProto::BOOL:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

template <typename Values>
absl::Status CopyTyped(const Values& values, bool as_bits, Tensor* tensor) {
  if (values.size() != tensor->num_elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("it holds ", values.size(), " elements, its shape ", tensor->num_elements()));
  }
  for (int i = 0; i < values.size(); ++i) {
    if (as_bits) {  // half precision is stored as bits in int32_data
      tensor->mutable_as<uint16_t>()[i] = static_cast<uint16_t>(values[i]);
    } else if (IsFloat(tensor->dtype())) {
      tensor->SetDouble(i, static_cast<double>(values[i]));
    } else {
      tensor->SetInt(i, static_cast<int64_t>(values[i]));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> FromProto(const onnx::TensorProto& proto) {
  const std::optional<DType> dtype = FromOnnx(proto.data_type());
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("element type ", proto.data_type(), " is not supported"));
  }
  const Shape shape(proto.dims().begin(), proto.dims().end());
  ASSIGN_OR_RETURN(int64_t size_bytes, CheckedSizeBytes(shape, *dtype));
  Tensor tensor(*dtype, shape);
  if (proto.has_raw_data()) {
    if (static_cast<int64_t>(proto.raw_data().size()) != size_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("its data has ", proto.raw_data().size(), " bytes, its shape ",
                                                     ShapeToString(shape), " needs ", size_bytes));
    }
    std::memcpy(tensor.mutable_data(), proto.raw_data().data(), proto.raw_data().size());
    return tensor;
  }
  const bool half = *dtype == DType::kF16 || *dtype == DType::kBF16;
  absl::Status copied;
  switch (*dtype) {
    case DType::kF32:
      copied = CopyTyped(proto.float_data(), false, &tensor);
      break;
    case DType::kF64:
      copied = CopyTyped(proto.double_data(), false, &tensor);
      break;
    case DType::kI64:
      copied = CopyTyped(proto.int64_data(), false, &tensor);
      break;
    case DType::kU32:
    case DType::kU64:
      copied = CopyTyped(proto.uint64_data(), false, &tensor);
      break;
    default:
      copied = CopyTyped(proto.int32_data(), half, &tensor);
  }
  RETURN_IF_ERROR(copied);
  return tensor;
}

std::string Names(const std::vector<Binding>& bindings) {
  return absl::StrJoin(bindings, ", ", [](std::string* out, const Binding& binding) {
    absl::StrAppend(out, "'", binding.name, "' ", DTypeName(binding.dtype), ShapeToString(binding.shape));
  });
}

}  // namespace

absl::StatusOr<Tensor> ReadTensorFile(const std::string& path) {
  if (absl::EndsWith(path, ".npy")) return ReadNpyFile(path);
  if (!absl::EndsWith(path, ".pb")) {
    return UsageError(absl::StrCat("'", path, "': tensors are read from .npy and .pb files"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  onnx::TensorProto proto;
  if (!proto.ParseFromArray(file->bytes().data(), static_cast<int>(file->bytes().size()))) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a TensorProto"));
  }
  absl::StatusOr<Tensor> tensor = FromProto(proto);
  return tensor.ok() ? tensor : Annotate(tensor.status(), path);
}

absl::StatusOr<std::vector<Tensor>> AssembleInputs(const Manifest& manifest, const InputFlags& flags) {
  std::map<std::string, std::string> files;
  for (const std::string& text : flags.files) {
    // A name may hold '=', and so may a path: the name that the bundle knows decides.
    bool found = false;
    for (const Binding& input : manifest.inputs) {
      if (!absl::StartsWith(text, input.name + "=")) continue;
      files[input.name] = text.substr(input.name.size() + 1);
      found = true;
    }
    if (found) continue;
    if (manifest.inputs.size() == 1 && (absl::EndsWith(text, ".npy") || absl::EndsWith(text, ".pb")) &&
        text.find('=') == std::string::npos) {
      files[manifest.inputs[0].name] = text;
      continue;
    }
    return UsageError(
        absl::StrCat("--input '", text, "' names no input of the bundle; it has ", Names(manifest.inputs)));
  }
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < manifest.inputs.size(); ++i) {
    const Binding& input = manifest.inputs[i];
    auto file = files.find(input.name);
    if (file == files.end()) {
      if (flags.seed < 0) {
        return UsageError(absl::StrCat("no value for input '", input.name, "' ", DTypeName(input.dtype),
                                       ShapeToString(input.shape), ": give --input NAME=FILE or --random SEED"));
      }
      tensors.push_back(RandomTensor(input.dtype, input.shape, DeriveSeed(static_cast<uint64_t>(flags.seed), i),
                                     std::max<int64_t>(1, flags.int_max + 1)));
      continue;
    }
    ASSIGN_OR_RETURN(Tensor tensor, ReadTensorFile(file->second));
    if (tensor.dtype() != input.dtype || tensor.shape() != input.shape) {
      return absl::InvalidArgumentError(absl::StrCat(file->second, " is ", DTypeName(tensor.dtype()),
                                                     ShapeToString(tensor.shape()), ", input '", input.name, "' needs ",
                                                     DTypeName(input.dtype), ShapeToString(input.shape)));
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::string FileNameOf(const std::string& tensor_name) {
  std::string name = tensor_name.substr(0, 100);
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    if (!plain) c = '_';
  }
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name;
}

}  // namespace fusion
