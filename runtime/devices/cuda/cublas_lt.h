// cuBLASLt, where it is installed: opened at run time, as the driver is. For products of matrices that a bundle leaves
// to it (runtime/bundle/library_product.h). Declared after the documented interface of CUDA 11.4 and later.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_CUBLAS_LT_H_
#define FUSION_RUNTIME_DEVICES_CUDA_CUBLAS_LT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/bundle/library_product.h"
#include "runtime/devices/cuda/bound_call.h"
#include "runtime/devices/cuda/context.h"

namespace fusion::cuda {

// Its name and version, "cuBLASLt 13.0.0". FAILED_PRECONDITION, saying what is missing, where it is not installed.
absl::StatusOr<std::string> ProductLibraryName();

// Plans products. One thread at a time.
class ProductLibrary {
 public:
  struct Operands {
    DevicePointer a = 0, b = 0, d = 0, bias = 0;
    DType operand = DType::kF32, result = DType::kF32;
  };
  // `workspace`: kLibraryWorkspaceBytes of the device's memory, which outlives what is planned. FAILED_PRECONDITION
  // where the library is not installed; with the context current.
  static absl::StatusOr<std::shared_ptr<ProductLibrary>> Open(std::shared_ptr<const Context> context,
                                                              DevicePointer workspace);
  virtual ~ProductLibrary() = default;
  // The algorithm is the first that the library proposes. Keeps the library.
  virtual absl::StatusOr<std::unique_ptr<BoundCall>> Plan(const LibraryProduct& product, const Operands& operands) = 0;
};

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_CUBLAS_LT_H_
