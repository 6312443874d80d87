#include "compiler/plan/planners/power_fusion/power_fusion.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/cost/typical_core.h"
#include "compiler/plan/cover.h"
#include "compiler/plan/planners/power_fusion/merge_kernels.h"
#include "compiler/plan/planners/tvm_like/tvm_like.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;
using power_fusion::BasicOperator;
using power_fusion::KernelMerger;
using power_fusion::PlannedKernel;

double SumNs(const std::vector<PlannedKernel>& kernels) {
  double ns = 0;
  for (const PlannedKernel& kernel : kernels) ns += kernel.ns;
  return ns;
}

std::vector<std::vector<NodeId>> SetsOf(const std::vector<PlannedKernel>& kernels) {
  std::vector<std::vector<NodeId>> sets;
  for (const PlannedKernel& kernel : kernels) sets.push_back(kernel.fusion_block.nodes);
  return sets;
}

// By node: the smallest set of whole kernels of both kinds that it is part of, named by a node.
std::vector<NodeId> Regions(size_t nodes, const std::vector<PlannedKernel>& a, const std::vector<PlannedKernel>& b) {
  std::vector<NodeId> parent(nodes);
  std::iota(parent.begin(), parent.end(), 0);
  const auto find = [&](NodeId node) {
    while (parent[node] != node) node = parent[node] = parent[parent[node]];
    return node;
  };
  for (const auto* kernels : {&a, &b}) {
    for (const PlannedKernel& kernel : *kernels) {
      const NodeId first = find(kernel.fusion_block.nodes[0]);
      for (const NodeId node : kernel.fusion_block.nodes) parent[find(node)] = first;
    }
  }
  for (NodeId node = 0; node < static_cast<NodeId>(nodes); ++node) parent[node] = find(node);
  return parent;
}

// Pruning decides merge by merge, so that it can end at kernels that are slower than groups which it never looked at.
// So the groups of fixed patterns compete in every region: the faster kernels of each are taken.
std::vector<PlannedKernel> FasterOfEachRegion(const ecg::Graph& graph, const std::vector<PlannedKernel>& merged,
                                              const std::vector<PlannedKernel>& fixed, std::set<NodeId>* of_patterns) {
  const std::vector<NodeId> region = Regions(graph.nodes().size(), merged, fixed);
  std::map<NodeId, std::pair<double, double>> ns;
  for (const PlannedKernel& kernel : merged) ns[region[kernel.fusion_block.nodes[0]]].first += kernel.ns;
  for (const PlannedKernel& kernel : fixed) ns[region[kernel.fusion_block.nodes[0]]].second += kernel.ns;
  const auto fixed_is_faster = [&](const PlannedKernel& kernel) {
    const auto& [of_merged, of_fixed] = ns[region[kernel.fusion_block.nodes[0]]];
    return of_fixed < of_merged;
  };
  std::vector<PlannedKernel> kernels;
  for (const PlannedKernel& kernel : merged) {
    if (!fixed_is_faster(kernel)) kernels.push_back(kernel);
  }
  for (const PlannedKernel& kernel : fixed) {
    if (!fixed_is_faster(kernel)) continue;
    kernels.push_back(kernel);
    of_patterns->insert(kernel.fusion_block.nodes.begin(), kernel.fusion_block.nodes.end());
  }
  // Kernels of both kinds may wait for each other.
  if (FusionBlocksOfCover(graph, SetsOf(kernels)).ok()) return kernels;
  of_patterns->clear();
  if (SumNs(merged) <= SumNs(fixed)) return merged;
  for (NodeId node = 0; node < static_cast<NodeId>(region.size()); ++node) of_patterns->insert(node);
  return fixed;
}

std::string Fused(const PlannedKernel& kernel) {
  std::string reason = absl::StrFormat("one GIR-Graph, estimated %.2f us", kernel.ns / 1e3);
  if (kernel.moved) {
    absl::StrAppend(&reason, absl::StrFormat(", moves %.0f bytes in %d phases",
                                             kernel.moved->read + kernel.moved->written, kernel.moved->phases));
  }
  return reason;
}

class PowerFusion : public Planner {
 public:
  const char* name() const override { return "power_fusion"; }
  bool WantsOpened() const override { return true; }

  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel& device, FusionOracle& oracle,
                                  const PlanOptions& options) const override {
    const DeviceModel typical = WithTypicalRates(device);  // the same at every registration of a device
    ASSIGN_OR_RETURN(const std::vector<BasicOperator> operators,
                     power_fusion::BasicOperatorsOf(graph, typical, options.cancelled));
    KernelMerger merger(graph, operators, typical, oracle, options);
    RETURN_IF_ERROR(merger.Run());
    ASSIGN_OR_RETURN(const FusionPlan patterns, TvmLikePlanner()->Plan(graph, device, oracle, options));
    std::vector<PlannedKernel> fixed;
    for (const FusionBlock& fusion_block : patterns.fusion_blocks) {
      ASSIGN_OR_RETURN(fixed.emplace_back(), merger.KernelOf(fusion_block.nodes));
    }
    std::set<NodeId> of_patterns;
    const std::vector<PlannedKernel> kernels = FasterOfEachRegion(graph, merger.Kernels(), fixed, &of_patterns);
    return Finish(graph, merger, kernels, of_patterns);
  }

 private:
  static absl::StatusOr<FusionPlan> Finish(const ecg::Graph& graph, const KernelMerger& merger,
                                           const std::vector<PlannedKernel>& kernels,
                                           const std::set<NodeId>& of_patterns) {
    FusionPlan plan;
    ASSIGN_OR_RETURN(plan.fusion_blocks, FusionBlocksOfCover(graph, SetsOf(kernels)));
    std::map<std::vector<NodeId>, const PlannedKernel*> by_nodes;
    std::vector<const PlannedKernel*> kernel_of(graph.nodes().size());
    for (const PlannedKernel& kernel : kernels) {
      by_nodes[kernel.fusion_block.nodes] = &kernel;
      for (const NodeId node : kernel.fusion_block.nodes) kernel_of[node] = &kernel;
    }
    for (FusionBlock& fusion_block : plan.fusion_blocks) {
      fusion_block.inner = by_nodes.at(fusion_block.nodes)->fusion_block.inner;
    }
    std::set<std::pair<NodeId, NodeId>> decided;
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
      for (const ecg::ValueId v : graph.node(id).inputs) {
        const NodeId producer = v == ecg::kNone ? ecg::kNone : graph.value(v).producer;
        if (producer == ecg::kNone || !decided.emplace(producer, id).second) continue;
        Decision& decision = plan.decisions.emplace_back();
        decision.producer = producer;
        decision.consumer = id;
        decision.fused = kernel_of[producer] == kernel_of[id];
        if (of_patterns.count(producer) > 0 && of_patterns.count(id) > 0) {
          decision.reason = "fixed patterns are estimated faster here than merged GIR-Graphs";
        } else {
          decision.reason = decision.fused ? Fused(*kernel_of[id]) : merger.Refusal(producer, id);
        }
      }
    }
    return plan;
  }
};

}  // namespace

const Planner* PowerFusionPlanner() {
  static const auto* const kPlanner = new PowerFusion;
  return kPlanner;
}

}  // namespace fusion
