// The simulator: checks a program, computes its numbers and counts its cycles.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_SIMULATE_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_SIMULATE_H_

#include "absl/status/statusor.h"
#include "runtime/devices/dsa_sim/execute.h"
#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/program.h"
#include "runtime/devices/dsa_sim/timing.h"

namespace fusion::dsa {

struct Simulation {
  Values outputs;
  Timing timing;
};

// Fails as CheckOperands and CheckAccesses (check.h) or Execute do.
absl::StatusOr<Simulation> Simulate(const Machine& machine, const Program& program, const Values& inputs,
                                    Evaluator* evaluator = nullptr);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_SIMULATE_H_
