#include "compiler/backends/cuda/cuda_backend.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/cuda/cubin_resources.h"
#include "compiler/backends/cuda/prelude.h"
#include "compiler/backends/cuda/print_kernel.h"
#include "compiler/movement/work_groups.h"

namespace fusion {
namespace {

class Cuda : public Backend {
 public:
  absl::Status CheckSupported(const movement::Kernel& kernel) const override {
    const std::set<std::string> routines = RoutinesOf(kernel);
    if (routines.empty()) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat("target cuda has no routine ", absl::StrJoin(routines, ", ")));
  }

  // Kernels that use what only one architecture has (wgmma) are built for "sm_90a", whose code runs on nothing else.
  Instructions InstructionsOf(const movement::Kernel& kernel, const DeviceModel& device) const override {
    bool from_memory = false;
    for (const movement::Phase& phase : kernel.phases) {
      movement::VisitSteps(phase, [&](const movement::Step& step) {
        const auto* tile = step.As<movement::ThreadgroupTile>();
        from_memory = from_memory || (tile != nullptr && tile->product.from_memory);
      });
    }
    return {device.isa, absl::StrCat(device.march, from_memory ? "a" : "")};
  }

  std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol,
                          const DeviceModel& device) const override {
    return cuda::PrintKernel(kernel, symbol, device);
  }

  std::vector<int64_t> LaunchedTasks(const movement::Kernel& kernel, const DeviceModel& device) const override {
    return movement::LaunchedWorkGroups(kernel, movement::WorkItems(kernel, device.work_group_size));
  }

  std::string Preamble(const std::set<std::string>&, const DeviceModel& device) const override {
    return cuda::Prelude(device.vector_bytes / 4);
  }

  // The device distributes the tasks.
  int Units(int, const DeviceModel& device) const override { return device.parallel_units; }

  absl::StatusOr<ResourcesBySymbol> ResourcesOf(const std::string& binary) const override {
    return ResourcesOfCubin(binary);
  }

  const char* SourceExtension() const override { return "cu"; }
  const char* BinaryExtension() const override { return "cubin"; }
};

}  // namespace

const Backend* CudaBackend() {
  static const Cuda backend;
  return &backend;
}

}  // namespace fusion
