// Compilation for a device that runs whole programs (Backend::RunsWholePrograms): the passes over the graph as for any
// other, then compiler/accelerator in place of plan and kernels.
#ifndef FUSION_COMPILER_PIPELINE_COMPILE_PROGRAM_H_
#define FUSION_COMPILER_PIPELINE_COMPILE_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"
#include "compiler/api/compile_options.h"
#include "compiler/api/model_files.h"

namespace fusion {

bool RunsWholePrograms(const CompileContext& context);

// As Compile (compile.h) for such a device; each specialisation is a program of the bundle. UNIMPLEMENTED for extents
// that a run decides.
absl::StatusOr<CompileAccount> CompileProgram(const ModelFiles& files, const CompileOptions& options,
                                              const CompileContext& context, const std::string& bundle_path);

// As PlanOnly: nobody is asked and nothing is built. `text` is for people.
absl::StatusOr<CompileAccount> PlanProgram(const ModelFiles& files, const CompileOptions& options,
                                           const CompileContext& context, std::string* text);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_COMPILE_PROGRAM_H_
