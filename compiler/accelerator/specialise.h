// Gives each instruction of a lowered program the unit code of its part: what a bundle carries, so that the runtime
// needs no compiler.
#ifndef FUSION_COMPILER_ACCELERATOR_SPECIALISE_H_
#define FUSION_COMPILER_ACCELERATOR_SPECIALISE_H_

#include "absl/status/statusor.h"
#include "compiler/plan/planners/graph_turbo/lowering/lowered_program.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::accelerator {

// Returns the program with unit code in place of tensor expressions. Parts that compute alike, such as the tiles inside
// of an image, share one code. UNIMPLEMENTED for a routine.
absl::StatusOr<dsa::Program> Specialise(const graph_turbo::LoweredProgram& lowered);

}  // namespace fusion::accelerator

#endif  // FUSION_COMPILER_ACCELERATOR_SPECIALISE_H_
