// Device: something that runs bundles. Executable: one program of a bundle made ready on it, with its memory and
// threads.
#ifndef FUSION_RUNTIME_DEVICES_DEVICE_H_
#define FUSION_RUNTIME_DEVICES_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/bundle/bundle_reader.h"

namespace fusion {

// Called after each launch, on the thread that called Run.
using LaunchObserver = std::function<void(int launch, int64_t latency_ns)>;

// One run at a time; callers serialise.
class Executable {
 public:
  virtual ~Executable() = default;

  // inputs[i] is read and outputs[i] written, whole bindings, row-major; counts equal the program's. Neither needs
  // alignment or slack, and they may overlap: inputs are read as they are before the run, and of outputs that overlap
  // the last one stays. A pointer that equals input(i) or output(i) is in place and costs no copy; on a processor others
  // seldom do (cpu/caller_memory.h). Only what was in place can be found in output(i) afterwards.
  // An empty `observer` costs no clock reads.
  virtual absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                           const LaunchObserver& observer) = 0;

  // The executable's own memory of a binding, valid while it lives. Write inputs and read outputs between runs.
  virtual void* input(int index) = 0;
  virtual const void* output(int index) = 0;
  // Of buffer Program::buffers[index]: the extent of an output's dimension, valid after a run; that of an input's, to
  // be written before one.
  virtual void* buffer(int index) = 0;
};

class ThreadPool;

struct LoadOptions {
  int threads = 1;     // 1..1024, the caller's included
  size_t program = 0;  // which of the manifest's programs
  // Where the threads come from; null: the pool that the process has (cpu/thread_pool.h). Shared with other executables.
  std::shared_ptr<ThreadPool> pool = nullptr;
};

// Stateless; any thread.
class Device {
 public:
  virtual ~Device() = default;

  // Whether this machine can run the bundle; FAILED_PRECONDITION that says what it lacks. Maps no code.
  virtual absl::Status CheckSupported(const Manifest& manifest) const = 0;

  // FAILED_PRECONDITION if the code does not load, RESOURCE_EXHAUSTED without memory. Keeps `bundle` alive, because
  // constants are used from its mapping.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const BundleReader> bundle,
                                                           const LoadOptions& options) const = 0;
};

// The device of a manifest's `target`; UNIMPLEMENTED naming those there are.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& target);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_DEVICE_H_
