// PartialGraph: a graph under construction, with what import knows of its values: the extents that depend on data, the
// value ranges, and what a run of the model must check.
#ifndef FUSION_COMPILER_ONNX_PARTIAL_GRAPH_H_
#define FUSION_COMPILER_ONNX_PARTIAL_GRAPH_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/onnx/extents.h"

namespace fusion::onnx_import {

class PartialGraph {
 public:
  PartialGraph() : extents(&graph) {}
  PartialGraph(const PartialGraph&) = delete;
  PartialGraph& operator=(const PartialGraph&) = delete;

  // A condition that each run of the model must meet (runtime/base/run_check.h).
  struct RunCheck {
    ecg::ValueId values;
    std::string message;
  };

  ecg::Graph graph;
  Extents extents;
  std::vector<RunCheck> checks;
  // Bool scalars under which the nodes added now take effect: a run needs them only if all hold. Branches and
  // iterations that may not run add their conditions (ConditionScope).
  std::vector<ecg::ValueId> conditions;

  // Returns the value ranges of a value (te::Know). Where none are known yet, follows its producers as far back as the
  // ranges depend on them. Integers of large tensors, such as coordinates, are followed only on such a request.
  std::optional<te::TensorRanges> RangesOf(ecg::ValueId value);

 private:
  // Computes the value ranges of the outputs of a node of the graph from at most `depth` producers before it.
  void LookAt(ecg::NodeId node, int depth);

  std::set<ecg::NodeId> looked_at_;
};

// Returns whether the range is tighter than that of an integer type of 32 bits or more.
bool IsBounded(const te::ValueRange& range);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_PARTIAL_GRAPH_H_
