#include "compiler/schedule/tile/tile_operands.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

// How far the addresses of masked lanes (those past a blocked tensor's extent) go beyond every address of real lanes.
// All axes of `address` that the mask does not use are taken as zero.
int64_t Overshoot(const Index& address, const Index& mask_index, int64_t limit) {
  std::vector<Axis> axes;
  te::CollectAxes(mask_index, &axes);
  int64_t points = 1;
  for (const Axis& axis : axes) points *= axis.extent;
  constexpr int64_t kMostPoints = 1 << 14;
  if (points > kMostPoints) return std::numeric_limits<int64_t>::max();
  int64_t real = 0, masked = 0;
  for (int64_t point = 0; point < points; ++point) {
    std::vector<Index> at(axes.size());
    int64_t rest = point;
    for (size_t a = axes.size(); a-- > 0; rest /= axes[a].extent) at[a] = Index(rest % axes[a].extent);
    const Index zero(0);
    const auto value = [&](const Axis& axis) -> const Index* {
      for (size_t a = 0; a < axes.size(); ++a) {
        if (axes[a].id == axis.id) return &at[a];
      }
      return &zero;
    };
    int64_t& highest = te::Substitute(mask_index, value).constant() < limit ? real : masked;
    highest = std::max(highest, te::Substitute(address, value).Range().hi);
  }
  return masked - real;
}

// The load of one factor of an integer product if it is a widened 8-bit element, possibly zero outside a border; else
// null.
const te::ScalarNode* ByteLoad(const Scalar& side) {
  if (side->kind != te::ScalarKind::kCast || side->dtype != DType::kI32) return nullptr;
  const te::ScalarNode* node = side->args[0].get();
  if (node->kind == te::ScalarKind::kIf && te::IsImm(node->args[1], 0)) node = node->args[0].get();
  const bool byte = node->dtype == DType::kI8 || node->dtype == DType::kU8;
  return byte && node->kind == te::ScalarKind::kLoad ? node : nullptr;
}

}  // namespace

std::vector<Operand> BodyLoads(const Nest& nest) {
  std::vector<Operand> loads;
  te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
    if (node.kind == te::ScalarKind::kLoad) loads.push_back({&node, node.indices[0], node.tensor, node.dtype});
  });
  return loads;
}

bool IsPackable(const Operand& load, const movement::Kernel& kernel) {
  const movement::Buffer& buffer = kernel.buffers[load.buffer];
  return buffer.is_constant && buffer.packed_from < 0 && !load.address.HasLoad();
}

bool CanHaveRoom(const Operand& load, const movement::Kernel& kernel) {
  const movement::Buffer& buffer = kernel.buffers[load.buffer];
  return buffer.scope == Scope::kBlock && !buffer.is_constant && !load.address.HasLoad();
}

double Extent(const std::vector<Axis>& axes) {
  double product = 1;
  for (const Axis& axis : axes) product *= static_cast<double>(axis.extent);
  return product;
}

double Reuse(const Operand& load, const Axis& lane, const std::vector<Axis>& spatial) {
  double reuse = 1;
  for (const Axis& axis : spatial) {
    if (axis.id != lane.id && !load.address.UsesAxis(axis.id)) reuse *= static_cast<double>(axis.extent);
  }
  return reuse;
}

double TouchedBytes(const Operand& load, const std::vector<Axis>& axes) {
  double elements = 1;
  for (const Axis& axis : axes) {
    if (axis.id >= 0 && load.address.UsesAxis(axis.id)) elements *= static_cast<double>(axis.extent);
  }
  const te::Interval range = load.address.Range();
  return static_cast<double>(DTypeBytes(load.dtype)) * std::min(elements, static_cast<double>(range.hi - range.lo + 1));
}

std::vector<Axis> AxesOutside(const std::vector<Operand>& loads, const Nest& nest) {
  std::vector<Axis> axes;
  for (const Operand& load : loads) te::CollectAxes(load.address, &axes);
  std::set<int> inside;
  for (const Axis& axis : nest.axes) inside.insert(axis.id);
  for (const Axis& axis : nest.reduction->axes) inside.insert(axis.id);
  std::erase_if(axes, [&](const Axis& axis) { return inside.count(axis.id) > 0; });
  return axes;
}

bool StridesOverReduction(const Nest& nest, const Operand& load) {
  bool moves = false;
  for (const Axis& axis : nest.reduction->axes) {
    int64_t stride = 0;
    if (!load.address.UsesAxis(axis.id)) continue;
    moves = true;
    if (load.address.AffineIn(axis.id, &stride) && stride == 1) return false;
  }
  return moves;
}

bool StepsFar(const Nest& nest, const Operand& load) {
  constexpr int64_t kFarBytes = 2048, kManySteps = 128;
  int64_t steps = 1;
  for (const Axis& axis : nest.reduction->axes) {
    int64_t stride = 0;
    if (!load.address.UsesAxis(axis.id)) continue;
    if (!load.address.AffineIn(axis.id, &stride) || std::abs(stride) * DTypeBytes(load.dtype) < kFarBytes) return false;
    steps *= axis.extent;
  }
  return steps >= kManySteps;
}

LaneUse UseOfLanes(const Operand& load, const Axis& lane, int64_t lanes, const std::vector<Axis>& spatial,
                   const movement::Kernel& kernel) {
  const te::LaneAccess access = te::ClassifyLanes(load.address, lane, lanes);
  if (access == te::LaneAccess::kInvariant) return LaneUse::kBroadcast;
  if (IsPackable(load, kernel)) return LaneUse::kPackConstant;
  const bool whole_vectors = lane.extent % lanes == 0;
  if (access == te::LaneAccess::kContiguous && whole_vectors) return LaneUse::kVector;
  // Packing at run time pays only where many rows read the packed values again.
  if (Reuse(load, lane, spatial) >= kPackReuse) return LaneUse::kPackRuntime;
  return access == te::LaneAccess::kContiguous ? LaneUse::kVector : LaneUse::kImpossible;
}

bool IsDotProduct(const Nest& nest, const Axis& lane, const Axis& row, const movement::Kernel& kernel) {
  const Scalar& body = nest.body[0];
  if (nest.reduction->kind != te::ReductionKind::kSum || nest.reduction->acc != DType::kI32 ||
      body->kind != te::ScalarKind::kOp || body->op != te::Op::kMul) {
    return false;
  }
  const te::ScalarNode *a = ByteLoad(body->args[0]), *b = ByteLoad(body->args[1]);
  if (a == nullptr || b == nullptr) return false;
  if (a->indices[0].UsesAxis(lane.id)) std::swap(a, b);
  const Index &still = a->indices[0], &moving = b->indices[0];
  if (still.UsesAxis(lane.id) || !moving.UsesAxis(lane.id) || moving.HasLoad()) return false;
  const movement::Buffer& buffer = kernel.buffers[b->tensor];
  const bool constant = buffer.is_constant && buffer.packed_from < 0;
  return constant || (row.extent >= kPackReuse && !moving.UsesAxis(row.id));
}

Slide FindSlide(const Nest& nest, const Axis& lane, const Axis& row) {
  // The most taps whose values stay in registers; with fewer than kLeastTaps, or rows that share little, nothing is
  // saved.
  constexpr int64_t kMostTaps = 9, kLeastTaps = 3;
  const auto inside = [](const Scalar& s) { return s->kind == te::ScalarKind::kIf ? s->args[0] : s; };
  const Scalar body = inside(nest.body[0]);
  const bool product = body->kind == te::ScalarKind::kOp && body->op == te::Op::kMul;
  std::vector<Scalar> loads;
  if (product) loads = {inside(body->args[0]), inside(body->args[1])};
  if (!product) loads = {body};
  if (row.id < 0 || nest.reduction->acc != DType::kF32) return {};
  const te::ScalarNode *moving = nullptr, *still = nullptr;
  for (const Scalar& s : loads) {
    if (s->kind != te::ScalarKind::kLoad || s->dtype != DType::kF32 || s->indices[0].HasLoad()) return {};
    (s->indices[0].UsesAxis(row.id) ? moving : still) = s.get();
  }
  if (moving == nullptr || (product && still == nullptr) || !moving->indices[0].UsesAxis(lane.id)) return {};
  Slide best;
  if (!moving->indices[0].AffineIn(row.id, &best.row_stride)) return {};
  for (const Axis& axis : nest.reduction->axes) {
    int64_t tap = 0;
    if (axis.extent < kLeastTaps || axis.extent > kMostTaps) continue;
    if (!moving->indices[0].AffineIn(axis.id, &tap) || tap <= 0 || best.row_stride % tap != 0) continue;
    if (best.row_stride / tap * 2 >= axis.extent) continue;
    best.axis = axis;
    best.tap_stride = tap;
    best.weighted = still != nullptr && still->indices[0].UsesAxis(axis.id);
  }
  return best;
}

bool MaskedLanesReadPast(const Nest& nest, const movement::Kernel& kernel) {
  if (nest.mask_limit < 0) return false;
  constexpr int64_t kSlackElements = 16;  // readable behind every buffer
  bool past = false;
  for (const std::vector<Scalar>* scalars : {&nest.body, &nest.then}) {
    for (const Scalar& s : *scalars) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (past || node.kind != te::ScalarKind::kLoad) return;
        // A constant in the body that moves with the lanes is packed, with zeros for masked lanes.
        const bool packed = kernel.buffers[node.tensor].is_constant && !node.indices[0].HasLoad();
        if (scalars == &nest.body && packed) return;
        past = Overshoot(node.indices[0], nest.mask_index, nest.mask_limit) >= kSlackElements;
      });
    }
  }
  return past;
}

}  // namespace fusion
