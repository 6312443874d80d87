// cuBLASLt, for the products of matrices that a bundle leaves to it (runtime/bundle/library_product.h). It is opened at
// run time, as the driver is, if it is installed. The declarations follow the documented interface of CUDA 11.4 and
// later.
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

// Returns the library's name and version, "cuBLASLt 13.0.0". Fails with FAILED_PRECONDITION, saying what is missing, if
// it is not installed.
absl::StatusOr<std::string> ProductLibraryName();

// Plans products. One thread at a time may use it.
class ProductLibrary {
 public:
  struct Operands {
    DevicePointer a = 0, b = 0, d = 0, bias = 0;
    DType operand = DType::kF32, result = DType::kF32;
  };
  // `workspace`: kLibraryWorkspaceBytes of device memory, which must outlive everything that is planned. The context
  // must be current. Fails with FAILED_PRECONDITION if the library is not installed.
  static absl::StatusOr<std::shared_ptr<ProductLibrary>> Open(std::shared_ptr<const Context> context,
                                                              DevicePointer workspace);
  virtual ~ProductLibrary() = default;
  // Uses the first algorithm that the library proposes. The result keeps the library open.
  virtual absl::StatusOr<std::unique_ptr<BoundCall>> Plan(const LibraryProduct& product, const Operands& operands) = 0;
};

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_CUBLAS_LT_H_
