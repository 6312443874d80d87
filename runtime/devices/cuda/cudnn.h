// cuDNN, for the convolutions that a bundle leaves to it (runtime/bundle/library_convolution.h). It is opened at run
// time, as the driver is, if it is installed. The declarations follow the documented interface that versions 8 and 9
// share.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_CUDNN_H_
#define FUSION_RUNTIME_DEVICES_CUDA_CUDNN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/bundle/library_convolution.h"
#include "runtime/devices/cuda/bound_call.h"
#include "runtime/devices/cuda/context.h"

namespace fusion::cuda {

// Returns the library's name and version, "cuDNN 9.1.0". Fails with FAILED_PRECONDITION, saying what is missing, if it
// is not installed.
absl::StatusOr<std::string> ConvolutionLibraryName();

// Plans convolutions. One thread at a time may use it.
class ConvolutionLibrary {
 public:
  struct Operands {
    DevicePointer x = 0, w = 0, y = 0;
    DType dtype = DType::kF32;
  };
  // `workspace`: kLibraryWorkspaceBytes of device memory, which must outlive everything that is planned. The context
  // must be current. Fails with FAILED_PRECONDITION if the library is not installed.
  static absl::StatusOr<std::shared_ptr<ConvolutionLibrary>> Open(std::shared_ptr<const Context> context,
                                                                  DevicePointer workspace);
  virtual ~ConvolutionLibrary() = default;
  // Uses the first algorithm that the library proposes among those that fit the workspace and add up the products as
  // they are, in types that are no narrower than the operands'. The result keeps the library open.
  virtual absl::StatusOr<std::unique_ptr<BoundCall>> Plan(const LibraryConvolution& convolution,
                                                          const Operands& operands) = 0;
};

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_CUDNN_H_
