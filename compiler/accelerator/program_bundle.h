// Bundles of whole programs (runtime/devices/dsa/kernel_abi.md).
#ifndef FUSION_COMPILER_ACCELERATOR_PROGRAM_BUNDLE_H_
#define FUSION_COMPILER_ACCELERATOR_PROGRAM_BUNDLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/accelerator/whole_program.h"
#include "compiler/api/compile_account.h"
#include "compiler/cost/device_model.h"
#include "runtime/bundle/manifest.h"

namespace fusion::accelerator {

// One program of a bundle. The objects behind the pointers outlive it.
struct ProgramInBundle {
  const ModelOnMachine* model = nullptr;
  const BuiltProgram* built = nullptr;
  // A specialisation has extents, and names of the dimensions of each input (Binding::symbols).
  std::map<std::string, int64_t> dims = {};
  std::vector<std::vector<std::string>> input_symbols = {};
};

// Writes the model's bundle: for each program one launch; the weights as the model has them, each once; the account.
// The programs are of one machine. UNIMPLEMENTED for an output that no layer makes.
absl::Status WriteProgramBundle(absl::Span<const ProgramInBundle> programs, const Manifest& head,
                                const std::string& path, CompileAccount* account);

// The bundle with which a worker times a program. Weights are inputs of it, so that programs that differ in nothing
// else are equal.
absl::StatusOr<std::string> MeasurementBundle(const ModelOnMachine& model, const WholeProgram& program,
                                              const std::string& binary, const DeviceModel& device,
                                              const std::string& key);

}  // namespace fusion::accelerator

#endif  // FUSION_COMPILER_ACCELERATOR_PROGRAM_BUNDLE_H_
