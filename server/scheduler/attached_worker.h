// AttachedWorker: a worker as it described itself.
#ifndef FUSION_SERVER_SCHEDULER_ATTACHED_WORKER_H_
#define FUSION_SERVER_SCHEDULER_ATTACHED_WORKER_H_

#include <map>
#include <set>
#include <string>

#include "compiler/cost/device_model.h"

namespace fusion {

struct AttachedWorker {
  std::string id, name, version, toolchain;
  std::set<std::string> toolchain_kinds;
  std::set<std::string> measure_kinds;  // empty: the worker only builds, and its device has no kind and no fingerprint
  DeviceModel device;
  std::string fingerprint;
  std::string info;  // serialised v1.WorkerInfo, for listing
  std::map<std::string, std::string> labels = {};
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_ATTACHED_WORKER_H_
