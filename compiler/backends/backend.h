// Backend: the text of kernels for one kind of device. The pipeline prints through this interface, and the toolchain of
// the same kind builds what it prints.
#ifndef FUSION_COMPILER_BACKENDS_BACKEND_H_
#define FUSION_COMPILER_BACKENDS_BACKEND_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/backends/instructions.h"
#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"

namespace fusion {

// Stateless; any thread.
class Backend {
 public:
  virtual ~Backend() = default;

  // UNIMPLEMENTED naming what the kernel needs and the target does not have: its host runs it (placement.h).
  virtual absl::Status CheckSupported(const movement::Kernel& kernel) const = 0;

  // Kernels that need the same share a file.
  virtual Instructions InstructionsOf(const movement::Kernel& kernel, const DeviceModel& device) const = 0;

  // One function `PhaseSymbol(symbol, p)` for each phase, as the kernel ABI of the target's runtime device says; of a
  // resident kernel the first alone, and none for what a library computes. The
  // preamble is not part of it, so that many kernels share one file.
  virtual std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol,
                                  const DeviceModel& device) const = 0;

  // How many tasks the runtime launches for each function of that text.
  virtual std::vector<int64_t> LaunchedTasks(const movement::Kernel& kernel, const DeviceModel& device) const = 0;

  // What a file begins with, given the routines that its kernels call.
  virtual std::string Preamble(const std::set<std::string>& routines, const DeviceModel& device) const = 0;

  // Of the device's units, how many a run uses that asks for `threads`.
  virtual int Units(int threads, const DeviceModel& device) const = 0;

  virtual const char* SourceExtension() const = 0;  // "cc"
  virtual const char* BinaryExtension() const = 0;  // "so"
};

// Null for a kind that has none (backend_list.cc). They live forever.
const Backend* FindBackend(const std::string& kind);

std::string PhaseSymbol(const std::string& symbol, int phase);

// Names of the routines that the kernel calls.
std::set<std::string> RoutinesOf(const movement::Kernel& kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_BACKENDS_BACKEND_H_
