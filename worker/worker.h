// A worker's wiring as a library: the program fusion-worker is this, and a server may run it on a thread of its own.
#ifndef FUSION_WORKER_WORKER_H_
#define FUSION_WORKER_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/cost/device_model.h"

namespace fusion {

struct WorkerOptions {
  std::string server;  // "unix:/path" or "host:port"
  std::string name;    // for people; empty: the host's name
  std::vector<std::string> kinds = {
      "cpu"};         // device kind to measure: "cpu", "opencl", "cuda" or "sim" (simulated/README.md)
  bool build = true;  // take build tasks where there is a toolchain
  std::vector<std::string> build_kinds;  // kinds to build for; empty: all that there is a toolchain for
  int threads = 0;                       // of measurements that name no number, and of builds; 0: all cores
  std::string state_folder;              // where the measured device model is kept; empty: nowhere
  std::string measure_program;           // empty: fusion-measure beside this program
  std::string device_model;  // file with the device model to use instead of measuring one (DeviceModelToJson)
  // Lock file of the workers of one machine that measure one after another (measure/turn.h); empty: whenever asked.
  std::string turn_file;
  int64_t simulated_seed = 1;  // of the device "sim"
  absl::Duration simulated_measurement = absl::Milliseconds(100);
  std::function<void(const std::string&)> log;  // never empty
};

class Worker {
 public:
  // Measures the device (up to about a second). FAILED_PRECONDITION when there is nothing that this worker could do.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(WorkerOptions options);
  virtual ~Worker() = default;

  virtual void Run() = 0;    // until Drain or Abort
  virtual void Drain() = 0;  // callable from any thread, as is Abort; lease_loop.h
  virtual void Abort() = 0;
};

// The device of the one kind that `options` names: found and measured, as Create does it. FAILED_PRECONDITION, saying
// what to install, where there is none; UNIMPLEMENTED where there is one that no kernel is made for.
absl::StatusOr<DeviceModel> DescribeDevice(const WorkerOptions& options);

}  // namespace fusion

#endif  // FUSION_WORKER_WORKER_H_
