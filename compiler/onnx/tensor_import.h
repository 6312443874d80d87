// ONNX tensors, types and names as ours.
#ifndef FUSION_COMPILER_ONNX_TENSOR_IMPORT_H_
#define FUSION_COMPILER_ONNX_TENSOR_IMPORT_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"

namespace onnx {
class TensorProto;
}

namespace fusion::onnx_import {

// The element type of a TensorProto.DataType number; UNIMPLEMENTED naming it for strings, complex and 4- and 8-bit
// floats.
absl::StatusOr<DType> DTypeFromOnnx(int data_type);

// A name from a model, quoted and escaped for messages.
std::string Quoted(const std::string& name);

// Files of external data, mapped once each and shared by the tensors that lie in them.
class ExternalFiles {
 public:
  explicit ExternalFiles(const std::map<std::string, std::string>* paths) : paths_(paths) {}
  struct Mapping {
    const char* data = nullptr;
    int64_t size_bytes = 0;
    std::shared_ptr<const void> owner;
  };
  absl::StatusOr<Mapping> Open(const std::string& location);

 private:
  const std::map<std::string, std::string>* paths_;
  std::map<std::string, Mapping> open_;
};

// Takes the bytes out of `proto` (which is left without data): no copy for raw data of sufficient alignment. `what`
// names the tensor in errors, e.g. `initializer "w"`. INVALID_ARGUMENT naming both sizes when data and shape disagree.
absl::StatusOr<Tensor> TakeTensor(onnx::TensorProto* proto, const std::string& what, ExternalFiles* files);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_TENSOR_IMPORT_H_
