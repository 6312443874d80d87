#include "compiler/schedule/nest/vectorised_reduction.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

// A packed constant may repeat elements that overlapping windows share, but may not exceed this many times the
// original.
constexpr int64_t kMaxGrowth = 4;

bool IsSource(const movement::Kernel& kernel, const te::ScalarNode& load) {
  const movement::Buffer& buffer = kernel.buffers[load.tensor];
  return buffer.is_constant && buffer.packed_from < 0 && !load.indices[0].HasLoad();
}

// The constants to be packed if `axis` becomes the lanes; nullopt where it cannot become them.
std::optional<std::vector<Scalar>> StridedConstants(const Nest& nest, const Axis& axis, int64_t lanes,
                                                    const movement::Kernel& kernel) {
  std::vector<Scalar> strided;
  bool possible = true, contiguous = false;
  te::MapLoads(nest.body[0], [&](const Scalar& load) -> Scalar {
    const Index& address = load->indices[0];
    if (!address.UsesAxis(axis.id)) return nullptr;
    if (te::ClassifyLanes(address, axis, lanes) == te::LaneAccess::kContiguous) {
      contiguous = contiguous || !kernel.buffers[load->tensor].is_constant;
    } else if (IsSource(kernel, *load)) {
      strided.push_back(load);
    } else {
      possible = false;
    }
    return nullptr;
  });
  if (!possible || !contiguous || PredUses(nest, axis.id)) return std::nullopt;
  return strided;
}

}  // namespace

bool VectoriseReduction(const DeviceModel& device, Nest* nest, movement::Kernel* kernel) {
  const int64_t lanes = device.vector_bytes / 4;
  if (!nest->reduction || nest->reduction->kind == te::ReductionKind::kGeneral || !nest->reduction->pred.empty() ||
      !nest->padding.empty()) {
    return false;
  }
  std::vector<Axis>& axes = nest->reduction->axes;
  for (size_t f = axes.size(); f-- > 0;) {
    const Axis lane = axes[f];
    if (lane.extent < lanes) continue;
    const std::optional<std::vector<Scalar>> strided = StridedConstants(*nest, lane, lanes, *kernel);
    if (!strided) continue;
    struct Packed {
      Scalar load;
      std::vector<Axis> box;
      int64_t elements = 1;
    };
    std::vector<Packed> all;
    for (const Scalar& load : *strided) {
      Packed packed{load, {}};
      for (const std::vector<Axis>* some : {&nest->axes, &axes}) {
        for (const Axis& axis : *some) {
          if (axis.id != lane.id && load->indices[0].UsesAxis(axis.id)) packed.box.push_back(axis);
        }
      }
      packed.box.push_back(lane);
      for (const Axis& axis : packed.box) packed.elements *= axis.extent;
      all.push_back(std::move(packed));
    }
    const bool grows = std::any_of(all.begin(), all.end(), [&](const Packed& packed) {
      return packed.elements > kMaxGrowth * kernel->buffers[packed.load->tensor].elements;
    });
    if (grows) continue;
    for (const Packed& packed : all) {
      const movement::Buffer source = kernel->buffers[packed.load->tensor];
      movement::Buffer buffer;
      buffer.dtype = source.dtype;
      buffer.elements = packed.elements;
      buffer.is_constant = true;
      buffer.packed_from = static_cast<int>(kernel->packs.size());
      kernel->packs.push_back({source.tensor, packed.box, packed.load->indices[0], {}, {}});
      std::vector<Index> coordinates;
      std::vector<int64_t> extents;
      for (const Axis& axis : packed.box) {
        coordinates.push_back(Index(axis));
        extents.push_back(axis.extent);
      }
      const Scalar fresh =
          te::Load(static_cast<int>(kernel->buffers.size()), source.dtype, {te::Linearize(coordinates, extents)});
      kernel->buffers.push_back(buffer);
      nest->body[0] = ReplaceLoad(nest->body[0], packed.load.get(), fresh);
    }
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(f));
    axes.push_back(lane);
    return true;
  }
  return false;
}

}  // namespace fusion
