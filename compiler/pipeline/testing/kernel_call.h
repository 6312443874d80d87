// One launch of a built kernel and its host: this process, or an emulated machine if this machine cannot run the code.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_KERNEL_CALL_H_
#define FUSION_COMPILER_PIPELINE_TESTING_KERNEL_CALL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/pipeline/testing/guarded_buffer.h"
#include "runtime/bundle/library_call.h"

namespace fusion::testing {

struct KernelCall {
  struct Phase {
    std::string symbol;
    std::vector<std::pair<int64_t, int64_t>> ranges;  // of tasks, in the order in which they run
    std::optional<LibraryCall> library;               // called instead of the function
  };
  std::vector<GuardedBuffer*> args;
  int64_t scratch_bytes = 0;
  std::vector<Phase> phases;
  bool persistent = false;  // a persistent kernel: work-groups wait for each other (runtime/devices/*/kernel_abi.md)
};

// Loaded kernels.
class KernelHost {
 public:
  virtual ~KernelHost() = default;
  // Poisons the scratch before each range. Fails with INTERNAL, naming the tasks that touched memory outside their
  // buffers.
  virtual absl::Status Run(const KernelCall& call) = 0;
};

absl::StatusOr<std::unique_ptr<KernelHost>> LoadHere(const std::string& binary);

// aarch64 under qemu. FindQemu fails with NOT_FOUND, naming the package, where a tool is missing.
absl::Status FindQemu();
absl::StatusOr<std::unique_ptr<KernelHost>> LoadUnderQemu(const std::string& binary);

// The processor as an OpenCL device. FindOpenCl fails with FAILED_PRECONDITION if OpenCL has no such device or chose
// another.
absl::Status FindOpenCl();
absl::StatusOr<std::unique_ptr<KernelHost>> LoadOnOpenCl(const std::string& binary);

// CUDA text compiled as C++ (compiler/backends/cuda/testing): the threads of a thread block are fibers here.
absl::StatusOr<std::unique_ptr<KernelHost>> LoadAsCuda(const std::string& binary);

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_KERNEL_CALL_H_
