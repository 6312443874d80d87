// CpuLaunches: the launches of a program that a CPU executes. On target cpu these are all launches; on other targets,
// those of kernels that run on the host (Kernel::on_host).
#ifndef FUSION_RUNTIME_DEVICES_CPU_CPU_LAUNCHES_H_
#define FUSION_RUNTIME_DEVICES_CPU_CPU_LAUNCHES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/bundle_reader.h"
#include "runtime/devices/cpu/code_library.h"
#include "runtime/devices/cpu/kernel_abi.h"
#include "runtime/devices/cpu/worker_pool.h"

namespace fusion {

// One caller at a time may use it.
class CpuLaunches {
 public:
  enum class Which { kAll, kOnHost };

  // `bases` says where each of the program's buffers lies; that memory, with its slack, must outlive this object. Fails
  // with FAILED_PRECONDITION if the code does not load.
  static absl::StatusOr<CpuLaunches> Create(const BundleReader& bundle, const ManifestProgram& program, Which which,
                                            const std::vector<char*>& bases, int threads,
                                            std::shared_ptr<ThreadPool> pool);

  // From now on `buffer` lies at `base`.
  void Rebind(int buffer, char* base);

  // Runs all launches in one call of the pool, one after another but for those that may run beside each other.
  void Run();
  // Runs one launch alone. Does nothing if the CPU does not execute it.
  void Run(size_t launch);

  // Null if there are no launches.
  WorkerPool* pool() { return pool_.get(); }
  // Whether some phase has more than one task.
  bool parallel() const { return parallel_; }

 private:
  struct BoundLaunch {
    std::vector<std::vector<void*>> arguments;  // of each set
    std::vector<void* const*> sets;
  };

  std::map<std::string, std::unique_ptr<CodeLibrary>> libraries_;
  std::vector<BoundLaunch> launches_;           // parallel to the program's
  std::vector<std::vector<WorkerPool::Phase>> alone_;  // of each launch, without those that may run beside it
  std::vector<WorkerPool::Phase> phases_;              // of all launches
  std::vector<std::vector<void**>> arguments_;  // by buffer: every argument in launches_ that points to it
  bool parallel_ = false;
  std::unique_ptr<WorkerPool> pool_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_CPU_LAUNCHES_H_
