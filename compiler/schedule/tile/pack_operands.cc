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

// An operand that could be read where it lies is gathered where at least so many rows read it again.
constexpr double kGatherReuse = 28;

class Packer {
 public:
  Packer(const TileAxes& tile, const DeviceModel& device, movement::Kernel* kernel, AxisSource* axes, Nest* nest)
      : tile_(tile), device_(device), kernel_(*kernel), axes_(*axes), nest_(*nest) {}

  absl::Status Pack(const Operand& load) {
    const movement::Buffer source = kernel_.buffers[load.buffer];
    const bool constant = source.is_constant && source.packed_from < 0;
    const bool by_lane = load.address.UsesAxis(tile_.lane.id);
    // A broadcast weight is read as it is, unless the reduction is rounded up: the elements past its end are not zero.
    if (!by_lane && !(constant && RoundedUp(load))) return absl::OkStatus();
    const bool contiguous =
        te::ClassifyLanes(load.address, tile_.lane, tile_.lane.extent) == te::LaneAccess::kContiguous;
    const bool overruns = tile_.store_limit >= 0 && !constant && load.address.Range().hi >= source.elements;
    if (!constant && contiguous && !overruns && tile_.dot.id < 0 && !WorthGathering(load)) return absl::OkStatus();
    if (!constant && tile_.row.id >= 0 && load.address.UsesAxis(tile_.row.id)) {
      return absl::FailedPreconditionError("an operand that moves with the lanes is not contiguous along them");
    }

    const std::vector<Axis> box = BoxOf(load, constant);
    std::vector<Index> coordinates;
    std::vector<int64_t> extents;
    movement::Buffer buffer;
    buffer.dtype = source.dtype;
    buffer.elements = 1;
    for (const Axis& axis : box) {
      coordinates.push_back(Index(axis));
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
      kernel_.packs.push_back({source.tensor, box, load.address, pred, {}});
      const bool shared = tile_.row.id < 0 || !load.address.UsesAxis(tile_.row.id);
      if (VectorsMove(load) && shared) AddPanel(packed, buffer.elements, box);
    } else {
      // The body reads this operand under its own tests (the borders of a window). The copy reads all of it and must
      // not leave the buffer.
      if (touched.lo < 0) pred.push_back({load.address, te::Cmp::kGe, Index(0)});
      if (past) pred.push_back({load.address, te::Cmp::kLt, Index(source.elements)});
      buffer.scope = Scope::kBlock;
      const Scalar from = te::Load(load.buffer, source.dtype, {load.address});
      result_.steps.push_back(
          CopyStep(box, pred.empty() ? from : te::If(pred, from, te::Imm(source.dtype, 0)), {packed, place}));
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

  void AddPanel(int packed, int64_t elements, const std::vector<Axis>& box) {
    PackedOperands::Panel panel{packed, elements, 1};
    for (const Axis& axis : box) {
      panel.elements /= axis.extent;
      panel.panels *= axis.extent;
      if (axis.id == tile_.vector_tile.id) break;
    }
    result_.panels.push_back(panel);
  }

  // The copy as a map over axes of its own.
  movement::Step CopyStep(const std::vector<Axis>& box, const Scalar& value, const movement::Store& store) {
    Nest pack;
    pack.label = "pack";
    pack.body = {value};
    pack.stores = {store};
    pack.store_types = {value->dtype};
    std::map<int, Index> renamed;
    for (const Axis& axis : box) {
      pack.axes.push_back(axes_.New(axis.extent));
      renamed[axis.id] = Index(pack.axes.back());
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

absl::StatusOr<PackedOperands> PackOperands(const TileAxes& tile, const std::vector<Operand>& loads,
                                            const DeviceModel& device, movement::Kernel* kernel, AxisSource* axes,
                                            Nest* nest) {
  Packer packer(tile, device, kernel, axes, nest);
  const Scalar unpacked = nest->body[0];  // keeps the nodes that `loads` points to
  for (const Operand& load : loads) RETURN_IF_ERROR(packer.Pack(load));
  return std::move(packer).result();
}

}  // namespace fusion
