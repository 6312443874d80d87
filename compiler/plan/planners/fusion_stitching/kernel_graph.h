// The graph that FusionStitching explores: its vertices are kernels of XLA's fusion (§6).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_KERNEL_GRAPH_H_
#define FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_KERNEL_GRAPH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/operator_kind.h"
#include "compiler/plan/plan.h"

namespace fusion {

// A value that a vertex stores.
struct StoredValue {
  ecg::ValueId value = ecg::kNone;
  int64_t bytes = 0;
  std::vector<int> readers;  // vertices, ascending
  bool returned = false;     // by the model
};

// A value that a vertex reads from memory.
struct ReadValue {
  ecg::ValueId value = ecg::kNone;
  int64_t bytes = 0;
  int producer = -1;   // the vertex that stores it; -1: an input or a constant
  int64_t pieces = 0;  // PiecesByOperand, for the vertex as a whole; 0: no restriction
};

struct Vertex {
  std::vector<ecg::NodeId> members;  // ascending
  double estimate_ns = 0;
  int64_t tasks = 1;
  bool memory_intensive = false;  // others are never part of a pattern
  int64_t result_elements = 0;
  std::vector<StoredValue> stores;
  std::vector<ReadValue> reads;           // distinct
  std::vector<int> consumers, producers;  // ascending, distinct
};

// Vertices are in a topological order.
class KernelGraph {
 public:
  // `plan` is that of FuseLikeXla. Fails with CANCELLED.
  static absl::StatusOr<KernelGraph> Make(const ecg::Graph& graph, const std::vector<OperatorTraits>& traits,
                                          const FusionPlan& plan, FusionOracle& oracle, const PlanOptions& options);

  const std::vector<Vertex>& vertices() const { return vertices_; }
  const Vertex& operator[](int v) const { return vertices_[v]; }
  int size() const { return static_cast<int>(vertices_.size()); }

  // Does no path leave the pattern and come back? `pattern` is ascending.
  bool IsConvex(const std::vector<int>& pattern) const;
  // The pattern with all vertices on paths between its own: the smallest convex pattern that holds it.
  std::vector<int> Closure(const std::vector<int>& pattern) const;
  // The nodes of these vertices, each once, ascending.
  std::vector<ecg::NodeId> Nodes(const std::vector<int>& pattern) const;

 private:
  std::vector<Vertex> vertices_;
  mutable std::vector<int> marked_;  // by vertex: the last question that reached it
  mutable int question_ = 0;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_KERNEL_GRAPH_H_
