// Converts ONNX tensors, element types and names to those of the compiler.
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

// Returns the element type of a TensorProto.DataType number. INVALID_ARGUMENT when it is missing, UNIMPLEMENTED naming
// it when the compiler does not have it (strings, complex).
absl::StatusOr<DType> DTypeFromOnnx(int data_type);

// Returns a name from a model, quoted and escaped for messages.
std::string Quoted(const std::string& name);

// Files of external data. Each is mapped once and shared by the tensors that lie in it.
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

// Takes the bytes out of `proto`, which is left without data, and does not copy raw data of sufficient alignment.
// `what` names the tensor in errors, e.g. `initializer "w"`. INVALID_ARGUMENT naming both sizes when data and shape
// disagree.
absl::StatusOr<Tensor> TakeTensor(onnx::TensorProto* proto, const std::string& what, ExternalFiles* files);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_TENSOR_IMPORT_H_
