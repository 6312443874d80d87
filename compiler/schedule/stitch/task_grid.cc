#include "compiler/schedule/stitch/task_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/nest/split_ranges.h"
#include "compiler/schedule/stitch/picked_weights.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/threadgroup/threadgroup_tile.h"
#include "compiler/schedule/tile/products.h"
#include "compiler/te/scalar/axis_cuts.h"

namespace fusion {
namespace {

// The work of a task that takes about as long as a launch, in that worth sharing: its reads and writes of memory count
// most.
constexpr double kWorthALaunch = 0.25;

using te::Axis;
using te::TensorId;

// The most points of an axis that must stay together (the results of one tile of minimal filtering).
constexpr int64_t kMostGroup = 8;
// Vectors of columns that a task takes: a few lines of each row.
constexpr int64_t kVectorsOfColumns = 4;
// A larger tile must reduce the time to at most this share.
constexpr double kWorthEnlarging = 0.98;
// Operations to transpose one element of an operand whose rows are summed; each task does this for its tiles.
constexpr double kTransposeOps = 8;

// Operations to copy one element into a task's scratch.
constexpr double kCopyOps = 4;

double Tasks(const std::vector<GridAxis>& grid) {
  double count = 1;
  for (const GridAxis& shared : grid) count *= static_cast<double>(shared.number.extent);
  return count;
}

// The most bytes that a task keeps for later stages at one time.
int64_t KeptBytes(const TaskBoxes& task, const std::vector<te::Box>& boxes) {
  std::vector<int64_t> bytes(boxes.size(), 0);  // of each stage's results
  for (size_t s = 0; s < boxes.size(); ++s) {
    if (task.LiveOut(s)) continue;
    for (TensorId out : task.stages()[s].te.outputs) {
      bytes[s] += BoxPoints(boxes[s]) * DTypeBytes(task.program().tensors[out].dtype);
    }
  }
  int64_t most = 0;
  for (size_t at = 0; at < boxes.size(); ++at) {
    int64_t kept = 0;
    for (size_t s = 0; s <= at; ++s) kept += task.LastReader(s) >= at ? bytes[s] : 0;
    most = std::max(most, kept);
  }
  return most;
}

// The work of a stage's box, in multiply-adds.
double WorkInTask(const TaskBoxes& task, size_t stage, const te::Box& box, InTasks holds, const DeviceModel& device) {
  const te::Te& te = task.stages()[stage].te;
  if (StrategyOf(device).threadgroup_tiles && WantsTileInTask(task.program(), te, holds, device))
    return ThreadgroupTileWork(te, box, device);
  return task.Work(stage) * static_cast<double>(BoxPoints(box)) / std::max(1.0, DomainPoints(te, false));
}

// The scratch that a task with products may keep for later stages.
int64_t ScratchBesideOperands(InTasks holds, const DeviceModel& device) {
  const TargetStrategy& target = StrategyOf(device);
  const int64_t most = MostScratchBytes(device, /*products=*/true);
  if (holds == InTasks::kFiltering && !target.filtering_leaves_room) return most;
  return most - most / target.left_for_operands;
}

// The time that the tasks of a grid take for multiply-adds, for what they read from outside, and for scratch that
// leaves the core's own cache. Infinite where the grid is impossible.
double Seconds(const TaskBoxes& task, InTasks holds, const std::vector<GridAxis>& grid, const DeviceModel& device) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const absl::StatusOr<std::vector<te::Box>> boxes = task.For(grid);
  if (!boxes.ok()) return kNever;
  const int64_t kept = KeptBytes(task, *boxes);
  if (kept > ScratchBesideOperands(holds, device)) return kNever;
  double work = 0, reading = 0, keeping = 0, near = static_cast<double>(kept);
  for (size_t s = 0; s < boxes->size(); ++s) {
    const auto points = static_cast<double>(BoxPoints((*boxes)[s]));
    work += WorkInTask(task, s, (*boxes)[s], holds, device);
    for (const TaskBoxes::Read& read : task.ReadsOf(s, (*boxes)[s])) {
      const te::TensorInfo& info = task.program().tensors[read.tensor];
      const auto element = static_cast<double>(DTypeBytes(info.dtype));
      reading += element * read.elements / device.ReadBandwidth(element * static_cast<double>(NumElements(info.shape)));
      if (holds != InTasks::kFiltering) near += element * read.elements;
      if (read.along_reduction && info.role != te::Role::kConstant) work += kTransposeOps * read.elements;
    }
    if (task.LiveOut(s)) continue;
    if (holds == InTasks::kWindowRows && !task.stages()[s].te.reduction) work += kCopyOps * points;
    for (TensorId out : task.stages()[s].te.outputs) {
      keeping += 2 * points * static_cast<double>(DTypeBytes(task.program().tensors[out].dtype));
    }
  }
  double seconds = 2 * work / device.fma_f32_flops_per_s + reading;
  // Scratch shares the cache with what is read meanwhile, so a part of it is evicted.
  const auto cache = static_cast<double>(PrivateCacheBytes(device));
  if (near > cache) seconds += keeping * (1 - cache / near) / device.CopyBandwidth(near);
  // Where tiles cost the same, there should be tasks for more threads than planned.
  const auto wanted = static_cast<double>(holds == InTasks::kFiltering ? Units(device) : LikelyUnits(device));
  const double units = std::max(1.0, std::min(wanted, Tasks(grid)));
  return seconds * std::ceil(Tasks(grid) / units);
}

// Larger tiles of an axis to try next.
std::set<int64_t> LargerBlocks(const GridAxis& shared, const Axis& innermost, InTasks holds) {
  const int64_t extent = shared.axis.extent;
  std::set<int64_t> blocks = {std::min(2 * shared.block, extent), extent};
  if (holds == InTasks::kFiltering) return blocks;
  for (int64_t block = 4 * shared.block; block < extent; block *= 2) {
    if (shared.axis.id != innermost.id || extent % block == 0) blocks.insert(block);  // no vectors are cut short
  }
  // The last tile of a halo is moved, not cut short, so tiles that divide the axis save what it would compute again.
  for (int64_t block = shared.block + 1; holds == InTasks::kHalos && block < extent; ++block) {
    if (extent % block == 0) blocks.insert(block);
  }
  return blocks;
}

void EnlargeBlocks(const TaskBoxes& task, InTasks holds, const DeviceModel& device, double least_tasks,
                   AxisSource* axes, std::vector<GridAxis>* grid) {
  double least = Seconds(task, holds, *grid, device);
  for (;;) {
    std::vector<GridAxis> best;
    double best_seconds = kWorthEnlarging * least;
    // Where tiles of several axes cost the same, the inner axis is taken, because its neighbours lie together.
    for (size_t a = grid->size(); a-- > 0;) {
      const GridAxis& shared = (*grid)[a];
      if (shared.block >= shared.axis.extent) continue;
      for (const int64_t block : LargerBlocks(shared, task.stages().back().te.axes.back(), holds)) {
        std::vector<GridAxis> larger = *grid;
        larger[a] = InBlocks(shared.axis, block, axes);
        if (Tasks(larger) < least_tasks) continue;
        const double seconds = Seconds(task, holds, larger, device);
        if (seconds >= best_seconds) continue;
        best = std::move(larger);
        best_seconds = seconds;
      }
    }
    if (best.empty()) return;
    *grid = std::move(best);
    least = best_seconds;
  }
}

// Work-groups whose tasks have less to do than work-items take several neighbours of the innermost axis together, while
// enough tasks are left for the device.
void FillGroups(const TaskBoxes& task, const DeviceModel& device, AxisSource* axes, std::vector<GridAxis>* grid) {
  if (grid->empty()) return;
  const double enough = StrategyOf(device).points_of_an_item * device.work_group_size;
  double points = 1;
  for (const Axis& axis : task.stages().back().te.axes) points *= static_cast<double>(axis.extent);
  points /= Tasks(*grid);
  for (; points < enough; points *= 2) {
    std::vector<GridAxis> larger = *grid;
    GridAxis& last = larger.back();
    if (last.block >= last.axis.extent) return;
    last = InBlocks(last.axis, std::min(2 * last.block, last.axis.extent), axes);
    if (Tasks(larger) < static_cast<double>(WantedTasks(device))) return;
    const absl::StatusOr<std::vector<te::Box>> boxes = task.For(larger);
    if (!boxes.ok() || KeptBytes(task, *boxes) > MostScratchBytes(device, /*products=*/false)) return;
    *grid = std::move(larger);
  }
}

// Axes of a map that its conditions cut into ranges (the parts of a Concat). Within a task each range becomes a loop
// without the condition (SplitRanges).
std::set<int> AxesInRanges(const te::Te& te) {
  std::set<int> axes;
  if (te.reduction) return axes;
  for (const te::Scalar& s : te.body) {
    te::VisitCuts(s, [&](const te::AxisCut& cut) { axes.insert(cut.axis.id); });
  }
  return axes;
}

// Axes of the last stage, except `without`, that tasks may share out, each in the smallest tiles of up to `most_block`
// points with which no earlier stage is computed again and again. `refusal` gets the reason for an axis that they may
// not.
std::vector<GridAxis> SharedAxes(const TaskBoxes& task, const std::set<int>& without, int64_t most_block,
                                 AxisSource* axes, absl::Status* refusal) {
  std::vector<GridAxis> grid;
  for (const Axis& axis : task.stages().back().te.axes) {
    if (axis.extent == 1 || without.count(axis.id) > 0) continue;
    for (int64_t block = 1; block <= most_block && block <= axis.extent; block *= 2) {
      const GridAxis shared = InBlocks(axis, block, axes);
      const absl::Status status = task.For({shared}).status();
      if (status.ok()) {
        grid.push_back(shared);
        break;
      }
      *refusal = status;
    }
  }
  return grid;
}

// For grids of single points that have too few tasks, because each task would compute an earlier stage of its own (the
// indices of all columns, for a row that is looked up). Returns tiles of many points of one axis, the outermost axis
// that leaves enough tasks.
std::vector<GridAxis> LargeBlocks(const TaskBoxes& task, const std::set<int>& without, double least_tasks,
                                  std::vector<GridAxis> otherwise, AxisSource* axes) {
  const te::Te& main = task.stages().back().te;
  if (main.reduction) return otherwise;  // what a reduction reads is worth a pass of its own
  for (const Axis& axis : main.axes) {
    if (without.count(axis.id) > 0) continue;
    for (int64_t block = 2; static_cast<double>((axis.extent + block - 1) / block) >= least_tasks; block *= 2) {
      std::vector<GridAxis> grid = {InBlocks(axis, block, axes)};
      if (task.For(grid).ok()) return grid;
    }
  }
  return otherwise;
}

// For grids that have too few tasks although an axis of the result is left to share, because each task would compute
// earlier stages of its own. Returns the grid with tiles of one more axis, as large as leave enough tasks, where what
// the tasks repeat is little (partial results of a reduction that every tile of a row combines).
std::vector<GridAxis> WithTilesOfAnotherAxis(const TaskBoxes& task, double least_tasks, int64_t lanes,
                                             std::vector<GridAxis> grid, AxisSource* axes) {
  const te::Te& main = task.stages().back().te;
  if (main.reduction) return grid;
  const auto shared = [&](const Axis& axis) {
    return std::any_of(grid.begin(), grid.end(), [&](const GridAxis& other) { return other.axis.id == axis.id; });
  };
  const auto tiles = static_cast<int64_t>(std::ceil(least_tasks / Tasks(grid)));
  size_t position = 0;  // in the grid
  for (const Axis& axis : main.axes) {
    if (shared(axis)) {
      ++position;
      continue;
    }
    const bool vectors = axis.id == main.axes.back().id;
    const int64_t whole = vectors ? lanes : 1, block = axis.extent / tiles / whole * whole;
    if (block == 0) continue;
    std::vector<GridAxis> larger = grid;
    larger.insert(larger.begin() + static_cast<std::ptrdiff_t>(position), InBlocks(axis, block, axes));
    if (task.For(larger).ok()) return larger;
  }
  return grid;
}

// Would a condition cut some stage's part of a task into ranges that depend on the task (a Concat whose parts end inside
// of a tile)? Neither loops over ranges nor vectors can settle it then.
bool CutsTiles(const TaskBoxes& task, const std::vector<te::Box>& boxes) {
  bool cuts = false;
  for (size_t s = 0; s < boxes.size(); ++s) {
    const te::Te& te = task.stages()[s].te;
    if (te.reduction) continue;
    for (const te::Scalar& body : te.body) {
      te::VisitCuts(body, [&](const te::AxisCut& cut) {
        for (size_t d = 0; d < te.axes.size(); ++d) {
          const te::Span& span = boxes[s][d];
          if (te.axes[d].id != cut.axis.id || span.origin.IsConstant()) continue;
          cuts = cuts || (cut.at > 0 && cut.at < te.axes[d].extent && cut.at % span.length != 0);
        }
      });
    }
  }
  return cuts;
}

// The grid with tiles of one more axis, its columns: whole vectors if possible, else any tiles that end where ranges do.
// nullopt where there would be too few tasks.
std::optional<std::vector<GridAxis>> WithColumns(const TaskBoxes& task, const std::vector<GridAxis>& rest,
                                                 const Axis& axis, const DeviceModel& device, AxisSource* axes) {
  const int64_t lanes = device.vector_bytes / 4;
  bool cut = false;
  const auto with = [&](int64_t block) -> std::optional<std::vector<GridAxis>> {
    std::vector<GridAxis> columns = rest;
    columns.push_back(InBlocks(axis, block, axes));
    if (Tasks(columns) < 2.0 * device.parallel_units) return std::nullopt;
    const absl::StatusOr<std::vector<te::Box>> boxes = task.For(columns);
    if (!boxes.ok()) return std::nullopt;
    if (!CutsTiles(task, *boxes)) return columns;
    cut = true;
    return std::nullopt;
  };
  for (int64_t vectors = kVectorsOfColumns; vectors > 0; vectors /= 2) {
    if (auto columns = with(vectors * lanes)) return columns;
  }
  for (int64_t block = kVectorsOfColumns * lanes; cut && block >= lanes; --block) {
    if (axis.extent % block != 0) continue;
    if (auto columns = with(block)) return columns;
  }
  if (cut) return rest;  // whole rows of few tasks: whoever prices the kernel sees them
  return std::nullopt;
}

// The grid with the columns of picked weights outermost, in blocks; nullopt where there are none, or a task could not
// compute a block.
std::optional<std::vector<GridAxis>> ByPickedColumns(const TaskBoxes& task, const DeviceModel& device,
                                                     std::vector<GridAxis> grid, AxisSource* axes) {
  const std::optional<PickedColumns> columns =
      ColumnsOfPickedWeights(task.program(), task.stages().back().te, device);
  if (!columns) return std::nullopt;
  std::erase_if(grid, [&](const GridAxis& shared) { return shared.axis.id == columns->axis.id; });
  grid.insert(grid.begin(), InBlocks(columns->axis, columns->block, axes));
  if (!task.For(grid).ok()) return std::nullopt;
  return grid;
}

}  // namespace

bool TakeSeveralRows(const TaskBoxes& task, const DeviceModel& device, AxisSource* axes, std::vector<GridAxis>* grid) {
  const double before = Tasks(*grid);
  EnlargeBlocks(task, InTasks::kWindowRows, device, static_cast<double>(WantedTasks(device)), axes, grid);
  return Tasks(*grid) < before;
}

int64_t MostScratchBytes(const DeviceModel& device, bool products) {
  return (products ? StrategyOf(device).product_scratch_caches : 1) * PrivateCacheBytes(device);
}

bool WantsTileInTask(const te::Program& program, const te::Te& te, InTasks holds, const DeviceModel& device) {
  if (!WantsRegisterTile(program, te, device)) return false;
  if (holds != InTasks::kHalos || !StrategyOf(device).threadgroup_tiles) return true;
  te::Box whole;
  for (const Axis& axis : te.axes) whole.push_back({te::Index(0), axis.extent});
  return std::isfinite(ThreadgroupTileWork(te, whole, device));
}

int64_t BoxPoints(const te::Box& box) {
  int64_t points = 1;
  for (const te::Span& span : box) points *= span.length;
  return points;
}

absl::StatusOr<std::vector<GridAxis>> ChooseGrid(const TaskBoxes& task, InTasks holds, const DeviceModel& device,
                                                 AxisSource* axes, TooFewTasks too_few) {
  const bool products = holds != InTasks::kNoProducts;
  const TargetStrategy& target = StrategyOf(device);
  const te::Te& main = task.stages().back().te;
  const bool worth_sharing = task.Work() > WorthSharing(device);
  double least_tasks = worth_sharing ? 2.0 * device.parallel_units : 1;
  // Fewer tasks than units cost less than another launch, unless each takes as long as one.
  if (target.phases_are_launches) {
    least_tasks = std::min(least_tasks, std::ceil(task.Work() / (kWorthALaunch * WorthSharing(device))));
  }
  absl::Status refusal = absl::OkStatus();
  const std::set<int> in_ranges = products || !target.loops_for_ranges ? std::set<int>() : AxesInRanges(main);
  std::vector<GridAxis> grid = SharedAxes(task, in_ranges, products ? kMostGroup : 1, axes, &refusal);
  if (!in_ranges.empty() && Tasks(grid) < least_tasks) {
    grid = LargeBlocks(task, in_ranges, least_tasks, std::move(grid), axes);
    if (Tasks(grid) < least_tasks) grid = SharedAxes(task, {}, 1, axes, &refusal);
  }
  if (!products) {
    if (const std::optional<std::vector<GridAxis>> picked = ByPickedColumns(task, device, grid, axes)) return *picked;
  }
  // The innermost contiguous axis stays in the task for the vectors, if the other axes make enough tasks.
  if (!grid.empty() && grid.back().axis.id == main.axes.back().id) {
    const std::vector<GridAxis> rest(grid.begin(), grid.end() - 1);
    const bool enough = Tasks(rest) >= 2.0 * device.parallel_units;
    if (grid.size() > 1 ? enough : task.Work() < WorthSharing(device)) {
      grid = rest;
    } else if (!products && target.tasks_of_columns) {
      if (auto columns = WithColumns(task, rest, grid.back().axis, device, axes)) grid = *std::move(columns);
    }
  }
  if (products && target.tiles_before_tasks) least_tasks = 1;
  if (holds == InTasks::kHalos) least_tasks = 1;  // more tasks repeat more rows, which Seconds weighs
  if (!products && Tasks(grid) < least_tasks) grid = LargeBlocks(task, {}, least_tasks, std::move(grid), axes);
  if (too_few.repeat && !products && Tasks(grid) < least_tasks) {
    grid = WithTilesOfAnotherAxis(task, least_tasks, device.vector_bytes / 4, std::move(grid), axes);
  }
  if (products) EnlargeBlocks(task, holds, device, least_tasks, axes, &grid);
  if (products && std::isinf(Seconds(task, holds, grid, device))) {
    return absl::FailedPreconditionError("no tile of the result both fits the task's scratch memory and pays");
  }
  if (!products && target.points_of_an_item > 0) FillGroups(task, device, axes, &grid);
  if (Tasks(grid) < least_tasks && !too_few.accept) {
    return absl::FailedPreconditionError(absl::StrCat("only ", Tasks(grid), " independent tasks",
                                                      refusal.ok() ? "" : ": ", std::string(refusal.message())));
  }
  return grid;
}

}  // namespace fusion
