#include "compiler/plan/plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fusion {

const char* BasisName(Basis basis) { return basis == Basis::kRule ? "rule" : "latency"; }

absl::StatusOr<PlanEstimate> FusionOracle::EstimatePlan(const ecg::Graph& graph,
                                                        const std::vector<FusionBlock>& fusion_blocks) {
  PlanEstimate estimate;
  for (const FusionBlock& fusion_block : fusion_blocks) estimate.ns += EstimateNs(graph, fusion_block.nodes);
  estimate.launches = static_cast<int64_t>(fusion_blocks.size());
  return estimate;
}

std::string PrintPlan(const ecg::Graph& graph, const FusionPlan& plan, const std::vector<std::string>& notes) {
  std::vector<int> fusion_block_of(graph.nodes().size(), -1);
  for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
    for (ecg::NodeId id : plan.fusion_blocks[b].nodes) fusion_block_of[id] = static_cast<int>(b);
  }
  std::vector<int> by_rule(plan.fusion_blocks.size(), 0), by_latency(plan.fusion_blocks.size(), 0);
  for (const Decision& decision : plan.decisions) {
    if (!decision.fused) continue;
    ++(decision.basis == Basis::kLatency ? by_latency : by_rule)[fusion_block_of[decision.producer]];
  }
  std::string text;
  for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
    absl::StrAppend(&text, "fusion block ", b, ":");
    for (size_t i = 0; i < plan.fusion_blocks[b].nodes.size(); ++i) {
      const ecg::Node& node = graph.node(plan.fusion_blocks[b].nodes[i]);
      absl::StrAppend(&text, i ? ", " : " ", node.op, " '", node.name, "'");
    }
    if (!plan.fusion_blocks[b].recomputed.empty()) {
      absl::StrAppend(&text, ", and again");
      for (size_t i = 0; i < plan.fusion_blocks[b].recomputed.size(); ++i) {
        const ecg::Node& node = graph.node(plan.fusion_blocks[b].recomputed[i]);
        absl::StrAppend(&text, i ? ", " : " ", node.op, " '", node.name, "'");
      }
    }
    if (plan.fusion_blocks[b].nodes.size() > 1) {
      absl::StrAppend(&text, " [", by_rule[b], " by rule, ", by_latency[b], " by latency]");
    }
    if (b < notes.size() && !notes[b].empty()) absl::StrAppend(&text, " (", notes[b], ")");
    text += "\n";
  }
  return text;
}

}  // namespace fusion
