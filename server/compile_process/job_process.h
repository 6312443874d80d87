// The process that compiles one model for fusiond (compile_process.h is the other end). It gets its model, its work
// folder and one end of a pair of sockets; everything else that a compilation needs it asks for there
// (proto/compile_process.proto).
#ifndef FUSION_SERVER_COMPILE_PROCESS_JOB_PROCESS_H_
#define FUSION_SERVER_COMPILE_PROCESS_JOB_PROCESS_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/pipeline/compile.h"

namespace fusion {

// fusion::Compile and fusion::PlanOnly, or a test's replacements.
struct JobCompiler {
  std::function<absl::StatusOr<CompileAccount>(const ModelFiles&, const CompileOptions&, const CompileContext&,
                                               const std::string& bundle_path)>
      compile;
  std::function<absl::StatusOr<PlanReport>(const ModelFiles&, const CompileOptions&, const CompileContext&)> plan;
};

// The whole program. Returns for wrong arguments only; else the process ends with its work.
//   --parent PID              the fusiond that started the process, with which it ends
//   --fault MODEL:STAGE:KIND  for tests: how the process fails at the first progress of that stage of a model with that
//                             name: abort, exit, memory (an allocation of 30 GiB), leak (of 64 MiB, again and again),
//                             loop
int RunJobProcess(int argc, char** argv, const JobCompiler& compiler);

}  // namespace fusion

#endif  // FUSION_SERVER_COMPILE_PROCESS_JOB_PROCESS_H_
