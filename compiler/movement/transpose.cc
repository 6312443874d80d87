#include "compiler/movement/transpose.h"

#include <algorithm>

#include "compiler/movement/vector_form.h"

namespace fusion::movement {
namespace {

using te::ScalarKind;

bool IsAcross(const te::ScalarNode& node, int lane_axis, int64_t lanes) {
  // The axis' extent does not matter: what holds for a long axis holds for this one.
  const te::Axis lane{lane_axis, lanes << 20};
  return node.kind == ScalarKind::kLoad && node.indices[0].UsesAxis(lane_axis) &&
         te::ClassifyLanes(node.indices[0], lane, lanes) == te::LaneAccess::kOther;
}

}  // namespace

const te::Scalar& InsideBorder(const te::Scalar& body, int lane_axis, int across_axis) {
  if (body->kind != ScalarKind::kIf || body->args[1]->kind != ScalarKind::kImm) return body;
  for (const te::Comparison& c : body->pred) {
    if (c.cmp != te::Cmp::kLt && c.cmp != te::Cmp::kGe) return body;
    int64_t coefficient;
    const te::Index difference = c.lhs - c.rhs;
    if (!difference.AffineIn(lane_axis, &coefficient) || !difference.AffineIn(across_axis, &coefficient)) return body;
  }
  return body->args[0];
}

std::vector<const te::ScalarNode*> LoadsAcross(const te::Scalar& body, int lane_axis, int64_t lanes) {
  std::vector<const te::ScalarNode*> loads;
  te::Visit(body, [&](const te::ScalarNode& node) {
    if (!IsAcross(node, lane_axis, lanes)) return;
    if (std::find(loads.begin(), loads.end(), &node) == loads.end()) loads.push_back(&node);
  });
  return loads;
}

bool MovesBits(const te::Scalar& inside, DType stored) {
  if (inside->kind != ScalarKind::kLoad || inside->dtype != stored) return false;
  switch (stored) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kBool:
      return true;
    default:
      return false;
  }
}

int64_t TransposedBlock(DType dtype, int64_t lanes) { return DTypeBytes(dtype) == 1 ? 16 : lanes; }

bool CanTranspose(const te::Scalar& body, DType stored, const te::Axis& lane, const te::Axis& across, int64_t lanes) {
  const te::Scalar& inside = InsideBorder(body, lane.id, across.id);
  if (MovesBits(inside, stored)) {
    const int64_t block = TransposedBlock(stored, lanes);
    return lane.extent >= block && across.extent >= block &&
           IsAcross(*inside, lane.id, block) &&
           te::ClassifyLanes(inside->indices[0], across, block) == te::LaneAccess::kContiguous;
  }
  bool possible = true, found = false;
  te::Visit(inside, [&](const te::ScalarNode& node) {
    if (IsAcross(node, lane.id, lanes)) {
      found = true;
      possible = possible && node.dtype == DType::kF32 &&
                 te::ClassifyLanes(node.indices[0], across, lanes) == te::LaneAccess::kContiguous;
    } else if (node.kind == ScalarKind::kIf || node.kind == ScalarKind::kFromIndex) {
      possible = false;  // a tile is loaded whole
    } else if (node.kind == ScalarKind::kOp || node.kind == ScalarKind::kCast) {
      possible = possible && HasVectorForm(node);
    }
  });
  return possible && found;
}

}  // namespace fusion::movement
