// Target: what a compilation is for. It names a kind of device and, for kinds that have several, an architecture:
// "cpu", "cuda:sm_90".
#ifndef FUSION_COMPILER_COST_TARGET_H_
#define FUSION_COMPILER_COST_TARGET_H_

#include <string>

#include "compiler/cost/device_model.h"

namespace fusion {

struct Target {
  std::string kind;
  std::string architecture;  // compared with DeviceModel::isa; empty: any

  bool IsFor(const DeviceModel& device) const {
    return kind == device.kind && (architecture.empty() || architecture == device.isa);
  }
};

inline Target ParseTarget(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_TARGET_H_
