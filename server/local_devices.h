// LocalDevices: the kinds of device of fusiond's own machine, and the worker process that offers each
// (server/local_worker.h). `fusion-worker --describe` looks for the kinds one after another, in a process that a driver
// may hang or crash. After a time limit that costs only this kind of device, not the server or the kinds that were
// found before.
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
  // kFound: the device's name. kFailing (found, but its worker ended and is not running again yet): how it ended.
  // kMissing: the reason, and what to install.
  std::string words;
};

const char* NameOf(LocalDevice::State state);  // "looking"

struct LocalDevicesOptions {
  std::string worker_program;
  std::vector<std::string> kinds;           // searched in this order
  std::string state_folder;                 // of the workers
  absl::Duration limit = absl::Minutes(2);  // for a driver to describe its device
  std::vector<std::string> worker_flags;    // more arguments of the workers: how they log
  Log log = NoLog();                        // gets a line after each change of a device or its worker
};

class LocalDevices {
 public:
  explicit LocalDevices(LocalDevicesOptions options);
  ~LocalDevices();

  // Starts the search. The workers connect to `server_address`.
  void Start(std::string server_address);
  // Ends the search and the workers: sends SIGTERM, then SIGKILL after `grace`. Idempotent.
  void Stop(absl::Duration grace);

  // This function and the next one are thread-safe.
  std::vector<LocalDevice> Devices() const;
  // Returns whether the search for this kind goes on or has found a device, so that a worker will attach soon if none
  // has.
  bool IsExpected(const std::string& kind) const;

 private:
  struct Entry {
    LocalDevice device;
    std::unique_ptr<LocalWorker> worker;
  };
  void Look();
  // Fills in the entry of `kind`. Returns the command line of its worker; empty if there will be none.
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
