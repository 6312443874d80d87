#include "compiler/schedule/threadgroup/threadgroup_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "compiler/cost/matrix_products.h"
#include "compiler/movement/vector_form.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/threadgroup/threadgroup_slices.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;
using te::ScalarKind;

// The fewest results along either side, and the fewest products of each result; below these, copying operands in
// K-slices costs more than it saves.
constexpr int64_t kMinSide = 8, kMinFold = 8;
// The most registers of a work-item that accumulators may take.
constexpr int kMostAccumulators = 64;
// Costs relative to an FMA: a load from shared memory (four work-items share a bank's width), and the copy of one
// element of a K-slice from global to shared memory.
constexpr double kSharedLoad = 0.5, kStagedElement = 6;
// Share of the shared memory that one work-group's K-slices may take: two work-groups on a unit hide each other's
// waiting.
constexpr double kMemoryShare = 0.5;
// Share of a work-group's shared memory that K-slices may take beside a task's scratch (task_grid.cc leaves as much).
constexpr double kShareInTask = 0.5;
// A shape that is slower than the best by more than this factor is not worth a measurement.
constexpr double kWorthTrying = 1.6;
constexpr size_t kMostShapes = 6;
constexpr int64_t kSlice = 16;
// A packed constant may grow by this factor and this slack for zero padding.
constexpr int64_t kMaxPackGrowth = 2, kPackSlack = 1 << 14;

int64_t Extent(const std::vector<Axis>& axes) {
  int64_t extent = 1;
  for (const Axis& axis : axes) extent *= axis.extent;
  return extent;
}

int64_t RoundUp(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

bool Uses(const Scalar& s, const Axis& axis) {
  bool uses = false;
  te::Visit(s, [&](const te::ScalarNode& node) {
    for (const Index& index : node.indices) uses = uses || index.UsesAxis(axis.id);
    if (node.kind == ScalarKind::kFromIndex) uses = uses || node.index.UsesAxis(axis.id);
    for (const te::Comparison& c : node.pred) uses = uses || c.lhs.UsesAxis(axis.id) || c.rhs.UsesAxis(axis.id);
  });
  return uses;
}

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

// The row-major number of a point of the axes.
Index Linear(const std::vector<Axis>& axes) {
  std::vector<Index> coordinates;
  std::vector<int64_t> extents;
  for (const Axis& axis : axes) {
    coordinates.push_back(Index(axis));
    extents.push_back(axis.extent);
  }
  return te::Linearize(coordinates, extents);
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

// A device model limited to one task's share of shared memory.
DeviceModel UnitOf(const DeviceModel& device) {
  DeviceModel unit = device;
  unit.parallel_units = 1;
  unit.memory = {{"", static_cast<int64_t>(kShareInTask * static_cast<double>(NearestCacheBytes(device))), 0, false}};
  return unit;
}

// One side of the product.
struct Side {
  int argument = 0;          // which argument of the body's multiplication
  std::vector<Axis> axes;    // axes of the nest that this operand alone moves with
  int64_t results = 1;       // the number of results along `axes`
  bool along_slice = false;  // neighbours of the operand in memory are neighbours along the K-slice
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

// Does the index use every axis of `tested`?
bool UsesAxesOf(const Index& index, const Index& tested) {
  std::vector<Axis> axes;
  te::CollectAxes(tested, &axes);
  return std::all_of(axes.begin(), axes.end(), [&](const Axis& axis) { return index.UsesAxis(axis.id); });
}

// Returns the operand with its constants packed in the order in which K-slices are copied (`box`), so that each slice
// is one contiguous run. Packed elements where `inside` does not hold are zero.
Scalar PackConstants(Scalar operand, const std::vector<Axis>& box, const te::Pred& inside, movement::Kernel* kernel) {
  std::vector<const te::ScalarNode*> loads;
  te::Visit(operand, [&](const te::ScalarNode& node) {
    if (node.kind != ScalarKind::kLoad || node.indices[0].HasLoad()) return;
    const movement::Buffer& source = kernel->buffers[node.tensor];
    if (source.is_constant && source.packed_from < 0) loads.push_back(&node);
  });
  const Scalar keep = operand;
  for (const te::ScalarNode* load : loads) {
    std::vector<Axis> moves;
    te::CollectAxes(load->indices[0], &moves);
    const bool with_task = std::any_of(moves.begin(), moves.end(), [&](const Axis& axis) {
      return std::none_of(box.begin(), box.end(), [&](const Axis& boxed) { return boxed.id == axis.id; });
    });
    if (with_task) continue;
    std::vector<Axis> used;
    for (const Axis& axis : box) {
      if (load->indices[0].UsesAxis(axis.id)) used.push_back(axis);
    }
    const movement::Buffer source = kernel->buffers[load->tensor];
    movement::Buffer packed;
    packed.dtype = source.dtype;
    packed.elements = Extent(used);
    packed.is_constant = true;
    if (packed.elements > kMaxPackGrowth * source.elements + kPackSlack) continue;
    te::Pred pred = inside;
    std::erase_if(pred, [&](const te::Comparison& c) { return !UsesAxesOf(load->indices[0], c.lhs); });
    packed.packed_from = static_cast<int>(kernel->packs.size());
    kernel->packs.push_back({source.tensor, used, load->indices[0], pred, {}});
    const int buffer = static_cast<int>(kernel->buffers.size());
    kernel->buffers.push_back(packed);
    operand = ReplaceLoad(operand, load, te::Load(buffer, source.dtype, {Linear(used)}));
  }
  return operand;
}

// The operand without the cast that widens it, also inside a border test that gives zero outside; null where it has no
// such cast.
Scalar Narrow(const Scalar& s, DType narrow) {
  if (s->kind == ScalarKind::kCast && s->args[0]->dtype == narrow) return s->args[0];
  if (s->kind != ScalarKind::kIf || !te::IsImm(s->args[1], 0)) return nullptr;
  const Scalar inner = Narrow(s->args[0], narrow);
  return inner == nullptr ? nullptr : te::If(s->pred, inner, te::Imm(narrow, 0));
}

// The ways to compute this product. Fragments in registers come first, where the device has them for these operands.
// Multiplying from shared memory comes last, because nobody knows how fast it is before a measurement; its work-group
// may be larger than others, so it needs a kernel of its own.
std::vector<Multiplier> Multipliers(const Scalar& product, const DeviceModel& device, TileHome home) {
  std::vector<Multiplier> multipliers;
  const bool halves = Narrow(product->args[0], DType::kF16) && Narrow(product->args[1], DType::kF16);
  const DType dtype = halves ? DType::kF16 : DType::kF32;
  const auto add = [&](const MatrixProduct& by) {
    multipliers.push_back({{by.rows, by.columns, by.depth, by.work_items, by.from_memory},
                           dtype,
                           device.fma_f32_flops_per_s / by.flops_per_s});
  };
  const MatrixProduct* matrix = FindMatrixProduct(device, dtype);
  if (matrix != nullptr && matrix->work_items <= device.task_lanes) add(*matrix);
  multipliers.emplace_back();
  const MatrixProduct* from_memory = FindMatrixProduct(device, dtype, /*from_memory=*/true);
  if (from_memory != nullptr && home == TileHome::kKernel) add(*from_memory);
  return multipliers;
}

// Vectorises along the innermost loop where it is a whole number of vectors and all loads and stores begin at multiples
// of a vector.
void VectorizeAligned(int64_t lanes, movement::Step* step) {
  const Axis inner = step->loops.back().axis;
  if (inner.extent % lanes != 0) return;
  const auto aligned = [&](const Index& address) {
    const Index at_vector = Index(inner) * lanes;
    const Index first = te::Substitute(address, [&](const Axis& a) { return a.id == inner.id ? &at_vector : nullptr; });
    return te::ClassifyLanes(address, inner, lanes) == te::LaneAccess::kContiguous && te::Mod(first, lanes) == Index(0);
  };
  bool all = aligned(step->stores[0].address);
  te::Visit(step->body[0], [&](const te::ScalarNode& node) {
    if (node.kind == ScalarKind::kLoad) all = all && aligned(node.indices[0]);
  });
  const movement::AlongAxis value = movement::AlongAxisOf(step->body[0], inner, lanes);
  if (!all || !value.vectorizable || value.stepped_loads > 0) return;
  step->strategy = movement::Strategy::kMapVec;
  step->vec_axis = inner.id;
}

}  // namespace

std::vector<GroupShape> RankGroupShapes(int64_t rows, int64_t columns, int64_t batches, int64_t slice, int buffers,
                                        const DeviceModel& device, const Multiplier& by) {
  const movement::FragmentProduct& one = by.product;
  const int group = std::max(device.task_lanes, one.work_items);
  const int teams = group / one.work_items;
  std::vector<GroupShape> shapes;
  for (int item_rows = 1; item_rows <= teams; item_rows *= 2) {
    const int item_columns = teams / item_rows;
    if (item_rows > item_columns || 4 * item_rows < item_columns) continue;  // nearly square tiles load least
    for (const int r : {8, 4, 2, 1}) {
      for (const int c : {8, 4, 2, 1}) {
        const int results = r * c * one.rows * one.columns / one.work_items;
        if (results > kMostAccumulators) continue;
        const int64_t height = int64_t{item_rows} * r * one.rows, width = int64_t{item_columns} * c * one.columns;
        const int64_t bytes = DTypeBytes(by.dtype) * buffers *
                              (SliceElements(by, slice, height, true) + SliceElements(by, slice, width, true));
        if (static_cast<double>(bytes) > kMemoryShare * static_cast<double>(NearestCacheBytes(device))) continue;
        const int64_t row_tiles = (rows + height - 1) / height, column_tiles = (columns + width - 1) / width;
        const auto tasks = static_cast<double>(batches * row_tiles * column_tiles);
        const double units = std::max(1, device.parallel_units);
        const double loads = DTypeBytes(by.dtype) / 4.0 * (r * one.rows + c * one.columns) / one.work_items;
        const double step =
            results * by.fmas + kSharedLoad * loads + kStagedElement * static_cast<double>(height + width) / group;
        shapes.push_back({item_rows, item_columns, r, c, step * std::ceil(tasks / units)});
      }
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(),
                   [](const GroupShape& a, const GroupShape& b) { return a.cycles < b.cycles; });
  while (!shapes.empty() && (shapes.size() > kMostShapes || shapes.back().cycles > kWorthTrying * shapes[0].cycles)) {
    shapes.pop_back();
  }
  return shapes;
}

double GroupTileWork(const te::Te& te, const te::Box& box, const DeviceModel& device) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (te.IsMap() || te.body[0]->kind != ScalarKind::kOp || te.body[0]->op != te::Op::kMul) return kNever;
  int64_t rows = 1, columns = 1, batches = 1;
  for (size_t a = 0; a < te.axes.size(); ++a) {
    const bool by_row = Uses(te.body[0]->args[0], te.axes[a]), by_column = Uses(te.body[0]->args[1], te.axes[a]);
    (by_row == by_column ? batches : by_row ? rows : columns) *= box[a].length;
  }
  if (rows < kMinSide || columns < kMinSide) return kNever;
  const std::vector<GroupShape> shapes = RankGroupShapes(rows, columns, batches, kSlice, 1, UnitOf(device),
                                                         Multipliers(te.body[0], device, TileHome::kTask)[0]);
  if (shapes.empty()) return kNever;
  return shapes[0].cycles * device.task_lanes * static_cast<double>(Extent(te.fold->axes));
}

absl::StatusOr<movement::Phase> GroupTilePhase(Nest nest, const DeviceModel& device, movement::Kernel* kernel,
                                               AxisSource* axes, ChoiceLog* choices, TileHome home) {
  const bool in_task = home == TileHome::kTask;
  const auto refuse = [](const char* why) { return absl::FailedPreconditionError(why); };
  if (!nest.fold || nest.fold->kind != te::FoldKind::kSum || nest.fold->acc != DType::kF32 ||
      !nest.fold->pred.empty() || nest.stores.size() != 1 || nest.body[0]->kind != ScalarKind::kOp ||
      nest.body[0]->op != te::Op::kMul || nest.body[0]->dtype != DType::kF32) {
    return refuse("the stage is not a plain sum of f32 products");
  }
  // Assigns each axis to the operand that alone moves with it. Axes that move both, or neither, make a batch of
  // products.
  Side row, column;
  column.argument = 1;
  std::vector<Axis> batch;
  for (const Axis& axis : nest.axes) {
    const bool by_row = Uses(nest.body[0]->args[0], axis), by_column = Uses(nest.body[0]->args[1], axis);
    (by_row == by_column ? batch : by_row ? row.axes : column.axes).push_back(axis);
  }
  row.results = Extent(row.axes);
  column.results = Extent(column.axes);
  if (row.results < kMinSide || column.results < kMinSide || Extent(nest.fold->axes) < kMinFold) {
    return refuse("the product has too few results for a threadgroup tile");
  }
  // Neighbouring work-items store neighbouring columns.
  const auto contiguous_store = [&](const Side& side) {
    int64_t c = 0;
    return nest.stores[0].address.AffineIn(side.axes.back().id, &c) && c == 1;
  };
  if (contiguous_store(row) && !contiguous_store(column)) std::swap(row, column);
  if (nest.limits.size() > 1) return refuse("the task ends early along two axes, and a threadgroup tile can bound one");
  if (!in_task && choices->Pick("group", 2) == 1)
    return refuse("a register tile for each work-item was measured to be faster");

  // The K-slice runs along the longest reduction axis, or along all of them where all are short (the taps of a window).
  std::vector<Axis> fold = nest.fold->axes;
  const auto longest =
      std::max_element(fold.begin(), fold.end(), [](const Axis& a, const Axis& b) { return a.extent < b.extent; });
  std::vector<Axis> outer, sliced;
  if (longest->extent >= kMinFold) {
    sliced = {*longest};
    for (const Axis& axis : fold) {
      if (axis.id != longest->id) outer.push_back(axis);
    }
  } else {
    sliced = fold;
  }
  const int64_t length = Extent(sliced);
  std::vector<Multiplier> multipliers = Multipliers(nest.body[0], device, home);
  std::erase_if(multipliers, [&](const Multiplier& m) {
    return m.product.fragments() &&
           (std::max(row.results, column.results) < m.product.rows || length < m.product.depth);
  });
  const int ways = static_cast<int>(multipliers.size());
  const Multiplier by = multipliers[ways == 1 ? 0 : choices->Pick("fragments", ways)];
  std::vector<int64_t> slices;
  for (const int64_t slice : {kSlice, 2 * kSlice, kSlice / 2}) {
    if (slice <= RoundUp(length, kSlice / 2) && slice % by.product.depth == 0) slices.push_back(slice);
  }
  const int64_t slice = slices[choices->Pick("slice", static_cast<int>(slices.size()))];
  const int64_t slices_in_all = Extent(outer) * ((length + slice - 1) / slice);
  int buffers = 1;
  if (slices_in_all > 1 && device.async_copies) {
    // A task's scratch leaves less room for K-slices, so one buffer is the default there.
    const int preferred = in_task ? 1 : 2;
    buffers = choices->Pick("buffers", 2) == 0 ? preferred : 3 - preferred;
  }
  const std::vector<GroupShape> shapes = RankGroupShapes(row.results, column.results, Extent(batch), slice, buffers,
                                                         in_task ? UnitOf(device) : device, by);
  if (shapes.empty()) return refuse("no K-slices of the operands fit the shared memory of a work-group");
  const GroupShape shape = shapes[choices->Pick("shape", static_cast<int>(shapes.size()))];
  Split(int64_t{shape.item_rows} * shape.rows * by.product.rows, axes, &row);
  Split(int64_t{shape.item_columns} * shape.columns * by.product.columns, axes, &column);
  const Axis part = axes->New((length + slice - 1) / slice), in_slice = axes->New(slice);
  const Index depth = Index(part) * slice + Index(in_slice);
  for (Side* side : {&row, &column}) {
    const Scalar& operand = nest.body[0]->args[side->argument];
    side->along_slice = ContiguousAlong(operand, sliced) && !ContiguousAlong(operand, side->axes);
  }

  std::map<int, Index> bound;
  const auto bind = [&](const std::vector<Axis>& from, const Index& linear) {
    const std::vector<Index> coordinates = Coordinates(linear, from);
    for (size_t a = 0; a < from.size(); ++a) bound[from[a].id] = coordinates[a];
  };
  bind(row.axes, row.position);
  bind(column.axes, column.position);
  bind(sliced, depth);
  // Where the last task of a grid has fewer results than the others: task_index < task_limit, a constant.
  Index task_index;
  int64_t task_limit = -1;
  std::vector<movement::Loop> around;
  for (const Axis& axis : batch) around.push_back(LoopOf(nest, axis));
  for (const auto& [axis, limit] : nest.limits) {
    auto it = bound.find(axis);
    if (it == bound.end()) continue;
    task_limit = limit.constant();
    task_index = it->second - (limit - task_limit);
  }
  nest.Substitute([&](const Axis& axis) -> const Index* {
    auto it = bound.find(axis.id);
    return it == bound.end() ? nullptr : &it->second;
  });

  std::vector<Axis> slices_axes = outer;
  slices_axes.push_back(part);
  const Index which = buffers == 1 ? Index(0) : te::Mod(Linear(slices_axes), buffers);

  movement::Step step;
  std::vector<Scalar> factors(2);
  for (const Side* side : {&row, &column}) {
    te::Pred inside;
    Require(side->position, side->results, &inside);
    Require(depth, length, &inside);
    if (in_task && !by.product.fragments() && IsScratch(nest.body[0]->args[side->argument], *kernel) &&
        side->results % side->in_tile.extent == 0 && length % slice == 0) {
      factors[side->argument] = nest.body[0]->args[side->argument];
      step.loops.push_back({side->in_tile, std::nullopt});
      continue;
    }
    if (task_limit >= 0 && task_index.UsesAxis(side->in_tile.id)) Require(task_index, task_limit, &inside);
    const bool fragments = by.product.fragments();
    const SliceAxes walked(by, side->in_tile, in_slice, axes);
    const auto in_blocks = [&](const Axis& axis) { return walked.Find(axis); };
    for (te::Comparison& c : inside) c.lhs = te::Substitute(c.lhs, in_blocks);
    std::vector<Axis> box = batch;
    box.push_back(side->tile);
    box.insert(box.end(), outer.begin(), outer.end());
    box.push_back(part);
    box.insert(box.end(), walked.order.begin(), walked.order.end());
    const Scalar& factor = nest.body[0]->args[side->argument];
    const Scalar operand = PackConstants(
        te::Substitute(by.dtype == DType::kF16 ? Narrow(factor, by.dtype) : factor, in_blocks), box, inside, kernel);
    const bool packed = operand->kind == ScalarKind::kLoad && kernel->buffers[operand->tensor].packed_from >= 0;
    const bool along_slice = packed ? fragments : side->along_slice;

    movement::Buffer slices;
    slices.scope = Scope::kBlock;
    slices.dtype = by.dtype;
    const int64_t elements = SliceElements(by, slice, side->in_tile.extent, along_slice);
    slices.elements = buffers * elements;
    const int buffer = static_cast<int>(kernel->buffers.size());
    kernel->buffers.push_back(slices);
    const Index place = which * elements + PlaceInSlice(by, side->in_tile, in_slice, along_slice);

    movement::Step staging;
    staging.label = "slice";
    for (const Axis& axis : walked.Loops(packed, along_slice)) staging.loops.push_back({axis, std::nullopt});
    // A packed operand already holds zeros where these tests fail.
    if (packed) {
      std::erase_if(inside, [&](const te::Comparison& c) { return UsesAxesOf(operand->indices[0], c.lhs); });
    }
    staging.body = {te::If(inside, operand, te::Imm(by.dtype, 0))};
    staging.stores = {{buffer, te::Substitute(place, in_blocks)}};
    staging.store_types = {by.dtype};
    VectorizeAligned(device.vector_bytes / 4, &staging);
    step.staging.push_back(std::move(staging));
    const Scalar element = te::Load(buffer, by.dtype, {place});
    factors[side->argument] = by.dtype == DType::kF32 ? element : te::Cast(DType::kF32, element);

    movement::Loop loop{side->in_tile, std::nullopt};
    if (side->results % side->in_tile.extent != 0) {
      loop.limit = Index(side->results) - Index(side->tile) * side->in_tile.extent;
    }
    step.loops.push_back(loop);
  }
  step.label = nest.label;
  step.strategy = movement::Strategy::kGroupTile;
  step.group = {row.in_tile.id, column.in_tile.id, shape.item_rows, shape.item_columns,
                shape.rows,     shape.columns,     by.product,      buffers};
  step.fold = nest.fold;
  step.fold->axes = outer;
  step.fold->axes.insert(step.fold->axes.end(), {part, in_slice});
  step.body = {te::Call(te::Op::kMul, factors)};
  step.then = nest.then;
  step.stores = nest.stores;
  step.store_types = nest.store_types;
  step.lane_mask_index = nest.mask_index;
  step.lane_limit = nest.mask_limit;
  step.store_limit_index = task_index;
  step.store_limit = task_limit;
  movement::Phase phase;
  if (in_task) {
    around.insert(around.end(), {{row.tile, std::nullopt}, {column.tile, std::nullopt}});
    step.loops.insert(step.loops.begin(), around.begin(), around.end());
  } else {
    phase.grid = batch;
    phase.grid.insert(phase.grid.end(), {row.tile, column.tile});
  }
  phase.steps.push_back(std::move(step));
  return phase;
}

}  // namespace fusion
