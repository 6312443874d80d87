#include "compiler/backends/cpu/cpu_backend.h"

#include <algorithm>

#include "compiler/backends/cpu/prelude.h"
#include "compiler/backends/cpu/print_kernel.h"
#include "compiler/te/routines/routine.h"

namespace fusion {
namespace {

class Cpu : public Backend {
 public:
  absl::Status CheckSupported(const movement::Kernel&) const override { return absl::OkStatus(); }

  // Returns the device's instructions, without the extension for products of bytes where the kernel has no such
  // products.
  Instructions InstructionsOf(const movement::Kernel& kernel, const DeviceModel& device) const override {
    Instructions all{device.isa, device.march};
    if (all.isa != "avx512vnni") return all;
    for (const movement::Phase& phase : kernel.phases) {
      const bool dot = std::any_of(phase.steps.begin(), phase.steps.end(), [](const movement::Step& step) {
        const auto* tile = step.As<movement::RegisterTile>();
        return tile != nullptr && tile->dot_axis >= 0;
      });
      if (dot) return all;
    }
    return {"avx512", all.march.substr(0, all.march.find('+'))};
  }

  std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol,
                          const DeviceModel& device) const override {
    return cpu::PrintKernel(kernel, symbol, device);
  }

  std::vector<int64_t> LaunchedTasks(const movement::Kernel& kernel, const DeviceModel&) const override {
    std::vector<int64_t> tasks;
    for (const movement::Phase& phase : kernel.phases) tasks.push_back(phase.tasks());
    return tasks;
  }

  std::string Preamble(const std::set<std::string>& routines, const DeviceModel& device) const override {
    return cpu::Prelude(device.vector_bytes / 4) + te::RoutineSource(routines);
  }

  int Units(int threads, const DeviceModel&) const override { return threads; }

  const char* SourceExtension() const override { return "cc"; }
  const char* BinaryExtension() const override { return "so"; }
};

}  // namespace

const Backend* CpuBackend() {
  static const Cpu backend;
  return &backend;
}

}  // namespace fusion
