// A part of a tensor expression as the unit code that the simulator runs (runtime/devices/dsa_sim/unit_code.h). It is
// the register program of the reference interpreter (compiler/te/interpreter), so that both compute the same numbers.
#ifndef FUSION_COMPILER_BACKENDS_DSA_UNIT_CODE_OF_H_
#define FUSION_COMPILER_BACKENDS_DSA_UNIT_CODE_OF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/te/program/program.h"
#include "runtime/devices/dsa_sim/unit_code.h"

namespace fusion::dsa {

// Returns the code without boxes: the caller knows which operands and results lie where. Tensors have the numbers that
// they have in the program. UNIMPLEMENTED, naming it, for a routine (sorting, compaction), which is no expression.
absl::StatusOr<UnitCode> UnitCodeOf(const te::Program& part);

// The operations of unit code that the interpreter's instructions become, sorted; for tests.
std::vector<std::string> NamedUnitOps();

}  // namespace fusion::dsa

#endif  // FUSION_COMPILER_BACKENDS_DSA_UNIT_CODE_OF_H_
