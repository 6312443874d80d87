#include "compiler/backends/placement.h"

#include "compiler/cost/host_device.h"
#include "runtime/base/check.h"

namespace fusion {
// Routines are scalar code, so that the host needs no instructions that only some processors have.
Placement PlaceKernel(const movement::Kernel& kernel, const DeviceModel& device) {
  const Backend* backend = FindBackend(device.kind);
  FUSION_CHECK(backend != nullptr, "a device kind without a backend");  // Compile refuses it
  if (backend->CheckSupported(kernel).ok()) return {backend, device, false};
  Placement host{nullptr, HostOf(device), true};
  host.backend = FindBackend(host.device.kind);
  return host;
}

}  // namespace fusion
