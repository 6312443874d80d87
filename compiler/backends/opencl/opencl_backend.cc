#include "compiler/backends/opencl/opencl_backend.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/opencl/prelude.h"
#include "compiler/backends/opencl/print_kernel.h"
#include "compiler/movement/work_groups.h"

namespace fusion {
namespace {

class OpenCl : public Backend {
 public:
  absl::Status CheckSupported(const movement::Kernel& kernel) const override {
    const std::set<std::string> routines = RoutinesOf(kernel);
    if (routines.empty()) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat("target opencl has no routine ", absl::StrJoin(routines, ", ")));
  }

  Instructions InstructionsOf(const movement::Kernel&, const DeviceModel& device) const override {
    return {device.isa, device.march};
  }

  std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol,
                          const DeviceModel& device) const override {
    return opencl::PrintKernel(kernel, symbol, device);
  }

  std::vector<int64_t> LaunchedTasks(const movement::Kernel& kernel, const DeviceModel& device) const override {
    return movement::LaunchedWorkGroups(kernel, device.work_group_size);
  }

  std::string Preamble(const std::set<std::string>&, const DeviceModel& device) const override {
    return opencl::Prelude(device.vector_bytes / 4, device.work_group_size > 1);
  }

  // The driver distributes the tasks.
  int Units(int, const DeviceModel& device) const override { return device.parallel_units; }

  const char* SourceExtension() const override { return "cl"; }
  const char* BinaryExtension() const override { return "clbin"; }
};

}  // namespace

const Backend* OpenClBackend() {
  static const OpenCl backend;
  return &backend;
}

}  // namespace fusion
