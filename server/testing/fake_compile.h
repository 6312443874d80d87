// A compiler for tests of the service. It asks real questions and builds real units through the interfaces that it is
// given, and writes a file that records what it did. The first line of the model is its command:
//   ok | fail WORDS | slow (waits until cancelled) | ask N (N latency questions), compare N (the same in one group),
//   then "build N"; "plans N" compares N plans with a reference
#ifndef FUSION_SERVER_TESTING_FAKE_COMPILE_H_
#define FUSION_SERVER_TESTING_FAKE_COMPILE_H_

#include <string>

#include "compiler/pipeline/compile.h"

namespace fusion {

absl::StatusOr<CompileAccount> FakeCompile(const ModelFiles& files, const CompileOptions& options,
                                           const CompileContext& context, const std::string& bundle_path);
absl::StatusOr<PlanReport> FakePlan(const ModelFiles& files, const CompileOptions& options,
                                    const CompileContext& context);

// Knows the rules "factor" and "other" only.
absl::Status FakeCheckRule(const std::string& id);

}  // namespace fusion

#endif  // FUSION_SERVER_TESTING_FAKE_COMPILE_H_
