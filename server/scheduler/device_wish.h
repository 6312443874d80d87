// DeviceWish: the device that a job is for.
#ifndef FUSION_SERVER_SCHEDULER_DEVICE_WISH_H_
#define FUSION_SERVER_SCHEDULER_DEVICE_WISH_H_

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "server/scheduler/attached_worker.h"

namespace fusion {

// A device of the target whose worker fits every requirement.
struct DeviceWish {
  DeviceWish() = default;
  DeviceWish(std::string t) : target(std::move(t)) {}  // NOLINT: a target alone is a wish
  DeviceWish(const char* t) : target(t) {}             // NOLINT
  DeviceWish(std::string t, std::map<std::string, std::string> r) : target(std::move(t)), require(std::move(r)) {}

  std::string target;                          // "cpu", "cuda:sm_90"
  std::map<std::string, std::string> require;  // SubmitRequest.require

  bool Fits(const AttachedWorker& worker) const;
  std::string InWords() const;  // "cpu with rack=7"
  bool operator<(const DeviceWish& other) const {
    return std::tie(target, require) < std::tie(other.target, other.require);
  }
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_DEVICE_WISH_H_
