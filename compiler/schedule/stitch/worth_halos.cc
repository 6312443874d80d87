#include "compiler/schedule/stitch/worth_halos.h"

#include <algorithm>
#include <set>
#include <vector>

#include "compiler/cost/caches.h"
#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;

// Does the index move with a spatial axis and with a reduction axis of the expression?
bool IsWindow(const Index& index, const te::Te& te) {
  const auto uses = [&](const std::vector<Axis>& axes) {
    return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return index.UsesAxis(axis.id); });
  };
  return uses(te.axes) && uses(te.reduction->axes);
}

}  // namespace

bool WorthHalos(const te::Program& program, const DeviceModel& device) {
  if (!StrategyOf(device).halos_by_price) return false;
  std::set<te::TensorId> large;  // made by a stage
  bool worth = false;
  for (const te::Te& te : program.tes) {
    if (te.reduction && !large.empty()) {
      te::Visit(te.body[0], [&](const te::ScalarNode& node) {
        if (node.kind != te::ScalarKind::kLoad || large.count(node.tensor) == 0) return;
        worth = worth || std::any_of(node.indices.begin(), node.indices.end(),
                                     [&](const Index& index) { return IsWindow(index, te); });
      });
    }
    for (const te::TensorId out : te.outputs) {
      const te::TensorInfo& info = program.tensors[out];
      const auto bytes = static_cast<double>(NumElements(info.shape) * DTypeBytes(info.dtype));
      if (LeavesPrivateCache(bytes, device)) large.insert(out);
    }
  }
  return worth;
}

}  // namespace fusion
