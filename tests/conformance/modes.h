// The ways of running a case. Compiled modes build many models per compiler call, so a mode takes all cases at once.
#ifndef FUSION_TESTS_CONFORMANCE_MODES_H_
#define FUSION_TESTS_CONFORMANCE_MODES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/conformance/test_case.h"

namespace fusion::conformance {

using Outputs = std::vector<Tensor>;

struct ModeOptions {
  std::string target = "cpu";  // or "opencl", "cuda-shim": CUDA text as C++ on this processor
  int group = 1;               // opencl: work-items that share a task
};

// One result per case, parallel to `cases`: the outputs in the graph's order, or why there are none.
using ModeFunction =
    std::function<std::vector<absl::StatusOr<Outputs>>(const std::vector<TestCase>& cases, const ModeOptions& options)>;

struct Mode {
  std::string name;
  ModeFunction run;
};

// interpreter: import, verify, lower the whole graph, interpret.
// simplified: the same after compiler/simplify.
std::vector<Mode> InterpreterModes();

// unfused, fused: the whole compiler with planner none or dnnfusion, built by this machine's clang, run by the runtime.
std::vector<Mode> CompiledModes();

std::vector<Mode> AllModes();

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_MODES_H_
