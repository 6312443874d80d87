// Compiles jobs together on this machine, without a server, and runs each bundle in a process of its own.
#ifndef FUSION_TESTS_CONFORMANCE_COMPILE_AND_RUN_H_
#define FUSION_TESTS_CONFORMANCE_COMPILE_AND_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/pipeline/compile.h"
#include "runtime/base/tensor.h"

namespace fusion::conformance {

struct RunOptions {
  std::string target = "cpu";  // or "opencl", or "cuda-shim": CUDA text as C++ on this CPU
  std::string isa;             // cpu: "avx2" on a machine that has more; empty: the widest
  int group = 1;               // opencl: work-items that share a task
  // Each bundle also runs twice on two threads in one session and must give the same bytes: results must not depend on
  // which thread runs a task or on the former contents of memory.
  bool repeats = false;
  int deadline_s = 60;                      // of one run; most take milliseconds
  std::vector<std::string> compiler_flags;  // of clang, in addition to the toolchain's own
};

// inputs(j) returns the inputs of jobs[j]. The bundles lie in a folder that is removed at the end. Returns one result
// per job: its outputs, or the reason why there are none.
std::vector<absl::StatusOr<std::vector<Tensor>>> CompileAndRun(std::vector<CompileJob> jobs,
                                                               const std::function<std::vector<Tensor>(int)>& inputs,
                                                               const RunOptions& options = {});

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_COMPILE_AND_RUN_H_
