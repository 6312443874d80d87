#include "compiler/schedule/schedule_block.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/movement/cost.h"
#include "compiler/schedule/block_passes.h"
#include "compiler/schedule/library/library_stage.h"
#include "compiler/schedule/nest/column_reduction.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/vectorised_reduction.h"
#include "compiler/schedule/rewrite/blocked_transpose.h"
#include "compiler/schedule/schedule_routine.h"
#include "compiler/schedule/stitch/task_boxes.h"
#include "compiler/schedule/stitch/task_grid.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/threadgroup/threadgroup_tile.h"
#include "compiler/schedule/tile/products.h"
#include "compiler/schedule/tile/register_tile.h"
#include "compiler/schedule/vector/prefetch_reads.h"
#include "compiler/schedule/vector/streaming_stores.h"
#include "compiler/schedule/vector/vectorize.h"
#include "compiler/te/ranges/bounds.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::TensorId;

// Results of a tile: F(4, 3) saves most, and F(2, 3) loses least where images are small.
constexpr int64_t kFilterOutputs[] = {4, 2};

// The fewest columns of a head of attention.
constexpr int64_t kLeastHead = 8;

// The factor that minimal filtering must save by the model; otherwise accuracy would be traded for little.
constexpr double kFilterMargin = 1.15;

// Lets the packs that read the transformed filter read the model's filter instead, and transform it.
absl::Status TransformFilter(const TransformedFilter& filtered, movement::Kernel* kernel) {
  for (const movement::Buffer& buffer : kernel->buffers) {
    if (buffer.tensor == filtered.filter && buffer.packed_from < 0) {
      return absl::FailedPreconditionError("the schedule reads the transformed filter unpacked");
    }
  }
  for (movement::Pack& pack : kernel->packs) {
    if (pack.source_tensor != filtered.filter) continue;
    pack.source_tensor = filtered.source;
    pack.transform = filtered.transform;
  }
  return absl::OkStatus();
}

bool SameGrid(const movement::Phase& a, const movement::Phase& b) {
  return std::equal(a.grid.begin(), a.grid.end(), b.grid.begin(), b.grid.end(),
                    [](const Axis& x, const Axis& y) { return x.id == y.id && x.extent == y.extent; });
}

class BlockScheduler {
 public:
  BlockScheduler(const te::Program& program, const std::map<TensorId, Layout>& layouts, const DeviceModel& device,
                 InTasks in_tasks, ChoiceLog* choices, int library_product = -1)
      : program_(program),
        layouts_(layouts),
        device_(device),
        target_(StrategyOf(device)),
        in_tasks_(in_tasks),
        library_product_(library_product),
        choices_(choices),
        axes_(program.next_axis) {}

  absl::StatusOr<ScheduledBlock> Run() {
    if (program_.tes.empty()) return absl::InternalError("the fusion block computes nothing");
    MakeBuffers();
    ScheduledBlock result;
    absl::Status stitched = absl::OkStatus();
    const int n = static_cast<int>(program_.tes.size());
    if (n == 1) {
      RETURN_IF_ERROR(AddStages(0, 1, /*refused=*/true));
    } else {
      stitched = library_product_ < 0
                     ? TryStitch(0, n)
                     : absl::FailedPreconditionError("a library call for one stage was measured to be faster");
      if (!stitched.ok() && ProductsInTasks()) return stitched;
      if (!stitched.ok()) {
        result.stitched = false;
        result.reason = std::string(stitched.message());
        // The stages between products may still share a grid.
        for (int first = 0; first < n;) {
          int last = first + 1;
          if (!WantsRegisterTile(program_, program_.tes[first], device_)) {
            while (last < n && !WantsRegisterTile(program_, program_.tes[last], device_)) ++last;
          }
          RETURN_IF_ERROR(AddStages(first, last, last - first == n));
          first = last;
        }
      }
    }
    DropUnusedBuffers();
    kernel_.scratch_bytes = kernel_.PlannedScratchBytes();
    kernel_.next_axis = axes_.next();
    RETURN_IF_ERROR(VerifySchedule(kernel_));
    result.kernel = std::move(kernel_);
    return result;
  }

 private:
  // The state before an attempt, which is restored when the attempt fails.
  struct Saved {
    movement::Kernel kernel;
    AxisSource axes;
    ChoiceLog choices;
  };
  bool ProductsInTasks() const { return in_tasks_ == InTasks::kProducts || in_tasks_ == InTasks::kFiltering; }
  Saved Save() const { return {kernel_, axes_, *choices_}; }
  void Restore(const Saved& saved) {
    kernel_ = saved.kernel;
    axes_ = saved.axes;
    *choices_ = saved.choices;
  }

  Layout LayoutOfTensor(TensorId tensor) const {
    auto it = layouts_.find(tensor);
    return it == layouts_.end() ? Layout() : it->second;
  }

  int AddBuffer(TensorId tensor, Scope scope) {
    const te::TensorInfo& info = program_.tensors[tensor];
    movement::Buffer buffer;
    buffer.scope = scope;
    buffer.dtype = info.dtype;
    buffer.tensor = tensor;
    buffer.is_constant = info.role == te::Role::kConstant;
    buffer.elements = NumElements(LayoutOfTensor(tensor).PhysicalShape(info.shape));
    buffer_of_[tensor] = static_cast<int>(kernel_.buffers.size());
    kernel_.buffers.push_back(buffer);
    return buffer_of_[tensor];
  }

  void MakeBuffers() {
    buffer_of_.assign(program_.tensors.size(), -1);
    for (TensorId tensor : program_.inputs) AddBuffer(tensor, Scope::kKernel);
    for (TensorId tensor : program_.outputs) {
      if (buffer_of_[tensor] < 0) AddBuffer(tensor, Scope::kKernel);
    }
  }

  // Addresses in scratch boxes are relative to the box's origin; all others go through the tensor's layout.
  movement::Store AddressOf(TensorId tensor, const std::vector<Index>& indices) const {
    const int buffer = buffer_of_[tensor];
    auto it = scratch_boxes_.find(tensor);
    if (it != scratch_boxes_.end()) {
      const std::vector<Index> physical = LayoutOfTensor(tensor).Apply(indices);
      std::vector<Index> relative;
      std::vector<int64_t> extents;
      for (size_t d = 0; d < physical.size(); ++d) {
        relative.push_back(physical[d] - it->second[d].origin);
        extents.push_back(it->second[d].length);
      }
      return {buffer, te::Linearize(relative, extents)};
    }
    const Layout layout = LayoutOfTensor(tensor);
    return {buffer, te::Linearize(layout.Apply(indices), layout.PhysicalShape(program_.tensors[tensor].shape))};
  }

  absl::StatusOr<Nest> MakeNest(const PhysicalTe& physical) {
    std::set<TensorId> touched = TensorsRead(physical.te);
    touched.insert(physical.te.outputs.begin(), physical.te.outputs.end());
    for (TensorId tensor : touched) {
      if (buffer_of_[tensor] < 0) {
        return absl::InternalError(absl::StrCat("'", program_.tensors[tensor].name, "' has no buffer"));
      }
    }
    Nest nest =
        Flatten(program_, physical, [this](TensorId t, const std::vector<Index>& i) { return AddressOf(t, i); });
    DropUnitAxes(&nest);
    return nest;
  }

  // Past the end of a reduction axis of this extent, are all elements that the load reads the zeros that pad its
  // tensor's blocks?
  bool ReadsPadding(const te::ScalarNode& load, int64_t extent) const {
    const TensorId tensor = kernel_.buffers[load.tensor].tensor;
    if (tensor < 0) return false;
    const Layout layout = LayoutOfTensor(tensor);
    return !layout.plain() && !layout.axis_last() && program_.tensors[tensor].shape[layout.axis] == extent;
  }

  // Rounding a product's reduction up is free where a constant operand moves with the axis, because it is packed with
  // zeros. The other operand has zeros there too if its layout pads the axis; elements of a window do not end with it.
  PastEnd ProductsPastEnd(const Nest& nest, const Axis& axis) const {
    if (nest.fold->kind != te::FoldKind::kSum || nest.body[0]->kind != te::ScalarKind::kOp ||
        nest.body[0]->op != te::Op::kMul) {
      return PastEnd::kNotRounded;
    }
    const bool packed = std::any_of(nest.body[0]->args.begin(), nest.body[0]->args.end(), [&](const te::Scalar& arg) {
      return arg->kind == te::ScalarKind::kLoad && kernel_.buffers[arg->tensor].is_constant &&
             arg->indices[0].UsesAxis(axis.id);
    });
    if (!packed) return PastEnd::kNotRounded;
    bool zero = true;
    te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad || kernel_.buffers[node.tensor].is_constant) return;
      zero = zero && (!node.indices[0].UsesAxis(axis.id) || ReadsPadding(node, axis.extent));
    });
    return zero ? PastEnd::kZero : PastEnd::kSkipped;
  }

  // Returns whether a reduction axis was rounded up, which only a register tile can do with.
  bool FinishNest(Nest* nest, bool in_task = false) {
    FuseAxes(nest, &axes_);
    // A reduction is worth straight addresses whatever the divisor is; a map only if whole vectors stay contiguous.
    SplitSpatialAxes(nest, &axes_, nest->fold ? 2 : device_.vector_bytes / 4, in_task && nest->fold);
    return SplitFoldAxes(nest, &axes_, [&](const Axis& axis) { return ProductsPastEnd(*nest, axis); });
  }

  void PrepareForGroup(Nest* nest) {
    FuseAxes(nest, &axes_);
    SplitSpatialAxes(nest, &axes_, 2);  // groups of channels become batches of products
  }

  // On a device of work-groups: adds the product as a threadgroup tile, where that is possible and chosen.
  bool AddGroupTile(Nest nest) {
    PrepareForGroup(&nest);
    const movement::Kernel before = kernel_;
    const ChoiceLog choices_before = *choices_;
    absl::StatusOr<movement::Phase> tiled =
        GroupTilePhase(std::move(nest), device_, &kernel_, &axes_, choices_,
                       program_.tes.size() == 1 ? TileHome::kKernel : TileHome::kGrid);
    if (tiled.ok()) {
      kernel_.phases.push_back(*std::move(tiled));
      return true;
    }
    kernel_ = before;
    *choices_ = choices_before;
    return false;
  }

  // Returns true where the column sums complete the nest; otherwise `nest` is what is left to do.
  bool AddColumnSums(SummedRows rows, Nest* nest) {
    std::optional<ColumnSums> sums = SumColumns(*nest, rows, device_, &kernel_, &axes_, choices_);
    if (!sums) return false;
    kernel_.phases.push_back(std::move(sums->phase));
    if (!sums->rest) return true;
    *nest = *std::move(sums->rest);
    return false;
  }

  // The loop along which values are passed on stays whole; the others are shared out.
  void AddPrefixPhase(const te::Te& te, movement::Step step) {
    const movement::Loop along = step.loops.back();
    step.loops.pop_back();
    movement::Phase phase;
    if (!step.loops.empty()) {
      const double per_row = CostPerPoint(te) * static_cast<double>(along.axis.extent);
      MoveLoopsToGrid(&step, per_row, device_, &axes_, choices_, &phase.grid);
    }
    step.loops.push_back(along);
    phase.steps.push_back(std::move(step));
    kernel_.phases.push_back(std::move(phase));
  }

  // Adds a stage alone on a grid of its own.
  absl::Status AddPhase(const te::Te& te) {
    ASSIGN_OR_RETURN(PhysicalTe physical, MakePhysical(
                                              te, [this](TensorId t) { return LayoutOfTensor(t); }, &axes_));
    ASSIGN_OR_RETURN(Nest nest, MakeNest(physical));
    const bool empty = DomainPoints(te, false) == 0;
    if (library_product_ >= 0 && &te == &program_.tes[library_product_]) {
      ASSIGN_OR_RETURN(movement::Phase phase, LibraryPhase(nest, device_, &kernel_, &axes_));
      kernel_.phases.push_back(std::move(phase));
      return absl::OkStatus();
    }
    if (nest.fold && !empty && target_.threadgroup_tiles && AddGroupTile(nest)) return absl::OkStatus();
    if (movement::Step prefix; !empty && PrefixStep(nest, device_, &prefix)) {
      AddPrefixPhase(te, std::move(prefix));
      return absl::OkStatus();
    }
    const bool rounded_up = FinishNest(&nest);
    if (nest.fold && !empty) {
      if (AddColumnSums(SummedRows::kBeyondCaches, &nest)) return absl::OkStatus();
      // The register tile comes first. It refuses a reduction along contiguous rows that few results reread; StepOf
      // below then reduces along the row.
      const Saved before = Save();
      absl::StatusOr<movement::Phase> tiled = TilePhase(nest, device_, &kernel_, &axes_, choices_);
      if (tiled.ok()) {
        kernel_.phases.push_back(*std::move(tiled));
        return absl::OkStatus();
      }
      Restore(before);
      if (rounded_up) {
        // Only the register tile packs the weights that make a rounded-up reduction exact, so the nest is built again
        // without rounding.
        ASSIGN_OR_RETURN(nest, MakeNest(physical));
        FuseAxes(&nest, &axes_);
      }
      if (StepOf(nest, device_).strategy == movement::Strategy::kScalar &&
          AddColumnSums(SummedRows::kAnywhere, &nest)) {
        return absl::OkStatus();
      }
    }
    double per_point = CostPerPoint(te);
    if (te.fold) per_point *= std::max(1.0, DomainPoints(te)) / std::max(1.0, DomainPoints(te, false));
    if (empty) {
      movement::Phase phase;
      movement::Step step = StepOf(nest, device_);
      for (const movement::Loop& loop : step.loops) phase.grid.push_back(loop.axis);
      step.loops.clear();
      step.strategy = movement::Strategy::kScalar;
      phase.steps.push_back(std::move(step));
      kernel_.phases.push_back(std::move(phase));
      return absl::OkStatus();
    }
    // Each part of a Concat becomes a copy of its own: its rows are straight, and a grid walks them in order.
    const auto worth = [&](const Nest& part) {
      double points = 1;
      for (const Axis& axis : part.axes) points *= static_cast<double>(axis.extent);
      return points * per_point >= MinTaskCost(device_) && part.axes.back().extent >= device_.vector_bytes / 4;
    };
    bool part_of_phase = false;
    for (Nest& part : SplitRanges(std::move(nest), &axes_, worth)) {
      FuseAxes(&part, &axes_);
      movement::Phase phase;
      BlockMap(device_, &axes_, choices_, &part);
      movement::Step step = StepOf(part, device_);
      if (step.strategy == movement::Strategy::kScalar && FoldAlongLanes(device_, &part, &kernel_)) {
        step = StepOf(part, device_);
      }
      if (step.strategy == movement::Strategy::kScalar && AddPeeled(part, per_point, &phase)) {
        kernel_.phases.push_back(std::move(phase));
        part_of_phase = false;
        continue;
      }
      MoveLoopsToGrid(&step, per_point, device_, &axes_, choices_, &phase.grid);
      PrefetchAhead(device_, kernel_, per_point, &step);
      if (part_of_phase && SameGrid(kernel_.phases.back(), phase)) {
        kernel_.phases.back().steps.push_back(std::move(step));  // one task writes a whole row of the result
        continue;
      }
      part_of_phase = !phase.grid.empty();
      phase.steps.push_back(std::move(step));
      kernel_.phases.push_back(std::move(phase));
    }
    StorePastCaches(device_, kernel_, choices_, &kernel_.phases.back());
    return absl::OkStatus();
  }

  // A map whose rows have borders: inside a task each range of the row becomes a step, if that puts at least half of
  // the row in vectors. Changes nothing on failure.
  bool AddPeeled(const Nest& nest, double per_point, movement::Phase* phase) {
    if (!target_.loops_for_ranges || nest.fold || nest.axes.empty()) return false;
    const Saved before = Save();
    const Axis row = nest.axes.back();
    movement::Step whole = StepOf(nest, device_);
    MoveLoopsToGrid(&whole, per_point, device_, &axes_, choices_, &phase->grid);
    int64_t in_vectors = 0;
    if (!whole.loops.empty() && whole.loops.back().axis.id == row.id) {
      Nest in_task = nest;
      std::erase_if(in_task.axes, [&](const Axis& axis) {
        return std::any_of(phase->grid.begin(), phase->grid.end(), [&](const Axis& g) { return g.id == axis.id; });
      });
      for (const Nest& part : PeelInnermost(std::move(in_task), &axes_)) {
        phase->steps.push_back(StepOf(part, device_));
        PrefetchAhead(device_, kernel_, per_point, &phase->steps.back());
        if (phase->steps.back().strategy == movement::Strategy::kMapVec) in_vectors += part.axes.back().extent;
      }
    }
    if (2 * in_vectors >= row.extent) return true;
    Restore(before);
    *phase = movement::Phase();
    return false;
  }

  // Tensors of stages [first, last) that the fusion block returns or that later stages read, and the other outputs of
  // the stages that compute these: all outputs of a stage live in one scope.
  std::set<TensorId> LiveOutOf(int first, int last) const {
    std::set<TensorId> live(program_.outputs.begin(), program_.outputs.end());
    for (size_t s = last; s < program_.tes.size(); ++s)
      te::VisitTensors(program_.tes[s], [&](TensorId t) { live.insert(t); });
    std::set<TensorId> result;
    for (int s = first; s < last; ++s) {
      const std::vector<TensorId>& outputs = program_.tes[s].outputs;
      if (std::any_of(outputs.begin(), outputs.end(), [&](TensorId t) { return live.count(t) > 0; })) {
        result.insert(outputs.begin(), outputs.end());
      }
    }
    return result;
  }

  void AddDeviceBuffers(const std::set<TensorId>& tensors) {
    for (TensorId t : tensors) {
      if (buffer_of_[t] < 0) AddBuffer(t, Scope::kDevice);
    }
  }

  // Adds stages [first, last) as one phase; on failure nothing has changed.
  absl::Status TryStitch(int first, int last) {
    const movement::Kernel kernel = kernel_;
    const std::vector<int> buffer_of = buffer_of_;
    live_out_ = LiveOutOf(first, last);
    AddDeviceBuffers(live_out_);
    absl::Status status = Stitch(first, last);
    if (status.ok() && !ProductsInTasks() && choices_->Pick("stitch", 2) == 1) {
      status = absl::FailedPreconditionError("one phase for each stage was measured to be faster");
    }
    scratch_boxes_.clear();
    if (!status.ok()) {
      kernel_ = kernel;
      buffer_of_ = buffer_of;
    }
    return status;
  }

  // Adds stages [first, last), stitched if possible (`refused`: already known to be impossible), else as a phase each.
  absl::Status AddStages(int first, int last, bool refused) {
    if (last - first > 1 && !refused && TryStitch(first, last).ok()) return absl::OkStatus();
    for (int s = first; s < last; ++s) {
      AddDeviceBuffers({program_.tes[s].outputs.begin(), program_.tes[s].outputs.end()});
      RETURN_IF_ERROR(AddPhase(program_.tes[s]));
    }
    return absl::OkStatus();
  }

  absl::Status Stitch(int first, int last) {
    std::vector<PhysicalTe> stages;
    bool products = false;
    for (int s = first; s < last; ++s) {
      const te::Te& te = program_.tes[s];
      ASSIGN_OR_RETURN(PhysicalTe physical, MakePhysical(
                                                te, [this](TensorId t) { return LayoutOfTensor(t); }, &axes_));
      if (DomainPoints(physical.te) == 0) return absl::FailedPreconditionError("a stage has no elements");
      if (WantsRegisterTile(program_, te, device_)) {
        products = true;
        if (in_tasks_ == InTasks::kNoProducts) {
          return absl::FailedPreconditionError(
              absl::StrCat("'", program_.tensors[te.outputs[0]].name,
                           "' is a product that needs a register tile with a grid of its own"));
        }
      }
      stages.push_back(std::move(physical));
    }
    // Splits an axis that holds attention heads beside their columns.
    if (products && in_tasks_ == InTasks::kProducts) SplitDividedAxes(&stages.back(), &axes_, kLeastHead);
    const LayoutOf layout_of = [this](TensorId t) { return LayoutOfTensor(t); };
    const TaskBoxes task(program_, stages, layout_of, live_out_);
    ASSIGN_OR_RETURN(
        std::vector<GridAxis> grid,
        ChooseGrid(task, products && ProductsInTasks() ? in_tasks_ : InTasks::kNoProducts, device_, &axes_));
    // Windows overlap by little, so each of several axes alone may be shared out at little cost, but perhaps not all of
    // them together. The axes that make most tasks are kept.
    while (in_tasks_ == InTasks::kWindows && grid.size() > 1 && !task.For(grid).ok()) {
      grid.erase(std::min_element(grid.begin(), grid.end(), [](const GridAxis& a, const GridAxis& b) {
        return a.number.extent < b.number.extent;
      }));
    }
    ASSIGN_OR_RETURN(const std::vector<te::Box> boxes, task.For(grid));
    movement::Phase phase;
    for (const GridAxis& shared : grid) phase.grid.push_back(shared.number);

    for (size_t s = 0; s + 1 < stages.size(); ++s) {
      if (task.LiveOut(s)) continue;
      for (TensorId out : stages[s].te.outputs) {
        scratch_boxes_[out] = boxes[s];
        const int b = AddBuffer(out, Scope::kBlock);
        kernel_.buffers[b].elements = BoxPoints(boxes[s]) + BehindWindows();
      }
    }
    for (size_t s = 0; s < stages.size(); ++s) {
      RETURN_IF_ERROR(AddTaskSteps(program_.tes[first + static_cast<int>(s)], stages[s], boxes[s], &phase));
    }
    PrefetchNextTask(device_, kernel_, &phase);
    StorePastCaches(device_, kernel_, choices_, &phase);
    kernel_.phases.push_back(std::move(phase));
    const int64_t scratch_bytes = kernel_.PlannedScratchBytes();
    if (scratch_bytes > MostScratchBytes(device_, products)) {
      return absl::FailedPreconditionError(
          absl::StrCat("a task's intermediates of ", scratch_bytes, " bytes exceed the core's own cache"));
    }
    return absl::OkStatus();
  }

  // Returns the loop nest of a stage over its box in a task.
  absl::StatusOr<Nest> NestInTask(const PhysicalTe& stage, const te::Box& box, const std::vector<Axis>& grid) {
    ASSIGN_OR_RETURN(Nest nest, MakeNest(stage));
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
        const Axis local = axes_.New(span.length);
        loops.push_back(local);
        bound[axis.id] = span.origin + Index(local);
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

  absl::StatusOr<movement::Phase> TileInTask(Nest nest) {
    if (target_.threadgroup_tiles) {
      PrepareForGroup(&nest);
      return GroupTilePhase(std::move(nest), device_, &kernel_, &axes_, choices_, TileHome::kTask);
    }
    FinishNest(&nest, /*in_task=*/true);
    return TilePhase(std::move(nest), device_, &kernel_, &axes_, choices_, TileHome::kTask);
  }

  // Adds a stage's steps in a task: a register tile where the stage wants one or would run element by element, else one
  // nest.
  absl::Status AddTaskSteps(const te::Te& te, const PhysicalTe& stage, const te::Box& box, movement::Phase* phase) {
    ASSIGN_OR_RETURN(Nest nest, NestInTask(stage, box, phase->grid));
    const Nest bound = nest;
    FuseAxes(&nest, &axes_);
    movement::Step step = StepOf(nest, device_);
    const bool wants_tile = WantsRegisterTile(program_, te, device_);
    const bool along_fold = step.strategy == movement::Strategy::kRowFold;
    const bool window = te.fold && in_tasks_ == InTasks::kWindows && !along_fold;
    // A single vector of sums would wait for each addition. A row times a matrix gets a register tile, with several
    // vectors of sums and its matrix packed.
    const bool one_vector = step.strategy == movement::Strategy::kTile && IsProduct(te) && target_.vector_reductions;
    if (wants_tile || window || one_vector || (ProductsInTasks() && IsProduct(te) && !along_fold)) {
      const Saved before = Save();
      absl::StatusOr<movement::Phase> in_task = TileInTask(bound);
      if (in_task.ok()) {
        for (movement::Step& tile : in_task->steps) phase->steps.push_back(std::move(tile));
        return absl::OkStatus();
      }
      if (wants_tile) return in_task.status();
      Restore(before);
    }
    if (step.strategy == movement::Strategy::kScalar && target_.loops_for_ranges && AddRanges(bound, phase)) {
      return absl::OkStatus();
    }
    phase->steps.push_back(std::move(step));
    return absl::OkStatus();
  }

  // A map that runs element by element because of its conditions becomes a loop for each range of the axis that they
  // cut, if that puts some of them in vectors.
  bool AddRanges(const Nest& nest, movement::Phase* phase) {
    const AxisSource before = axes_;
    const auto worth = [&](const Nest& part) {
      const int64_t lanes = device_.vector_bytes / 4;
      const int64_t least = in_tasks_ == InTasks::kWindows ? lanes / 2 : lanes;
      return !part.axes.empty() && part.axes.back().extent >= least;
    };
    std::vector<movement::Step> steps;
    bool vectors = false;
    for (Nest& part : SplitRanges(nest, &axes_, worth)) {
      FuseAxes(&part, &axes_);
      steps.push_back(StepOf(part, device_));
      vectors = vectors || steps.back().strategy == movement::Strategy::kMapVec;
    }
    if (!vectors || steps.size() < 2) {
      axes_ = before;
      return false;
    }
    for (movement::Step& step : steps) phase->steps.push_back(std::move(step));
    return true;
  }

  // Elements behind a scratch box that the last vector of its last row may read; results made from them are not stored.
  int64_t BehindWindows() const { return in_tasks_ == InTasks::kWindows ? device_.vector_bytes / 4 : 0; }

  // Drops arguments that nothing reads any more (constants replaced by their packed copies).
  void DropUnusedBuffers() {
    std::vector<bool> used(kernel_.buffers.size(), false);
    for (const movement::Phase& phase : kernel_.phases) {
      movement::VisitSteps(phase, [&](const movement::Step& step) {
        movement::VisitBuffers(step, [&](int buffer) { used[buffer] = true; });
      });
    }
    std::vector<int> renumber(kernel_.buffers.size(), -1);
    std::vector<movement::Buffer> kept;
    auto keep = [&](bool block_scope) {
      for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
        if (!used[b] || (kernel_.buffers[b].scope == Scope::kBlock) != block_scope) continue;
        renumber[b] = static_cast<int>(kept.size());
        kept.push_back(kernel_.buffers[b]);
      }
    };
    keep(false);
    keep(true);
    auto map = [&](TensorId buffer) { return renumber[buffer]; };
    for (movement::Phase& phase : kernel_.phases) {
      movement::VisitSteps(&phase, [&](movement::Step* each) {
        movement::Step& step = *each;
        for (te::Scalar& s : step.body) s = te::MapTensors(s, map);
        for (te::Scalar& s : step.then) s = te::MapTensors(s, map);
        if (step.fold) {
          for (te::Scalar& s : step.fold->init) s = te::MapTensors(s, map);
          for (te::Comparison& c : step.fold->pred) {
            c.lhs = te::MapTensors(c.lhs, map);
            c.rhs = te::MapTensors(c.rhs, map);
          }
        }
        for (movement::Store& store : step.stores) store.buffer = renumber[store.buffer];
        if (step.library) {
          for (int* buffer : ArgumentsOf(*step.library)) *buffer = renumber[*buffer];
        }
        for (movement::Prefetch& prefetch : step.tile.prefetch) prefetch.buffer = renumber[prefetch.buffer];
        for (int& buffer : step.read_next.buffers) buffer = renumber[buffer];
      });
    }
    kernel_.buffers = std::move(kept);
  }

  const te::Program& program_;
  const std::map<TensorId, Layout>& layouts_;
  const DeviceModel& device_;
  const TargetStrategy& target_;
  const InTasks in_tasks_;
  const int library_product_;  // the stage that a library computes, -1: none
  ChoiceLog* const choices_;
  AxisSource axes_;
  movement::Kernel kernel_;
  std::vector<int> buffer_of_;
  std::set<TensorId> live_out_;                // of the stages being stitched
  std::map<TensorId, te::Box> scratch_boxes_;  // of the stages being stitched
};

// The fusion block with its one product computed by a library of the target, and text for everything else. What follows
// the product is part of the library's call if it can be.
absl::StatusOr<ScheduledBlock> ScheduleWithLibrary(const BlockForm& form, const DeviceModel& device,
                                                   const std::set<std::string>& disabled_passes, ChoiceLog* choices) {
  const bool any = !device.product_library.empty() || !device.convolution_library.empty();
  const int product = any ? OnlyProduct(form.program, device) : -1;
  if (product < 0)
    return absl::FailedPreconditionError(
        "the fusion block does not have exactly one product, or the device has no library for it");
  const ChoiceLog before = *choices;
  const auto schedule = [&](const te::Program& program) {
    return BlockScheduler(program, form.layouts, device, InTasks::kNoProducts, choices, product).Run();
  };
  absl::StatusOr<ScheduledBlock> block = schedule(form.program);
  for (const bool rounded : {false, true}) {
    if (block.ok()) break;
    BlockPassContext context;
    context.product = product;
    context.rounded_product = rounded;
    ASSIGN_OR_RETURN(const std::optional<BlockForm> bare,
                     RunBlockPass(BlockPass::kBareProduct, form, context, disabled_passes));
    if (!bare) continue;
    *choices = before;
    block = schedule(bare->program);
  }
  return block;
}

// One schedule of a fusion block. The model orders them, and a measurement may choose another than the first.
struct Candidate {
  ScheduledBlock block;
  ChoiceLog log;
  double latency_ns;
};

// Collects the candidates of one fusion block: makes other forms of its program and schedules them.
class Candidates {
 public:
  Candidates(const BlockForm& given, const DeviceModel& device, const ScheduleOptions& options, ChoiceLog* log)
      : given_(given), device_(device), options_(options), log_(log) {}

  absl::Status AddAll() {
    ASSIGN_OR_RETURN(const BlockForm split, Cut());
    RETURN_IF_ERROR(AddPlain(split));
    RETURN_IF_ERROR(AddFiltered());
    ASSIGN_OR_RETURN(const std::optional<BlockForm> spread, RunPass(BlockPass::kSplitK, split));
    if (spread) Add(*spread, InTasks::kNoProducts).IgnoreError();
    RETURN_IF_ERROR(AddWindows(split));
    AddPersistent();
    return absl::OkStatus();
  }

  std::vector<Candidate>& all() { return all_; }

 private:
  absl::StatusOr<std::optional<BlockForm>> RunPass(BlockPass pass, const BlockForm& form, int64_t filter_outputs = 0) {
    BlockPassContext context;
    context.device = &device_;
    context.choices = log_;
    context.filter_outputs = filter_outputs;
    return RunBlockPass(pass, form, context, options_.disabled_passes);
  }

  absl::Status Add(const BlockForm& form, InTasks in_tasks) {
    ChoiceLog log = *log_;
    ASSIGN_OR_RETURN(ScheduledBlock block,
                     BlockScheduler(form.program, form.layouts, device_, in_tasks, &log).Run());
    if (form.filtered) {
      RETURN_IF_ERROR(TransformFilter(*form.filtered, &block.kernel));
      for (size_t t = given_.program.tensors.size(); t < form.program.tensors.size(); ++t) {
        const te::TensorInfo& made = form.program.tensors[t];
        if (made.constant) block.constants[static_cast<int>(t)] = *made.constant;
      }
    }
    double ns = movement::EstimateCost(block.kernel, device_, device_.parallel_units).latency_ns;
    if (form.filtered) ns *= kFilterMargin;
    all_.push_back({std::move(block), std::move(log), ns});
    return absl::OkStatus();
  }

  // Returns the form with its long products cut along the reduction.
  absl::StatusOr<BlockForm> Cut() {
    ASSIGN_OR_RETURN(std::optional<BlockForm> cut, RunPass(BlockPass::kKBlocking, given_));
    return cut ? *std::move(cut) : given_;
  }

  // The form that every fusion block has; where its stages cannot be stitched, also one with products inside tasks.
  absl::Status AddPlain(const BlockForm& split) {
    RETURN_IF_ERROR(Add(split, InTasks::kNoProducts));
    if (!all_[0].block.stitched) {
      const te::Program& program = split.program;
      const bool products = std::any_of(program.tes.begin(), program.tes.end(),
                                        [&](const te::Te& te) { return WantsRegisterTile(program, te, device_); });
      const absl::Status in_tasks = products ? Add(split, InTasks::kProducts) : absl::OkStatus();
      if (!in_tasks.ok()) absl::StrAppend(&all_[0].block.reason, "; in tasks: ", in_tasks.message());
    }
    if (given_.program.tes.size() == 1) {  // slices along the reduction count as one stage
      all_[0].block.stitched = true;
      all_[0].block.reason.clear();
    }
    return absl::OkStatus();
  }

  absl::Status AddFiltered() {
    // On work-groups: its many products with constant matrices are too small for threadgroup tiles.
    if (device_.task_lanes > 1) return absl::OkStatus();
    for (const int64_t outputs : kFilterOutputs) {
      ASSIGN_OR_RETURN(const std::optional<BlockForm> filtered, RunPass(BlockPass::kWinograd, given_, outputs));
      if (filtered) Add(*filtered, InTasks::kFiltering).IgnoreError();
    }
    return absl::OkStatus();
  }

  // Other forms of windows: with their borders copied around them, row by row first, or both.
  absl::Status AddWindows(const BlockForm& split) {
    RETURN_IF_ERROR(AddCopied(split));
    ASSIGN_OR_RETURN(const std::optional<BlockForm> separated, RunPass(BlockPass::kSeparateWindows, split));
    if (!separated) return absl::OkStatus();
    Add(*separated, InTasks::kWindows).IgnoreError();
    return AddCopied(*separated);
  }
  absl::Status AddCopied(const BlockForm& form) {
    ASSIGN_OR_RETURN(const std::optional<BlockForm> copied, RunPass(BlockPass::kCopyWindows, form));
    if (copied) Add(*copied, InTasks::kWindows).IgnoreError();
    return absl::OkStatus();
  }

  // Forms with several phases in one launch (persistent kernels), where work-groups may wait for each other.
  void AddPersistent() {
    for (size_t f = 0, n = all_.size(); f < n && device_.resident_groups > 0; ++f) {
      if (all_[f].block.kernel.phases.size() < 2) continue;
      Candidate staying = all_[f];
      staying.block.kernel.resident = true;
      staying.latency_ns = movement::EstimateCost(staying.block.kernel, device_, device_.parallel_units).latency_ns;
      all_.push_back(std::move(staying));
    }
  }

  const BlockForm& given_;
  const DeviceModel& device_;
  const ScheduleOptions& options_;
  ChoiceLog* const log_;
  std::vector<Candidate> all_;
};

}  // namespace

absl::StatusOr<ScheduledBlock> ScheduleBlock(const te::Program& program, const std::map<te::TensorId, Layout>& layouts,
                                             const DeviceModel& device, const ScheduleOptions& options) {
  if (program.tes.size() == 1 && program.tes[0].routine) return ScheduleRoutine(program, layouts);
  const BlockForm given{program, layouts, std::nullopt};
  ChoiceLog log(options.choices);
  ChoiceLog library_log = log;
  // The model never chooses a library for a stage, because it knows nothing of libraries.
  if (absl::StatusOr<ScheduledBlock> library =
          ScheduleWithLibrary(given, device, options.disabled_passes, &library_log);
      library.ok() && log.Pick("library", 2, ChoiceKind::kUnmodelled) == 1) {
    library->choices = log.met();
    library->choices.insert(library->choices.end(), library_log.met().begin(), library_log.met().end());
    return library;
  }
  Candidates candidates(given, device, options, &log);
  RETURN_IF_ERROR(candidates.AddAll());
  std::vector<Candidate>& all = candidates.all();
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.latency_ns < b.latency_ns; });
  const int taken = log.Pick("form", static_cast<int>(all.size()));
  Candidate& form = all[taken];
  if (form.block.kernel.phases.size() > 1 && StrategyOf(device).phases_are_launches && device.resident_groups == 0) {
    absl::StrAppend(&form.block.reason, form.block.reason.empty() ? "" : "; ",
                    "each phase is a launch, because work-groups of this device cannot wait for each other");
  }
  form.block.choices = form.log.met();
  if (all.size() > 1) form.block.choices.push_back(log.met().back());  // "form"
  return std::move(form.block);
}

}  // namespace fusion
