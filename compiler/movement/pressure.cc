#include "compiler/movement/pressure.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_format.h"
#include "compiler/movement/cost.h"

namespace fusion::movement {
namespace {

using te::Scalar;
using te::ScalarKind;
using te::ScalarNode;

// The longest encoding that kernels use: EVEX with an address.
constexpr int64_t kInstructionBytes = 8;

bool TakesRegister(const ScalarNode& node) {
  return node.kind != ScalarKind::kImm && node.kind != ScalarKind::kFromIndex && node.kind != ScalarKind::kAcc;
}

// Counts the values that straight-line code keeps at once. Operands that need most registers are evaluated first (Sethi
// and Ullman, 1970), and a shared value lives until its last use.
class LiveValues {
 public:
  explicit LiveValues(const std::vector<Scalar>& roots) {
    for (const Scalar& root : roots) Count(*root);
    for (const Scalar& root : roots) {
      Evaluate(*root);
      Use(*root);  // the store is its last use
    }
  }
  int most() const { return most_; }

 private:
  struct Info {
    int uses = 0, need = 0;
    bool done = false;
  };
  int Count(const ScalarNode& node) {
    Info& info = info_[&node];
    if (info.uses++ > 0) return info.need;
    std::vector<int> needs;
    for (const Scalar& arg : node.args) needs.push_back(Count(*arg));
    std::sort(needs.rbegin(), needs.rend());
    int need = TakesRegister(node) ? 1 : 0;
    for (size_t i = 0; i < needs.size(); ++i) need = std::max(need, needs[i] + static_cast<int>(i));
    return info_[&node].need = need;
  }
  void Evaluate(const ScalarNode& node) {
    if (info_[&node].done) return;
    info_[&node].done = true;
    std::vector<const ScalarNode*> args;
    for (const Scalar& arg : node.args) args.push_back(arg.get());
    std::stable_sort(args.begin(), args.end(),
                     [&](const ScalarNode* a, const ScalarNode* b) { return info_[a].need > info_[b].need; });
    for (const ScalarNode* arg : args) Evaluate(*arg);
    for (const ScalarNode* arg : args) Use(*arg);
    if (TakesRegister(node)) most_ = std::max(most_, ++live_);
  }
  void Use(const ScalarNode& node) {
    if (--info_[&node].uses == 0 && TakesRegister(node)) --live_;
  }

  std::unordered_map<const ScalarNode*, Info> info_;
  int live_ = 0, most_ = 0;
};

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

int AccumulatorsOf(const Step& step) {
  const auto* const tile = step.As<RegisterTile>();
  return tile != nullptr ? tile->row_count * tile->outer_count : step.reduction ? 1 : 0;
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
  const int body = accumulators + LiveValues(step.body).most();
  const int then = accumulators + LiveValues(step.then).most();
  result.registers = std::max(body, then);
  double stores = static_cast<double>(phase.tasks());
  for (const Loop& loop : step.loops) stores *= static_cast<double>(loop.axis.extent);
  double points = stores;
  if (step.reduction) {
    for (const te::Axis& axis : step.reduction->axes) points *= static_cast<double>(axis.extent);
  }
  auto spilled = [&](int registers) { return std::max(0, registers - device.vector_registers); };
  result.spills = points * spilled(body) + (step.then.empty() ? 0 : stores * spilled(then));
  const int64_t copies = tile != nullptr ? static_cast<int64_t>(accumulators) * tile->unroll : 1;
  const int64_t results = tile != nullptr ? accumulators : 1;
  result.code_bytes = kInstructionBytes * (Instructions(step.body) * copies + Instructions(step.then) * results);
  return result;
}

}  // namespace

int ValuesAtOnce(const Step& step) {
  return AccumulatorsOf(step) + std::max(LiveValues(step.body).most(), LiveValues(step.then).most());
}

Pressure EstimatePressure(const Kernel& kernel, const DeviceModel& device, int threads) {
  Pressure result;
  const double bandwidth = device.memory.empty() ? 1e11 : std::max(1.0, device.memory.front().bandwidth_bytes_per_s);
  for (const Phase& phase : kernel.phases) {
    const double units = std::max<double>(1, std::min<int64_t>({threads, device.parallel_units, phase.tasks()}));
    for (const Step& step : phase.steps) {
      if (step.Is<RoutineCall>() || step.Is<LibraryCall>()) continue;
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
