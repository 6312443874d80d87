#include "compiler/plan/planners/graph_turbo/lowering/run_program.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/plan/planners/graph_turbo/lowering/te_evaluator.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/simulate.h"

namespace fusion::graph_turbo {
namespace {

std::vector<float> Floats(const fusion::Tensor& tensor) {
  std::vector<float> values(tensor.num_elements());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    values[i] =
        IsFloat(tensor.dtype()) ? static_cast<float>(tensor.GetDouble(i)) : static_cast<float>(tensor.GetInt(i));
  }
  return values;
}

}  // namespace

absl::StatusOr<ProgramRun> RunProgram(const ecg::Graph& graph, const OpGraph& op_graph, const LoweredProgram& lowered,
                                      const dsa::Machine& machine, const std::vector<fusion::Tensor>& inputs) {
  std::map<ecg::ValueId, const fusion::Tensor*> given;
  for (size_t i = 0; i < inputs.size(); ++i) given[graph.inputs()[i]] = &inputs[i];
  dsa::Values values;
  for (const ProgramInput& input : lowered.inputs) {
    if (input.tensor != kNone) {
      values[input.buffer] = Floats(*given.at(op_graph.tensors[input.tensor].value));
      continue;
    }
    const Op& op = op_graph.ops[input.op];
    const ecg::ValueId value = op.values[input.input];
    const te::Program& program = op.access.program();
    const std::optional<fusion::Tensor>& constant =
        value != ecg::kNone ? graph.value(value).constant : program.tensors[program.inputs[input.input]].constant;
    if (!constant) return absl::InternalError(absl::StrCat("the weight ", input.buffer, " has no value"));
    values[input.buffer] = Floats(*constant);
  }
  TeEvaluator evaluator(lowered.expressions);
  ASSIGN_OR_RETURN(dsa::Simulation simulation, dsa::Simulate(machine, lowered.program, values, &evaluator));
  ProgramRun run;
  run.timing = std::move(simulation.timing);
  std::map<ecg::ValueId, const std::vector<float>*> made;
  for (const ProgramOutput& output : lowered.outputs) {
    made[op_graph.tensors[output.tensor].value] = &simulation.outputs.at(output.buffer);
  }
  for (const ecg::ValueId id : graph.outputs()) {
    const auto it = made.find(id);
    if (it == made.end()) return absl::UnimplementedError(absl::StrCat("no layer makes ", graph.value(id).name));
    fusion::Tensor& tensor = run.outputs.emplace_back(graph.value(id).type.dtype, graph.value(id).type.shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (IsFloat(tensor.dtype())) {
        tensor.SetDouble(i, (*it->second)[i]);
      } else {
        tensor.SetInt(i, static_cast<int64_t>((*it->second)[i]));
      }
    }
  }
  return run;
}

}  // namespace fusion::graph_turbo
