// cuDNN, where it is installed: opened at run time, as the driver is. For convolutions that a bundle leaves to it
// (runtime/bundle/library_convolution.h). Declared after the documented interface that versions 8 and 9 share.
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

// Its name and version, "cuDNN 9.1.0". FAILED_PRECONDITION, saying what is missing, where it is not installed.
absl::StatusOr<std::string> ConvolutionLibraryName();

// Plans convolutions. One thread at a time.
class ConvolutionLibrary {
 public:
  struct Operands {
    DevicePointer x = 0, w = 0, y = 0;
    DType dtype = DType::kF32;
  };
  // `workspace`: kLibraryWorkspaceBytes of the device's memory, which outlives what is planned. FAILED_PRECONDITION
  // where the library is not installed; with the context current.
  static absl::StatusOr<std::shared_ptr<ConvolutionLibrary>> Open(std::shared_ptr<const Context> context,
                                                                  DevicePointer workspace);
  virtual ~ConvolutionLibrary() = default;
  // The algorithm is the first that the library proposes of those that add up the products as they are, in types as
  // wide as they are, in the workspace. Keeps the library.
  virtual absl::StatusOr<std::unique_ptr<BoundCall>> Plan(const LibraryConvolution& convolution,
                                                          const Operands& operands) = 0;
};

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_CUDNN_H_
