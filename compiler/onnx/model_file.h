// Reads a model file. The protobuf classes do not leave this folder.
#ifndef FUSION_COMPILER_ONNX_MODEL_FILE_H_
#define FUSION_COMPILER_ONNX_MODEL_FILE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

// INVALID_ARGUMENT when the file is missing, empty, truncated, nested too deeply or not an ONNX model. `name` is used
// in messages.
absl::StatusOr<std::unique_ptr<onnx::ModelProto>> ReadModel(const std::string& path, const std::string& name);

// Returns the opset by domain ("" for ai.onnx). INVALID_ARGUMENT without one for the default domain, UNIMPLEMENTED
// outside the supported range.
absl::StatusOr<std::map<std::string, int64_t>> OpsetVersions(const onnx::ModelProto& model);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_MODEL_FILE_H_
