#include "compiler/movement/occupancy.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/movement/live_values.h"
#include "compiler/movement/work_groups.h"

namespace fusion::movement {
namespace {

// Registers as NVRTC 13 allocates them, fitted to the kernels of fourteen models for sm_75 to sm_90.
//
// A function has places, loop counters and what addresses have in common.
constexpr double kFunction = 18;
// A buffer that an element needs: its pointer of two registers, and an address.
constexpr double kBuffer = 2.7, kAddressTerm = 0.28;
constexpr int kMostBuffers = 4;  // more are alternatives, of which one is read at a time
// A value of an element: of a vector, whose lanes are not all alive at once, and alone.
constexpr double kVectorValue = 3.2, kScalarValue = 2.3;
constexpr int kMostValues = 6;
// The partial results of a reduction that several work-items share.
constexpr double kTeam = 5.5;
// Turns of a row's loop that NVRTC unrolls, and what such a function has beside their loads.
constexpr double kMostTurnsAtOnce = 16, kRowFunction = 14;
// A threadgroup tile beside its accumulators: operands of steps that the compiler overlaps, and addresses of slices.
constexpr double kThreadgroupTile = 38;
// A copy of a slice whose turns are all unrolled keeps their addresses from one slice to the next; a longer one
// computes them in a loop. A vector that is not copied asynchronously stays in registers until the slice before has
// been read.
constexpr int kLoadsAtOnce = 4;  // as in backends/text/print_threadgroup_tile.cc
constexpr double kScalarTurn = 5.4, kVectorTurn = 1.7, kLongCopy = 2.5, kWaitingVector = 4.3, kCopyTerm = 0.035;
constexpr int kPlainTerms = 4;  // terms of an address without borders
// The grid barrier of a persistent kernel, and its loop over tasks.
constexpr double kPersistent = 10;
// Unrolling of a short window by the compiler, where the text has none.
constexpr int64_t kShortReduction = 64, kUnrolled = 8, kLoadedAtOnce = 128;
constexpr int kMostRegisters = 255;
// The text declares a line more than its buffers need (backends/cuda/print_kernel.cc).
constexpr int64_t kScratchSlack = 64;

// Terms of an index, and those inside its quotients.
int TermsOf(const te::Index& index) {
  int terms = 0;
  for (const te::Index::Part& part : index.parts()) terms += 1 + (part.term.inner ? TermsOf(*part.term.inner) : 0);
  return terms;
}

// Registers for the addresses, conditions and loads of some expressions.
struct Reads {
  int terms = 0;
  std::set<int> buffers;
};

Reads ReadsOf(const std::vector<te::Scalar>& scalars) {
  Reads reads;
  std::set<const te::ScalarNode*> seen;
  const auto note = [&](const te::ScalarNode& node) {
    if (!seen.insert(&node).second) return;
    if (node.kind == te::ScalarKind::kLoad) {
      reads.buffers.insert(node.tensor);
      reads.terms += TermsOf(node.indices[0]);
    }
    for (const te::Comparison& c : node.pred) reads.terms += TermsOf(c.lhs) + TermsOf(c.rhs);
  };
  for (const te::Scalar& s : scalars) te::Visit(s, note);
  return reads;
}

int LanesOf(const DeviceModel& device) { return device.vector_bytes / 4; }

double Points(const std::vector<Loop>& loops) {
  double points = 1;
  for (const Loop& loop : loops) points *= static_cast<double>(loop.axis.extent);
  return points;
}

double CopyRegisters(const Step& copy, bool waits, int work_items, int lanes) {
  const bool vectors = copy.Is<VectorMap>();
  const double turns = std::ceil(Points(copy.loops) / work_items / (vectors ? lanes : 1));
  double registers = kLongCopy;
  if (turns <= kLoadsAtOnce) registers = turns * (vectors ? kVectorTurn : kScalarTurn);
  registers *= 1 + kCopyTerm * std::max(0, ReadsOf(copy.body).terms - kPlainTerms);
  if (waits && vectors) registers += kWaitingVector * std::min<double>(turns, kLoadsAtOnce);
  return registers;
}

double ThreadgroupTileRegisters(const ThreadgroupTile& tile, int work_items, const DeviceModel& device) {
  const bool waits = tile.buffers == 1 || !device.async_copies;
  const FragmentProduct& product = tile.product;
  double registers = kThreadgroupTile;
  registers += static_cast<double>(tile.rows * tile.columns * product.rows * product.columns / product.work_items);
  for (const Step& copy : tile.shared_copies) {
    registers += CopyRegisters(copy, waits, work_items, LanesOf(device));
  }
  return registers;
}

// The operands of all unrolled steps are loaded before the first is multiplied.
double RegisterTileRegisters(const Step& step, const RegisterTile& tile, int lanes) {
  const bool reduces = step.reduction && !step.reduction->axes.empty();
  const int64_t trips = reduces ? step.reduction->axes.back().extent : 1;
  const int64_t vectors = tile.outer_count, rows = tile.row_count;
  const int64_t loaded = vectors * lanes + (rows > 1 ? rows : 0);
  int64_t unrolled = tile.unroll;
  if (unrolled == 1 && trips <= kShortReduction)
    unrolled = std::min(trips, std::max(kUnrolled, kLoadedAtOnce / loaded));
  return kFunction + static_cast<double>(rows * vectors * lanes + unrolled * loaded);
}

// The vectors of a row that its work-items reduce together, all of which a work-item loads before it adds them up; 0
// where there are too many.
double RowRegisters(const Step& step, int work_items, int lanes) {
  const int team = Points(step.loops) > 1 ? std::min(kRowTeam, work_items) : work_items;
  const double turns = std::ceil(static_cast<double>(step.reduction->axes.back().extent) / lanes / team);
  if (turns > kMostTurnsAtOnce) return 0;
  return kRowFunction + turns * lanes * static_cast<double>(ReadsOf(step.body).buffers.size());
}

double StepRegisters(const Step& step, int work_items, const DeviceModel& device) {
  if (step.Is<LibraryCall>() || step.Is<RoutineCall>()) return 0;
  if (const auto* tile = step.As<ThreadgroupTile>()) return ThreadgroupTileRegisters(*tile, work_items, device);
  if (const auto* tile = step.As<RegisterTile>()) return RegisterTileRegisters(step, *tile, LanesOf(device));
  const bool scalar = step.Is<ScalarLoops>();
  double registers = kFunction + (scalar ? kScalarValue : kVectorValue) * std::min(kMostValues, ValuesAtOnce(step));
  registers += kBuffer * std::min(kMostBuffers, static_cast<int>(ReadsOf(step.body).buffers.size()));
  int terms = ReadsOf(step.then).terms;
  for (const Store& store : step.stores) terms += TermsOf(store.address);
  registers += kAddressTerm * terms;
  if (step.reduction && !scalar) registers += kTeam;
  if (step.Is<RowReduction>()) registers = std::max(registers, RowRegisters(step, work_items, LanesOf(device)));
  return registers;
}

}  // namespace

GroupDemand DemandOf(const Kernel& kernel, absl::Span<const Phase> phases, const DeviceModel& device) {
  GroupDemand demand;
  demand.work_items = WorkItems(kernel, device.work_group_size);
  double registers = 0;
  for (const Phase& phase : phases) {
    for (const Step& step : phase.steps) {
      registers = std::max(registers, StepRegisters(step, demand.work_items, device));
    }
  }
  if (kernel.persistent) registers += kPersistent;
  demand.registers = std::min(kMostRegisters, static_cast<int>(std::lround(registers)));
  demand.shared_bytes = kernel.scratch_bytes > 0 ? kernel.scratch_bytes + kScratchSlack : 0;
  return demand;
}

std::optional<Occupancy> EstimateOccupancy(const Kernel& kernel, const DeviceModel& device) {
  if (!device.unit_limits.Known()) return std::nullopt;
  std::optional<Occupancy> least;
  const absl::Span<const Phase> phases(kernel.phases);
  for (const PhaseRange& launch : LaunchesOf(kernel)) {
    if (LibraryCallOf(phases[launch.first]) != nullptr) continue;
    const auto launched = phases.subspan(launch.first, launch.end - launch.first);
    const std::optional<Occupancy> occupancy = OccupancyOf(DemandOf(kernel, launched, device), device);
    if (occupancy && (!least || occupancy->share < least->share)) least = occupancy;
  }
  return least;
}

}  // namespace fusion::movement
