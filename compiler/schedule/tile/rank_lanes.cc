#include "compiler/schedule/tile/rank_lanes.h"

#include <algorithm>

namespace fusion {
namespace {

using te::Axis;

// A lane axis that the model estimates slower than the best by more than this factor is not worth a measurement.
constexpr double kLanesWorthTrying = 2;

// Results of one task that read the same element of `load`. The rows of a task's tiles run along one axis; all other
// axes are shared out among tasks, each of which packs its operand again.
double RowReuse(const Operand& load, const Axis& lane, const std::vector<Axis>& spatial) {
  double most = 1;
  for (const Axis& axis : spatial) most = std::max(most, Reuse(load, lane, {axis}));
  return most;
}

// Rows whose broadcasts come from one line: adjacent ones, at most as many as a tile has, which is about eight.
int64_t RowsOfALine(const Operand& load, const Axis& lane, const std::vector<Axis>& spatial) {
  constexpr int64_t kRows = 8;
  int64_t most = 1;
  for (const Axis& axis : spatial) {
    int64_t stride = 0;
    if (axis.id == lane.id || !load.address.AffineIn(axis.id, &stride) || stride != 1) continue;
    most = std::max(most, std::min(axis.extent, kRows));
  }
  return most;
}

}  // namespace

std::vector<LaneChoice> RankLanes(const Nest& nest, const std::vector<Operand>& loads, int64_t lanes,
                                  const movement::Kernel& kernel, const PortModel& ports, bool in_task) {
  std::vector<LaneChoice> ranked;
  const double points = Extent(nest.reduction->axes);
  for (const Axis& axis : nest.axes) {
    if (PredUses(nest, axis.id) || axis.extent * 4 < lanes || nest.limits.count(axis.id) || nest.LimitsUse(axis))
      continue;
    const int64_t whole_vectors = (axis.extent + lanes - 1) / lanes;
    const auto vectors = static_cast<double>(whole_vectors);
    // Half-empty vectors waste their lanes.
    const double arithmetic = points * vectors / (ports.fmas_per_cycle * static_cast<double>(axis.extent));
    bool varying = false, impossible = false;
    LaneChoice choice{axis, arithmetic};
    for (const Operand& load : loads) {
      switch (UseOfLanes(load, axis, lanes, nest.axes, kernel)) {
        case LaneUse::kBroadcast:
          if (StridesOverReduction(nest, load)) {
            // Bytes that are not adjacent along the reduction feed no dot product, even if rows share their line.
            const int64_t sharing = DTypeBytes(load.dtype) == 1 ? 1 : RowsOfALine(load, axis, nest.axes);
            choice.cycles += ports.strided_broadcast * arithmetic / static_cast<double>(sharing);
          }
          break;
        case LaneUse::kVector:
        case LaneUse::kPackConstant:
          varying = true;
          break;
        case LaneUse::kPackRuntime: {
          double packed = 1;
          for (const Axis& reduction : nest.reduction->axes) {
            if (load.address.UsesAxis(reduction.id)) packed *= static_cast<double>(reduction.extent);
          }
          const bool transposed = load.dtype == DType::kF32 && !StridesOverReduction(nest, load);
          const double cycles = transposed ? ports.transpose_cycles : ports.pack_cycles;
          choice.cycles += cycles * packed / (in_task ? Reuse(load, axis, nest.axes) : RowReuse(load, axis, nest.axes));
          varying = true;
          break;
        }
        case LaneUse::kImpossible:
          impossible = true;
          break;
      }
    }
    if (impossible || !varying) continue;
    for (const movement::Store& store : nest.stores) {
      if (te::ClassifyLanes(store.address, axis, lanes) != te::LaneAccess::kContiguous) {
        choice.cycles += ports.scatter_cycles;
      }
    }
    ranked.push_back(choice);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const LaneChoice& a, const LaneChoice& b) { return a.cycles < b.cycles; });
  std::erase_if(ranked, [&](const LaneChoice& c) { return c.cycles > kLanesWorthTrying * ranked[0].cycles; });
  return ranked;
}

}  // namespace fusion
