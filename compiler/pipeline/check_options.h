// The first check of a compilation: do its options name something?
#ifndef FUSION_COMPILER_PIPELINE_CHECK_OPTIONS_H_
#define FUSION_COMPILER_PIPELINE_CHECK_OPTIONS_H_

#include "absl/status/status.h"
#include "compiler/api/compile_context.h"
#include "compiler/api/compile_options.h"

namespace fusion {

// Refuses words that name nothing, passes that cannot be disabled (INVALID_ARGUMENT), and devices for which no kernels
// are printed (UNIMPLEMENTED).
absl::Status CheckOptions(const CompileOptions& options, const CompileContext& context);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_CHECK_OPTIONS_H_
