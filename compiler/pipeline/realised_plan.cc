#include "compiler/pipeline/realised_plan.h"

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<std::vector<RealisedFusionBlock>> RealisePlan(const ecg::Graph& graph, const FusionPlan& plan,
                                                             GraphFusionOracle* oracle) {
  std::vector<RealisedFusionBlock> result;
  for (const FusionBlock& fusion_block : plan.fusion_blocks) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const FusionKernel> kernel, oracle->Get(fusion_block));
    RETURN_IF_ERROR(CheckRealised(graph, fusion_block, *kernel));
    RealisedFusionBlock& realised = result.emplace_back();
    realised.account = oracle->Account(*kernel);
    if (realised.account.phases > 1) realised.reason = kernel->reason;
    realised.hand_overs = BesidePlan(graph, fusion_block, *kernel);
  }
  return result;
}

std::string ScopesInWords(const HandOver& hand_over) {
  const std::string nearest = ScopeName(hand_over.nearest);
  if (hand_over.nearest == hand_over.furthest) return nearest;
  return absl::StrCat(nearest, " to ", ScopeName(hand_over.furthest));
}

std::string InWords(const RealisedFusionBlock& fusion_block) {
  std::map<Scope, int> count;
  for (const PlannedHandOver& edge : fusion_block.hand_overs) {
    if (edge.realised > Scope::kLane) ++count[edge.realised];
  }
  std::string text;
  for (const auto& [scope, edges] : count) {
    if (text.empty()) {
      text = absl::StrCat(edges, edges == 1 ? " hand-over at " : " hand-overs at ", ScopeName(scope), " scope");
    } else {
      absl::StrAppend(&text, ", ", edges, " at ", ScopeName(scope));
    }
  }
  if (fusion_block.account.phases > 1) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", fusion_block.account.phases, " phases");
  }
  if (const auto& occupancy = fusion_block.account.occupancy) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "occupancy ", std::lround(100 * occupancy->share), "% (",
                    occupancy->limit, ")");
  }
  return text;
}

}  // namespace fusion
