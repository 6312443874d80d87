// Compile turns an ONNX model into a bundle: the whole compiler behind one call. compiler/pipeline/passes.cc has the
// passes and their order. Thread-safe; several compilations may run at once.
#ifndef FUSION_COMPILER_PIPELINE_COMPILE_H_
#define FUSION_COMPILER_PIPELINE_COMPILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"
#include "compiler/api/compile_options.h"
#include "compiler/api/model_files.h"

namespace fusion {

// Writes the bundle to `bundle_path` atomically: writes a temporary file beside it, then renames that. Nothing stays on
// failure. Fails with INVALID_ARGUMENT for a bad model, UNIMPLEMENTED listing every unsupported operator, CANCELLED,
// RESOURCE_EXHAUSTED for a full disk, or INTERNAL for a fault of the compiler.
absl::StatusOr<CompileAccount> Compile(const ModelFiles& files, const CompileOptions& options,
                                       const CompileContext& context, const std::string& bundle_path);

// Compiles many models at once, so that their kernels share compiler calls and texts. Results are parallel to `jobs`;
// the failure of one job does not affect the others. For test suites and fleets of small models.
struct CompileJob {
  ModelFiles files;
  CompileOptions options;
  std::string bundle_path;
};
std::vector<absl::StatusOr<CompileAccount>> CompileMany(const std::vector<CompileJob>& jobs,
                                                        const CompileContext& context);

// From import to plan, without building: what `fusionctl plan` prints. `text` is for people, one line per kernel.
struct PlanReport {
  CompileAccount account;
  std::string text;
};
absl::StatusOr<PlanReport> PlanOnly(const ModelFiles& files, const CompileOptions& options,
                                    const CompileContext& context);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_COMPILE_H_
