// The account of a model's program: plan.json, and the facts that a bundle's manifest tells people.
#ifndef FUSION_COMPILER_ACCELERATOR_PROGRAM_ACCOUNT_H_
#define FUSION_COMPILER_ACCELERATOR_PROGRAM_ACCOUNT_H_

#include <map>
#include <string>

#include "compiler/accelerator/whole_program.h"
#include "compiler/api/compile_account.h"

namespace fusion::accelerator {

// Adds kernels, arithmetic, time and plan.json: the machine with each rate that is assumed, the programs that were
// compared, the layers, bytes at each boundary and the use of units.
void AccountForProgram(const ModelOnMachine& model, const WholeProgram& program, CompileAccount* account);

// For Manifest::options: "planner" (the variant), "machine", "program", "simulated".
std::map<std::string, std::string> FactsOf(const ModelOnMachine& model, const WholeProgram& program);

// For people: the layers, and what FactsOf says.
std::string PlanInWords(const ModelOnMachine& model, const WholeProgram& program);

}  // namespace fusion::accelerator

#endif  // FUSION_COMPILER_ACCELERATOR_PROGRAM_ACCOUNT_H_
