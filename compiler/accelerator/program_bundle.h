// Bundles of whole programs (runtime/devices/dsa/kernel_abi.md).
#ifndef FUSION_COMPILER_ACCELERATOR_PROGRAM_BUNDLE_H_
#define FUSION_COMPILER_ACCELERATOR_PROGRAM_BUNDLE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/accelerator/whole_program.h"
#include "compiler/api/compile_account.h"
#include "compiler/cost/device_model.h"
#include "runtime/bundle/manifest.h"

namespace fusion::accelerator {

// Writes the model's bundle: one launch, the program, its weights as the model has them, and the account. UNIMPLEMENTED
// for an output that no layer makes.
absl::Status WriteProgramBundle(const ModelOnMachine& model, const BuiltProgram& built, const Manifest& head,
                                const std::string& path, CompileAccount* account);

// The bundle with which a worker times a program. Weights are inputs of it, so that programs that differ in nothing
// else are equal.
absl::StatusOr<std::string> MeasurementBundle(const ModelOnMachine& model, const WholeProgram& program,
                                              const std::string& binary, const DeviceModel& device,
                                              const std::string& key);

}  // namespace fusion::accelerator

#endif  // FUSION_COMPILER_ACCELERATOR_PROGRAM_BUNDLE_H_
