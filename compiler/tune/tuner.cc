#include "compiler/tune/tuner.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "compiler/tune/search.h"
#include "runtime/base/status_macros.h"

namespace fusion::tune {
namespace {

constexpr int kGeneration = 4;  // trials of a kernel that are measured together
constexpr int kNeighbours = 3;  // whose choices the search starts from
// Generations without a better schedule, after which a search has ended; and what counts as better.
constexpr int kPatience = 4;
constexpr double kProgress = 0.99;
// A trial that the cost model puts so far behind the scheduler's own choice is not worth measuring.
constexpr double kPruned = 2;
// A separate measurement moves by more than this; measured in turns, a kernel must win by the second.
constexpr double kPromising = 0.97, kWon = 0.98;
constexpr size_t kFinalists = 2;
// Answers from the database come at once; what follows them may have to be measured.
constexpr double kLeastVariantSeconds = 1e-3;

struct Kernel {
  int number;
  Search search;
  double own_ns = 0, own_estimate_ns = 0;
  int trials = 0, stale = 0;
  bool active = true;
  std::set<std::string> keys;  // of all its schedules
};

}  // namespace

absl::StatusOr<std::vector<Tuned>> Tune(const std::vector<Subject>& subjects, const TuneOptions& options,
                                        Workbench* workbench) {
  std::vector<Tuned> tuned(subjects.size());
  const auto seconds = [&] { return options.seconds ? options.seconds() : absl::ToUnixNanos(absl::Now()) * 1e-9; };
  const double end = seconds() + options.budget.seconds;
  double total_ns = 0;
  for (const Subject& subject : subjects) total_ns += subject.weight_ns;

  std::vector<Workbench::Variant> own;
  std::vector<Workbench::Made> made_own;
  for (int k = 0; k < static_cast<int>(subjects.size()); ++k) {
    if (options.budget.trials == 0 || subjects[k].weight_ns < options.budget.share * total_ns) continue;
    ASSIGN_OR_RETURN(Workbench::Made made, workbench->Make(k, {}));
    if (made.points.empty()) continue;
    own.push_back({k, {}});
    made_own.push_back(std::move(made));
  }
  if (own.empty()) return tuned;
  double asked_at = seconds();
  ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> own_answers, workbench->Measure(own));
  double variant_s = (seconds() - asked_at) / static_cast<double>(own.size());  // one costs: built, sent, measured
  std::vector<Kernel> kernels;
  int64_t tried = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!IsMeasured(own_answers[i].source)) continue;
    const int number = own[i].kernel;
    ASSIGN_OR_RETURN(const std::vector<KnownTrial> known, workbench->Trials(number));
    std::vector<Choices> start;
    if (static_cast<int>(known.size()) < options.budget.trials) {
      for (const ChoicePoint& point : made_own[i].points) {
        if (point.kind != ChoiceKind::kUnmodelled) continue;
        for (int taken = 1; taken < point.count; ++taken) start.push_back({{point.name, taken}});
      }
      ASSIGN_OR_RETURN(const std::vector<std::string> neighbours, workbench->NeighbourChoices(number, kNeighbours));
      for (const std::string& text : neighbours) {
        if (absl::StatusOr<Choices> choices = ParseChoices(text); choices.ok()) start.push_back(*std::move(choices));
      }
    }
    Kernel kernel{number, Search(subjects[number].seed, std::move(start))};
    kernel.own_ns = own_answers[i].latency_ns;
    kernel.own_estimate_ns = made_own[i].estimate_ns;
    kernel.keys.insert(made_own[i].key);
    kernel.search.Tell(made_own[i].points, kernel.own_ns);
    for (const KnownTrial& trial : known) {
      absl::StatusOr<Choices> choices = ParseChoices(trial.choices);
      if (choices.ok()) kernel.search.Tell(*choices, trial.latency_ns);
    }
    kernel.trials = static_cast<int>(known.size());
    tried += kernel.trials;
    kernels.push_back(std::move(kernel));
  }
  // Where time is short, those that matter most come first.
  std::stable_sort(kernels.begin(), kernels.end(), [&](const Kernel& a, const Kernel& b) {
    return subjects[a.number].weight_ns > subjects[b.number].weight_ns;
  });

  const auto all = static_cast<int64_t>(kernels.size()) * options.budget.trials;
  while (seconds() < end) {
    if (options.cancelled && options.cancelled()) return absl::CancelledError("the job was cancelled");
    struct Asked {
      Kernel* kernel;
      std::vector<ChoicePoint> points;
    };
    std::vector<Asked> asked;
    std::vector<Workbench::Variant> variants;
    const double room = (end - seconds()) / std::max(variant_s, kLeastVariantSeconds);
    for (Kernel& kernel : kernels) {
      const int most = std::min(kGeneration, options.budget.trials - kernel.trials);
      if (!kernel.active || most <= 0) continue;
      if (static_cast<double>(variants.size()) >= room) break;
      int added = 0;
      while (added < most) {
        const std::vector<Choices> proposals = kernel.search.Propose(most - added);
        if (proposals.empty()) {
          kernel.active = false;
          break;
        }
        for (const Choices& choices : proposals) {
          absl::StatusOr<Workbench::Made> made = workbench->Make(kernel.number, choices);
          if (!made.ok() || made->estimate_ns > kPruned * kernel.own_estimate_ns ||
              !kernel.keys.insert(made->key).second) {
            continue;
          }
          variants.push_back({kernel.number, choices});
          asked.push_back({&kernel, std::move(made->points)});
          ++added;
        }
      }
    }
    if (variants.empty()) break;
    if (options.progress) {
      options.progress(tried, all,
                       absl::StrCat("trying ", variants.size(), " schedules of ", kernels.size(), " kernels"));
    }
    std::vector<double> best;
    for (const Kernel& kernel : kernels) best.push_back(kernel.search.told().front().latency_ns);
    asked_at = seconds();
    ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, workbench->Measure(variants));
    variant_s = (seconds() - asked_at) / static_cast<double>(variants.size());
    for (size_t v = 0; v < variants.size(); ++v) {
      const bool measured = IsMeasured(answers[v].source);  // else it crashed or hung
      asked[v].kernel->search.Tell(asked[v].points,
                                   measured ? answers[v].latency_ns : std::numeric_limits<double>::infinity());
      ++asked[v].kernel->trials;
    }
    tried += static_cast<int64_t>(variants.size());
    for (size_t k = 0; k < kernels.size(); ++k) {
      const bool better = kernels[k].search.told().front().latency_ns < kProgress * best[k];
      kernels[k].stale = better ? 0 : kernels[k].stale + 1;
      if (kernels[k].stale >= kPatience) kernels[k].active = false;
    }
  }

  // In turns: the scheduler's own choice first, then the best.
  std::vector<std::vector<Workbench::Variant>> finals;
  for (const Kernel& kernel : kernels) {
    std::vector<Workbench::Variant> group = {{kernel.number, {}}};
    std::set<std::string> finalists;  // by key: different choices may make the same kernel
    for (const Search::Told& told : kernel.search.told()) {
      if (told.latency_ns >= kPromising * kernel.own_ns || group.size() > kFinalists) break;
      if (PrintChoices(told.choices).empty()) continue;
      const absl::StatusOr<Workbench::Made> made = workbench->Make(kernel.number, told.choices);
      if (!made.ok() || !finalists.insert(made->key).second) continue;
      group.push_back({kernel.number, told.choices});
    }
    if (group.size() > 1) finals.push_back(std::move(group));
  }
  if (finals.empty()) return tuned;
  if (options.progress) {
    options.progress(tried, all, absl::StrCat("measuring ", finals.size(), " winners against what they replace"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::vector<LatencyAnswer>> answers, workbench->Compare(finals));
  for (size_t f = 0; f < finals.size(); ++f) {
    const auto measured = [](const LatencyAnswer& answer) { return IsMeasured(answer.source); };
    if (!std::all_of(answers[f].begin(), answers[f].end(), measured)) continue;
    const auto fastest =
        std::min_element(answers[f].begin(), answers[f].end(),
                         [](const LatencyAnswer& a, const LatencyAnswer& b) { return a.latency_ns < b.latency_ns; });
    if (fastest->latency_ns >= kWon * answers[f][0].latency_ns) continue;
    const Workbench::Variant& winner = finals[f][static_cast<size_t>(fastest - answers[f].begin())];
    tuned[winner.kernel] = {winner.choices, 1 - fastest->latency_ns / answers[f][0].latency_ns};
  }
  return tuned;
}

}  // namespace fusion::tune
