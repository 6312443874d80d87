// The calls that a bundle leaves to CUDA libraries. Each library is opened at the first call that needs it, and all
// share one workspace.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_LIBRARY_CALLS_H_
#define FUSION_RUNTIME_DEVICES_CUDA_LIBRARY_CALLS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/bundle/library_call.h"
#include "runtime/devices/cuda/bound_call.h"
#include "runtime/devices/cuda/context.h"
#include "runtime/devices/cuda/cublas_lt.h"
#include "runtime/devices/cuda/cudnn.h"

namespace fusion::cuda {

// One thread at a time may use it; the context must be current.
class LibraryCalls {
 public:
  // Where an argument of the launch lies, and its element type.
  struct Argument {
    DevicePointer data = 0;
    DType dtype = DType::kF32;
  };
  using Arguments = std::function<Argument(int argument)>;

  // Fails with FAILED_PRECONDITION if the library is not installed; the message names the library and says what to do.
  // The result must not outlive this object.
  absl::StatusOr<std::unique_ptr<BoundCall>> Plan(const LibraryCall& call, const Arguments& arguments,
                                                  std::shared_ptr<const Context> context);

 private:
  absl::StatusOr<std::unique_ptr<BoundCall>> PlanOne(const LibraryProduct& product, const Arguments& arguments,
                                                     const std::shared_ptr<const Context>& context);
  absl::StatusOr<std::unique_ptr<BoundCall>> PlanOne(const LibraryConvolution& convolution, const Arguments& arguments,
                                                     const std::shared_ptr<const Context>& context);

  Memory workspace_;  // empty before the first call
  std::shared_ptr<ProductLibrary> products_;
  std::shared_ptr<ConvolutionLibrary> convolutions_;
};

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_LIBRARY_CALLS_H_
