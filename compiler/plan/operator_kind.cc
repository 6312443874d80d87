#include "compiler/plan/operator_kind.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ops/registry/op_def.h"
#include "compiler/te/program/program.h"

namespace fusion {
namespace {

// A division counts as arithmetic: XLA's fusion for GPUs lets it be repeated, and so does this.
bool IsExpensive(te::Op op) {
  return op != te::Op::kDiv && te::GetOpInfo(op).cost >= te::GetOpInfo(te::Op::kSqrt).cost;
}

int64_t Points(const te::Te& te) {
  int64_t points = 1;
  for (const te::Axis& axis : te.axes) points *= axis.extent;
  if (te.reduction) {
    for (const te::Axis& axis : te.reduction->axes) points *= axis.extent;
  }
  return points;
}

bool UsesAny(const te::ScalarNode& load, const std::vector<te::Axis>& axes) {
  return std::any_of(load.indices.begin(), load.indices.end(), [&](const te::Index& index) {
    return std::any_of(axes.begin(), axes.end(), [&](const te::Axis& axis) { return index.UsesAxis(axis.id); });
  });
}

struct Loads {
  std::set<te::TensorId> reduced;  // tensors whose index moves with a reduction axis
  bool rereads = false;            // one of those has fewer elements than the expression has points
};

Loads LoadsOf(const te::Program& program, const te::Te& te) {
  Loads loads;
  const int64_t points = Points(te);
  for (const te::Scalar& body : te.body) {
    te::Visit(body, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad || !UsesAny(node, te.reduction->axes)) return;
      loads.reduced.insert(node.tensor);
      loads.rereads |= NumElements(program.tensors[node.tensor].shape) < points;
    });
  }
  return loads;
}

bool Evaluates(const te::Te& te) {
  bool expensive = false;
  te::VisitScalars(te, [&](const te::Scalar& scalar) {
    te::Visit(scalar, [&](const te::ScalarNode& node) {
      expensive |= node.kind == te::ScalarKind::kOp && IsExpensive(node.op);
    });
  });
  return expensive;
}

// Is the index this axis alone?
bool IsAxis(const te::Index& index, const te::Axis& axis) {
  return index.constant() == 0 && index.parts().size() == 1 && index.parts()[0].coefficient == 1 &&
         index.parts()[0].term.kind == te::TermKind::kAxis && index.parts()[0].term.axis.id == axis.id;
}

Access AccessOf(const te::Te& te, const te::ScalarNode& load, const Shape& shape) {
  if (load.pad != nullptr || shape.size() > te.axes.size()) return Access::kInjective;
  // Operands are aligned at the last axis, as everywhere in ONNX.
  const size_t skipped = te.axes.size() - shape.size();
  Access access = skipped > 0 ? Access::kBroadcast : Access::kElementwise;
  for (size_t d = 0; d < shape.size(); ++d) {
    const te::Axis& axis = te.axes[skipped + d];
    if (shape[d] == 1 && load.indices[d] == te::Index(0)) {
      if (axis.extent != 1) access = Access::kBroadcast;
    } else if (!IsAxis(load.indices[d], axis) || shape[d] != axis.extent) {
      return Access::kInjective;
    }
  }
  return access;
}

Access AccessOf(const te::Program& program, const te::Te& te) {
  Access access = Access::kElementwise;
  te::VisitScalars(te, [&](const te::Scalar& scalar) {
    te::Visit(scalar, [&](const te::ScalarNode& node) {
      // A branch that depends on the position (Concat) reads each tensor for a part of the result.
      if (node.kind == te::ScalarKind::kIf) access = Access::kInjective;
      if (node.kind != te::ScalarKind::kLoad) return;
      access = std::max(access, AccessOf(te, node, program.tensors[node.tensor].shape));
    });
  });
  return access;
}

}  // namespace

const char* OperatorKindName(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kMap:
      return "map";
    case OperatorKind::kExpensiveMap:
      return "expensive map";
    case OperatorKind::kReduction:
      return "reduction";
    case OperatorKind::kProduct:
      return "product";
    case OperatorKind::kWhole:
      return "whole";
  }
  return "";
}

OperatorTraits TraitsOf(const ecg::Graph& graph, ecg::NodeId id) {
  OperatorTraits traits;
  std::vector<ecg::ValueId> outputs;
  for (ecg::ValueId v : graph.node(id).outputs) {
    if (v != ecg::kNone) outputs.push_back(v);
  }
  const absl::StatusOr<ops::LoweredFusionBlock> lowered = ops::LowerNodes(graph, {id}, outputs);
  if (!lowered.ok()) return traits;
  const te::Program& program = lowered->program;
  int reductions = 0;
  bool routine = false, expensive = false;
  Access access = Access::kElementwise;
  for (const te::Te& te : program.tes) {
    if (te.routine) {
      routine = true;
    } else if (te.reduction) {
      const Loads loads = LoadsOf(program, te);
      ++reductions;
      traits.rereads |= loads.rereads;
      traits.multiplies |= loads.reduced.size() > 1 && loads.rereads;
    } else {
      expensive |= Evaluates(te);
      access = std::max(access, AccessOf(program, te));
    }
  }
  traits.access = reductions > 0 ? Access::kInjective : access;
  traits.unknown = routine;
  if (routine || reductions > 1) return traits;
  traits.kind = traits.multiplies ? OperatorKind::kProduct
                : reductions == 1 ? OperatorKind::kReduction
                : expensive       ? OperatorKind::kExpensiveMap
                                  : OperatorKind::kMap;
  return traits;
}

std::vector<OperatorTraits> TraitsOf(const ecg::Graph& graph) {
  std::vector<OperatorTraits> traits;
  for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) traits.push_back(TraitsOf(graph, id));
  return traits;
}

bool IsMemoryIntensive(const std::vector<OperatorTraits>& traits) {
  return std::none_of(traits.begin(), traits.end(),
                      [](const OperatorTraits& one) { return one.multiplies || one.unknown; });
}

}  // namespace fusion
