// For tests: builds ONNX models from protobuf text.
#ifndef FUSION_COMPILER_ONNX_MODEL_TEXT_H_
#define FUSION_COMPILER_ONNX_MODEL_TEXT_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/import.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

// A file of these bytes that lives as long as this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& bytes) {
    static int count = 0;
    path_ = absl::StrCat(testing::TempDir(), "fusion_onnx_", getpid(), "_", count++);
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Writes `input { … }` or `output { … }`: a tensor of ONNX element type `type`. A dim is a number or a symbol.
inline std::string TensorInfo(const std::string& field, const std::string& name, const std::vector<std::string>& dims,
                              int type = onnx::TensorProto::FLOAT) {
  std::string text = absl::StrCat(field, " { name: '", name, "' type { tensor_type { elem_type: ", type, " shape {");
  for (const std::string& dim : dims) {
    const bool number = !dim.empty() && (isdigit(dim[0]) || dim[0] == '-');
    absl::StrAppend(&text, number        ? absl::StrCat(" dim { dim_value: ", dim, " }")
                           : dim.empty() ? std::string(" dim { }")
                                         : absl::StrCat(" dim { dim_param: '", dim, "' }"));
  }
  return text + " } } } }\n";
}

// Writes `node { … }`; `more` holds attributes and the name.
inline std::string NodeText(const std::string& op, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs, const std::string& more = "") {
  std::string text = absl::StrCat("node { op_type: '", op, "' ");
  for (const std::string& name : inputs) absl::StrAppend(&text, "input: '", name, "' ");
  for (const std::string& name : outputs) absl::StrAppend(&text, "output: '", name, "' ");
  return absl::StrCat(text, more, " }\n");
}

inline std::string ModelBytes(const std::string& graph, int opset = 17) {
  onnx::ModelProto model;
  const std::string text =
      absl::StrCat("ir_version: 8 opset_import { domain: '' version: ", opset, " } graph { name: 'g' ", graph, " }");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model.SerializeAsString();
}

inline absl::StatusOr<ImportedModel> ImportBytes(const std::string& bytes, ImportRequest request = {}) {
  const TemporaryFile file(bytes);
  request.model_path = file.path();
  request.model_name = "test.onnx";
  return ImportOnnx(request);
}

inline absl::StatusOr<ImportedModel> ImportText(const std::string& graph, ImportRequest request = {}) {
  return ImportBytes(ModelBytes(graph), std::move(request));
}

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_MODEL_TEXT_H_
