#include "compiler/tools/stage_texts.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// "%a Relu": the first result of a node, and its operator.
std::string NodeText(const ecg::Graph& graph, ecg::NodeId id) {
  for (ecg::ValueId v : graph.node(id).outputs) {
    if (v == ecg::kNone) continue;
    const std::string& name = graph.value(v).name;
    return absl::StrCat("%", name.empty() ? absl::StrCat("v", v) : name, " ", graph.node(id).op);
  }
  return graph.node(id).op;
}

}  // namespace

std::string PlanText(const ecg::Graph& graph, const FusionPlan& plan) {
  std::string text;
  for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
    std::vector<std::string> nodes;
    for (ecg::NodeId id : plan.fusion_blocks[b].nodes) nodes.push_back(NodeText(graph, id));
    absl::StrAppend(&text, "fusion block ", b, ": ", absl::StrJoin(nodes, ", "), "\n");
  }
  for (const Decision& d : plan.decisions) {
    absl::StrAppend(&text, BasisName(d.basis), d.fused ? " fused " : " apart ", NodeText(graph, d.producer), " -> ",
                    NodeText(graph, d.consumer), ": ", d.reason, "\n");
  }
  return text;
}

std::string ScopesText(const ecg::Graph& graph, const FusionPlan& plan,
                       const std::vector<RealisedFusionBlock>& realised) {
  std::string text;
  for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
    std::vector<std::string> nodes;
    for (ecg::NodeId id : plan.fusion_blocks[b].Members()) nodes.push_back(NodeText(graph, id));
    const FusionBlockAccount& account = realised[b].account;
    absl::StrAppend(&text, "fusion block ", b, ": ", absl::StrJoin(nodes, ", "), "\n  phases ", account.phases,
                    ", tasks ", account.tasks, ", scratch ", account.scratch_bytes, " bytes a task, device scope ",
                    account.device_scope_bytes, " bytes\n");
    if (account.occupancy) {
      const Occupancy& occupancy = *account.occupancy;
      absl::StrAppend(&text, "  occupancy ", std::lround(100 * occupancy.share), "%: ", occupancy.groups,
                      " work-groups of ", occupancy.demand.work_items, " work-items by ", occupancy.limit, ", ",
                      occupancy.demand.registers, " registers, ", occupancy.demand.shared_bytes, " shared bytes\n");
    }
    for (const PlannedHandOver& edge : realised[b].hand_overs) {
      absl::StrAppend(&text, "  ", NodeText(graph, edge.planned.producer), " -> ",
                      NodeText(graph, edge.planned.consumer), ": ", ScopeName(edge.realised), " (",
                      ScopesInWords(edge.planned), ")\n");
    }
  }
  return text;
}

absl::StatusOr<std::string> ChoicesText(const Planned& planned, GraphFusionOracle* oracle) {
  std::string text;
  for (size_t b = 0; b < planned.plan.fusion_blocks.size(); ++b) {
    const std::vector<ecg::NodeId> members = planned.plan.fusion_blocks[b].Members();
    ASSIGN_OR_RETURN(const FusionKernel kernel, oracle->Kernel(planned.plan.fusion_blocks[b]));
    absl::StrAppend(&text, "fusion block ", b, "\n");
    for (const ChoicePoint& point : kernel.choices) {
      std::vector<std::string> nodes;
      for (const int origin : point.origins) nodes.push_back(NodeText(planned.graph, members[origin]));
      absl::StrAppend(&text, "  ", point.name, nodes.empty() ? "" : " of ", absl::StrJoin(nodes, ", "), ": ",
                      point.labels[point.taken], " of ", absl::StrJoin(point.labels, ", "), "\n");
    }
  }
  return text;
}

std::string LayoutText(const ecg::Graph& graph, const ValueLayouts& layouts) {
  std::string text;
  for (const auto& [value, layout] : layouts) {
    const ecg::Value& laid = graph.value(value);
    const int rank = static_cast<int>(laid.type.shape.size());
    absl::StrAppend(&text, "%", laid.name, ": ", layout.ToString(rank), "\n");
  }
  return text;
}

std::string LaunchesText(const Planned& planned) {
  std::string text;
  for (size_t l = 0; l < planned.launches.size(); ++l) {
    const bool concurrent = !planned.concurrent.empty() && planned.concurrent[l];
    absl::StrAppend(&text, concurrent ? "concurrent launch" : "launch", ": fusion blocks ",
                    absl::StrJoin(planned.launches[l], ", "), "\n");
  }
  for (size_t b : planned.elided.fusion_blocks) absl::StrAppend(&text, "no kernel: fusion block ", b, "\n");
  return text;
}

}  // namespace fusion
