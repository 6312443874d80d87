// The ways to run a case. A mode takes all cases at once, because compiled modes build many models per compiler call.
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
  std::string target = "cpu";  // or "opencl", or "cuda-shim": CUDA text as C++ on this CPU
  int group = 1;               // opencl: work-items that share a task
  std::string bundles;         // RunOptions::bundles
};

// Returns one result per case, parallel to `cases`: the outputs in the graph's order, or the reason why there are none.
using ModeFunction =
    std::function<std::vector<absl::StatusOr<Outputs>>(const std::vector<TestCase>& cases, const ModeOptions& options)>;

struct Mode {
  std::string name;
  ModeFunction run;
};

// interpreter: imports, verifies, lowers the whole graph and interprets it.
// simplified: does the same after compiler/simplify.
std::vector<Mode> InterpreterModes();

// unfused, fused: run the whole compiler with planner none or dnnfusion, build with this machine's clang, and execute
// with the runtime.
std::vector<Mode> CompiledModes();

std::vector<Mode> AllModes();

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_MODES_H_
