// The graph that GraphTurbo works on: operators with access maps, and the tensors that they hand to each other. Weights
// are no part of it (GraphTurbo, OSDI 2023, section 2.2: a small, fixed part of each LB is kept for them).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_OP_GRAPH_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_OP_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/plan/planners/graph_turbo/access_map.h"

namespace fusion::graph_turbo {

inline constexpr int kNone = -1;

struct Tensor {
  std::string name;
  ecg::ValueId value = ecg::kNone;  // of the graph
  Shape shape;
  int64_t element_bytes = 0;
  int producer = kNone;        // kNone: an input of the model
  std::vector<int> consumers;  // distinct, ascending
  bool model_output = false;

  double bytes(const Region& region) const {
    return static_cast<double>(region.elements()) * static_cast<double>(element_bytes);
  }
};

struct Op {
  std::string name;
  AccessMap access;
  std::vector<int> inputs;   // tensors, parallel to access.program().inputs; kNone: a weight
  std::vector<int> outputs;  // tensors, parallel to access.program().outputs
  // Parallel to inputs: the graph's value, or ecg::kNone for a constant that only the expression knows.
  std::vector<ecg::ValueId> values;
  double work = 0;  // of the whole
};

struct OpGraph {
  std::vector<Tensor> tensors;
  std::vector<Op> ops;  // in topological order
};

struct OpGraphOptions {
  // The width that f32 tensors have on the accelerator.
  int64_t float_bytes = 4;
};

// Makes one operator of each set of nodes: the layers of the paper (section 1.1), or single nodes. The sets partition
// the graph's nodes, are convex, and stand in a topological order.
absl::StatusOr<OpGraph> MakeOpGraph(const ecg::Graph& graph, const std::vector<std::vector<ecg::NodeId>>& layers,
                                    const OpGraphOptions& options);

// The layers that TVM's fixed patterns make of a graph (planners/tvm_like), in a topological order. Each is fused as a
// whole: no schedule can refuse it here.
absl::StatusOr<std::vector<std::vector<ecg::NodeId>>> LayersOf(const ecg::Graph& graph);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_OP_GRAPH_H_
