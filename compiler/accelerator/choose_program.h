// Which of several programs of a model is the fastest: each is checked and timed by a worker, as kernels are, and its
// time is kept in the profile database. Without a worker the simulator's own count answers, which is the same number.
#ifndef FUSION_COMPILER_ACCELERATOR_CHOOSE_PROGRAM_H_
#define FUSION_COMPILER_ACCELERATOR_CHOOSE_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/accelerator/whole_program.h"
#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"

namespace fusion::accelerator {

// The variants that are made for a planner: "none" computes layer by layer, with results in DDR; any other one compares
// GraphTurbo's schedule with layers as wholes.
std::vector<std::string> VariantsFor(const std::string& planner);

// Fails if no variant can be made, with the error of the first, or if the toolchain refuses the program. Adds the
// alternatives, the questions and their answers to the account.
absl::StatusOr<BuiltProgram> ChooseProgram(const ModelOnMachine& model, const std::vector<std::string>& variants,
                                           const CompileContext& context, CompileAccount* account);

}  // namespace fusion::accelerator

#endif  // FUSION_COMPILER_ACCELERATOR_CHOOSE_PROGRAM_H_
