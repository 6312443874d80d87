// Compiles jobs together on this machine, without a server, and runs every bundle in a process of its own.
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
  std::string target = "cpu";  // or "opencl", "cuda-shim": CUDA text as C++ on this processor
  std::string isa;             // cpu: "avx2" on a machine that has more; empty: the widest there is
  int group = 1;               // opencl: work-items that share a task
  // Each bundle runs again on two threads, twice in one session, and must give the same bytes: which task finds what in
  // which memory must not matter.
  bool repeats = false;
  int deadline_s = 60;                      // one run; most take milliseconds
  std::vector<std::string> compiler_flags;  // of clang, besides the toolchain's own
};

// inputs(j) are the inputs of jobs[j]. The bundles lie in a folder that is gone at the end. One result a job: its
// outputs, or why there are none.
std::vector<absl::StatusOr<std::vector<Tensor>>> CompileAndRun(std::vector<CompileJob> jobs,
                                                               const std::function<std::vector<Tensor>(int)>& inputs,
                                                               const RunOptions& options = {});

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_COMPILE_AND_RUN_H_
