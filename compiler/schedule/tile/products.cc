#include "compiler/schedule/tile/products.h"

#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/stitch/task_boxes.h"
#include "compiler/schedule/stitch/task_size.h"

namespace fusion {
namespace {

// An operand that is read at least this many times over is worth a register tile.
constexpr double kReuse = 8;

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
      reused = reused && points >= kReuse * static_cast<double>(NumElements(program.tensors[node.tensor].shape));
    });
  }
  return reused;
}

}  // namespace fusion
