// What a bundle leaves to the libraries of CUDA: each is opened when the first call wants it, and all share a
// workspace.
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

// One thread at a time, with the context current.
class LibraryCalls {
 public:
  // Where an argument of the launch lies, and what it holds.
  struct Argument {
    DevicePointer data = 0;
    DType dtype = DType::kF32;
  };
  using Arguments = std::function<Argument(int argument)>;

  // FAILED_PRECONDITION, saying which library the bundle needs and what to do, where it is not installed. What is
  // planned must not outlive this.
  absl::StatusOr<std::unique_ptr<BoundCall>> Plan(const LibraryCall& call, const Arguments& arguments,
                                                  std::shared_ptr<const Context> context);

 private:
  absl::StatusOr<std::unique_ptr<BoundCall>> PlanOne(const LibraryProduct& product, const Arguments& arguments,
                                                     const std::shared_ptr<const Context>& context);
  absl::StatusOr<std::unique_ptr<BoundCall>> PlanOne(const LibraryConvolution& convolution, const Arguments& arguments,
                                                     const std::shared_ptr<const Context>& context);

  Memory workspace_;  // none before the first call
  std::shared_ptr<ProductLibrary> products_;
  std::shared_ptr<ConvolutionLibrary> convolutions_;
};

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_LIBRARY_CALLS_H_
