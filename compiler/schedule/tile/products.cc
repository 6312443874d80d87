#include "compiler/schedule/tile/products.h"

#include <vector>

#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/stitch/task_boxes.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/tile/tile_operands.h"

namespace fusion {
namespace {

// An operand that is read at least this many times over is worth a register tile.
constexpr double kReuse = 8;

// The elements that a load reaches, as far as is known: those of its tensor. Where data decide which they are (the
// weights of the expert that a router picks for each token), each place may be another one.
double Reached(const te::Program& program, const te::ScalarNode& load) {
  std::vector<te::Axis> axes;
  bool by_data = false;
  for (const te::Index& index : load.indices) {
    te::CollectAxes(index, &axes);
    by_data = by_data || index.HasLoad();
  }
  return by_data ? Extent(axes) : static_cast<double>(NumElements(program.tensors[load.tensor].shape));
}

}  // namespace

bool IsProduct(const te::Te& te) {
  if (te.IsMap() || te.reduction->kind != te::ReductionKind::kSum) return false;
  int loads = 0;
  te::Visit(te.body[0], [&](const te::ScalarNode& node) { loads += node.kind == te::ScalarKind::kLoad; });
  return loads >= 2;
}

bool WantsRegisterTile(const te::Program& program, const te::Te& te, const DeviceModel& device) {
  if (!IsProduct(te) || WorkOf(te) < MinTaskCost(device)) return false;
  const double points = DomainPoints(te);
  bool reused = true;
  for (const te::Scalar& s : te.body) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad) return;
      reused = reused && points >= kReuse * Reached(program, node);
    });
  }
  return reused;
}

}  // namespace fusion
