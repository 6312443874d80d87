// LocalDevices: the kinds of device that fusiond's own machine has, and the worker process (server/local_worker.h) that
// offers each. They are looked for one after another by `fusion-worker --describe`, a process that a driver may hang or
// end: it costs its kind of device, after a limit, and neither the server nor the kinds that were found before.
#ifndef FUSION_SERVER_LOCAL_DEVICES_H_
#define FUSION_SERVER_LOCAL_DEVICES_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/local_worker.h"

namespace fusion {

struct LocalDevice {
  enum class State { kLooking, kFound, kFailing, kMissing };
  std::string kind;  // "opencl"
  State state = State::kLooking;
  // kFound: the device's name. kFailing (found, but its worker ended and has not come back): how it ended. kMissing:
  // why, and what to install.
  std::string words;
};

const char* NameOf(LocalDevice::State state);  // "looking"

struct LocalDevicesOptions {
  std::string worker_program;
  std::vector<std::string> kinds;           // in the order in which they are looked for
  std::string state_folder;                 // of the workers
  absl::Duration limit = absl::Minutes(2);  // of a driver, for describing its device
};

class LocalDevices {
 public:
  explicit LocalDevices(LocalDevicesOptions options);
  ~LocalDevices();

  // Begins to look; the workers are told this address.
  void Start(std::string server_address);
  // Ends the search and the workers: SIGTERM, and SIGKILL after `grace`. Idempotent.
  void Stop(absl::Duration grace);

  // Thread-safe, as is the next.
  std::vector<LocalDevice> Devices() const;
  // Is it being looked for, or is there one, so that its worker attaches soon unless it has?
  bool IsExpected(const std::string& kind) const;

 private:
  struct Entry {
    LocalDevice device;
    std::unique_ptr<LocalWorker> worker;
  };
  void Look();
  // Fills in the entry of `kind`. Returns the command line of its worker, or nothing where there will be none.
  std::vector<std::string> Describe(const std::string& kind, LocalDevice* device) const;

  const LocalDevicesOptions options_;
  std::string server_address_;
  std::atomic<bool> stopping_{false};
  mutable absl::Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_LOCAL_DEVICES_H_
