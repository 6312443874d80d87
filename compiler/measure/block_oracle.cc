#include "compiler/measure/block_oracle.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/measure/block_tuning.h"
#include "compiler/measure/question_keys.h"
#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<BlockAccount> GraphBlockOracle::Fit(const ecg::Graph&, const FusionBlock& block) {
  return kernels_.Fit(block);
}

double GraphBlockOracle::EstimateNs(const ecg::Graph&, const std::vector<ecg::NodeId>& nodes) {
  return kernels_.EstimateNs({nodes});
}

absl::StatusOr<PlanEstimate> GraphBlockOracle::EstimatePlan(const ecg::Graph& graph,
                                                            const std::vector<FusionBlock>& blocks) {
  KernelSequence kernels;
  for (const FusionBlock& block : blocks) {
    ASSIGN_OR_RETURN(kernels.emplace_back(), Get(block));
  }
  return pricer_->Price(graph, kernels);
}

absl::StatusOr<BlockKernel> GraphBlockOracle::Kernel(const FusionBlock& block) {
  const KernelOr kernel = Get(block);
  if (!kernel.ok()) {
    return Annotate(kernel.status(), absl::StrCat("kernel ", DescribeBlock(kernels_.graph(), block.Members())));
  }
  return **kernel;
}

absl::StatusOr<std::vector<KernelQuestion>> GraphBlockOracle::Ways(const BlockComparison& question) {
  if (question.ways.size() < 2) {
    return absl::InternalError(absl::StrCat("a comparison of ", question.ways.size(), " ways needs at least two"));
  }
  std::vector<KernelQuestion> ways;
  std::vector<std::string> keys;
  for (const std::vector<FusionBlock>& blocks : question.ways) {
    KernelQuestion& way = ways.emplace_back();
    std::vector<ecg::NodeId> nodes;
    for (const FusionBlock& block : blocks) {
      ASSIGN_OR_RETURN(auto kernel, Get(block));
      way.kernels.push_back(std::move(kernel));
      nodes.insert(nodes.end(), block.nodes.begin(), block.nodes.end());
    }
    std::sort(nodes.begin(), nodes.end());
    way.description = DescribeBlock(kernels_.graph(), nodes);
    if (blocks.size() > 1) way.description += " apart";
    keys.push_back(QuestionKey(way.kernels, kernels_.device(), kernels_.threads()));
  }
  // Equal questions form one group.
  for (KernelQuestion& way : ways) way.group = absl::StrJoin(keys, " ");
  return ways;
}

absl::StatusOr<BlockAnswers> GraphBlockOracle::Compare(const ecg::Graph&, const std::vector<BlockComparison>& questions,
                                                       const std::vector<BlockComparison>& maybe) {
  std::vector<KernelQuestion> all;
  std::set<std::string> measured;  // groups that have no answer yet
  for (const BlockComparison& question : questions) {
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
  const auto take = [&](const BlockComparison& question) {
    const auto first = next;
    next += static_cast<std::ptrdiff_t>(question.ways.size());
    return WayLatencies(first, next);
  };
  BlockAnswers result;
  for (const BlockComparison& question : questions) result.asked.push_back(take(question));
  result.maybe.resize(maybe.size());
  for (const size_t m : answered) result.maybe[m] = take(maybe[m]);
  return result;
}

absl::StatusOr<bool> GraphBlockOracle::Knows(const ecg::Graph&, const BlockComparison& question) {
  ASSIGN_OR_RETURN(const std::vector<KernelQuestion> ways, Ways(question));
  return answers_.Knows(ways);
}

absl::StatusOr<int64_t> GraphBlockOracle::Tune(const std::vector<FusionBlock>& blocks, const std::vector<int64_t>& runs,
                                               const tune::Budget& budget) {
  return TuneBlocks(blocks, runs, budget, context_, &kernels_, &answers_);
}

}  // namespace fusion
