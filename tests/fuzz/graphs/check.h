// Runs one case, a graph or a model, through every mode.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_CHECK_H_
#define FUSION_TESTS_FUZZ_GRAPHS_CHECK_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "onnx/onnx_pb.h"
#include "tests/fuzz/graphs/judge.h"
#include "tests/fuzz/graphs/modes.h"

namespace fusion::fuzz {

struct Case {
  std::string name;
  ecg::Graph graph;                       // the text's graph; for a model, the graph that import makes
  std::optional<onnx::ModelProto> model;  // set if the graph comes from a model
};

struct Failure {
  std::string mode;  // also "interpreter", "text", and for a model "import"
  absl::Status why;
  // A graph may compute its own indices, and these may lie outside. This is bad input, and only constant folding
  // notices it, and the import of a model that computes one operator after another. Extents that do not broadcast are an
  // error of the run.
  bool Refusal() const { return mode != "interpreter" && absl::IsInvalidArgument(why); }
};

struct Checked {
  std::vector<Failure> failures;  // empty if no mode failed
  Coverage coverage;              // over all modes
  std::map<std::string, int> one_kernel;   // by mode with a form: how often the graph is one kernel
  std::map<std::string, int> not_one_kernel;  // by mode and reason: how often it is not
  bool judged = false;  // some mode's result was compared with the interpreter's
  std::map<std::string, int> refused_by_target;  // by mode and reason: how often its target does not compute the graph
};

// A model is also checked against its operators run one after another. Each is imported with its operands as constants,
// so no extent depends on data, and every condition and trip count is known.
std::vector<Checked> Check(const std::vector<Case>& cases, const std::vector<Mode>& modes, const RunSettings& settings);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_CHECK_H_
