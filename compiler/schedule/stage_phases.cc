#include "compiler/schedule/stage_phases.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/schedule/library/library_stage.h"
#include "compiler/schedule/nest/column_reduction.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/nest/split_ranges.h"
#include "compiler/schedule/nest/vectorised_reduction.h"
#include "compiler/schedule/rewrite/blocked_transpose.h"
#include "compiler/schedule/stitch/task_boxes.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/threadgroup/threadgroup_shape.h"
#include "compiler/schedule/threadgroup/threadgroup_tile.h"
#include "compiler/schedule/tile/register_tile.h"
#include "compiler/schedule/vector/prefetch_reads.h"
#include "compiler/schedule/vector/streaming_stores.h"
#include "compiler/schedule/vector/vectorize.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;

bool SameGrid(const movement::Phase& a, const movement::Phase& b) {
  return std::equal(a.grid.begin(), a.grid.end(), b.grid.begin(), b.grid.end(),
                    [](const Axis& x, const Axis& y) { return x.id == y.id && x.extent == y.extent; });
}

// On a device of work-groups: adds the product as a threadgroup tile, where that is possible and chosen.
bool AddThreadgroupTile(Nest nest, KernelDraft* draft) {
  StraightenForGroup(&nest, draft);
  const movement::Kernel before = draft->kernel;
  const ChoiceLog choices_before = *draft->choices;
  absl::StatusOr<movement::Phase> tiled =
      ThreadgroupTilePhase(std::move(nest), draft->device, &draft->kernel, &draft->axes, draft->choices,
                           draft->program.tes.size() == 1 ? TileHome::kKernel : TileHome::kGrid);
  if (tiled.ok()) {
    draft->kernel.phases.push_back(*std::move(tiled));
    return true;
  }
  draft->kernel = before;
  *draft->choices = choices_before;
  return false;
}

// Returns true where the column sums complete the nest; otherwise `nest` is what is left to do.
bool AddColumnSums(SummedRows rows, KernelDraft* draft, Nest* nest) {
  std::optional<ColumnSums> sums =
      ReduceColumns(*nest, rows, draft->device, &draft->kernel, &draft->axes, draft->choices);
  if (!sums) return false;
  draft->kernel.phases.push_back(std::move(sums->phase));
  if (!sums->rest) return true;
  *nest = *std::move(sums->rest);
  return false;
}

// The loop along which values are passed on stays whole; the others are shared out.
void AddPrefixPhase(const te::Te& te, movement::Step step, KernelDraft* draft) {
  const movement::Loop along = step.loops.back();
  step.loops.pop_back();
  movement::Phase phase;
  if (!step.loops.empty()) {
    const double per_row = CostPerPoint(te) * static_cast<double>(along.axis.extent);
    MoveLoopsToGrid(&step, per_row, draft->device, &draft->axes, draft->choices, &phase.grid);
  }
  step.loops.push_back(along);
  phase.steps.push_back(std::move(step));
  draft->kernel.phases.push_back(std::move(phase));
}

// A map whose rows have borders: inside a task each range of the row becomes a step, if that puts at least half of
// the row in vectors. Changes nothing on failure.
bool AddPeeled(const Nest& nest, double per_point, KernelDraft* draft, movement::Phase* phase) {
  if (!draft->target.loops_for_ranges || nest.reduction || nest.axes.empty()) return false;
  const KernelDraft::Saved before = draft->Save();
  const Axis row = nest.axes.back();
  movement::Step whole = StepOf(nest, draft->device);
  MoveLoopsToGrid(&whole, per_point, draft->device, &draft->axes, draft->choices, &phase->grid);
  int64_t in_vectors = 0;
  if (!whole.loops.empty() && whole.loops.back().axis.id == row.id) {
    Nest in_task = nest;
    std::erase_if(in_task.axes, [&](const Axis& axis) {
      return std::any_of(phase->grid.begin(), phase->grid.end(), [&](const Axis& g) { return g.id == axis.id; });
    });
    for (const Nest& part : PeelInnermost(std::move(in_task), &draft->axes)) {
      phase->steps.push_back(StepOf(part, draft->device));
      PrefetchAhead(draft->device, draft->kernel, per_point, &phase->steps.back());
      if (phase->steps.back().Is<movement::VectorMap>()) in_vectors += part.axes.back().extent;
    }
  }
  if (2 * in_vectors >= row.extent) return true;
  draft->Restore(before);
  *phase = movement::Phase();
  return false;
}

// A stage without elements: loops that never run.
void AddEmptyPhase(const Nest& nest, KernelDraft* draft) {
  movement::Phase phase;
  movement::Step step = StepOf(nest, draft->device);
  for (const movement::Loop& loop : step.loops) phase.grid.push_back(loop.axis);
  step.loops.clear();
  step.strategy = movement::ScalarLoops();
  phase.steps.push_back(std::move(step));
  draft->kernel.phases.push_back(std::move(phase));
}

// On a device of work-groups: makes a product of few rows or columns, which is no threadgroup tile, a sum along rows
// that neighbouring work-items share. As register tiles of single work-items it would leave most of the device idle,
// and neighbours would read far from each other. Returns false, and changes nothing, where that is not possible.
bool ShareRows(KernelDraft* draft, Nest* nest) {
  const int items = draft->target.items_of_a_row;
  if (items == 1 || !nest->reduction || nest->body[0]->kind != te::ScalarKind::kOp ||
      nest->body[0]->op != te::Op::kMul || nest->body[0]->dtype != DType::kF32) {
    return false;
  }
  int64_t rows = 1, columns = 1;
  for (const Axis& axis : nest->axes) {
    const bool by_row = MovesWith(nest->body[0]->args[0], axis), by_column = MovesWith(nest->body[0]->args[1], axis);
    if (by_row != by_column) (by_row ? rows : columns) *= axis.extent;
  }
  const int64_t vectors_of_items = items * draft->device.vector_bytes / 4;
  if (std::min(rows, columns) >= kMinSide || PointsOf(nest->reduction->axes) < vectors_of_items) return false;
  const KernelDraft::Saved before = draft->Save();
  Nest shared = *nest;
  if (!VectoriseReduction(draft->device, &shared, &draft->kernel) ||
      !StepOf(shared, draft->device).Is<movement::RowReduction>() ||
      draft->choices->Pick("shared_rows", {"yes", "no"}) == 1) {
    draft->Restore(before);
    return false;
  }
  *nest = std::move(shared);
  return true;
}

// Adds a reduction as column sums or a register tile. Returns false where `nest` is left to do. `rounded_up`: see
// StraightenNest.
absl::StatusOr<bool> AddReduction(const PhysicalTe& physical, bool rounded_up, KernelDraft* draft, Nest* nest) {
  if (AddColumnSums(SummedRows::kBeyondCaches, draft, nest)) return true;
  if (ShareRows(draft, nest)) return false;
  // The register tile comes first. It refuses a reduction along contiguous rows that few results reread; StepOf then
  // reduces along the row.
  const KernelDraft::Saved before = draft->Save();
  absl::StatusOr<movement::Phase> tiled = TilePhase(*nest, draft->device, &draft->kernel, &draft->axes, draft->choices);
  if (tiled.ok()) {
    draft->kernel.phases.push_back(*std::move(tiled));
    return true;
  }
  draft->Restore(before);
  if (rounded_up) {
    // Only the register tile packs the weights that make a rounded-up reduction exact, so the nest is built again
    // without rounding.
    ASSIGN_OR_RETURN(*nest, draft->MakeNest(physical));
    FuseAxes(nest, &draft->axes);
  }
  return StepOf(*nest, draft->device).Is<movement::ScalarLoops>() && AddColumnSums(SummedRows::kAnywhere, draft, nest);
}

// Returns the step of a part of a stage; reductions of too few neighbouring results take lanes along the reduction.
movement::Step StepOfPart(KernelDraft* draft, Nest* part) {
  TransposeInTiles(draft->device, &draft->axes, draft->choices, part);
  movement::Step step = StepOf(*part, draft->device);
  if (step.Is<movement::ScalarLoops>() && VectoriseReduction(draft->device, part, &draft->kernel)) {
    step = StepOf(*part, draft->device);
  }
  return step;
}

// Adds a stage as loops. Each part of a Concat becomes a copy of its own: its rows are straight, and a grid walks them
// in order.
void AddParts(Nest nest, double per_point, KernelDraft* draft) {
  const DeviceModel& device = draft->device;
  std::vector<movement::Phase>& phases = draft->kernel.phases;
  const auto worth = [&](const Nest& part) {
    double points = 1;
    for (const Axis& axis : part.axes) points *= static_cast<double>(axis.extent);
    return points * per_point >= MinTaskCost(device) && part.axes.back().extent >= device.vector_bytes / 4;
  };
  bool part_of_phase = false;
  for (Nest& part : SplitRanges(std::move(nest), &draft->axes, worth)) {
    FuseAxes(&part, &draft->axes);
    movement::Phase phase;
    movement::Step step = StepOfPart(draft, &part);
    if (step.Is<movement::ScalarLoops>() && AddPeeled(part, per_point, draft, &phase)) {
      phases.push_back(std::move(phase));
      part_of_phase = false;
      continue;
    }
    MoveLoopsToGrid(&step, per_point, device, &draft->axes, draft->choices, &phase.grid);
    PrefetchAhead(device, draft->kernel, per_point, &step);
    if (part_of_phase && SameGrid(phases.back(), phase)) {
      phases.back().steps.push_back(std::move(step));  // one task writes a whole row of the result
      continue;
    }
    part_of_phase = !phase.grid.empty();
    phase.steps.push_back(std::move(step));
    phases.push_back(std::move(phase));
  }
  UseStreamingStores(device, draft->kernel, draft->choices, &phases.back());
}

}  // namespace

absl::Status AddStagePhases(const te::Te& te, KernelDraft* draft) {
  ASSIGN_OR_RETURN(PhysicalTe physical, draft->Physical(te));
  ASSIGN_OR_RETURN(Nest nest, draft->MakeNest(physical));
  if (DomainPoints(te, false) == 0) {
    StraightenNest(&nest, draft);
    AddEmptyPhase(nest, draft);
    return absl::OkStatus();
  }
  if (nest.reduction && draft->target.threadgroup_tiles && AddThreadgroupTile(nest, draft)) return absl::OkStatus();
  if (movement::Step prefix; PrefixStep(nest, draft->device, &prefix)) {
    AddPrefixPhase(te, std::move(prefix), draft);
    return absl::OkStatus();
  }
  const bool rounded_up = StraightenNest(&nest, draft);
  if (nest.reduction) {
    ASSIGN_OR_RETURN(const bool added, AddReduction(physical, rounded_up, draft, &nest));
    if (added) return absl::OkStatus();
  }
  double per_point = CostPerPoint(te);
  if (te.reduction) per_point *= std::max(1.0, DomainPoints(te)) / std::max(1.0, DomainPoints(te, false));
  AddParts(std::move(nest), per_point, draft);
  return absl::OkStatus();
}

absl::Status AddLibraryPhase(const te::Te& te, KernelDraft* draft) {
  ASSIGN_OR_RETURN(PhysicalTe physical, draft->Physical(te));
  ASSIGN_OR_RETURN(Nest nest, draft->MakeNest(physical));
  ASSIGN_OR_RETURN(movement::Phase phase, LibraryPhase(nest, draft->device, &draft->kernel, &draft->axes));
  draft->kernel.phases.push_back(std::move(phase));
  return absl::OkStatus();
}

}  // namespace fusion
