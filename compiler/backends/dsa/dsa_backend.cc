#include "compiler/backends/dsa/dsa_backend.h"

#include "runtime/base/check.h"

namespace fusion {
namespace {

class Dsa : public Backend {
 public:
  bool RunsWholePrograms() const override { return true; }
  bool IsSimulated() const override { return true; }

  absl::Status CheckSupported(const movement::Kernel&) const override {
    return absl::UnimplementedError("target dsa runs whole programs; it has no kernels");
  }
  Instructions InstructionsOf(const movement::Kernel&, const DeviceModel& device) const override {
    return {device.isa, device.march};
  }
  std::string PrintKernel(const movement::Kernel&, const std::string&, const DeviceModel&) const override {
    FUSION_CHECK(false, "target dsa prints no kernels");
    return "";
  }
  std::vector<int64_t> LaunchedTasks(const movement::Kernel&, const DeviceModel&) const override { return {}; }
  std::string Preamble(const std::set<std::string>&, const DeviceModel&) const override { return ""; }
  int Units(int, const DeviceModel& device) const override { return device.parallel_units; }
  const char* SourceExtension() const override { return "dsa"; }
  const char* BinaryExtension() const override { return "dsa"; }
};

}  // namespace

const Backend* DsaBackend() {
  static const Dsa backend;
  return &backend;
}

}  // namespace fusion
