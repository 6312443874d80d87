// What a library of CUDA's computes in a bundle, and what all such libraries of a session share.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_BOUND_CALL_H_
#define FUSION_RUNTIME_DEVICES_CUDA_BOUND_CALL_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/devices/cuda/context.h"

namespace fusion::cuda {

// A library's call at fixed addresses, ready to be enqueued; also while the stream is captured.
class BoundCall {
 public:
  virtual ~BoundCall() = default;
  virtual absl::Status Enqueue() = 0;  // in the context's stream, with the context current
};

// The driver's addresses are numbers, the libraries' pointers.
inline void* ToPointer(DevicePointer address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): nothing here looks behind it
}

// Memory of the device that calls use while they run, one after another in one stream. What cuBLAS's guide recommends
// for Hopper; smaller devices use less.
inline constexpr size_t kLibraryWorkspaceBytes = 32 << 20;

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_BOUND_CALL_H_
