// One launch of a built kernel, and who performs it: this process, or an emulated machine for a device that this
// machine is not.
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
    std::vector<std::pair<int64_t, int64_t>> ranges;  // of tasks, in the order in which they are to run
    std::optional<LibraryCall> library;               // instead of the function
  };
  std::vector<GuardedBuffer*> args;
  int64_t scratch_bytes = 0;
  std::vector<Phase> phases;
  bool resident = false;  // groups wait for each other (runtime/devices/*/kernel_abi.md)
};

// Built kernels, loaded.
class KernelHost {
 public:
  virtual ~KernelHost() = default;
  // Poisons the scratch before each range. INTERNAL naming the tasks that touched memory which is not theirs.
  virtual absl::Status Run(const KernelCall& call) = 0;
};

absl::StatusOr<std::unique_ptr<KernelHost>> LoadHere(const std::string& binary);

// aarch64 under qemu. FindQemu: NOT_FOUND, naming the package, where a tool is missing.
absl::Status FindQemu();
absl::StatusOr<std::unique_ptr<KernelHost>> LoadUnderQemu(const std::string& binary);

// The processor as a device of OpenCL. FindOpenCl: FAILED_PRECONDITION where it is none, or not the one that is chosen.
absl::Status FindOpenCl();
absl::StatusOr<std::unique_ptr<KernelHost>> LoadOnOpenCl(const std::string& binary);

// CUDA text that was compiled as C++ (compiler/backends/cuda/testing): the threads of a block are fibers here.
absl::StatusOr<std::unique_ptr<KernelHost>> LoadAsCuda(const std::string& binary);

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_KERNEL_CALL_H_
