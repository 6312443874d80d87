#include "runtime/devices/dsa_sim/simulate.h"

#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/check.h"

namespace fusion::dsa {

absl::StatusOr<Simulation> Simulate(const Machine& machine, const Program& program, const Values& inputs,
                                    Evaluator* evaluator) {
  RETURN_IF_ERROR(CheckOperands(machine, program));
  RETURN_IF_ERROR(CheckAccesses(machine, program));
  Simulation simulation;
  ASSIGN_OR_RETURN(simulation.outputs, Execute(program, inputs, evaluator));
  simulation.timing = TimeProgram(machine, program);
  return simulation;
}

}  // namespace fusion::dsa
