#include "compiler/measure/block_oracle.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
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

absl::StatusOr<BlockKernel> GraphBlockOracle::Kernel(const FusionBlock& block) {
  const KernelOr kernel = Get(block);
  if (!kernel.ok()) {
    return Annotate(kernel.status(), absl::StrCat("kernel ", DescribeBlock(kernels_.graph(), block.Members())));
  }
  return **kernel;
}

absl::StatusOr<std::vector<KernelQuestion>> GraphBlockOracle::Sides(const FusionQuestion& question) {
  const std::vector<ecg::NodeId> nodes = question.Fused();
  const std::string description = DescribeBlock(kernels_.graph(), nodes);
  std::vector<KernelQuestion> sides = {{{}, description}, {{}, absl::StrCat(description, " apart")}};
  ASSIGN_OR_RETURN(auto fused, Get({nodes}));
  sides[0].kernels.push_back(std::move(fused));
  for (const std::vector<ecg::NodeId>& one : {question.producer, question.consumer}) {
    ASSIGN_OR_RETURN(auto kernel, Get({one}));
    sides[1].kernels.push_back(std::move(kernel));
  }
  // Equal questions form one group.
  const auto key = [&](const KernelQuestion& side) {
    return QuestionKey(side.kernels, kernels_.device(), kernels_.threads());
  };
  const std::string group = absl::StrCat(key(sides[0]), " ", key(sides[1]));
  for (KernelQuestion& side : sides) side.group = group;
  return sides;
}

absl::StatusOr<FusionAnswers> GraphBlockOracle::Compare(const ecg::Graph&, const std::vector<FusionQuestion>& questions,
                                                        const std::vector<FusionQuestion>& maybe) {
  std::vector<KernelQuestion> all;
  std::set<std::string> measured;  // groups that have no answer yet
  for (const FusionQuestion& question : questions) {
    ASSIGN_OR_RETURN(const std::vector<KernelQuestion> sides, Sides(question));
    if (!answers_.Remembers(sides)) measured.insert(sides[0].group);
    all.insert(all.end(), sides.begin(), sides.end());
  }
  // If devices answer further questions now, a later round may be saved, which is worth at least the time of one
  // measurement. So they fill the idle part of the last turn and one more turn.
  const size_t devices = static_cast<size_t>(Devices());
  const size_t most = devices > 1 ? ((measured.size() + devices - 1) / devices + 1) * devices : 0;
  std::vector<size_t> answered;
  for (size_t m = 0; m < maybe.size(); ++m) {
    const absl::StatusOr<std::vector<KernelQuestion>> sides = Sides(maybe[m]);
    if (!sides.ok()) continue;
    if (!measured.count((*sides)[0].group) && !answers_.Remembers(*sides)) {
      if (measured.size() >= most) continue;
      measured.insert((*sides)[0].group);
    }
    all.insert(all.end(), sides->begin(), sides->end());
    answered.push_back(m);
  }
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, answers_.Ask(all));
  FusionAnswers result;
  result.maybe.resize(maybe.size());
  for (size_t a = 0; a < answers.size(); a += 2) {
    const FusionAnswer answer{answers[a], answers[a + 1]};
    if (a / 2 < questions.size()) {
      result.asked.push_back(answer);
    } else {
      result.maybe[answered[a / 2 - questions.size()]] = answer;
    }
  }
  return result;
}

absl::StatusOr<bool> GraphBlockOracle::Knows(const ecg::Graph&, const FusionQuestion& question) {
  ASSIGN_OR_RETURN(const std::vector<KernelQuestion> sides, Sides(question));
  return answers_.Knows(sides);
}

absl::StatusOr<int64_t> GraphBlockOracle::Tune(const std::vector<FusionBlock>& blocks, const tune::Budget& budget) {
  return TuneBlocks(blocks, budget, context_, &kernels_, &answers_);
}

}  // namespace fusion
