#include "compiler/movement/vector_form.h"

#include <cmath>
#include <map>

#include "compiler/te/scalar/op_table.h"

namespace fusion::movement {
namespace {

using te::Op;
using te::ScalarKind;

te::Lanes LanesOf(LaneKind kind) {
  switch (kind) {
    case LaneKind::kFloat:
      return te::kFloatLanes;
    case LaneKind::kInt:
      return te::kIntLanes;
    case LaneKind::kMask:
      return te::kMaskLanes;
    case LaneKind::kNone:
      break;
  }
  return te::kNoLanes;
}

}  // namespace

bool FitsI32(const te::ScalarNode& s) {
  if (s.kind == ScalarKind::kCast) return IsFloat(s.args[0]->dtype) && FitsI32(*s.args[0]);
  if (s.kind != ScalarKind::kOp) return false;
  bool above = false, below = false;
  const te::ScalarNode* node = &s;
  while (node->kind == ScalarKind::kOp && (node->op == Op::kMin || node->op == Op::kMax)) {
    const int imm = node->args[0]->kind == ScalarKind::kImm ? 0 : 1;
    if (node->args[imm]->kind != ScalarKind::kImm || !(std::fabs(node->args[imm]->fvalue) < 2147483520.0)) return false;
    (node->op == Op::kMin ? above : below) = true;
    node = node->args[1 - imm].get();
  }
  return above && below;
}

LaneKind LaneKindOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return LaneKind::kFloat;
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kU8:
    case DType::kU16:
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2:
      return LaneKind::kInt;
    case DType::kBool:
      return LaneKind::kMask;
    default:
      return LaneKind::kNone;
  }
}

bool HasVectorForm(const te::ScalarNode& node) {
  const LaneKind kind = LaneKindOf(node.dtype);
  if (kind == LaneKind::kNone) return false;
  switch (node.kind) {
    case ScalarKind::kFromIndex:
      return false;
    case ScalarKind::kCast: {
      return LaneKindOf(node.args[0]->dtype) != LaneKind::kNone;
    }
    case ScalarKind::kOp: {
      const LaneKind from = LaneKindOf(node.args[0]->dtype);
      if (node.op == Op::kSelect) return LaneKindOf(node.args[1]->dtype) != LaneKind::kNone;
      return (te::RowOf(node.op).lanes & LanesOf(from)) != 0;
    }
    default:
      return true;
  }
}

bool CallsLibrary(const std::vector<te::Scalar>& scalars) {
  constexpr double kMostOfAnInstruction = 9;  // division, a square root and its inverse
  bool calls = false;
  for (const te::Scalar& s : scalars) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      calls = calls || (node.kind == ScalarKind::kOp && te::GetOpInfo(node.op).cost > kMostOfAnInstruction);
    });
  }
  return calls;
}

bool IsLaneByLane(const te::ScalarNode& node) {
  if (node.kind != ScalarKind::kCast && node.kind != ScalarKind::kOp) return false;
  if (LaneKindOf(node.dtype) == LaneKind::kNone) return false;
  bool wide = false, plain = true;
  for (const te::Scalar& arg : node.args) {
    wide = wide || LaneKindOf(arg->dtype) == LaneKind::kNone;
    te::Visit(arg, [&](const te::ScalarNode& below) {
      plain = plain && below.kind != ScalarKind::kAcc && below.kind != ScalarKind::kIf;
    });
  }
  return wide && plain;
}

namespace {

// Does every second lane load the next element of a run: is the address of 2·i + r affine in i, in steps of one?
bool AlternatesInRuns(const te::Index& address, int axis_id) {
  const te::Index twice = te::Index(te::Axis{axis_id, int64_t{1} << 24}) * 2;
  int64_t step = 0;
  for (const int64_t parity : {0, 1}) {
    const te::Index at = twice + te::Index(parity);
    const te::Index half =
        te::Substitute(address, [&](const te::Axis& axis) { return axis.id == axis_id ? &at : nullptr; });
    if (!half.AffineIn(axis_id, &step) || step != 1) return false;
  }
  return true;
}

}  // namespace

SteppedLoad SteppedLoadOf(const te::ScalarNode& s, int axis_id) {
  // Windows step by one or two through a border; the innermost elements of a result may be neighbours in a short row.
  constexpr int64_t kMostStride = 2, kMostStrideInside = 8;
  const bool border = s.kind == ScalarKind::kIf;
  const te::ScalarNode* load = border ? s.args[0].get() : &s;
  if (load->kind != ScalarKind::kLoad || load->dtype != DType::kF32) return {};
  SteppedLoad found;
  const te::Index& address = load->indices[0];
  if (address.HasLoad()) return {};
  if (!address.AffineIn(axis_id, &found.stride)) {
    if (border || !AlternatesInRuns(address, axis_id)) return {};
    found.load = load;
    found.zipped = true;
    return found;
  }
  if (found.stride < 1 || found.stride > (border ? kMostStride : kMostStrideInside)) return {};
  if (border) {
    if (s.args[1]->kind != ScalarKind::kImm) return {};
    for (const te::Comparison& c : s.pred) {
      if (!c.lhs.UsesAxis(axis_id) && !c.rhs.UsesAxis(axis_id)) {
        found.still.push_back(c);
        continue;
      }
      int64_t steps = 0;
      if (!(c.lhs - c.rhs).AffineIn(axis_id, &steps) || steps != found.stride) return {};
      if (c.cmp != te::Cmp::kGe && c.cmp != te::Cmp::kLt) return {};
      (c.cmp == te::Cmp::kGe ? found.from : found.to).push_back(c.rhs - c.lhs);
    }
    found.outside = s.args[1].get();
  }
  // A run of memory that is read whole or not at all is no stepped load.
  if (found.stride == 1 && found.from.empty() && found.to.empty()) return {};
  found.load = load;
  return found;
}

namespace {

class AxisProbe {
 public:
  AxisProbe(const te::Axis& axis, int64_t lanes) : axis_(axis), lanes_(lanes) {}

  AlongAxis Of(const te::Scalar& s) {
    const auto it = memo_.find(s.get());
    if (it != memo_.end()) return it->second;
    return memo_[s.get()] = Compute(s);
  }

  AlongAxis Counted(AlongAxis result) const {
    result.contiguous_loads = contiguous_loads_;
    result.gathered_loads = gathered_loads_;
    result.stepped_loads = stepped_loads_;
    result.strided_loads = strided_loads_;
    result.operations = operations_;
    return result;
  }

 private:
  // Judges loads, but not the operations between them.
  AlongAxis LaneByLane(const te::Scalar& s) {
    AlongAxis result;
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind == ScalarKind::kFromIndex) result.varies = result.varies || node.index.UsesAxis(axis_.id);
      if (node.kind != ScalarKind::kLoad || !node.indices[0].UsesAxis(axis_.id)) return;
      const te::LaneAccess access = te::ClassifyLanes(node.indices[0], axis_, lanes_);
      if (access == te::LaneAccess::kInvariant) return;
      result.varies = true;
      result.vectorizable = result.vectorizable && access == te::LaneAccess::kContiguous;
      ++(access == te::LaneAccess::kContiguous ? contiguous_loads_ : gathered_loads_);
    });
    if (result.varies && s->kind == ScalarKind::kOp) ++operations_;
    return result;
  }

  AlongAxis Compute(const te::Scalar& s) {
    if (IsLaneByLane(*s)) return LaneByLane(s);
    AlongAxis result;
    if (const SteppedLoad stepped = SteppedLoadOf(*s, axis_.id); stepped.load != nullptr) {
      ++stepped_loads_;
      if (stepped.stride > 1 || stepped.zipped) ++strided_loads_;
      result.varies = true;
      return result;
    }
    switch (s->kind) {
      case ScalarKind::kImm:
        return result;
      case ScalarKind::kAcc:
        result.varies = true;
        break;
      case ScalarKind::kFromIndex:
        result.varies = s->index.UsesAxis(axis_.id);
        break;
      case ScalarKind::kLoad: {
        if (!s->indices[0].UsesAxis(axis_.id)) return result;
        const te::LaneAccess access = te::ClassifyLanes(s->indices[0], axis_, lanes_);
        if (access == te::LaneAccess::kInvariant) return result;
        result.varies = true;
        result.vectorizable = access == te::LaneAccess::kContiguous;
        ++(result.vectorizable ? contiguous_loads_ : gathered_loads_);
        break;
      }
      case ScalarKind::kIf:
        for (const te::Comparison& c : s->pred) {
          if (!c.lhs.UsesAxis(axis_.id) && !c.rhs.UsesAxis(axis_.id)) continue;
          result.varies = true;
          result.vectorizable = result.gatherable = false;
        }
        break;
      default:
        break;
    }
    for (const te::Scalar& arg : s->args) {
      const AlongAxis below = Of(arg);
      result.varies = result.varies || below.varies;
      result.vectorizable = result.vectorizable && below.vectorizable;
      result.gatherable = result.gatherable && below.gatherable;
    }
    if (result.varies && !HasVectorForm(*s)) result.vectorizable = result.gatherable = false;
    if (result.varies && s->kind == ScalarKind::kOp) ++operations_;
    return result;
  }

  const te::Axis axis_;
  const int64_t lanes_;
  std::map<const te::ScalarNode*, AlongAxis> memo_;
  int contiguous_loads_ = 0, gathered_loads_ = 0, stepped_loads_ = 0, strided_loads_ = 0, operations_ = 0;
};

}  // namespace

AlongAxis AlongAxisOf(const te::Scalar& s, const te::Axis& axis, int64_t lanes) {
  AxisProbe probe(axis, lanes);
  const AlongAxis result = probe.Of(s);
  return probe.Counted(result);
}

}  // namespace fusion::movement
