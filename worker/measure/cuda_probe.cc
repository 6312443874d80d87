#include "worker/measure/cuda_probe.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/cost/target.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cuda/context.h"
#include "runtime/devices/cuda/cublas_lt.h"
#include "runtime/devices/cuda/cudnn.h"

namespace fusion {
namespace {

int Number(absl::string_view architecture) {
  int number = 0;
  return absl::ConsumePrefix(&architecture, "sm_") && absl::SimpleAtoi(architecture, &number) ? number : 0;
}

absl::StatusOr<DeviceModel> NearestStored(int capability) {
  std::string nearest;
  int best = -1;
  for (const std::string& target : StoredTargets()) {
    const Target stored = ParseTarget(target);
    const int number = Number(stored.architecture);
    if (stored.kind == "cuda" && number <= capability && number > best) best = number, nearest = target;
  }
  if (best < 0) return absl::UnimplementedError(absl::StrCat("no kernels are made for sm_", capability));
  return StoredDevice(nearest);
}

}  // namespace

absl::StatusOr<DeviceModel> ProbeCuda() {
  ASSIGN_OR_RETURN(const cuda::DeviceFacts facts, cuda::ChosenDevice());
  const int capability = 10 * facts.major + facts.minor;
  ASSIGN_OR_RETURN(DeviceModel model, NearestStored(capability));
  model.name = facts.name;
  model.isa = model.march = facts.architecture();
  model.toolchain = absl::StrCat("CUDA driver ", facts.driver / 1000, ".", facts.driver % 1000 / 10);
  model.persistent_groups =
      facts.cooperates != 0 ? model.persistent_groups / model.parallel_units * std::max(1, facts.multiprocessors) : 0;
  model.unit_limits = {facts.unit_registers, facts.unit_shared_bytes, facts.reserved_shared_bytes, facts.unit_threads,
                       facts.unit_blocks};
  const double units = model.parallel_units = std::max(1, facts.multiprocessors);
  // A multiprocessor has 64 f32 lanes up to compute capability 8.0 (Turing, A100), and 128 since then.
  const double lanes = capability <= 80 ? 64 : 128;
  if (facts.clock_khz > 0) model.fma_f32_flops_per_s = 2 * lanes * 1e3 * facts.clock_khz;
  // The memory transfers two words per cycle.
  const double dram = 2.0 * 1e3 * facts.memory_clock_khz * facts.memory_bus_bits / 8 / units;
  const double scale = dram / model.memory.back().bandwidth_bytes_per_s;
  for (MemoryLevel& level : model.memory) {
    if (level.name == "L2" && facts.l2_bytes > 0) level.size_bytes = facts.l2_bytes;
    if (level.shared && dram > 0) level.bandwidth_bytes_per_s *= scale;
  }
  // Kernels may use these libraries only where they are installed, so that both can be measured.
  model.product_library = cuda::ProductLibraryName().value_or("");
  model.convolution_library = cuda::ConvolutionLibraryName().value_or("");
  return model;
}

}  // namespace fusion
