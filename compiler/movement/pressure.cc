#include "compiler/movement/pressure.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/live_values.h"
#include "compiler/movement/traffic.h"

namespace fusion::movement {
namespace {

using te::Scalar;
using te::ScalarKind;
using te::ScalarNode;

// The longest encoding that kernels use: EVEX with an address.
constexpr int64_t kInstructionBytes = 8;

int64_t Instructions(const std::vector<Scalar>& body) {
  double count = 0;
  for (const Scalar& s : body) {
    te::Visit(s, [&](const ScalarNode& node) {
      if (node.kind == ScalarKind::kOp) count += te::GetOpInfo(node.op).cost;
      if (node.kind == ScalarKind::kLoad || node.kind == ScalarKind::kCast || node.kind == ScalarKind::kIf) count += 1;
    });
  }
  return static_cast<int64_t>(count);
}

struct StepPressure {
  int registers = 0;
  double spills = 0;  // values stored and loaded again, in all tasks
  int64_t code_bytes = 0;
};

StepPressure PressureOf(const Phase& phase, const Step& step, const DeviceModel& device) {
  StepPressure result;
  const auto* const tile = step.As<RegisterTile>();
  const int accumulators = AccumulatorsOf(step);
  const int body = accumulators + ValuesAtOnce(step.body);
  const int then = accumulators + ValuesAtOnce(step.then);
  result.registers = std::max(body, then);
  double stores = static_cast<double>(phase.tasks() * TurnsOf(step));
  for (const Loop& loop : step.loops) stores *= static_cast<double>(loop.axis.extent);
  const double points = stores * ReducedElements(step);
  auto spilled = [&](int registers) { return std::max(0, registers - device.vector_registers); };
  result.spills = points * spilled(body) + (step.then.empty() ? 0 : stores * spilled(then));
  const int64_t copies = tile != nullptr ? static_cast<int64_t>(accumulators) * tile->unroll : 1;
  const int64_t results = tile != nullptr ? accumulators : 1;
  result.code_bytes = kInstructionBytes * (Instructions(step.body) * copies + Instructions(step.then) * results);
  return result;
}

}  // namespace

Pressure EstimatePressure(const Kernel& kernel, const DeviceModel& device, int threads) {
  Pressure result;
  const double bandwidth = device.memory.empty() ? 1e11 : std::max(1.0, device.memory.front().bandwidth_bytes_per_s);
  for (const Phase& phase : kernel.phases) {
    const double units = std::max<double>(1, std::min<int64_t>({threads, device.parallel_units, phase.tasks()}));
    for (const Step& step : phase.steps) {
      if (step.Is<RoutineCall>() || step.Is<LibraryCall>() || IsRare(step)) continue;
      const StepPressure pressure = PressureOf(phase, step, device);
      result.registers = std::max(result.registers, pressure.registers);
      result.code_bytes = std::max(result.code_bytes, pressure.code_bytes);
      // A spilled f32 is stored and loaded again; a plain loop moves as many bytes for one value as vectors do for all
      // lanes.
      const double bytes = step.Is<ScalarLoops>() ? device.vector_bytes : 4;
      result.spill_ns += 1e9 * 2 * bytes * pressure.spills / bandwidth / units;
    }
  }
  return result;
}

absl::Status CheckPressure(const Kernel& kernel, const DeviceModel& device, int threads) {
  const Pressure pressure = EstimatePressure(kernel, device, threads);
  const double rest_ns = EstimateCost(kernel, device, threads).latency_ns - 1e9 * device.LaunchSeconds(threads);
  if (pressure.spill_ns > rest_ns) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the kernel keeps %d values in %d registers; spilling would take %.1f us, everything else takes %.1f us",
        pressure.registers, device.vector_registers, pressure.spill_ns / 1e3, rest_ns / 1e3));
  }
  // The model has one first-level cache; the instruction cache is about as large.
  const int64_t cache_bytes = device.memory.empty() ? 0 : device.memory.front().size_bytes;
  if (cache_bytes > 0 && pressure.code_bytes > cache_bytes) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the code of a loop takes about %d KiB and exceeds the instruction cache of %d KiB",
                        pressure.code_bytes >> 10, cache_bytes >> 10));
  }
  return absl::OkStatus();
}

}  // namespace fusion::movement
