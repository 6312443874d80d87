#include "compiler/measure/fusion_oracle.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/measure/fusion_tuning.h"
#include "compiler/measure/question_keys.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<FusionBlockAccount> GraphFusionOracle::Fit(const ecg::Graph&, const FusionBlock& fusion_block) {
  return kernels_.Fit(fusion_block);
}

double GraphFusionOracle::EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  return kernels_.EstimateNs({nodes});
}

absl::StatusOr<PlanEstimate> GraphFusionOracle::EstimatePlan(const ecg::Graph& graph,
                                                             const std::vector<FusionBlock>& fusion_blocks) {
  KernelSequence kernels;
  for (const FusionBlock& fusion_block : fusion_blocks) {
    ASSIGN_OR_RETURN(kernels.emplace_back(), Get(fusion_block));
  }
  return pricer_->Price(graph, kernels);
}

absl::StatusOr<FusionKernel> GraphFusionOracle::Kernel(const FusionBlock& fusion_block) {
  const KernelOr kernel = Get(fusion_block);
  if (!kernel.ok()) {
    return Annotate(kernel.status(),
                    absl::StrCat("kernel ", DescribeFusionBlock(kernels_.graph(), fusion_block.Members())));
  }
  return **kernel;
}

absl::StatusOr<std::vector<KernelQuestion>> GraphFusionOracle::Ways(const FusionComparison& question) {
  if (question.ways.size() < 2) {
    return absl::InternalError(absl::StrCat("a comparison of ", question.ways.size(), " ways needs at least two"));
  }
  std::vector<KernelQuestion> ways;
  std::vector<std::string> keys;
  for (const std::vector<FusionBlock>& fusion_blocks : question.ways) {
    KernelQuestion& way = ways.emplace_back();
    std::vector<ecg::NodeId> nodes;
    for (const FusionBlock& fusion_block : fusion_blocks) {
      ASSIGN_OR_RETURN(auto kernel, Get(fusion_block));
      way.kernels.push_back(std::move(kernel));
      nodes.insert(nodes.end(), fusion_block.nodes.begin(), fusion_block.nodes.end());
    }
    std::sort(nodes.begin(), nodes.end());
    way.description = DescribeFusionBlock(kernels_.graph(), nodes);
    if (fusion_blocks.size() > 1) way.description += " apart";
    keys.push_back(QuestionKey(way.kernels, kernels_.device(), kernels_.threads()));
  }
  // Equal questions form one group.
  for (KernelQuestion& way : ways) way.group = absl::StrJoin(keys, " ");
  return ways;
}

absl::StatusOr<FusionAnswers> GraphFusionOracle::Compare(const ecg::Graph&,
                                                         const std::vector<FusionComparison>& questions,
                                                         const std::vector<FusionComparison>& maybe) {
  std::vector<KernelQuestion> all;
  std::set<std::string> measured;  // groups that have no answer yet
  for (const FusionComparison& question : questions) {
    ASSIGN_OR_RETURN(const std::vector<KernelQuestion> ways, Ways(question));
    if (!answers_.Remembers(ways)) measured.insert(ways[0].group);
    all.insert(all.end(), ways.begin(), ways.end());
  }
  // If devices answer further questions now, a later round may be saved, which is worth at least the time of one
  // measurement. So they fill the idle part of the last turn and one more turn.
  const size_t devices = static_cast<size_t>(Devices());
  const size_t most = devices > 1 ? ((measured.size() + devices - 1) / devices + 1) * devices : 0;
  std::vector<size_t> answered;
  for (size_t m = 0; m < maybe.size(); ++m) {
    const absl::StatusOr<std::vector<KernelQuestion>> ways = Ways(maybe[m]);
    if (!ways.ok()) continue;
    if (!measured.count((*ways)[0].group) && !answers_.Remembers(*ways)) {
      if (measured.size() >= most) continue;
      measured.insert((*ways)[0].group);
    }
    all.insert(all.end(), ways->begin(), ways->end());
    answered.push_back(m);
  }
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, answers_.Ask(all));
  auto next = answers.begin();
  const auto take = [&](const FusionComparison& question) {
    const auto first = next;
    next += static_cast<std::ptrdiff_t>(question.ways.size());
    return WayLatencies(first, next);
  };
  FusionAnswers result;
  for (const FusionComparison& question : questions) result.asked.push_back(take(question));
  result.maybe.resize(maybe.size());
  for (const size_t m : answered) result.maybe[m] = take(maybe[m]);
  return result;
}

absl::StatusOr<bool> GraphFusionOracle::Knows(const ecg::Graph&, const FusionComparison& question) {
  ASSIGN_OR_RETURN(const std::vector<KernelQuestion> ways, Ways(question));
  return answers_.Knows(ways);
}

absl::StatusOr<int64_t> GraphFusionOracle::Tune(const std::vector<FusionBlock>& fusion_blocks,
                                                const std::vector<int64_t>& runs, const tune::Budget& budget) {
  return TuneFusionBlocks(fusion_blocks, runs, budget, context_, &kernels_, &answers_);
}

}  // namespace fusion
