// Backend: prints the text of kernels for one kind of device. The pipeline prints through this interface, and the
// toolchain of the same kind builds the text.
#ifndef FUSION_COMPILER_BACKENDS_BACKEND_H_
#define FUSION_COMPILER_BACKENDS_BACKEND_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/backends/instructions.h"
#include "compiler/backends/kernel_resources.h"
#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion {

// Stateless; any thread may call it.
class Backend {
 public:
  virtual ~Backend() = default;

  // Does the device run a whole program of a model instead of kernels? Such a program is made by compiler/accelerator,
  // and the functions about kernels are not called.
  virtual bool RunsWholePrograms() const { return false; }

  // Is the device simulated on its host, so that its times are counted and other kernels should judge its numbers? Such
  // a device is offered where somebody asks for it.
  virtual bool IsSimulated() const { return false; }

  // Fails with UNIMPLEMENTED, naming what the kernel needs and the target lacks; the target's host then runs the kernel
  // (placement.h).
  virtual absl::Status CheckSupported(const movement::Kernel& kernel) const = 0;

  // The instructions that the kernel needs. Kernels that need the same ones share a file.
  virtual Instructions InstructionsOf(const movement::Kernel& kernel, const DeviceModel& device) const = 0;

  // Returns the text of one function `PhaseSymbol(symbol, p)` for each phase, by the kernel ABI of the target's runtime
  // device. A persistent kernel has only the first of these functions, and a phase that a library computes has none.
  // The preamble is not part of the text, so that many kernels can share one file.
  virtual std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol,
                                  const DeviceModel& device) const = 0;

  // How many tasks the runtime launches for each function of that text.
  virtual std::vector<int64_t> LaunchedTasks(const movement::Kernel& kernel, const DeviceModel& device) const = 0;

  // The text at the beginning of a file whose kernels call these routines.
  virtual std::string Preamble(const std::set<std::string>& routines, const DeviceModel& device) const = 0;

  // How many of the device's units a run uses that asks for `threads`.
  virtual int Units(int threads, const DeviceModel& device) const = 0;

  // Returns what each function of a binary takes of the device, by its symbol; nothing where a binary does not say.
  // Fails with INVALID_ARGUMENT where it is none of this device's.
  virtual absl::StatusOr<ResourcesBySymbol> ResourcesOf(const std::string& /*binary*/) const {
    return ResourcesBySymbol();
  }

  virtual const char* SourceExtension() const = 0;  // "cc"
  virtual const char* BinaryExtension() const = 0;  // "so"
};

// Returns null for a kind without a backend (backend_list.cc). Backends live forever.
const Backend* FindBackend(const std::string& kind);
// The kinds of real devices, not of simulated ones, that have a backend, the one that a machine is searched for first
// in front.
std::vector<std::string> DeviceKinds();
// The kinds of devices that are simulated (Backend::IsSimulated).
std::vector<std::string> SimulatedKinds();

std::string PhaseSymbol(const std::string& symbol, int phase);

// Names of the routines that the kernel calls.
std::set<std::string> RoutinesOf(const movement::Kernel& kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_BACKEND_H_
