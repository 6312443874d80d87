// A call of a bundle to a CUDA library, and what all such libraries of a session share.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_BOUND_CALL_H_
#define FUSION_RUNTIME_DEVICES_CUDA_BOUND_CALL_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/devices/cuda/context.h"

namespace fusion::cuda {

// A library call at fixed addresses, ready to be enqueued, also while the stream is captured.
class BoundCall {
 public:
  virtual ~BoundCall() = default;
  virtual absl::Status Enqueue() = 0;  // in the context's stream; the context must be current
};

// The driver's addresses are numbers, those of the libraries are pointers.
inline void* ToPointer(DevicePointer address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): nothing here dereferences it
}

// Size of the device memory that library calls use while they run, one after another in one stream. cuBLAS's guide
// recommends this size for Hopper and less for smaller devices.
inline constexpr size_t kLibraryWorkspaceBytes = 32 << 20;

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_BOUND_CALL_H_
