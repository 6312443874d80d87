// The ways in which a graph is computed and then compared with the interpreter.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_MODES_H_
#define FUSION_TESTS_FUZZ_GRAPHS_MODES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

struct Mode {
  std::string name;
  std::string planner;  // empty: only runs passes and the interpreter
  std::string math;     // "fast", "strict"
  std::string form = "";  // the whole graph is one kernel in this form of its schedule (one_kernel.h)
  std::string target = "cpu";  // or "dsa", the simulated accelerator, or as in RunOptions
};

// passes-strict, passes-fast: simplify and rewrite, then interpret. unfused, fused, fused-strict: compile and run.
// halos, windows: chains of windows as one kernel. dsa, dsa-layers: as one program of the simulated accelerator, of the
// fastest schedule, and layer by layer.
const std::vector<Mode>& AllModes();

// The graph after simplifying and rewriting at a level of `math`.
absl::StatusOr<ecg::Graph> Rewritten(const ecg::Graph& graph, const std::string& math);

// The outputs of a graph in one mode, or the reason why there are none.
using Outputs = absl::StatusOr<std::vector<Tensor>>;

struct RunSettings {
  // Each graph goes through only one of the compiled modes, in turn, and clang optimises little. Chains of windows also
  // go through one of the modes with a form.
  bool quick = false;
  std::string bundles;  // conformance::RunOptions::bundles
  std::string isa;     // "avx2"; empty: the widest that this machine has
};

// Returns results by mode, then by graph. Graphs must be materialised. Compiled modes build all graphs in few compiler
// calls, and run each in a process of its own: once on one thread and twice on two. If `quick` leaves out a graph, its
// result is absent. So it is in a mode with a form where the graph is no chain of windows. Where
// a chain has no kernel of that form, the result is FAILED_PRECONDITION.
std::vector<std::vector<std::optional<Outputs>>> RunGraphs(const std::vector<ecg::Graph>& graphs,
                                                           const std::vector<Mode>& modes, const RunSettings& settings);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_MODES_H_
