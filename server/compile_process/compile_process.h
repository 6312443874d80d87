// Compilations in processes of their own. fusiond starts fusion-compile-job for each, answers its questions from the
// CompileContext of the caller, and ends it when the caller cancels. Harm that the process does to itself (an abort, an
// endless loop, more memory than there is) is the failure of one call, with its evidence.
//
// The process gets its model, its work folder and one end of a pair of sockets: no other descriptor, and of the
// environment only what its loader and a sanitizer need. It ends with fusiond.
#ifndef FUSION_SERVER_COMPILE_PROCESS_COMPILE_PROCESS_H_
#define FUSION_SERVER_COMPILE_PROCESS_COMPILE_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "compiler/pipeline/compile.h"
#include "runtime/base/steady_clock.h"
#include "server/compile_process/control_group.h"

namespace fusion {

struct CompileProcessOptions {
  std::string program;                      // fusion-compile-job
  std::vector<std::string> arguments = {};  // further ones, for tests
  int64_t memory_bytes = 0;                 // limit of a process; 0: none
  // Where there are any, they limit memory with all that a process starts, and the number of processes; else
  // RLIMIT_DATA limits each process. Must outlive the calls.
  const ControlGroups* groups = nullptr;
  // Limit of the time that a process takes for itself: while it waits for an answer no time passes.
  absl::Duration time = absl::Hours(1);
  SteadyClock clock = SteadyNow;
  bool unconfined = false;  // the process may do what this one may
  bool namespaces = false;  // it has its own (compiler/backends/confinement/namespaces.h)
};

// Does what fusion::Compile and fusion::PlanOnly do. Both block the calling thread, on which they call the context's
// functions, and are thread-safe; a thread that ends takes its process along. The folder of the model exists. A
// compilation that the context cancels is killed within a tenth of a second, with all that it has started, unless an
// oracle is being asked. Fails also with what IsProcessEnding recognises, and with NOT_FOUND for a missing program.
absl::StatusOr<CompileAccount> CompileInProcess(const CompileProcessOptions& process, const ModelFiles& files,
                                                const CompileOptions& options, const CompileContext& context,
                                                const std::string& bundle_path);
absl::StatusOr<PlanReport> PlanInProcess(const CompileProcessOptions& process, const ModelFiles& files,
                                         const CompileOptions& options, const CompileContext& context);

// How a process ended that did not answer: "signal", "exit", "memory" or "time" (a limit), "garbled" (it sent something
// that is no answer). Empty for every other status: then the compilation itself was answered, or cancelled.
std::string HowTheProcessEnded(const absl::Status& status);

// Returns such a status, for tests of what follows from it.
absl::Status ProcessEndedError(const std::string& how, const std::string& message);

}  // namespace fusion

#endif  // FUSION_SERVER_COMPILE_PROCESS_COMPILE_PROCESS_H_
