#include "compiler/schedule/threadgroup/threadgroup_tile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/movement/work_groups.h"
#include "compiler/schedule/threadgroup/copy_operands.h"
#include "compiler/schedule/threadgroup/k_slices.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;
using te::ScalarKind;

// A reduction of fewer products is not worth copies in K-slices.
constexpr int64_t kMinReduction = 8;

int64_t RoundUp(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

// Row-major coordinates of `linear` in the axes. The first one may run past its extent where `linear` does.
std::vector<Index> Coordinates(const Index& linear, const std::vector<Axis>& axes) {
  std::vector<Index> result(axes.size());
  int64_t stride = 1;
  for (size_t a = axes.size(); a-- > 0;) {
    const Index quotient = te::FloorDiv(linear, stride);
    result[a] = a == 0 ? quotient : te::Mod(quotient, axes[a].extent);
    stride *= axes[a].extent;
  }
  return result;
}

// Does the operand lie contiguous along the last of these axes?
bool ContiguousAlong(const Scalar& operand, const std::vector<Axis>& axes) {
  bool contiguous = false;
  if (axes.empty()) return false;
  te::Visit(operand, [&](const te::ScalarNode& node) {
    int64_t c = 0;
    contiguous =
        contiguous || (node.kind == ScalarKind::kLoad && node.indices[0].AffineIn(axes.back().id, &c) && c == 1);
  });
  return contiguous;
}

// Has an earlier step of the task stored the operand?
bool IsScratch(const Scalar& operand, const movement::Kernel& kernel) {
  return operand->kind == ScalarKind::kLoad && kernel.buffers[operand->tensor].scope == Scope::kBlock;
}

// One side of the product.
struct Side {
  int argument = 0;            // which argument of the body's multiplication
  std::vector<Axis> axes;      // axes of the nest that this operand alone moves with
  int64_t results = 1;         // the number of results along `axes`
  bool along_k_slice = false;  // neighbours of the operand in memory are neighbours along the K-slice
  Axis tile, in_tile;
  Index position;  // tile · extent of in_tile + in_tile
};

void Split(int64_t tile_extent, AxisSource* axes, Side* side) {
  side->tile = axes->New((side->results + tile_extent - 1) / tile_extent);
  side->in_tile = axes->New(tile_extent);
  side->position = Index(side->tile) * tile_extent + Index(side->in_tile);
}

// Adds `index < limit` to the predicate unless it always holds.
void Require(const Index& index, int64_t limit, te::Pred* pred) {
  if (index.Range().hi >= limit) pred->push_back({index, te::Cmp::kLt, Index(limit)});
}

// Makes the phase of one product, step by step; ThreadgroupTilePhase has the order.
class GroupTiler {
 public:
  GroupTiler(Nest nest, const DeviceModel& device, movement::Kernel* kernel, AxisSource* axes, ChoiceLog* choices,
             TileHome home)
      : nest_(std::move(nest)),
        device_(device),
        kernel_(kernel),
        axes_(axes),
        choices_(choices),
        home_(home),
        in_task_(home == TileHome::kTask) {
    column_.argument = 1;
  }

  // Assigns each axis to the operand that alone moves with it. Axes that move both, or neither, make a batch of
  // products. Refuses what is no product for a threadgroup tile, or is not to be one.
  absl::Status AssignAxes() {
    if (!IsPlainSumOfProducts()) return Refusal("the stage is not a plain sum of f32 products");
    for (const Axis& axis : nest_.axes) {
      const bool by_row = MovesWith(nest_.body[0]->args[0], axis), by_column = MovesWith(nest_.body[0]->args[1], axis);
      (by_row == by_column ? batch_ : by_row ? row_.axes : column_.axes).push_back(axis);
    }
    row_.results = PointsOf(row_.axes);
    column_.results = PointsOf(column_.axes);
    if (row_.results < kMinSide || column_.results < kMinSide || PointsOf(nest_.reduction->axes) < kMinReduction) {
      return Refusal("the product has too few results for a threadgroup tile");
    }
    // Neighbouring work-items store neighbouring columns.
    if (StoresContiguous(row_) && !StoresContiguous(column_)) std::swap(row_, column_);
    if (nest_.limits.size() > 1) {
      return Refusal("the task ends early along two axes, and a threadgroup tile can bound one");
    }
    if (!in_task_ && choices_->Pick("threadgroup", {"yes", "no"}) == 1) {
      return Refusal("a register tile for each work-item was measured to be faster");
    }
    return absl::OkStatus();
  }

  // The K-slice runs along the longest reduction axis, or along all of them where all are short (the taps of a window).
  void ChooseSlicedAxes() {
    const std::vector<Axis>& reduction = nest_.reduction->axes;
    const auto longest = std::max_element(reduction.begin(), reduction.end(),
                                          [](const Axis& a, const Axis& b) { return a.extent < b.extent; });
    if (longest->extent >= kMinReduction) {
      sliced_ = {*longest};
      for (const Axis& axis : reduction) {
        if (axis.id != longest->id) outer_.push_back(axis);
      }
    } else {
      sliced_ = reduction;
    }
    length_ = PointsOf(sliced_);
  }

  // Chooses what is multiplied at once, the K-slices and the tile, in this order: each depends on those before.
  absl::Status ChooseTile() {
    by_ = ChooseMultiplier();
    slice_ = ChooseSlice();
    buffers_ = ChooseBuffers();
    const std::vector<ThreadgroupShape> shapes =
        RankThreadgroupShapes(row_.results, column_.results, PointsOf(batch_), slice_, buffers_,
                              in_task_ ? UnitOf(device_) : device_, by_, GroupOfOtherTiles());
    if (shapes.empty()) return Refusal("no K-slices of the operands fit the shared memory of a work-group");
    shape_ = shapes[choices_->Pick("shape", shapes, [](const ThreadgroupShape& one) {
      return absl::StrCat(one.rows, "x", one.columns, " by ", one.item_rows, "x", one.item_columns);
    })];
    return absl::OkStatus();
  }

  // Splits the axes into tiles and K-slices, and lets the nest speak of these.
  void SplitAxes() {
    Split(int64_t{shape_.item_rows} * shape_.rows * by_.product.rows, axes_, &row_);
    Split(int64_t{shape_.item_columns} * shape_.columns * by_.product.columns, axes_, &column_);
    part_ = axes_->New((length_ + slice_ - 1) / slice_);
    in_k_slice_ = axes_->New(slice_);
    depth_ = Index(part_) * slice_ + Index(in_k_slice_);
    for (Side* side : {&row_, &column_}) {
      const Scalar& operand = nest_.body[0]->args[side->argument];
      side->along_k_slice = ContiguousAlong(operand, sliced_) && !ContiguousAlong(operand, side->axes);
    }
    std::map<int, Index> bound;
    const auto bind = [&](const std::vector<Axis>& from, const Index& linear) {
      const std::vector<Index> coordinates = Coordinates(linear, from);
      for (size_t a = 0; a < from.size(); ++a) bound[from[a].id] = coordinates[a];
    };
    bind(row_.axes, row_.position);
    bind(column_.axes, column_.position);
    bind(sliced_, depth_);
    for (const Axis& axis : batch_) around_.push_back(LoopOf(nest_, axis));
    for (const auto& [axis, limit] : nest_.limits) {
      auto it = bound.find(axis);
      if (it == bound.end()) continue;
      task_limit_ = limit.constant();
      task_index_ = it->second - (limit - task_limit_);
    }
    nest_.Substitute([&](const Axis& axis) -> const Index* {
      auto it = bound.find(axis.id);
      return it == bound.end() ? nullptr : &it->second;
    });
  }

  movement::Phase MakePhase() {
    movement::Step step;
    std::vector<movement::Step> shared_copies;
    std::vector<Scalar> factors(2);
    for (const Side* side : {&row_, &column_}) {
      step.loops.push_back(LoopOfSide(*side));
      const Scalar& operand = nest_.body[0]->args[side->argument];
      factors[side->argument] = ReadsInPlace(*side) ? operand : AddSlices(*side, &shared_copies);
    }
    FillStep(factors, std::move(shared_copies), &step);
    movement::Phase phase;
    if (in_task_) {
      around_.insert(around_.end(), {{row_.tile, std::nullopt}, {column_.tile, std::nullopt}});
      step.loops.insert(step.loops.begin(), around_.begin(), around_.end());
    } else {
      phase.grid = batch_;
      phase.grid.insert(phase.grid.end(), {row_.tile, column_.tile});
    }
    phase.steps.push_back(std::move(step));
    return phase;
  }

 private:
  static absl::Status Refusal(const char* why) { return absl::FailedPreconditionError(why); }

  bool IsPlainSumOfProducts() const {
    return nest_.reduction && nest_.reduction->kind == te::ReductionKind::kSum && nest_.reduction->acc == DType::kF32 &&
           nest_.reduction->pred.empty() && nest_.stores.size() == 1 && nest_.body[0]->kind == ScalarKind::kOp &&
           nest_.body[0]->op == te::Op::kMul && nest_.body[0]->dtype == DType::kF32;
  }

  bool StoresContiguous(const Side& side) const {
    int64_t c = 0;
    return nest_.stores[0].address.AffineIn(side.axes.back().id, &c) && c == 1;
  }

  Multiplier ChooseMultiplier() {
    std::vector<Multiplier> multipliers = Multipliers(nest_.body[0], device_, home_);
    std::erase_if(multipliers, [&](const Multiplier& m) {
      return m.product.fragments() &&
             (std::max(row_.results, column_.results) < m.product.rows || length_ < m.product.depth);
    });
    return multipliers[choices_->Pick("fragments", multipliers, [](const Multiplier& one) {
      const movement::FragmentProduct& by = one.product;
      return by.fragments() ? absl::StrCat(by.rows, "x", by.columns, "x", by.depth) : "none";
    })];
  }

  // All tiles of a kernel are of one work-group size. 0: this is the first one, which a task of other steps does not
  // enlarge.
  int GroupOfOtherTiles() const {
    const int own = std::max(device_.work_group_size, by_.product.work_items);
    bool others = in_task_;
    for (const movement::Phase& phase : kernel_->phases) {
      movement::VisitSteps(phase,
                           [&](const movement::Step& s) { others = others || s.Is<movement::ThreadgroupTile>(); });
    }
    return others ? std::max(own, movement::WorkItems(*kernel_, device_.work_group_size)) : 0;
  }

  int64_t ChooseSlice() {
    std::vector<int64_t> k_slices;
    for (const int64_t k_slice : {kKSlice, 2 * kKSlice, kKSlice / 2}) {
      if (k_slice <= RoundUp(length_, kKSlice / 2) && k_slice % by_.product.depth == 0) k_slices.push_back(k_slice);
    }
    return k_slices[choices_->Pick("k_slice", k_slices, NumberLabel)];
  }

  int ChooseBuffers() {
    const int64_t k_slices_in_all = PointsOf(outer_) * ((length_ + slice_ - 1) / slice_);
    if (k_slices_in_all <= 1 || !device_.async_copies) return 1;
    // A task's scratch leaves less room for K-slices, so one buffer is the default there.
    const int preferred = in_task_ ? 1 : 2;
    const std::vector<int> buffers = {preferred, 3 - preferred};
    return buffers[choices_->Pick("buffers", buffers, NumberLabel)];
  }

  // Is the operand scratch of the task, of which whole tiles and K-slices are read where they lie?
  bool ReadsInPlace(const Side& side) const {
    return in_task_ && !by_.product.fragments() && IsScratch(nest_.body[0]->args[side.argument], *kernel_) &&
           side.results % side.in_tile.extent == 0 && length_ % slice_ == 0;
  }

  movement::Loop LoopOfSide(const Side& side) const {
    movement::Loop loop{side.in_tile, std::nullopt};
    if (side.results % side.in_tile.extent != 0) {
      loop.limit = Index(side.results) - Index(side.tile) * side.in_tile.extent;
    }
    return loop;
  }

  // Which of its buffers a K-slice lies in.
  Index WhichBuffer() const {
    std::vector<Axis> k_slices = outer_;
    k_slices.push_back(part_);
    return buffers_ == 1 ? Index(0) : te::Mod(Linear(k_slices), buffers_);
  }

  // Where the elements of a tile and a K-slice belong to the operand.
  te::Pred InsideOf(const Side& side) const {
    te::Pred inside;
    Require(side.position, side.results, &inside);
    Require(depth_, length_, &inside);
    if (task_limit_ >= 0 && task_index_.UsesAxis(side.in_tile.id)) Require(task_index_, task_limit_, &inside);
    return inside;
  }

  // The order in which an operand is copied, from the outermost axis.
  std::vector<Axis> CopyOrder(const Side& side, const KSliceAxes& walked) const {
    std::vector<Axis> box = batch_;
    box.push_back(side.tile);
    box.insert(box.end(), outer_.begin(), outer_.end());
    box.push_back(part_);
    box.insert(box.end(), walked.order.begin(), walked.order.end());
    return box;
  }

  int AddSliceBuffer(int64_t elements) {
    movement::Buffer k_slices;
    k_slices.scope = Scope::kBlock;
    k_slices.dtype = by_.dtype;
    k_slices.elements = buffers_ * elements;
    kernel_->buffers.push_back(k_slices);
    return static_cast<int>(kernel_->buffers.size()) - 1;
  }

  // Adds the K-slices of an operand and the step that copies them. Returns the operand's element, read from its slice.
  Scalar AddSlices(const Side& side, std::vector<movement::Step>* shared_copies) {
    te::Pred inside = InsideOf(side);
    const KSliceAxes walked(by_, side.in_tile, in_k_slice_, axes_);
    const auto in_blocks = [&](const Axis& axis) { return walked.Find(axis); };
    for (te::Comparison& c : inside) c.lhs = te::Substitute(c.lhs, in_blocks);
    const Scalar& factor = nest_.body[0]->args[side.argument];
    const Scalar operand =
        PackConstants(te::Substitute(by_.dtype == DType::kF16 ? Narrow(factor, by_.dtype) : factor, in_blocks),
                      CopyOrder(side, walked), inside, kernel_);
    const bool packed = operand->kind == ScalarKind::kLoad && kernel_->buffers[operand->tensor].packed_from >= 0;
    const bool along_k_slice = packed ? by_.product.fragments() : side.along_k_slice;
    const int64_t elements = KSliceElements(by_, slice_, side.in_tile.extent, along_k_slice);
    const int buffer = AddSliceBuffer(elements);
    const Index place = WhichBuffer() * elements + PlaceInKSlice(by_, side.in_tile, in_k_slice_, along_k_slice);

    movement::Step shared_copy;
    shared_copy.label = "k_slice";
    for (const Axis& axis : walked.Loops(packed, along_k_slice)) shared_copy.loops.push_back({axis, std::nullopt});
    // A packed operand already holds zeros where these tests fail.
    if (packed) {
      std::erase_if(inside, [&](const te::Comparison& c) { return UsesAxesOf(operand->indices[0], c.lhs); });
    }
    shared_copy.body = {te::If(inside, operand, te::Imm(by_.dtype, 0))};
    shared_copy.stores = {{buffer, te::Substitute(place, in_blocks)}};
    shared_copy.store_types = {by_.dtype};
    VectorizeAligned(device_.vector_bytes / 4, &shared_copy);
    shared_copies->push_back(std::move(shared_copy));
    const Scalar element = te::Load(buffer, by_.dtype, {place});
    return by_.dtype == DType::kF32 ? element : te::Cast(DType::kF32, element);
  }

  void FillStep(const std::vector<Scalar>& factors, std::vector<movement::Step> shared_copies,
                movement::Step* step) const {
    step->label = nest_.label;
    auto& tile = step->strategy.emplace<movement::ThreadgroupTile>();
    tile.row_axis = row_.in_tile.id;
    tile.column_axis = column_.in_tile.id;
    tile.item_rows = shape_.item_rows;
    tile.item_columns = shape_.item_columns;
    tile.rows = shape_.rows;
    tile.columns = shape_.columns;
    tile.product = by_.product;
    tile.buffers = buffers_;
    tile.shared_copies = std::move(shared_copies);
    if (task_limit_ >= 0) tile.store_limit = movement::Bound{task_index_, task_limit_};
    step->reduction = nest_.reduction;
    step->reduction->axes = outer_;
    step->reduction->axes.insert(step->reduction->axes.end(), {part_, in_k_slice_});
    step->body = {te::Call(te::Op::kMul, factors)};
    step->then = nest_.then;
    step->stores = nest_.stores;
    step->store_types = nest_.store_types;
    step->lane_limit = LaneLimitOf(nest_);
  }

  Nest nest_;
  const DeviceModel& device_;
  movement::Kernel* const kernel_;
  AxisSource* const axes_;
  ChoiceLog* const choices_;
  const TileHome home_;
  const bool in_task_;
  Side row_, column_;
  std::vector<Axis> batch_;           // axes of the results that move both operands, or neither
  std::vector<Axis> outer_, sliced_;  // of the reduction: around the K-slices, and along them
  int64_t length_ = 0;                // of the reduction along `sliced_`
  Multiplier by_;
  int64_t slice_ = 0;
  int buffers_ = 1;
  ThreadgroupShape shape_;
  Axis part_, in_k_slice_;
  Index depth_;                         // along `sliced_`
  std::vector<movement::Loop> around_;  // loops over the batch, in a task
  // Where the last task of a grid has fewer results than the others: task_index_ < task_limit_, a constant.
  Index task_index_;
  int64_t task_limit_ = -1;
};

}  // namespace

absl::StatusOr<movement::Phase> ThreadgroupTilePhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel,
                                                     AxisSource* axes, ChoiceLog* choices, TileHome home) {
  GroupTiler tiler(std::move(nest), device, kernel, axes, choices, home);
  RETURN_IF_ERROR(tiler.AssignAxes());
  tiler.ChooseSlicedAxes();
  RETURN_IF_ERROR(tiler.ChooseTile());
  tiler.SplitAxes();
  return tiler.MakePhase();
}

}  // namespace fusion
