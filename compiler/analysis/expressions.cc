#include "compiler/analysis/expressions.h"

#include <algorithm>
#include <set>

#include "compiler/ops/registry/op_def.h"
#include "runtime/base/status_macros.h"

namespace fusion::ecg {
namespace {

double Elements(const te::Program& program, te::TensorId tensor) {
  return static_cast<double>(NumElements(program.tensors[tensor].shape));
}

double Intensity(const te::Program& program, const te::Te& te) {
  std::set<te::TensorId> touched(te.outputs.begin(), te.outputs.end());
  te::VisitTensors(te, [&](te::TensorId tensor) { touched.insert(tensor); });
  double elements = 0;
  for (const te::TensorId tensor : touched) elements += Elements(program, tensor);
  const te::WorkCount work = te::CountWork(te);
  // A sum of products is counted as one multiply-add a point there; the paper counts two operations.
  const bool products = te.reduction && te.reduction->kind == te::ReductionKind::kSum &&
                        te.body[0]->kind == te::ScalarKind::kOp && te.body[0]->op == te::Op::kMul;
  return elements > 0 ? (work.fma + (products ? work.elements : 0)) / elements : 0;
}

}  // namespace

absl::StatusOr<NodeExpressions> ExpressionsOf(const Graph& graph, NodeId node) {
  std::vector<ValueId> outputs;
  for (const ValueId v : graph.node(node).outputs) {
    if (v != kNone) outputs.push_back(v);
  }
  ASSIGN_OR_RETURN(const ops::LoweredFusionBlock lowered, ops::LowerNodes(graph, {node}, outputs));
  const te::Program& program = lowered.program;
  NodeExpressions facts;
  // How an element of each tensor relies on each of the node's operands.
  std::vector<std::map<ValueId, te::Dependence>> relies(program.tensors.size());
  for (const te::TensorId input : program.inputs) {
    const ValueId value = lowered.value_of_tensor[input];
    if (value != kNone) relies[input][value] = te::Dependence::kOne;
  }
  for (const te::Te& te : program.tes) {
    std::map<ValueId, te::Dependence> sum;
    const auto add = [&](te::TensorId tensor, te::Dependence dependence) {
      for (const auto& [value, inner] : relies[tensor]) {
        te::Dependence& known = sum.emplace(value, te::Dependence::kNone).first->second;
        known = std::max(known, std::max(inner, dependence));
      }
    };
    if (te.routine) {
      facts.routine = true;
      for (const te::TensorId input : te.routine->inputs) add(input, te::Dependence::kMany);
    } else {
      te::VisitTensors(te, [&](te::TensorId tensor) { add(tensor, te::DependenceOf(te, tensor)); });
    }
    if (te.reduction) {
      facts.reduces = true;
      facts.intensity = std::max(facts.intensity, Intensity(program, te));
    }
    for (const te::TensorId output : te.outputs) relies[output] = sum;
  }
  for (const te::TensorId output : program.outputs) {
    for (const auto& [value, dependence] : relies[output]) {
      te::Dependence& known = facts.relies_on.emplace(value, te::Dependence::kNone).first->second;
      known = std::max(known, dependence);
    }
  }
  return facts;
}

std::vector<ReuseSet> ReuseSets(const Graph& graph) {
  std::vector<ReuseSet> sets;
  for (ValueId v = 0; v < static_cast<int>(graph.values().size()); ++v) {
    const Value& value = graph.value(v);
    ReuseSet set{v, value.consumers};
    std::sort(set.readers.begin(), set.readers.end());
    set.readers.erase(std::unique(set.readers.begin(), set.readers.end()), set.readers.end());
    if (value.constant.has_value() || set.readers.size() < 2) continue;
    // Which readers depend on an earlier one? Only nodes up to the last reader matter.
    std::set<NodeId> later;
    for (size_t r = 0; r + 1 < set.readers.size(); ++r) {
      std::set<NodeId> reached;
      std::vector<NodeId> stack = {set.readers[r]};
      while (!stack.empty()) {
        const NodeId at = stack.back();
        stack.pop_back();
        for (const ValueId out : graph.node(at).outputs) {
          if (out == kNone) continue;
          for (const NodeId reader : graph.value(out).consumers) {
            if (reader <= set.readers.back() && reached.insert(reader).second) stack.push_back(reader);
          }
        }
      }
      for (size_t other = r + 1; other < set.readers.size(); ++other) {
        (reached.count(set.readers[other]) > 0 ? set.temporal : set.spatial) = true;
      }
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace fusion::ecg
