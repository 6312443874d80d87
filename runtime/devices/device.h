// Device: something that runs bundles. Executable: one program of a bundle, loaded on a device, with its memory and
// threads.
#ifndef FUSION_RUNTIME_DEVICES_DEVICE_H_
#define FUSION_RUNTIME_DEVICES_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/bundle/bundle_reader.h"

namespace fusion {

// Called after each launch, on the thread that called Run.
using LaunchObserver = std::function<void(int launch, int64_t latency_ns)>;

// The time of a run on a device that is simulated. It has nothing to do with how long the simulation takes here.
struct SimulatedTime {
  double cycles = 0, seconds = 0;  // of the device
};

// Executes one run at a time; callers serialise.
class Executable {
 public:
  virtual ~Executable() = default;

  // Reads inputs[i] and writes outputs[i], each a whole binding, row-major; their counts equal the program's. They need
  // neither alignment nor slack, and may overlap: inputs count as they are before the run, and of outputs that overlap
  // the last one stays.
  // A pointer that equals input(i) or output(i) is in place and costs no copy; on a CPU most other pointers cost none
  // either (cpu/caller_memory.h). output(i) holds the result only if outputs[i] was in place.
  // An empty `observer` costs no clock reads.
  virtual absl::Status Run(absl::Span<const void* const> inputs, absl::Span<void* const> outputs,
                           const LaunchObserver& observer) = 0;

  // The executable's own memory for a binding, valid while the executable lives. Write inputs and read outputs between
  // runs.
  virtual void* input(int index) = 0;
  virtual const void* output(int index) = 0;
  // The memory of Program::buffers[index], a buffer that holds an extent: read an output's extent after a run, write an
  // input's extent before one.
  virtual void* buffer(int index) = 0;

  // Returns the time of each run on a simulated device, which does not depend on data; a run reports it to its
  // observer, too. Returns nothing on other devices.
  virtual std::optional<SimulatedTime> simulated_time() const { return std::nullopt; }
};

class ThreadPool;

struct LoadOptions {
  int threads = 1;     // 1..1024, including the caller's
  size_t program = 0;  // index of one of the manifest's programs
  // The pool that the threads come from; null means the pool of the process (cpu/thread_pool.h). It is shared with
  // other executables.
  std::shared_ptr<ThreadPool> pool = nullptr;
};

// Stateless, so any thread may call.
class Device {
 public:
  virtual ~Device() = default;

  // Whether this machine can run the bundle. Fails with FAILED_PRECONDITION and says what the machine lacks. Maps no
  // code.
  virtual absl::Status CheckSupported(const Manifest& manifest) const = 0;

  // Fails with FAILED_PRECONDITION if the code does not load, RESOURCE_EXHAUSTED without memory. The result keeps
  // `bundle` alive, because it uses the constants in the bundle's mapping.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const BundleReader> bundle,
                                                           const LoadOptions& options) const = 0;
};

// Returns the device for a manifest's `target`. Fails with UNIMPLEMENTED and names the targets that exist.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(const std::string& target);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_DEVICE_H_
