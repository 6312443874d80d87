#include "client/local/tensor_files.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_codes.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/narrow_float.h"
#include "runtime/base/npy.h"
#include "runtime/base/random_inputs.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/pick_program.h"

namespace fusion {
namespace {

std::string Names(const std::vector<Binding>& bindings) {
  return absl::StrJoin(bindings, ", ", [](std::string* out, const Binding& binding) {
    absl::StrAppend(out, "'", binding.name, "' ", DTypeName(binding.dtype), ShapeToString(binding.shape));
  });
}

// An .npy file has no narrow types and holds their bytes. Returns these as elements of `dtype`, or the tensor itself
// where they are not such elements.
Tensor AsElements(const Tensor& tensor, DType dtype) {
  const bool bytes = tensor.dtype() == DType::kU8 || tensor.dtype() == DType::kI8;
  if (!bytes || (!IsNarrowInt(dtype) && !IsByteFloat(dtype))) return tensor;
  Tensor elements(dtype, tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (IsByteFloat(dtype)) {
      elements.mutable_as<uint8_t>()[i] = tensor.as<uint8_t>()[i];
      continue;
    }
    const int64_t value = tensor.GetInt(i);
    elements.SetInt(i, value);
    const bool low_bits = value >= 0 && value >> DTypeBits(dtype) == 0;  // ml_dtypes writes negative elements like this
    if (elements.GetInt(i) != value && !low_bits) return tensor;
  }
  return elements;
}

// The extents that `flags.dims` and the shapes of `read` (by input) give to the bundle's named dimensions.
absl::StatusOr<std::map<std::string, int64_t>> NamedExtents(const Manifest& manifest, const InputFlags& flags,
                                                            const std::map<std::string, Tensor>& read) {
  std::map<std::string, int64_t> extents;
  for (const std::string& text : flags.dims) {
    const size_t equals = text.rfind('=');
    int64_t extent = 0;
    if (equals == std::string::npos || !absl::SimpleAtoi(text.substr(equals + 1), &extent) || extent < 1) {
      return UsageError(absl::StrCat("--dim '", text, "' is not of the form seq=32"));
    }
    extents[text.substr(0, equals)] = extent;
  }
  for (const Binding& input : manifest.inputs) {
    auto tensor = read.find(input.name);
    if (tensor == read.end() || tensor->second.shape().size() != input.symbols.size()) continue;
    for (size_t d = 0; d < input.symbols.size(); ++d) {
      if (!input.symbols[d].empty()) extents.emplace(input.symbols[d], tensor->second.shape()[d]);
    }
  }
  return extents;
}

}  // namespace

absl::StatusOr<Tensor> ReadTensorFile(const std::string& path) {
  if (absl::EndsWith(path, ".npy")) return ReadNpyFile(path);
  if (!absl::EndsWith(path, ".pb")) {
    return UsageError(absl::StrCat("'", path, "': tensors are read from .npy and .pb files"));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  onnx::TensorProto proto;
  if (file->bytes().size() > std::numeric_limits<int>::max() ||
      !proto.ParseFromArray(file->bytes().data(), static_cast<int>(file->bytes().size()))) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a TensorProto"));
  }
  return onnx_import::TakeTensor(&proto, path, nullptr);
}

absl::StatusOr<std::map<std::string, Tensor>> ReadNamedTensors(const std::vector<Binding>& bindings,
                                                               const std::vector<std::string>& texts,
                                                               const std::string& flag) {
  std::map<std::string, std::string> files;
  for (const std::string& text : texts) {
    // Both a name and a path may contain '='. The text is split where a name of the bundle ends.
    bool found = false;
    for (const Binding& binding : bindings) {
      if (!absl::StartsWith(text, binding.name + "=")) continue;
      files[binding.name] = text.substr(binding.name.size() + 1);
      found = true;
    }
    if (found) continue;
    if (bindings.size() == 1 && (absl::EndsWith(text, ".npy") || absl::EndsWith(text, ".pb")) &&
        text.find('=') == std::string::npos) {
      files[bindings[0].name] = text;
      continue;
    }
    return UsageError(absl::StrCat(flag, " '", text, "' fits none of ", Names(bindings)));
  }
  std::map<std::string, Tensor> read;
  for (const auto& [name, path] : files) {
    ASSIGN_OR_RETURN(read[name], ReadTensorFile(path));
  }
  return read;
}

absl::StatusOr<std::vector<Tensor>> AssembleInputs(const Manifest& manifest, const InputFlags& flags) {
  ASSIGN_OR_RETURN(const auto read, ReadNamedTensors(manifest.inputs, flags.files, "--input"));
  ASSIGN_OR_RETURN(const auto extents, NamedExtents(manifest, flags, read));
  auto shapes = ShapesFor(manifest, extents);
  if (!shapes.ok()) return UsageError(absl::StrCat("--dim: ", shapes.status().message()));
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < manifest.inputs.size(); ++i) {
    const Binding& input = manifest.inputs[i];
    auto file = read.find(input.name);
    if (file == read.end()) {
      if (flags.seed < 0) {
        return UsageError(absl::StrCat("no value for input '", input.name, "' ", DTypeName(input.dtype),
                                       ShapeToString(input.shape), ": give --input NAME=FILE or --random SEED"));
      }
      tensors.push_back(RandomTensor(input.dtype, (*shapes)[i], DeriveSeed(static_cast<uint64_t>(flags.seed), i),
                                     std::max<int64_t>(1, flags.int_max + 1)));
      continue;
    }
    const Tensor tensor = AsElements(file->second, input.dtype);
    const bool fits = tensor.dtype() == input.dtype && (!manifest.others.empty() || tensor.shape() == input.shape);
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat("the file for input '", input.name, "' holds ",
                                                     DTypeName(tensor.dtype()), ShapeToString(tensor.shape()),
                                                     ", the bundle needs ", DTypeName(input.dtype),
                                                     ShapeToString(input.shape)));
    }
    tensors.push_back(tensor);
  }
  std::vector<Shape> given;
  given.reserve(tensors.size());
  for (const Tensor& tensor : tensors) given.push_back(tensor.shape());
  RETURN_IF_ERROR(PickProgram(manifest, given).status());
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
