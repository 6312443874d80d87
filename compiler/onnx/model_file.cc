#include "compiler/onnx/model_file.h"

#include <fcntl.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/limits.h"
#include "compiler/onnx/tensor_import.h"

namespace fusion::onnx_import {

absl::StatusOr<std::unique_ptr<onnx::ModelProto>> ReadModel(const std::string& path, const std::string& name) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::InvalidArgumentError(absl::StrCat("model ", Quoted(name), " cannot be opened"));
  google::protobuf::io::FileInputStream stream(fd, 1 << 20);
  stream.SetCloseOnDelete(true);
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("model ", Quoted(name), " is not a regular file"));
  }
  if (info.st_size == 0) return absl::InvalidArgumentError(absl::StrCat("model ", Quoted(name), " is empty"));
  if (info.st_size > kMaxModelFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", Quoted(name), " has ", info.st_size,
                     " bytes; a protobuf holds less than 2 GiB, save the weights as external data"));
  }
  auto model = std::make_unique<onnx::ModelProto>();
  if (!model->ParsePartialFromZeroCopyStream(&stream)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", Quoted(name), " is not an ONNX file, or it is truncated (its protobuf does not parse)"));
  }
  if (!model->has_graph() || (model->graph().node_size() == 0 && model->graph().output_size() == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model ", Quoted(name), " is not an ONNX file, or it is truncated (no graph in it)"));
  }
  return model;
}

absl::StatusOr<std::map<std::string, int64_t>> OpsetVersions(const onnx::ModelProto& model) {
  std::map<std::string, int64_t> versions;
  for (const auto& entry : model.opset_import()) {
    versions[entry.domain() == "ai.onnx" ? std::string() : entry.domain()] = entry.version();
  }
  auto it = versions.find("");
  if (it == versions.end()) {
    // Files before IR version 3 carry no opset, which means opset 1. A model of other domains alone needs none.
    if (model.ir_version() >= 3 && versions.empty())
      return absl::InvalidArgumentError("the model names no opset of the default domain");
    it = versions.emplace("", 1).first;
  }
  if (it->second < kMinOpset || it->second > kMaxOpset) {
    return absl::UnimplementedError(absl::StrCat("opset ", it->second, " is not supported, only ", kMinOpset, " to ",
                                                 kMaxOpset, "; convert the model with onnx.version_converter"));
  }
  return versions;
}

}  // namespace fusion::onnx_import
