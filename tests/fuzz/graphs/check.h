// One case, a graph or a model, through every mode.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_CHECK_H_
#define FUSION_TESTS_FUZZ_GRAPHS_CHECK_H_

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
  ecg::Graph graph;                       // as its text; of a model: what import makes of it
  std::optional<onnx::ModelProto> model;  // where the graph comes from a model
};

struct Failure {
  std::string mode;  // also "interpreter", "text", and of a model "import"
  absl::Status why;
  // Where the graph computes its own indices, they may lie outside: bad input, which only constant folding notices, and
  // of a model its operators one after another. Extents that do not broadcast are an error of the run.
  bool Refusal() const { return mode != "interpreter" && absl::IsInvalidArgument(why); }
};

struct Checked {
  std::vector<Failure> failures;  // empty where all is well
  Coverage coverage;              // over all modes
};

// A model is judged a second time, by its operators one after another, each of them imported with its operands as
// constants: no extent depends on data then, every condition and every trip count is known.
std::vector<Checked> Check(const std::vector<Case>& cases, const std::vector<Mode>& modes, const RunSettings& settings);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_CHECK_H_
