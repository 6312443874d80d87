#include "compiler/cost/occupancy.h"

#include <algorithm>
#include <utility>

namespace fusion {
namespace {

// Registers are allocated to whole warps of 32 work-items, in pieces of 256; shared memory in pieces of 128 bytes (the
// CUDA occupancy calculator, compute capability 7.5 and later).
constexpr int64_t kWarp = 32, kRegisterPiece = 256, kSharedPiece = 128;
// No more are encoded in an instruction.
constexpr int kMostRegisters = 255;

int64_t RoundUp(int64_t value, int64_t piece) { return (value + piece - 1) / piece * piece; }

}  // namespace

std::optional<Occupancy> OccupancyOf(const GroupDemand& demand, const DeviceModel& device) {
  const UnitLimits& unit = device.unit_limits;
  if (!unit.Known()) return std::nullopt;
  const int64_t warps = std::max<int64_t>(1, RoundUp(demand.work_items, kWarp) / kWarp);
  const int64_t registers = std::clamp(demand.registers, 1, kMostRegisters);
  const int64_t warp_registers = RoundUp(registers * kWarp, kRegisterPiece);
  const int64_t shared = RoundUp(demand.shared_bytes + unit.reserved_bytes, kSharedPiece);
  // A later entry counts only where it allows less, so that the first of equal limits is named.
  const std::pair<const char*, int64_t> limits[] = {
      {"work-groups", unit.work_groups},
      {"work-items", unit.work_items / (warps * kWarp)},
      {"registers", unit.registers / warp_registers / warps},
      {"shared memory", shared == 0 ? unit.work_groups : unit.shared_bytes / shared},
  };
  Occupancy result{demand, unit.work_groups, 0, limits[0].first};
  for (const auto& [name, groups] : limits) {
    if (groups < result.groups) result.groups = static_cast<int>(groups), result.limit = name;
  }
  result.share = static_cast<double>(result.groups) * static_cast<double>(warps * kWarp) / unit.work_items;
  return result;
}

}  // namespace fusion
