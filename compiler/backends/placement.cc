#include "compiler/backends/placement.h"

#include "runtime/base/check.h"

namespace fusion {
namespace {

// The model of the host. Routines are scalar code, so instructions that every processor of the architecture has
// suffice.
DeviceModel HostOf(const DeviceModel& device) {
  DeviceModel host;
  host.name = "the host of " + device.name;
  host.isa = device.host_isa;
  const bool neon = host.isa == "neon";
  host.march = neon ? "armv8-a" : "x86-64-v3";
  host.vector_bytes = neon ? 16 : 32;
  return host;
}

}  // namespace

Placement PlaceKernel(const movement::Kernel& kernel, const DeviceModel& device) {
  const Backend* backend = FindBackend(device.kind);
  FUSION_CHECK(backend != nullptr, "a device kind without a backend");  // Compile refuses it
  if (backend->CheckSupported(kernel).ok()) return {backend, device, false};
  Placement host{nullptr, HostOf(device), true};
  host.backend = FindBackend(host.device.kind);
  return host;
}

}  // namespace fusion
