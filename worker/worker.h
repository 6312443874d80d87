// A worker as a library: the program fusion-worker is a thin wrapper of it, and a server may run it on a thread of its
// own.
#ifndef FUSION_WORKER_WORKER_H_
#define FUSION_WORKER_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/cost/device_model.h"
#include "proto/channel/endpoint.h"
#include "runtime/log/log.h"

namespace fusion {

struct WorkerOptions {
  Endpoint server;
  bool renew_certificate = false;             // that of `server` is this server's, and ends
  std::string name;                           // for people; empty: the host's name
  std::map<std::string, std::string> labels;  // v1.WorkerInfo.labels
  std::vector<std::string> kinds = {"cpu"};   // device kind to measure: one of MeasuredKinds()
  bool build = true;                          // takes build tasks if there is a toolchain
  std::vector<std::string> build_kinds;       // kinds to build for; empty: all that have a toolchain
  int threads = 0;                            // for builds, and for measurements that name no number; 0: all cores
  std::string state_folder;                   // for the measured device model; empty: it is not kept
  std::string measure_program;                // empty: fusion-measure beside this program
  std::string device_model;  // file with a device model, used instead of measuring one (DeviceModelToJson)
  // Lock file of the workers of one machine that measure one after another (measure/turn.h). Empty: no waiting.
  std::string turn_file;
  std::string machine = "stcp920";  // of kind "dsa": a stored description (runtime/devices/dsa_sim/machines)
  int64_t simulated_seed = 1;       // of the device "sim"
  bool unconfined = false;          // kernels and compilers may do what this process may
  bool namespaces = true;           // they have namespaces of their own where the machine allows it
  absl::Duration simulated_measurement = absl::Milliseconds(100);
  double simulated_pace = 1;  // times that it says, over those that it should say
  Log log = NoLog();
};

// The name of a worker that was given none: the host's.
std::string HostName();

// The kinds of device that workers measure; the last one is simulated (simulated/README.md).
std::vector<std::string> MeasuredKinds();

class Worker {
 public:
  // Measures the device (up to about a second). Fails with FAILED_PRECONDITION if this worker could do nothing, or
  // could not confine what it is given.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(WorkerOptions options);
  virtual ~Worker() = default;

  virtual void Run() = 0;    // until Drain or Abort
  virtual void Drain() = 0;  // any thread may call it, and Abort; see lease_loop.h
  virtual void Abort() = 0;
};

// Finds and measures the device of the one kind that `options` names, as Create does. Fails with FAILED_PRECONDITION,
// saying what to install, if there is none, and with UNIMPLEMENTED if no kernels can be made for it.
absl::StatusOr<DeviceModel> DescribeDevice(const WorkerOptions& options);

}  // namespace fusion

#endif  // FUSION_WORKER_WORKER_H_
