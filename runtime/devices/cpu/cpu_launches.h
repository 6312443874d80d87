// CpuLaunches: the launches of a program that a CPU executes. On target cpu these are all launches; on other targets,
// those of kernels that run on the host (Kernel::on_host).
#ifndef FUSION_RUNTIME_DEVICES_CPU_CPU_LAUNCHES_H_
#define FUSION_RUNTIME_DEVICES_CPU_CPU_LAUNCHES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
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
  // How often a run executes the launch.
  int64_t trips(size_t launch) const { return static_cast<int64_t>(launches_[launch].size()); }
  // Runs one launch alone, with the arguments of one iteration of its repeat. Does nothing if the CPU does not execute
  // it.
  void Run(size_t launch, int64_t iteration = 0);

  // Null if there are no launches.
  WorkerPool* pool() { return pool_.get(); }
  // Whether some phase has more than one task.
  bool parallel() const { return parallel_; }

 private:
  // A launch in one iteration.
  struct BoundLaunch {
    std::vector<std::vector<void*>> arguments;  // of each set
    std::vector<void* const*> sets;
    std::vector<WorkerPool::Part> parts;  // one a phase
  };
  std::unique_ptr<BoundLaunch> Bind(const ManifestProgram& program, const Launch& launch, int64_t iteration,
                                    const std::vector<char*>& bases,
                                    const std::vector<std::pair<fusion_kernel_phase, int64_t>>& phases);
  void AppendPhases(const ManifestProgram& program, size_t first, size_t end, int64_t iteration);

  std::map<std::string, std::unique_ptr<CodeLibrary>> libraries_;
  // By launch of the program and iteration. Every iteration has arguments of its own, so that a run only walks phases.
  std::vector<std::vector<std::unique_ptr<BoundLaunch>>> launches_;
  std::vector<WorkerPool::Phase> phases_;       // of all launches in all iterations
  std::vector<std::vector<void**>> arguments_;  // by buffer: every argument in launches_ that points to it
  bool parallel_ = false;
  std::unique_ptr<WorkerPool> pool_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_CPU_LAUNCHES_H_
