// Computes the numbers of a program.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_EXECUTE_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_EXECUTE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/devices/dsa_sim/evaluator.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {

// Values of buffers by name, one float an element.
using Values = std::map<std::string, std::vector<float>>;

// Runs the instructions in the order of the list, which is one of the orders that a checked program allows, and all of
// these give the same numbers. Arithmetic is f32; a store to a narrower buffer rounds to nearest even. A product adds
// in ascending k. Returns the outputs. INVALID_ARGUMENT for an input that is missing, unknown or of another length.
// `evaluator` computes expressions; a program without any needs none.
absl::StatusOr<Values> Execute(const Program& program, const Values& inputs, Evaluator* evaluator = nullptr);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_EXECUTE_H_
