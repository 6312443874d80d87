#include "compiler/schedule/tile/pack_operands.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/vector/vectorize.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

// A packed constant may grow by this factor and this slack for zero padding; if it grows more, packing repeats it.
constexpr int64_t kMaxPackGrowth = 4, kPackSlack = 1 << 14;

std::vector<Axis> AxesOf(const te::Comparison& c) {
  std::vector<Axis> axes;
  te::CollectAxes(c.lhs, &axes);
  return axes;
}

bool Has(const std::vector<Axis>& axes, int id) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.id == id; });
}

// An operand that could be read where it lies is gathered where at least so many rows read it again.
constexpr double kGatherReuse = 28;

class Packer {
 public:
  Packer(const TileAxes& tile, const DeviceModel& device, movement::Kernel* kernel, AxisSource* axes, Nest* nest)
      : tile_(tile), device_(device), kernel_(*kernel), axes_(*axes), nest_(*nest) {}

  absl::Status Pack(const Operand& load) {
    const movement::Buffer source = kernel_.buffers[load.buffer];
    const bool constant = IsPackable(load, kernel_);
    const bool by_lane = load.address.UsesAxis(tile_.lane.id);
    // A broadcast weight is read as it is, unless the reduction is rounded up: the elements past its end are not zero.
    if (!by_lane && !(constant && RoundedUp(load))) return absl::OkStatus();
    const bool contiguous =
        te::ClassifyLanes(load.address, tile_.lane, tile_.lane.extent) == te::LaneAccess::kContiguous;
    const bool passes_end = tile_.store_limit >= 0 && !constant && load.address.Range().hi >= source.elements;
    const bool overruns = passes_end && !CanHaveRoom(load, kernel_);
    if (!constant && contiguous && !overruns && tile_.dot.id < 0 && !WorthGathering(load)) {
      int64_t& elements = kernel_.buffers[load.buffer].elements;
      if (passes_end) elements = std::max(elements, load.address.Range().hi + 1);  // scratch has room
      return absl::OkStatus();
    }
    if (!constant && tile_.row.id >= 0 && load.address.UsesAxis(tile_.row.id)) {
      return absl::FailedPreconditionError("an operand that moves with the lanes is not contiguous along them");
    }

    const bool parts = constant && by_lane && tile_.across.id >= 0;
    const Parts part = parts ? PartsOfPanels() : Parts();
    const std::vector<Axis> box = parts ? BoxOfPanels(load, part) : BoxOf(load, constant);
    std::vector<Index> coordinates;
    std::vector<int64_t> extents;
    movement::Buffer buffer;
    buffer.dtype = source.dtype;
    buffer.elements = 1;
    for (const Axis& axis : box) {
      coordinates.push_back(parts && axis.id == part.panel.id    ? te::FloorDiv(VectorNumber(), tile_.panel_vectors)
                            : parts && axis.id == part.vector.id ? te::Mod(VectorNumber(), tile_.panel_vectors)
                                                                 : Index(axis));
      extents.push_back(axis.extent);
      buffer.elements *= axis.extent;
    }
    if (constant && buffer.elements > kMaxPackGrowth * source.elements + kPackSlack) {
      return absl::FailedPreconditionError("packing would repeat a constant operand many times");
    }
    const int packed = static_cast<int>(kernel_.buffers.size());
    const Index place = te::Linearize(coordinates, extents);
    te::Pred pred = Exists(load);
    // The last task of a grid that does not divide goes past the end of the buffer.
    const te::Interval touched = load.address.Range();
    const bool past = touched.hi >= source.elements;
    if (constant) {
      if (past) pred.push_back({load.address, te::Cmp::kLt, Index(source.elements)});
      buffer.is_constant = true;
      buffer.packed_from = static_cast<int>(kernel_.packs.size());
      kernel_.packs.push_back({source.tensor, box, parts ? InPanels(load, part) : load.address, pred, {}});
      const bool shared = tile_.row.id < 0 || !load.address.UsesAxis(tile_.row.id);
      const int panels = parts ? part.panel.id : tile_.vector_tile.id;
      const bool whole = !parts || tile_.panel_vectors == tile_.vector_in.extent;  // a panel is what one tile reads
      if (VectorsMove(load) && shared && whole) AddPanel(packed, buffer.elements, box, panels);
    } else {
      // The body reads this operand under its own tests (the borders of a window). The copy reads all of it and must
      // not leave the buffer.
      if (touched.lo < 0) pred.push_back({load.address, te::Cmp::kGe, Index(0)});
      if (past) pred.push_back({load.address, te::Cmp::kLt, Index(source.elements)});
      buffer.scope = Scope::kBlock;
      if (load.address.HasLoad() && LimitsUseOthers(box)) {
        return absl::FailedPreconditionError("an operand at places of data ends where another loop says");
      }
      const Scalar from = te::Load(load.buffer, source.dtype, {load.address});
      result_.steps.push_back(CopyStep(box, load.address.HasLoad(),
                                       pred.empty() ? from : te::If(pred, from, te::Imm(source.dtype, 0)),
                                       {packed, place}));
    }
    kernel_.buffers.push_back(buffer);
    nest_.body[0] = ReplaceLoad(nest_.body[0], load.node, te::Load(packed, source.dtype, {place}));
    return absl::OkStatus();
  }

  PackedOperands result() && { return std::move(result_); }

 private:
  bool VectorsMove(const Operand& load) const {
    return load.address.UsesAxis(tile_.lane.id) && tile_.vector_tile.id >= 0;
  }

  // Do the vectors lie as a tile reads them, but far from each other, while many rows read them again?
  bool WorthGathering(const Operand& load) const {
    if (tile_.row.id < 0 || load.address.UsesAxis(tile_.row.id) || load.address.HasLoad()) return false;
    double rows = static_cast<double>(tile_.row.extent);
    for (const Axis& axis : tile_.others) {
      if (tile_.in_task && !load.address.UsesAxis(axis.id)) rows *= static_cast<double>(axis.extent);
    }
    return rows >= kGatherReuse && StrategyOf(device_).turned_loads && StepsFar(nest_, load);
  }

  bool RoundedUp(const Operand& load) const {
    return std::any_of(nest_.padding.begin(), nest_.padding.end(), [&](const te::Comparison& c) {
      const std::vector<Axis> used = AxesOf(c);
      return std::any_of(used.begin(), used.end(), [&](const Axis& axis) { return load.address.UsesAxis(axis.id); });
    });
  }

  // The packed operand's axes, outermost first. The part that one tile reads is innermost, in the order in which it
  // reads.
  std::vector<Axis> BoxOf(const Operand& load, bool constant) const {
    const bool all_tasks = constant || tile_.in_task;
    std::vector<Axis> box;
    const auto add_used = [&](const std::vector<Axis>& axes) {
      for (const Axis& axis : axes) {
        if (axis.id >= 0 && load.address.UsesAxis(axis.id)) box.push_back(axis);
      }
    };
    if (constant) add_used(tile_.outside);
    if (all_tasks) add_used(tile_.others);
    add_used({tile_.row});
    if (all_tasks && VectorsMove(load)) box.push_back(tile_.vector_tile);
    add_used(tile_.reduction_order);
    if (VectorsMove(load)) box.push_back(tile_.vector_in);
    add_used({tile_.lane});
    if (tile_.dot.id >= 0) box.push_back(tile_.dot);
    return box;
  }

  // The axes of panels that lie in the order of the columns, whichever task reads them.
  struct Parts {
    Axis panel{-1, 1}, vector{-1, 1};  // which panel, and which vector of it
  };
  Parts PartsOfPanels() {
    const int64_t vectors = tile_.across.extent * tile_.vector_tile.extent * tile_.vector_in.extent;
    return {axes_.New(vectors / tile_.panel_vectors), axes_.New(tile_.panel_vectors)};
  }

  // Counts vectors along the columns of all tasks.
  Index VectorNumber() const {
    Index number = Index(tile_.across) * tile_.vector_tile.extent;
    if (tile_.vector_tile.id >= 0) number = number + Index(tile_.vector_tile);
    number = number * tile_.vector_in.extent;
    return tile_.vector_in.id < 0 ? number : number + Index(tile_.vector_in);
  }

  // BoxOf in such panels: [others][panel][reduction][vector][lane].
  std::vector<Axis> BoxOfPanels(const Operand& load, const Parts& parts) const {
    std::vector<Axis> box;
    for (const Axis& axis : BoxOf(load, /*constant=*/true)) {
      if (Has({tile_.across, tile_.vector_tile, tile_.vector_in}, axis.id)) continue;
      const bool lane = axis.id == tile_.lane.id;
      if ((lane || Has(tile_.reduction_order, axis.id)) && !Has(box, parts.panel.id)) box.push_back(parts.panel);
      if (lane) box.push_back(parts.vector);
      box.push_back(axis);
    }
    return box;
  }

  // The operand's address, by the axes of panels.
  Index InPanels(const Operand& load, const Parts& parts) const {
    const Index number = Index(parts.panel) * tile_.panel_vectors + Index(parts.vector);
    static const Index kZero;
    const std::vector<Axis> along = {tile_.vector_in, tile_.vector_tile, tile_.across};  // the shortest steps first
    const Axis& steps =
        *std::find_if(along.begin(), along.end(), [&](const Axis& axis) { return load.address.UsesAxis(axis.id); });
    return te::Substitute(load.address, [&](const Axis& axis) -> const Index* {
      if (axis.id == steps.id) return &number;
      return axis.id == tile_.across.id || axis.id == tile_.vector_tile.id ? &kZero : nullptr;
    });
  }

  // The tests for an existing element of the operand. A test on an axis that the operand lacks concerns another
  // operand.
  te::Pred Exists(const Operand& load) const {
    te::Pred pred = nest_.padding;
    if (tile_.store_limit >= 0) pred.push_back({tile_.store_index, te::Cmp::kLt, Index(tile_.store_limit)});
    if (nest_.mask_limit >= 0) pred.push_back({nest_.mask_index, te::Cmp::kLt, Index(nest_.mask_limit)});
    std::erase_if(pred, [&](const te::Comparison& c) {
      const std::vector<Axis> used = AxesOf(c);
      return std::any_of(used.begin(), used.end(), [&](const Axis& axis) { return !load.address.UsesAxis(axis.id); });
    });
    return pred;
  }

  // Does the limit of an axis of the box depend on a loop of the tile that is not in the box?
  bool LimitsUseOthers(const std::vector<Axis>& box) const {
    return std::any_of(nest_.limits.begin(), nest_.limits.end(), [&](const auto& limit) {
      return Has(box, limit.first) && std::any_of(nest_.axes.begin(), nest_.axes.end(), [&](const Axis& axis) {
               return !Has(box, axis.id) && limit.second.UsesAxis(axis.id);
             });
    });
  }

  // `panels`: the axis of the box that counts panels.
  void AddPanel(int packed, int64_t elements, const std::vector<Axis>& box, int panels) {
    PackedOperands::Panel panel{packed, elements, 1};
    for (const Axis& axis : box) {
      panel.elements /= axis.extent;
      panel.panels *= axis.extent;
      if (axis.id == panels) break;
    }
    result_.panels.push_back(panel);
  }

  // The copy as a map over axes of its own. It copies what the tile's loops leave out, too, unless `from_table`: past
  // the limits, addresses that were computed before are not there.
  movement::Step CopyStep(const std::vector<Axis>& box, bool from_table, const Scalar& value,
                          const movement::Store& store) {
    Nest pack;
    pack.label = "pack";
    pack.body = {value};
    pack.stores = {store};
    pack.store_types = {value->dtype};
    std::map<int, Index> renamed;
    for (const Axis& axis : box) {
      pack.axes.push_back(axes_.New(axis.extent));
      renamed[axis.id] = Index(pack.axes.back());
      const auto limit = nest_.limits.find(axis.id);
      if (from_table && limit != nest_.limits.end()) pack.limits[pack.axes.back().id] = limit->second;
    }
    pack.Substitute([&](const Axis& axis) -> const Index* {
      const auto fresh = renamed.find(axis.id);
      return fresh == renamed.end() ? nullptr : &fresh->second;
    });
    movement::Step copy = PlainStep(pack);
    VectorizeMap(device_, &copy);
    return copy;
  }

  const TileAxes& tile_;
  const DeviceModel& device_;
  movement::Kernel& kernel_;
  AxisSource& axes_;
  Nest& nest_;
  PackedOperands result_;
};

}  // namespace

std::optional<Axis> PanelAxis(const TileAxes& tile, const std::vector<Operand>& loads, const Nest& nest,
                              const movement::Kernel& kernel) {
  if (tile.store_limit >= 0 || nest.mask_limit >= 0 || !nest.padding.empty() || tile.dot.id >= 0) return std::nullopt;
  std::optional<Axis> across;
  for (const Operand& load : loads) {
    const movement::Buffer& buffer = kernel.buffers[load.buffer];
    int64_t stride = 0;
    if (!load.address.UsesAxis(tile.lane.id)) continue;
    if (!IsPackable(load, kernel) || load.address.Range().hi >= buffer.elements ||
        !load.address.AffineIn(tile.lane.id, &stride)) {
      return std::nullopt;
    }
    // Each of these axes steps over all that the axes in front of it reach.
    int64_t step = stride * tile.lane.extent;
    for (const Axis& axis : {tile.vector_in, tile.vector_tile}) {
      const bool moves = axis.id >= 0 && axis.extent > 1;
      if (moves && (!load.address.AffineIn(axis.id, &stride) || stride != step)) return std::nullopt;
      step *= axis.extent;
    }
    const auto found = std::find_if(tile.outside.begin(), tile.outside.end(), [&](const Axis& axis) {
      return load.address.AffineIn(axis.id, &stride) && stride == step;
    });
    if (found == tile.outside.end() || (across && across->id != found->id)) return std::nullopt;
    across = *found;
  }
  return across;
}

absl::StatusOr<PackedOperands> PackOperands(const TileAxes& tile, const std::vector<Operand>& loads,
                                            const DeviceModel& device, movement::Kernel* kernel, AxisSource* axes,
                                            Nest* nest) {
  Packer packer(tile, device, kernel, axes, nest);
  const Scalar unpacked = nest->body[0];  // keeps the nodes that `loads` points to
  for (const Operand& load : loads) RETURN_IF_ERROR(packer.Pack(load));
  return std::move(packer).result();
}

}  // namespace fusion
