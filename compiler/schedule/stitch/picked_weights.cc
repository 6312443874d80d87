#include "compiler/schedule/stitch/picked_weights.h"

#include <algorithm>
#include <vector>

#include "compiler/cost/caches.h"
#include "compiler/schedule/tile/tile_operands.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;

// The picked part of an address.
struct Picks {
  std::vector<Axis> by;  // the axes that say which pick
  double kinds = 1;      // values that the picks can have
};

Picks PicksOf(const te::ScalarNode& load) {
  Picks picks;
  for (const Index& index : load.indices) {
    for (const Index::Part& part : index.parts()) {
      if (part.term.kind != te::TermKind::kLoad) continue;
      for (const Index& at : part.term.indices) te::CollectAxes(at, &picks.by);
      picks.kinds *= static_cast<double>(part.term.load_range.hi - part.term.load_range.lo + 1);
    }
  }
  return picks;
}

bool Contains(const std::vector<Axis>& axes, const Axis& axis) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& other) { return other.id == axis.id; });
}

bool Uses(const te::ScalarNode& load, const Axis& axis) {
  return std::any_of(load.indices.begin(), load.indices.end(),
                     [&](const Index& index) { return index.UsesAxis(axis.id); });
}

// Is the axis that of one dimension alone, element by element?
bool MovesAlone(const te::ScalarNode& load, const Axis& axis) {
  int dimensions = 0;
  for (const Index& index : load.indices) {
    int64_t step = 0;
    if (!index.UsesAxis(axis.id)) continue;
    if (!index.AffineIn(axis.id, &step) || step != 1) return false;
    ++dimensions;
  }
  return dimensions == 1;
}

}  // namespace

std::optional<PickedColumns> ColumnsOfPickedWeights(const te::Program& program, const te::Te& te,
                                                    const DeviceModel& device) {
  if (te.IsMap() || te.routine || !device.CachesScratch()) return std::nullopt;
  std::vector<const te::ScalarNode*> loads;
  te::Visit(te.body[0], [&](const te::ScalarNode& node) {
    if (node.kind == te::ScalarKind::kLoad) loads.push_back(&node);
  });
  const int64_t lanes = std::max<int64_t>(1, device.vector_bytes / 4);
  for (const te::ScalarNode* const load : loads) {
    const Picks picks = PicksOf(*load);
    if (picks.by.empty()) continue;
    const double kinds = std::min(picks.kinds, Extent(picks.by));
    if (Extent(picks.by) < 2 * kinds) continue;  // hardly any is picked again
    for (const Axis& axis : te.axes) {
      const bool others = std::any_of(loads.begin(), loads.end(), [&](const te::ScalarNode* other) {
        return other != load && Uses(*other, axis);
      });
      if (others || Contains(picks.by, axis) || !MovesAlone(*load, axis)) continue;
      double column = kinds * static_cast<double>(DTypeBytes(program.tensors[load->tensor].dtype));  // bytes
      for (const Axis& reduced : te.reduction->axes) {
        if (Uses(*load, reduced)) column *= static_cast<double>(reduced.extent);
      }
      const auto leaves = [&](int64_t columns) { return LeavesPrivateCache(column * static_cast<double>(columns), device); };
      if (!leaves(axis.extent)) continue;
      // Columns that lie beside each other are lanes.
      const int64_t least = load->indices.back().UsesAxis(axis.id) ? lanes : 1;
      for (int64_t block = axis.extent / 2 / least * least; block > 0; block -= least) {
        if (axis.extent % block == 0 && !leaves(block)) return PickedColumns{axis, block};
      }
    }
  }
  return std::nullopt;
}

}  // namespace fusion
