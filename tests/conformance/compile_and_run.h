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
  std::string target = "cpu";  // or "opencl", "dsa", "cuda-shim" (CUDA text as C++ on this CPU, for a
  // small device, or as in "cuda-shim:sm_90" for a stored one), "cuda:sm_90" (on this GPU)
  std::string isa;             // cpu: "avx2" on a machine that has more; empty: the widest
  int group = 1;               // opencl: work-items that share a task
  // Each bundle also runs twice on two threads in one session and must give the same bytes: results must not depend on
  // which thread runs a task or on the former contents of memory.
  bool repeats = false;
  int deadline_s = 60;                      // of one run; most take milliseconds
  std::vector<std::string> compiler_flags;  // of clang, in addition to the toolchain's own
  // Keeps the bundles below this folder. Where they are there, nothing is compiled: they come from another machine that
  // made the same calls in the same order. Empty: they are not kept.
  std::string bundles;
};

// inputs(j) returns the inputs of jobs[j]. Returns one result per job: its outputs, or the reason why there are none.
std::vector<absl::StatusOr<std::vector<Tensor>>> CompileAndRun(std::vector<CompileJob> jobs,
                                                               const std::function<std::vector<Tensor>(int)>& inputs,
                                                               const RunOptions& options = {});

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_COMPILE_AND_RUN_H_
