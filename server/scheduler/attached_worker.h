// AttachedWorker: a worker as it described itself.
#ifndef FUSION_SERVER_SCHEDULER_ATTACHED_WORKER_H_
#define FUSION_SERVER_SCHEDULER_ATTACHED_WORKER_H_

#include <map>
#include <set>
#include <string>

#include "compiler/cost/device_model.h"
#include "proto/worker_protocol.h"

namespace fusion {

// A toolchain that the worker has.
struct WorkerToolchain {
  std::string digest = {};  // "": unknown
  bool reproduces = false;
};

struct AttachedWorker {
  std::string id, name, version, toolchain;
  std::set<std::string> toolchain_kinds;
  std::map<std::string, WorkerToolchain> toolchains = {};  // by kind; one that is not there is unknown
  std::set<std::string> measure_kinds;  // empty: the worker only builds, and its device has no kind and no fingerprint
  DeviceModel device;
  std::string fingerprint;
  int protocol = kWorkerProtocol;
  std::string info;  // serialised v1.WorkerInfo, for listing
  std::map<std::string, std::string> labels = {};
  std::string token = {};      // the id of the token or certificate by which it came; "": without one
  bool trusted_builds = true;  // its binaries count without another builder's
  std::string source = {};     // whose word its measurements are, judge.h; "": it is believed
  bool on_socket = false;      // came through the socket, as whose owner

  WorkerToolchain ToolchainOf(const std::string& kind) const {
    const auto found = toolchains.find(kind);
    return found == toolchains.end() ? WorkerToolchain() : found->second;
  }
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_ATTACHED_WORKER_H_
