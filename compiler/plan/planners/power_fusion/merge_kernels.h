// Kernels that grow by merging GIR-Graphs along the edges of the graph, the edge that hands over most first
// (PowerFusion §6, "GIR-Graph merging").
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_MERGE_KERNELS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_MERGE_KERNELS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/plan/planners/power_fusion/search_templates.h"
#include "compiler/plan/quotient_graph.h"

namespace fusion::power_fusion {

struct PlannedKernel {
  FusionBlock fusion_block;
  double ns = 0;                    // by the cost model
  std::optional<double> gir_ns;     // EstimateNs; none where GIR does not describe an operator, or one is an anchor
  int64_t units = 0;                // of that graph
  std::optional<MovedBytes> moved;  // with the phases that the schedule has
};

class KernelMerger {
 public:
  // All must outlive the merger.
  KernelMerger(const ecg::Graph& graph, const std::vector<BasicOperator>& operators, const DeviceModel& device,
               FusionOracle& oracle, const PlanOptions& options)
      : graph_(graph),
        operators_(operators),
        device_(device),
        oracle_(oracle),
        options_(options),
        search_(graph, operators, device),
        quotient_(graph) {}

  // Fails with CANCELLED.
  absl::Status Run();

  // The kernels in a topological order.
  std::vector<PlannedKernel> Kernels();
  // Why the two are not merged along this edge, for people.
  const std::string& Refusal(ecg::NodeId producer, ecg::NodeId consumer) const;

  // A set of nodes as a kernel with default hand-overs, or why it is none.
  absl::StatusOr<PlannedKernel> KernelOf(const std::vector<ecg::NodeId>& nodes);

 private:
  struct Edge {
    ecg::NodeId producer = ecg::kNone, consumer = ecg::kNone;
    double bytes = 0;
  };
  std::vector<Edge> Edges() const;
  PlannedKernel& KernelAt(ecg::NodeId node);
  // Merges the kernels of both if that is estimated no slower. Else returns why not.
  std::string Try(const Edge& edge);
  // The hand-overs that the graph leaves at device scope, as the plan asks for them.
  std::vector<HandOver> AcrossPhases(const Gir& gir) const;
  absl::StatusOr<PlannedKernel> Fit(FusionBlock fusion_block);
  double GirNs(PlannedKernel* kernel);
  std::set<ecg::ValueId> ResultsOf(const std::vector<ecg::NodeId>& nodes) const;

  const ecg::Graph& graph_;
  const std::vector<BasicOperator>& operators_;
  const DeviceModel& device_;
  FusionOracle& oracle_;
  const PlanOptions& options_;
  TemplateSearch search_;
  QuotientGraph quotient_;
  std::map<ecg::NodeId, PlannedKernel> kernels_;                        // by the node that names them
  std::map<std::pair<ecg::NodeId, ecg::NodeId>, std::string> refused_;  // by edge
};

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_MERGE_KERNELS_H_
