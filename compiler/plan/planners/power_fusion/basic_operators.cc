#include "compiler/plan/planners/power_fusion/basic_operators.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/analysis/derived.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/te/program/transform.h"

namespace fusion::power_fusion {
namespace {

double Points(const std::vector<te::Axis>& axes) {
  double points = 1;
  for (const te::Axis& axis : axes) points *= static_cast<double>(axis.extent);
  return points;
}

// Does the load visit elements in the order in which the axes of the results are visited?
bool InOrder(const te::Te& te, const te::ScalarNode& load, const Shape& operand) {
  std::vector<te::Index> position;
  std::vector<int64_t> extents;
  for (const te::Axis& axis : te.axes) {
    position.emplace_back(axis);
    extents.push_back(axis.extent);
  }
  if (te::Linearize(load.indices, operand) == te::Linearize(position, extents)) return true;  // also other shapes
  int last = -1;
  for (const te::Index& index : load.indices) {
    if (index.IsConstant()) continue;
    if (index.parts().size() != 1 || index.parts()[0].term.kind != te::TermKind::kAxis) return false;
    const te::Index::Part& part = index.parts()[0];
    if (part.coefficient != 1) return false;
    for (int a = 0; a < static_cast<int>(te.axes.size()); ++a) {
      if (te.axes[a].id != part.term.axis.id) continue;
      if (a < last) return false;
      last = a;
    }
  }
  return true;
}

bool Uses(const te::ScalarNode& load, const te::Axis& axis) {
  return std::any_of(load.indices.begin(), load.indices.end(),
                     [&](const te::Index& index) { return index.UsesAxis(axis.id); });
}

// Notes how the expression reads each tensor.
void NoteLoads(const te::Program& program, const te::Te& te, std::map<te::TensorId, Operand>* operands,
               bool* computes) {
  const double points = Points(te.axes), all = points * (te.reduction ? Points(te.reduction->axes) : 1);
  te::VisitTensors(te, [&](te::TensorId tensor) { (*operands)[tensor].tensor = tensor; });
  const auto note = [&](double times) {
    return [operands, &te, &program, computes, times](const te::ScalarNode& node) {
      *computes |= node.kind == te::ScalarKind::kOp || node.kind == te::ScalarKind::kCast;
      if (node.kind != te::ScalarKind::kLoad) return;
      const Shape& shape = program.tensors[node.tensor].shape;
      Operand& operand = (*operands)[node.tensor];
      operand.loads += times;
      operand.in_order &= InOrder(te, node, shape);
      for (const te::Axis& axis : te.axes) operand.repeats |= axis.extent > 1 && !Uses(node, axis);
      for (const te::Index& index : node.indices) operand.looked_up |= index.HasLoad();
      operand.rereads |= te.reduction && times > static_cast<double>(NumElements(shape));
    };
  };
  for (const te::Scalar& body : te.body) te::Visit(body, note(all));
  for (const te::Scalar& then : te.then) te::Visit(then, note(points));
}

// Substitutes what the operator hands over inside itself. False: more is left than maps in front of one expression.
bool Substitute(te::Program* program) {
  for (size_t t = 0; t + 1 < program->tes.size();) {
    const te::Te& te = program->tes[t];
    const te::TensorId tensor = te.outputs[0];
    if (!te.IsMap() || te.outputs.size() != 1 || program->tensors[tensor].role == te::Role::kOutput) return false;
    te::Program substituted = *program;
    if (te::Inline(&substituted, tensor).ok()) {
      *program = std::move(substituted);
    } else {
      ++t;
    }
  }
  return !program->tes.empty();
}

// Operations as multiples of one that the device does fastest; a sum of products has two for each product.
double OperationsOf(const te::Te& te) {
  const te::WorkCount work = te::CountWork(te);
  return std::max(work.fma + work.special, te.reduction ? 2 * work.elements : 0);
}

bool ComputeBound(const ecg::Graph& graph, const BasicOperator& op, const DeviceModel& device) {
  if (!op.te().reduction || device.memory.empty()) return false;
  const ecg::NodeFacts facts = ecg::DeriveNode(graph, op.node);
  const double bytes = static_cast<double>(facts.bytes_read + facts.bytes_written);
  return op.operations / device.fma_f32_flops_per_s > bytes / device.memory.back().bandwidth_bytes_per_s;
}

BasicKind KindOf(const BasicOperator& op, bool computes) {
  if (op.te().reduction) return BasicKind::kReduce;
  if (!computes) return BasicKind::kTranspose;
  const bool repeats =
      std::any_of(op.operands.begin(), op.operands.end(), [](const Operand& operand) { return operand.repeats; });
  return repeats ? BasicKind::kBroadcast : BasicKind::kElementwise;
}

BasicOperator OperatorOf(const ecg::Graph& graph, ecg::NodeId id, const DeviceModel& device) {
  BasicOperator op;
  op.node = id;
  for (const ecg::ValueId v : graph.node(id).outputs) {
    if (v != ecg::kNone) op.results.push_back(v);
  }
  absl::StatusOr<ops::LoweredFusionBlock> lowered = ops::LowerNodes(graph, {id}, op.results);
  if (!lowered.ok()) return op;
  te::Program& program = lowered->program;
  op.routine =
      std::any_of(program.tes.begin(), program.tes.end(), [](const te::Te& te) { return te.routine.has_value(); });
  if (op.routine || !Substitute(&program) || program.tes.back().outputs.size() != op.results.size()) return op;
  std::map<te::TensorId, Operand> operands;
  bool computes = false, indices_compute = false;
  for (size_t t = 0; t < program.tes.size(); ++t) {
    NoteLoads(program, program.tes[t], &operands, t + 1 < program.tes.size() ? &indices_compute : &computes);
  }
  for (auto& [tensor, operand] : operands) {
    operand.value = lowered->value_of_tensor[tensor];
    // An index table of the lowering is no value of the graph.
    if (operand.value != ecg::kNone && program.DefiningTe(tensor) < 0) op.operands.push_back(operand);
  }
  op.program = std::move(program);
  op.kind = KindOf(op, computes);
  op.operations = OperationsOf(op.te());
  op.compute_bound = ComputeBound(graph, op, device);
  return op;
}

}  // namespace

const char* BasicKindName(BasicKind kind) {
  switch (kind) {
    case BasicKind::kElementwise:
      return "elementwise";
    case BasicKind::kBroadcast:
      return "broadcast";
    case BasicKind::kReduce:
      return "reduce";
    case BasicKind::kTranspose:
      return "transpose";
    case BasicKind::kOpaque:
      return "opaque";
  }
  return "";
}

absl::StatusOr<std::vector<BasicOperator>> BasicOperatorsOf(const ecg::Graph& graph, const DeviceModel& device,
                                                            const std::function<bool()>& cancelled) {
  std::vector<BasicOperator> operators;
  for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (cancelled && cancelled()) return absl::CancelledError("planning was cancelled");
    operators.push_back(OperatorOf(graph, id, device));
  }
  return operators;
}

}  // namespace fusion::power_fusion
