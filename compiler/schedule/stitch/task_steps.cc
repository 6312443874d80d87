#include "compiler/schedule/stitch/task_steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/schedule/nest/split_ranges.h"
#include "compiler/schedule/threadgroup/threadgroup_tile.h"
#include "compiler/schedule/tile/products.h"
#include "compiler/schedule/tile/register_tile.h"
#include "compiler/schedule/tile/tile_operands.h"
#include "compiler/schedule/vector/vectorize.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;

absl::StatusOr<movement::Phase> TileInTask(Nest nest, bool could_be_phase, KernelDraft* draft) {
  if (draft->target.threadgroup_tiles) {
    StraightenForGroup(&nest, draft);
    return ThreadgroupTilePhase(std::move(nest), draft->device, &draft->kernel, &draft->axes, draft->choices,
                                TileHome::kTask);
  }
  StraightenNest(&nest, draft, /*in_task=*/true);
  return TilePhase(std::move(nest), draft->device, &draft->kernel, &draft->axes, draft->choices,
                   could_be_phase ? TileHome::kTaskOrPhase : TileHome::kTask);
}

// A map that runs element by element because of its conditions becomes a loop for each range of the axis that they
// cut, if that puts some of them in vectors.
bool AddRanges(const Nest& nest, InTasks in_tasks, KernelDraft* draft, movement::Phase* phase) {
  const AxisSource before = draft->axes;
  const auto worth = [&](const Nest& part) {
    const int64_t lanes = draft->device.vector_bytes / 4;
    const int64_t least = HoldsWindows(in_tasks) ? lanes / 2 : lanes;
    return !part.axes.empty() && part.axes.back().extent >= least;
  };
  std::vector<movement::Step> steps;
  bool vectors = false;
  for (Nest& part : SplitRanges(nest, &draft->axes, worth)) {
    FuseAxes(&part, &draft->axes);
    steps.push_back(StepOf(part, draft->device));
    vectors = vectors || steps.back().Is<movement::VectorMap>();
  }
  if (!vectors || steps.size() < 2) {
    draft->axes = before;
    return false;
  }
  for (movement::Step& step : steps) phase->steps.push_back(std::move(step));
  return true;
}

// Is the nest a product along the rows of a constant whose columns could be the lanes of a tile?
bool HasConstantColumns(const Nest& nest, const KernelDraft& draft) {
  const int64_t lanes = draft.device.vector_bytes / 4;
  for (const Operand& load : BodyLoads(nest)) {
    for (const Axis& axis : nest.axes) {
      const bool whole_vectors = axis.extent >= lanes && axis.extent % lanes == 0;
      if (!whole_vectors || PredUses(nest, axis.id) || nest.limits.count(axis.id)) continue;
      if (UseOfLanes(load, axis, lanes, nest.axes, draft.kernel) == LaneUse::kPackConstant) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Nest> NestInTask(const PhysicalTe& stage, const te::Box& box, const std::vector<Axis>& grid,
                                const std::set<int>& unsplit, KernelDraft* draft) {
  ASSIGN_OR_RETURN(Nest nest, draft->MakeNest(stage));
  nest.unsplit = unsplit;
  std::vector<Axis> loops;
  std::map<int, Index> bound;
  for (size_t d = 0; d < stage.te.axes.size(); ++d) {
    const Axis& axis = stage.te.axes[d];
    const te::Span& span = box[d];
    const bool shared = std::any_of(grid.begin(), grid.end(), [&](const Axis& g) { return g.id == axis.id; });
    if (axis.extent == 1 || shared) continue;
    if (span.length == 1) {
      bound[axis.id] = span.origin;
    } else if (span.length == axis.extent && span.origin.IsConstant() && span.origin.constant() == 0) {
      loops.push_back(axis);
    } else {
      const Axis local = draft->axes.New(span.length);
      loops.push_back(local);
      bound[axis.id] = span.origin + Index(local);
      if (unsplit.count(axis.id) > 0) nest.unsplit.insert(local.id);
      const std::optional<Index> limit = TaskBoxes::LimitOf(span, axis.extent);
      if (limit) nest.limits[local.id] = *limit;
    }
  }
  nest.axes = loops;
  nest.Substitute([&](const Axis& axis) -> const Index* {
    auto it = bound.find(axis.id);
    return it == bound.end() ? nullptr : &it->second;
  });
  DropUnitAxes(&nest);
  return nest;
}

absl::Status AddTaskSteps(const te::Te& te, const PhysicalTe& stage, const te::Box& box, InTasks in_tasks,
                          KernelDraft* draft, movement::Phase* phase, const std::set<int>& unsplit) {
  ASSIGN_OR_RETURN(Nest nest, NestInTask(stage, box, phase->grid, unsplit, draft));
  const Nest bound = nest;
  FuseAxes(&nest, &draft->axes);
  movement::Step step = StepOf(nest, draft->device);
  const bool wants_tile = WantsTileInTask(draft->program, te, in_tasks, draft->device);
  const bool along_reduction = step.Is<movement::RowReduction>();
  const bool window = te.reduction && HoldsWindows(in_tasks) && !along_reduction;
  // A single vector of sums would wait for each addition. A row times a matrix gets a register tile, with several
  // vectors of sums and its matrix packed.
  const bool one_vector = step.Is<movement::RegisterTile>() && IsProduct(te) && draft->target.vector_reductions;
  // Rows of a constant are read as they lie. Where other kernels have panels of its columns, a tile can read those, so
  // that the bundle needs no rows (SharePackings).
  const bool columns = along_reduction && IsProduct(te) && draft->target.vector_reductions &&
                       HasConstantColumns(bound, *draft) && draft->choices->Pick("product", {"rows", "columns"}) == 1;
  if (wants_tile || window || one_vector || columns || (HoldsProducts(in_tasks) && IsProduct(te) && !along_reduction)) {
    const KernelDraft::Saved before = draft->Save();
    absl::StatusOr<movement::Phase> in_task = TileInTask(bound, wants_tile, draft);
    if (in_task.ok()) {
      for (movement::Step& tile : in_task->steps) phase->steps.push_back(std::move(tile));
      return absl::OkStatus();
    }
    if (wants_tile || columns) return in_task.status();
    draft->Restore(before);
  }
  if (step.Is<movement::ScalarLoops>() && draft->target.loops_for_ranges && AddRanges(bound, in_tasks, draft, phase)) {
    return absl::OkStatus();
  }
  phase->steps.push_back(std::move(step));
  return absl::OkStatus();
}

int64_t BehindWindows(InTasks in_tasks, const DeviceModel& device) {
  return HoldsWindows(in_tasks) ? device.vector_bytes / 4 : 0;
}

}  // namespace fusion
