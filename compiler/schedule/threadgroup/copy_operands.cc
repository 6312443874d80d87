#include "compiler/schedule/threadgroup/copy_operands.h"

#include <algorithm>

#include "compiler/movement/vector_form.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/threadgroup/threadgroup_shape.h"

namespace fusion {

using te::Axis;
using te::Index;
using te::Scalar;
using te::ScalarKind;

namespace {

// A packed constant may grow by this factor and this slack for zero padding.
constexpr int64_t kMaxPackGrowth = 2, kPackSlack = 1 << 14;

}  // namespace

Index Linear(const std::vector<Axis>& axes) {
  std::vector<Index> coordinates;
  std::vector<int64_t> extents;
  for (const Axis& axis : axes) {
    coordinates.push_back(Index(axis));
    extents.push_back(axis.extent);
  }
  return te::Linearize(coordinates, extents);
}

bool UsesAxesOf(const Index& index, const Index& tested) {
  std::vector<Axis> axes;
  te::CollectAxes(tested, &axes);
  return std::all_of(axes.begin(), axes.end(), [&](const Axis& axis) { return index.UsesAxis(axis.id); });
}

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
    packed.elements = PointsOf(used);
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
  step->strategy = movement::VectorMap{.axis = inner.id};
}

}  // namespace fusion
