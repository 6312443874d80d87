#include "compiler/movement/cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "absl/types/span.h"
#include "compiler/cost/byte_dots.h"
#include "compiler/cost/caches.h"
#include "compiler/cost/matrix_products.h"
#include "compiler/cost/traffic_time.h"
#include "compiler/movement/occupancy.h"
#include "compiler/movement/read_time.h"
#include "compiler/movement/rereads.h"
#include "compiler/movement/tile_reads.h"
#include "compiler/movement/vector_form.h"
#include "compiler/movement/work_groups.h"

namespace fusion::movement {
namespace {

// A plain loop takes this many times `lanes` as long as vectors do (the model's ratio also stands for missing
// unrolling).
constexpr double kScalarPenalty = 0.8;
// A comparison, the test for NaN and the choice. MaxPool 2 × 2 × 2 takes 1.6 cycles a tap.
constexpr double kScalarExtremeOps = 3;
// Scalar operations of a routine for each input element: comparisons of a sort, with their branches.
constexpr double kRoutineOps = 20;
// Operations for each element of a tile transposed in registers: a shuffle in each of log2(lanes) rounds, of which a
// cycle executes half as many as FMAs.
constexpr double kShuffleOps = 2;
// Costs relative to an FMA: a load from shared memory, and the copy of an element to it.
constexpr double kSharedLoadOps = 0.5, kStagedOps = 6;

// How many times longer a tile's reduction step takes than its FMAs alone: the loss through its shape and the
// remainders of its loops.
double TileSlowdown(const Step& step, const RegisterTile& tile, const DeviceModel& device) {
  int64_t rows = 1, vectors = 1;
  for (const Loop& loop : step.loops) {
    if (loop.axis.id == tile.row_axis) rows = loop.axis.extent;
    if (loop.axis.id == tile.outer_axis) vectors = loop.axis.extent;
  }
  const TileReads reads = ReadsOfTile(step.body[0], *step.reduction, tile.lane_axis, tile.row_axis);
  const auto along = [](int64_t extent, int64_t tile_extent, const auto& cost) {
    const int64_t whole = extent / tile_extent, rest = extent % tile_extent;
    return static_cast<double>(whole) * cost(tile_extent) + (rest > 0 ? cost(rest) : 0.0);
  };
  const double cycles = along(vectors, tile.outer_count, [&](int64_t v) {
    return along(rows, tile.row_count, [&](int64_t r) { return TileCycles(device, r, v, reads); });
  });
  return std::max(1.0, 2 * cycles / static_cast<double>(rows * vectors));
}

// The number of a work-group's tiles that have `spatial` results together.
double TilesOf(const Step& step, double spatial) {
  const size_t n = step.loops.size();
  return spatial / (MeanTrips(step.loops[n - 2]) * MeanTrips(step.loops[n - 1]));
}

// The cost, in FMAs, of loads from shared memory for each product of a threadgroup tile: each loaded value serves
// several products.
double ThreadgroupTileLoads(const ThreadgroupTile& tile, DType dtype, int lanes) {
  if (!tile.product.fragments()) {
    return (SharedLoadOps(tile.rows, lanes) + SharedLoadOps(tile.columns, lanes)) / (tile.rows * tile.columns);
  }
  const double words = DTypeBytes(dtype) / 4.0;
  return words * kSharedLoadOps * (1.0 / (tile.rows * tile.product.rows) + 1.0 / (tile.columns * tile.product.columns));
}

// The type of the operands' elements in shared memory.
DType KSliceType(const ThreadgroupTile& tile, const Kernel& kernel) {
  if (tile.shared_copies.empty()) return DType::kF32;
  return kernel.buffers[tile.shared_copies[0].stores[0].buffer].dtype;
}

bool ScattersLanes(const Step& step, const RegisterTile& tile, int64_t lanes) {
  return std::any_of(step.stores.begin(), step.stores.end(), [&](const Store& store) {
    return te::ClassifyLanes(store.address, te::Axis{tile.lane_axis, lanes}, lanes) != te::LaneAccess::kContiguous;
  });
}

struct Work {
  double ops = 0, special = 0, loads = 0;
};

// `guards_cost`: false for a register tile, which settles border tests outside the products.
Work ScalarWork(const te::Scalar& s, bool guards_cost) {
  Work work;
  te::Visit(s, [&](const te::ScalarNode& node) {
    if (node.kind == te::ScalarKind::kLoad) work.loads += 1;
    if (node.kind == te::ScalarKind::kOp) {
      const double cost = te::GetOpInfo(node.op).cost;
      work.ops += 1;
      work.special += std::max(0.0, cost - 1);
    }
    if (node.kind == te::ScalarKind::kCast || (node.kind == te::ScalarKind::kIf && guards_cost)) work.ops += 1;
  });
  return work;
}

// The number of loads whose lanes each fetch an element of their own.
double GatheredLoads(const Step& step, double lanes) {
  const auto* const map = step.As<VectorMap>();
  if (map == nullptr || step.loops.empty() || step.loops.back().axis.id != map->axis) return 0;
  double loads = 0;
  for (const te::Scalar& s : step.body) {
    loads += AlongAxisOf(s, step.loops.back().axis, static_cast<int64_t>(lanes)).gathered_loads;
  }
  return loads;
}

// The bytes of a scratch buffer that the step writes in a task: all of it, in a task loop with each turn; of a ring,
// all rows of its tensor.
double WrittenBytes(const Step& step, const Buffer& buffer) {
  const auto bytes = static_cast<double>(SizeBytes(buffer));
  if (!buffer.ring) return bytes * static_cast<double>(TurnsOf(step));
  return bytes * static_cast<double>(buffer.ring->of) / static_cast<double>(buffer.ring->rows);
}

// Time to write scratch that the core's own caches do not hold, and to read it again, through the next level.
double ScratchSeconds(const Kernel& kernel, const Phase& phase, const DeviceModel& device) {
  double bytes = 0;
  for (const Step& step : phase.steps) {
    for (const Store& store : step.stores) {
      const Buffer& buffer = kernel.buffers[store.buffer];
      if (buffer.scope == Scope::kBlock) bytes += WrittenBytes(step, buffer);
    }
  }
  return static_cast<double>(phase.tasks()) * 2 * bytes /
         device.CopyBandwidth(static_cast<double>(kernel.scratch_bytes));
}

// The time at the device's peak. Nobody knows how fast a library multiplies before it is measured, and a guess that is
// too slow would keep it from being tried.
double LibrarySeconds(const LibraryCall& call, const Kernel& kernel, const DeviceModel& device, int threads) {
  const MatrixProduct* fragments = FindMatrixProduct(device, kernel.buffers[OperandOf(call)].dtype);
  const double rate = std::max(device.fma_f32_flops_per_s, fragments != nullptr ? fragments->flops_per_s : 0.0);
  return 2 * MultiplicationsOf(call) / rate / std::max(1, std::min(threads, device.parallel_units));
}

class Estimator {
 public:
  Estimator(const Kernel& kernel, const DeviceModel& device, int threads)
      : kernel_(kernel),
        device_(device),
        threads_(threads),
        lanes_(device.vector_bytes / 4.0),
        fma_per_s_(device.fma_f32_flops_per_s / 2),
        special_scale_(device.special_cycles_ratio / te::GetOpInfo(te::Op::kExp).cost) {
    for (const Phase& phase : kernel.phases) {
      const LibraryCall* call = LibraryCallOf(phase);
      accesses_.push_back(call != nullptr ? AccessesOf(phase, *call) : AccessesOf(phase));
      Add(accesses_.back(), &all_);
    }
    double footprint = 0;
    for (size_t b = 0; b < kernel.buffers.size(); ++b) footprint += FootprintBytes(static_cast<int>(b));
    // Buffers are taken as cold: a kernel's operands come from outside the private caches.
    bandwidth_ = device.CopyBandwidth(4 * footprint);
  }

  std::vector<PhaseCost> Phases() {
    std::vector<PhaseCost> phases;
    for (const PhaseRange& range : kernel_.BetweenBarriers()) {
      const size_t p = range.first;
      const LibraryCall* call = LibraryCallOf(kernel_.phases[p]);
      PhaseCost& phase = phases.emplace_back();
      phase.wait_s =
          p == 0 ? device_.LaunchSeconds(threads_) : WaitBehind(LibraryCallOf(kernel_.phases[p - 1]) != nullptr);
      phase.compute_s = call != nullptr ? LibrarySeconds(*call, kernel_, device_, threads_) : ComputeBeside(range);
      Accesses accesses = accesses_[p];
      for (size_t other = p + 1; other < range.end; ++other) Add(accesses_[other], &accesses);
      phase.traffic = TrafficOf(kernel_, accesses, device_);
      phase.memory_units = MemoryUnits(device_, call != nullptr ? device_.parallel_units : GroupsOf(range));
      phase.trips = kernel_.TripsOf(p);
    }
    return phases;
  }

  KernelCost Estimate() {
    double waiting = 0, seconds = 0;
    for (const PhaseCost& phase : Phases()) {
      // Memory works while units compute; neither works while units wait for each other.
      const auto trips = static_cast<double>(phase.trips);
      cost_.compute_ns += trips * 1e9 * phase.compute_s;
      seconds += trips * std::max(phase.compute_s, BytesOf(phase.traffic) / bandwidth_ / phase.memory_units);
      waiting += phase.wait_s + (trips - 1) * device_.barrier_s;  // iterations follow each other behind a barrier
    }
    cost_.compulsory_bytes = TrafficBytes(kernel_, all_, device_);
    cost_.latency_ns = 1e9 * (waiting + seconds);
    return cost_;
  }

 private:
  // Bytes of a cache that the buffer occupies: those that loads reach, where nothing is stored.
  double FootprintBytes(int b) const {
    const Buffer& buffer = kernel_.buffers[b];
    const auto read = all_.read.find(b);
    if (read == all_.read.end() || all_.written.count(b) > 0) return static_cast<double>(SizeBytes(buffer));
    return TouchedBytes(buffer, read->second, device_);
  }

  // The seconds between a phase and the next.
  double WaitBehind(bool library) const {
    if (device_.PhasesShareLaunch()) return device_.BarrierSeconds(threads_);
    const bool one_or_other = device_.persistent_groups > 0;
    double waiting = 0;
    if (!library && (kernel_.persistent || !one_or_other)) waiting += device_.barrier_s;
    if (library || !kernel_.persistent) waiting += device_.launch_s;
    return waiting;
  }

  double UnitsOf(const Phase& phase) const {
    return std::max(1.0, std::min<double>({static_cast<double>(threads_), static_cast<double>(device_.parallel_units),
                                           static_cast<double>(phase.tasks())}));
  }

  // Returns the seconds for which the units compute phases that run beside each other: those of the longest phase, or
  // of all work on all units where that is more.
  double ComputeBeside(const PhaseRange& range) {
    if (range.end - range.first == 1) return Compute(kernel_.phases[range.first], range);
    double longest = 0, work = 0, units = 0;
    for (size_t p = range.first; p < range.end; ++p) {
      const double seconds = Compute(kernel_.phases[p], range), of_phase = UnitsOf(kernel_.phases[p]);
      longest = std::max(longest, seconds);
      work += seconds * of_phase;
      units += of_phase;
    }
    const double most = std::max(1, std::min(threads_, device_.parallel_units));
    return std::max(longest, work / std::min(units, most));
  }

  // Returns the seconds for which the units compute.
  double Compute(const Phase& phase, const PhaseRange& beside) {
    const double tasks = static_cast<double>(phase.tasks());
    const double units = UnitsOf(phase);
    const std::vector<RereadTime> rereads = RereadTimes(kernel_, phase, device_);
    double compute = 0;
    for (size_t s = 0; s < phase.steps.size(); ++s) {
      const Step& step = phase.steps[s];
      if (IsRare(step)) continue;
      const double spatial = tasks * static_cast<double>(TurnsOf(step)) * Trips(step.loops);
      const double arithmetic = StepOps(step, spatial) / fma_per_s_;
      compute += std::max(arithmetic, rereads[s].beside_s) + ExposedSeconds(rereads[s].apart_s, arithmetic);
      AddSharedCopies(step, spatial, &compute);
      if (const auto* routine = step.As<RoutineCall>()) compute += RoutineOps(*routine) / fma_per_s_;
    }
    compute += TaskOperandSeconds(kernel_, phase, device_);
    const int64_t private_bytes = LargestPrivateBytes(device_);
    if (private_bytes > 0 && kernel_.scratch_bytes > private_bytes) compute += ScratchSeconds(kernel_, phase, device_);
    if (device_.unit_limits.Known()) {
      const double at_once = GroupsAtOnce(beside);
      return std::max(compute * GroupsSlowdown(phase, units, at_once), SliceSeconds(phase, units, at_once));
    }
    const double waves = std::ceil(tasks / units) * units / std::max(1.0, tasks);
    return compute / units * waves;
  }

  // The time in which a unit with most work-groups waits for the K-slices of its tiles, one after another; those of
  // work-groups that run at once come at the same time.
  double SliceSeconds(const Phase& phase, double units, double at_once) const {
    double slices = 0;
    for (const Step& step : phase.steps) {
      if (!step.Is<ThreadgroupTile>()) continue;
      const double tiles = TilesOf(step, static_cast<double>(TurnsOf(step)) * Trips(step.loops));
      slices += tiles * Product(step.reduction->axes) / static_cast<double>(step.reduction->axes.back().extent);
    }
    const double groups = std::max(1.0, static_cast<double>(phase.tasks()));
    const double of_unit = std::ceil(groups / std::min(units, groups));
    const double waves = std::ceil(of_unit / std::min(of_unit, at_once));
    const double cycle = 2 * kItemsThatFillAUnit / device_.fma_f32_flops_per_s;
    return waves * slices * kSliceLatencyCycles * cycle;
  }

  // The work-groups of phases that run beside each other.
  double GroupsOf(const PhaseRange& range) const {
    const int work_items = WorkItems(kernel_, device_.work_group_size);
    int64_t groups = 0;
    for (size_t p = range.first; p < range.end; ++p) groups += WorkGroups(kernel_, kernel_.phases[p], work_items);
    return static_cast<double>(groups);
  }

  // The work-groups of a launch that a unit runs at once.
  double GroupsAtOnce(const PhaseRange& beside) const {
    const auto phases = absl::MakeConstSpan(kernel_.phases);
    const auto launched = kernel_.persistent ? phases : phases.subspan(beside.first, beside.end - beside.first);
    return std::max(1.0, static_cast<double>(OccupancyOf(DemandOf(kernel_, launched, device_), device_)->groups));
  }

  // The part of the phase's computation, at the rate of one full unit, that the unit with most work-groups spends. As
  // many of them as the unit keeps run at once, and few work-items do not fill it.
  double GroupsSlowdown(const Phase& phase, double units, double most_at_once) const {
    const int work_items = WorkItems(kernel_, device_.work_group_size);
    const double groups = std::max(1.0, static_cast<double>(WorkGroups(kernel_, phase, work_items)));
    const double of_unit = std::ceil(groups / std::min(units, groups));
    const double at_once = std::min(of_unit, most_at_once);
    return of_unit / groups / std::min(1.0, at_once * work_items / kItemsThatFillAUnit);
  }

  // Returns the step's operations in FMAs, and counts those that any schedule needs.
  double StepOps(const Step& step, double spatial) {
    const double points = spatial * ReducedElements(step);
    const auto* const prefix = step.As<PrefixPass>();
    const auto* const tile = step.As<RegisterTile>();
    const Work body = WorkOf(step.body, tile == nullptr);
    const Work then = WorkOf(step.then, /*guards_cost=*/true);
    const double body_ops = BodyOps(step, body);
    const double slowdown = tile != nullptr ? TileSlowdown(step, *tile, device_) : 1;
    double ops = points * (slowdown * body_ops + body.special) + spatial * (then.ops + then.special);
    cost_.fma += points * body_ops + spatial * then.ops;
    cost_.special += points * body.special + spatial * then.special;
    if (tile != nullptr && ScattersLanes(step, *tile, static_cast<int64_t>(lanes_))) {
      ops += spatial * device_.ports.scatter_cycles * 2 * lanes_;
    }
    if (step.Is<BlockedTranspose>()) ops += spatial * kShuffleOps * std::log2(lanes_);
    // Work-items that run in step are the lanes, whatever each of them does.
    const bool plain =
        step.Is<ScalarLoops>() || step.Is<RoutineCall>() || (prefix != nullptr && prefix->vector_axis < 0);
    const bool one_lane = plain && !device_.WorkItemsAreLanes();
    // A maximum of single elements also looks for NaN, before the next one can begin. Along one axis the C compiler
    // unrolls the taps and finds vectors of results by itself; several loops inside each other it leaves as they are.
    const bool extreme =
        step.reduction && step.reduction->axes.size() > 1 &&
        (step.reduction->kind == te::ReductionKind::kMax || step.reduction->kind == te::ReductionKind::kMin);
    if (one_lane && extreme && IsFloat(step.reduction->acc)) ops *= kScalarExtremeOps;
    if (one_lane) ops *= lanes_ * kScalarPenalty;
    // Outside the register tile every load is an instruction beside the arithmetic.
    if (const auto* threadgroup = step.As<ThreadgroupTile>()) {
      ops += points * ThreadgroupTileLoads(*threadgroup, KSliceType(*threadgroup, kernel_), static_cast<int>(lanes_));
    } else if (tile == nullptr) {
      ops += 0.5 * points * (body.loads * (one_lane ? lanes_ : 1) + GatheredLoads(step, lanes_) * 2 * lanes_);
    }
    return ops;
  }

  Work WorkOf(const std::vector<te::Scalar>& scalars, bool guards_cost) const {
    Work sum;
    for (const te::Scalar& s : scalars) {
      const Work work = ScalarWork(s, guards_cost);
      sum.ops += work.ops;
      sum.special += special_scale_ * work.special;
      sum.loads += work.loads;
    }
    return sum;
  }

  // Returns the operations of the body at one point. One accumulated product is one FMA.
  double BodyOps(const Step& step, const Work& body) const {
    if (const auto* threadgroup = step.As<ThreadgroupTile>()) {
      const MatrixProduct* product =
          FindMatrixProduct(device_, KSliceType(*threadgroup, kernel_), threadgroup->product.from_memory);
      const bool fragments = product != nullptr && threadgroup->product.fragments();
      return fragments ? device_.fma_f32_flops_per_s / product->flops_per_s : 1;
    }
    if (const auto* tile = step.As<RegisterTile>(); tile != nullptr && tile->dot_axis >= 0) {
      return (HasByteDots(device_) ? 1 : kWidenedDotOps) / kDotLength;
    }
    return std::max(step.reduction ? 1.0 : 0.5, body.ops);
  }

  void AddSharedCopies(const Step& step, double spatial, double* compute) const {
    for (const Step& shared_copy : SharedCopiesOf(step)) {
      const double elements = TilesOf(step, spatial) * Product(step.reduction->axes) * Trips(shared_copy.loops) /
                              static_cast<double>(step.reduction->axes.back().extent);
      *compute += elements * kStagedOps / fma_per_s_;
    }
  }

  double RoutineOps(const RoutineCall& routine) const {
    double elements = 0;
    for (int b : routine.inputs) elements += static_cast<double>(kernel_.buffers[b].elements);
    return elements * kRoutineOps * lanes_;
  }

  const Kernel& kernel_;
  const DeviceModel& device_;
  const int threads_;
  const double lanes_, fma_per_s_;
  const double special_scale_;  // the table of operations has the costs of one core; this is the device's
  double bandwidth_ = 0;
  KernelCost cost_;
  std::vector<Accesses> accesses_;  // by phase
  Accesses all_;
};

}  // namespace

std::vector<double> BytesByLevel(const Kernel& kernel, const DeviceModel& device) {
  std::vector<double> bytes(device.memory.size(), 0);
  if (bytes.empty()) return bytes;
  const auto add = [&](double footprint, double moved) {
    size_t level = 0;
    while (level + 1 < device.memory.size() &&
           0.75 * static_cast<double>(device.memory[level].size_bytes) < footprint) {
      ++level;
    }
    bytes[level] += moved;
  };
  double footprint = 0;
  for (const Buffer& buffer : kernel.buffers) {
    if (IsArgument(buffer)) footprint += static_cast<double>(SizeBytes(buffer));
  }
  for (const Phase& phase : kernel.phases) {
    const LibraryCall* call = LibraryCallOf(phase);
    Accesses accesses = call != nullptr ? AccessesOf(phase, *call) : AccessesOf(phase);
    // Buffers that only an index or a condition reads.
    VisitSteps(phase, [&](const Step& step) {
      if (IsRare(step)) return;
      VisitBuffers(step, [&](int buffer) {
        if (accesses.written.count(buffer) == 0) accesses.read.emplace(buffer, kWholeBuffer);
      });
    });
    for (const int buffer : accesses.written) accesses.read.erase(buffer);
    add(4 * footprint, TrafficBytes(kernel, accesses, device));
    for (const Reread& reread : RereadsOf(kernel, phase, device)) add(reread.footprint, reread.bytes);
    std::map<int, double> scratch_of;
    for (const Step& step : phase.steps) {
      for (const Store& store : step.stores) {
        const Buffer& buffer = kernel.buffers[store.buffer];
        if (buffer.scope != Scope::kBlock) continue;
        scratch_of[store.buffer] = std::max(scratch_of[store.buffer], WrittenBytes(step, buffer));
      }
    }
    double scratch = 0;
    for (const auto& [buffer, written] : scratch_of) scratch += written;
    // Scratch is written and read again.
    add(static_cast<double>(kernel.scratch_bytes), 2 * scratch * static_cast<double>(phase.tasks()));
  }
  return bytes;
}

std::vector<PhaseCost> EstimatePhases(const Kernel& kernel, const DeviceModel& device, int threads) {
  return Estimator(kernel, device, threads).Phases();
}

KernelCost EstimateCost(const Kernel& kernel, const DeviceModel& device, int threads) {
  return Estimator(kernel, device, threads).Estimate();
}

}  // namespace fusion::movement
