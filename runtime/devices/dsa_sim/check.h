// Refuses a program that the machine cannot run as written. Everything is decided from the program alone, before a run.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_CHECK_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_CHECK_H_

#include "absl/status/status.h"
#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {

// Checks places, capacities, levels, units, shapes of operands and dependences. INVALID_ARGUMENT names the buffer or
// the instruction (number and text), what was found and what is expected; RESOURCE_EXHAUSTED for a buffer that does not
// fit its memory.
absl::Status CheckOperands(const Machine& machine, const Program& program);

// Checks what the instructions do to the bytes of each memory, after CheckOperands. FAILED_PRECONDITION
//   - for an instruction that reads bytes which no input and no earlier instruction has written, and for an output of
//     which a byte is never written;
//   - for a race: two instructions that touch the same byte, one of which writes, and neither of which has completed
//     before the other starts (order.h).
absl::Status CheckAccesses(const Machine& machine, const Program& program);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_CHECK_H_
