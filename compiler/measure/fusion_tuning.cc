#include "compiler/measure/fusion_tuning.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/movement/cost.h"
#include "compiler/tune/tuner.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// The numbered kernels of a plan, as the tuner sees them.
class TuningBench : public tune::Workbench {
 public:
  struct KernelToTune {
    FusionBlock fusion_block;  // the first one that has this kernel
    std::shared_ptr<const FusionKernel> own;
    std::string workload, structure;
    std::map<std::string, std::shared_ptr<const FusionKernel>> made;  // by choices
  };

  TuningBench(const CompileContext& context, KernelCache* kernels, LatencyAnswers* answers)
      : context_(context), cache_(*kernels), answers_(*answers) {}

  int Add(const FusionBlock& fusion_block, std::shared_ptr<const FusionKernel> own) {
    KernelToTune kernel{fusion_block, std::move(own), {}, {}, {}};
    kernel.workload = QuestionKey({kernel.own}, cache_.device(), cache_.threads());
    kernel.structure = StructureKey(*kernel.own, cache_.device(), cache_.threads());
    kernels_.push_back(std::move(kernel));
    return static_cast<int>(kernels_.size()) - 1;
  }

  absl::StatusOr<Made> Make(int number, const Choices& choices) override {
    KernelToTune& kernel = kernels_[number];
    std::shared_ptr<const FusionKernel>& made = kernel.made[PrintChoices(choices)];
    if (made == nullptr && choices.empty()) made = kernel.own;
    if (made == nullptr) {
      ASSIGN_OR_RETURN(FusionKernel fresh, cache_.Schedule(kernel.fusion_block, choices));
      made = std::make_shared<const FusionKernel>(std::move(fresh));
    }
    return Made{made->key, Searched(made->choices),
                movement::EstimateCost(made->kernel, cache_.typical(), cache_.threads()).latency_ns};
  }

  absl::StatusOr<std::vector<LatencyAnswer>> Measure(const std::vector<Variant>& variants) override {
    std::vector<KernelQuestion> questions;
    for (const Variant& variant : variants) {
      KernelQuestion question = QuestionOf(variant);
      if (!variant.choices.empty()) {  // the scheduler's own schedule is no trial
        const KernelToTune& kernel = kernels_[variant.kernel];
        question.workload = kernel.workload;
        question.structure = kernel.structure;
        question.choices = PrintChoices(variant.choices);
      }
      questions.push_back(std::move(question));
    }
    return answers_.Ask(questions);
  }

  absl::StatusOr<std::vector<std::vector<LatencyAnswer>>> Compare(
      const std::vector<std::vector<Variant>>& groups) override {
    std::vector<KernelQuestion> questions;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const Variant& variant : groups[g]) {
        questions.push_back(QuestionOf(variant));
        questions.back().group = absl::StrCat("winners ", g);
      }
    }
    ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, answers_.Ask(questions));
    std::vector<std::vector<LatencyAnswer>> result;
    auto next = answers.begin();
    for (const std::vector<Variant>& group : groups) {
      result.emplace_back(next, next + static_cast<std::ptrdiff_t>(group.size()));
      next += static_cast<std::ptrdiff_t>(group.size());
    }
    return result;
  }

  absl::StatusOr<std::vector<KnownTrial>> Trials(int kernel) override {
    return context_.oracle->Trials(kernels_[kernel].workload);
  }
  absl::StatusOr<std::vector<std::string>> NeighbourChoices(int kernel, int limit) override {
    return context_.oracle->NeighbourChoices(kernels_[kernel].structure, kernels_[kernel].workload, limit);
  }

 private:
  // A kernel that is measured on one thread will run on several, so the scheduler's own choice of how to share out its
  // work stays.
  std::vector<ChoicePoint> Searched(std::vector<ChoicePoint> points) const {
    if (cache_.threads() == 1 && cache_.device().parallel_units > 1) {
      std::erase_if(points, [](const ChoicePoint& point) { return point.kind == ChoiceKind::kSharing; });
    }
    return points;
  }

  KernelQuestion QuestionOf(const Variant& variant) const {
    const KernelToTune& kernel = kernels_[variant.kernel];
    const std::string choices = PrintChoices(variant.choices);
    std::string description = DescribeFusionBlock(cache_.graph(), kernel.fusion_block.Members());
    if (!choices.empty()) absl::StrAppend(&description, " ", choices);
    return {{kernel.made.at(choices)}, std::move(description)};
  }

  const CompileContext& context_;
  KernelCache& cache_;
  LatencyAnswers& answers_;
  std::vector<KernelToTune> kernels_;
};

}  // namespace

absl::StatusOr<int64_t> TuneFusionBlocks(const std::vector<FusionBlock>& fusion_blocks,
                                         const std::vector<int64_t>& runs, const tune::Budget& budget,
                                         const CompileContext& context, KernelCache* kernels, LatencyAnswers* answers) {
  TuningBench bench(context, kernels, answers);
  std::vector<tune::Subject> subjects;
  std::vector<int> number_of_fusion_block;
  // Equal kernels are one subject: a shape with fifty launches counts fifty times.
  std::map<std::string, int> number_of_key;
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    const FusionBlock& fusion_block = fusion_blocks[b];
    ASSIGN_OR_RETURN(const auto kernel, kernels->Get(fusion_block));
    const auto [it, fresh] = number_of_key.emplace(kernel->key, static_cast<int>(subjects.size()));
    if (fresh) {
      bench.Add(fusion_block, kernel);
      tune::Subject subject;
      if (!absl::SimpleHexAtoi(kernel->key.substr(0, 16), &subject.seed)) subject.seed = 1;
      subjects.push_back(subject);
    }
    subjects[it->second].weight_ns +=
        static_cast<double>(runs[b]) *
        movement::EstimateCost(kernel->kernel, kernels->typical(), kernels->threads()).latency_ns;
    number_of_fusion_block.push_back(it->second);
  }
  // The user's time limit includes what planning measured.
  tune::Budget left = budget;
  left.seconds = std::max(0.0, std::min(budget.seconds, answers->left_s()));
  answers->LeaveLimitToCaller();
  tune::TuneOptions options{.budget = left, .cancelled = context.cancelled};
  if (context.progress) {
    options.progress = [&](int64_t tried, int64_t of, const std::string& message) {
      context.progress({"tune", tried, of, message});
    };
  }
  ASSIGN_OR_RETURN(const std::vector<tune::Tuned> tuned, tune::Tune(subjects, options, &bench));
  int64_t changed = 0;
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    const Choices& choices = tuned[number_of_fusion_block[b]].choices;
    if (choices.empty()) continue;
    // In each fusion block of equal kernels the arguments stand for other values, so the kernel is made again for this
    // one.
    ASSIGN_OR_RETURN(FusionKernel kernel, kernels->Schedule(fusion_blocks[b], choices));
    kernels->Replace(fusion_blocks[b], std::move(kernel));
    ++changed;
  }
  return changed;
}

}  // namespace fusion
