#include "compiler/tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
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
constexpr int kNeighbours = 3;  // neighbours whose choices start the search
// A search ends after kPatience generations without a better schedule; "better" means below kProgress of the best so
// far.
constexpr int kPatience = 4;
constexpr double kProgress = 0.99;
// A trial is not measured when the cost model puts it at more than this multiple of the scheduler's own choice.
constexpr double kPruned = 2;
// Separate measurements differ by a few percent, so a kernel enters the final below kPromising of its own latency. The
// final is a paired measurement, in which it must get below kWon.
constexpr double kPromising = 0.97, kWon = 0.98;
constexpr size_t kFinalists = 2;
// Shares of a limited time: kOwnShare for measuring the kernels as the scheduler makes them, and kFinalsShare reserved
// for the final paired measurements, without which no trial counts.
constexpr double kOwnShare = 0.4, kFinalsShare = 0.25;
// Share of the remaining time that one round of questions may take. Build times vary, and the next round knows more.
constexpr double kRoundShare = 0.5;

// Decides how many variants can be asked for in the remaining time. The cost of a variant (to build, send and measure
// it) is known once some were measured. Until then rounds start small and double each time, because answers from the
// database say nothing about that cost.
class Pace {
 public:
  Pace(double end, std::function<double()> clock) : end_(end), clock_(std::move(clock)) {}

  // Number of variants, out of `all`, in the next round, which must end `reserve_s` before the limit. 0: no time is
  // left.
  size_t Room(size_t all, double reserve_s) const {
    if (std::isinf(end_)) return all;
    const double left_s = end_ - reserve_s - clock_();
    if (left_s <= 0) return 0;
    if (variant_s_ == 0) return std::min(all, unknown_);
    if (left_s < variant_s_) return 0;
    const double fits = std::max(1.0, left_s * kRoundShare / variant_s_);
    return static_cast<size_t>(std::min(fits, static_cast<double>(all)));
  }
  double variant_s() const { return variant_s_; }

  // Measures a round with `measure` and learns from the time it took.
  template <typename Measure>
  auto Ask(const Measure& measure) {
    const double begin = clock_();
    auto answers = measure();
    if (answers.ok()) Learn(clock_() - begin, *answers);
    return answers;
  }

 private:
  void Learn(double seconds, const std::vector<LatencyAnswer>& answers) {
    const auto asked = std::count_if(answers.begin(), answers.end(), [](const LatencyAnswer& answer) {
      return answer.source != LatencySource::kDatabase;
    });
    if (asked > 0) variant_s_ = seconds / static_cast<double>(asked);
    unknown_ *= 2;
  }
  void Learn(double seconds, const std::vector<std::vector<LatencyAnswer>>& groups) {
    std::vector<LatencyAnswer> all;
    for (const std::vector<LatencyAnswer>& group : groups) all.insert(all.end(), group.begin(), group.end());
    Learn(seconds, all);
  }

  const double end_;
  const std::function<double()> clock_;
  double variant_s_ = 0;  // 0: unknown
  size_t unknown_ = kGeneration;
};

struct Kernel {
  int number;
  Search search;
  double own_ns = 0, own_estimate_ns = 0;
  int trials = 0, stale = 0;
  bool active = true;
  std::set<std::string> keys;  // of all its schedules so far
};

}  // namespace

absl::StatusOr<std::vector<Tuned>> Tune(const std::vector<Subject>& subjects, const TuneOptions& options,
                                        Workbench* workbench) {
  std::vector<Tuned> tuned(subjects.size());
  const auto seconds = [&] { return options.seconds ? options.seconds() : absl::ToUnixNanos(absl::Now()) * 1e-9; };
  const double limit_s = options.budget.seconds;
  Pace pace(seconds() + limit_s, seconds);
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
  // The kernels that matter most come first, in case time is short. A kernel whose own latency is unknown is not tuned.
  std::vector<size_t> order(own.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return subjects[own[a].kernel].weight_ns > subjects[own[b].kernel].weight_ns;
  });
  std::vector<LatencyAnswer> own_answers(own.size());  // an entry that is never filled counts as not measured
  for (size_t done = 0; done < own.size();) {
    const size_t room = pace.Room(own.size() - done, std::isinf(limit_s) ? 0 : limit_s * (1 - kOwnShare));
    if (room == 0) break;
    std::vector<Workbench::Variant> round;
    for (size_t i = done; i < done + room; ++i) round.push_back(own[order[i]]);
    ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, pace.Ask([&] { return workbench->Measure(round); }));
    for (size_t i = 0; i < room; ++i) own_answers[order[done + i]] = answers[i];
    done += room;
  }
  std::vector<Kernel> kernels;
  int64_t tried = 0;
  for (const size_t i : order) {
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
  const auto all = static_cast<int64_t>(kernels.size()) * options.budget.trials;
  while (true) {
    if (options.cancelled && options.cancelled()) return absl::CancelledError("the job was cancelled");
    struct Asked {
      Kernel* kernel;
      std::vector<ChoicePoint> points;
    };
    std::vector<Asked> asked;
    std::vector<Workbench::Variant> variants;
    // A trial that does not reach the final is wasted, so time for the final is reserved.
    const double reserve_s =
        std::isinf(limit_s) ? 0 : std::max(limit_s * kFinalsShare, (1 + kFinalists) * pace.variant_s());
    const size_t room = pace.Room(kernels.size() * kGeneration, reserve_s);
    for (Kernel& kernel : kernels) {
      const int left = static_cast<int>(std::min<size_t>(room - variants.size(), kGeneration));
      const int most = std::min(left, options.budget.trials - kernel.trials);
      if (left == 0) break;
      if (!kernel.active || most <= 0) continue;
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
    ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, pace.Ask([&] { return workbench->Measure(variants); }));
    for (size_t v = 0; v < variants.size(); ++v) {
      const bool measured = IsMeasured(answers[v].source);  // otherwise the trial crashed or hung
      asked[v].kernel->search.Tell(asked[v].points,
                                   measured ? answers[v].latency_ns : std::numeric_limits<double>::infinity());
      ++asked[v].kernel->trials;
    }
    tried += static_cast<int64_t>(variants.size());
    for (size_t k = 0; k < kernels.size(); ++k) {
      const bool was_tried =
          std::any_of(asked.begin(), asked.end(), [&](const Asked& one) { return one.kernel == &kernels[k]; });
      if (!was_tried) continue;
      const bool better = kernels[k].search.told().front().latency_ns < kProgress * best[k];
      kernels[k].stale = better ? 0 : kernels[k].stale + 1;
      if (kernels[k].stale >= kPatience) kernels[k].active = false;
    }
  }

  // The paired measurement: the scheduler's own choice first, then the best trials.
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
  const auto measured = [](const LatencyAnswer& answer) { return IsMeasured(answer.source); };
  for (size_t done = 0; done < finals.size();) {
    size_t left = 0;  // variants
    for (size_t f = done; f < finals.size(); ++f) left += finals[f].size();
    const size_t room = pace.Room(left, 0);
    std::vector<std::vector<Workbench::Variant>> round;
    for (size_t variants = 0; done + round.size() < finals.size(); round.push_back(finals[done + round.size()])) {
      variants += finals[done + round.size()].size();
      if (variants > room && !(round.empty() && room > 0)) break;
    }
    if (round.empty()) break;
    ASSIGN_OR_RETURN(const std::vector<std::vector<LatencyAnswer>> answers,
                     pace.Ask([&] { return workbench->Compare(round); }));
    for (size_t f = 0; f < round.size(); ++f) {
      if (!std::all_of(answers[f].begin(), answers[f].end(), measured)) continue;
      const auto fastest =
          std::min_element(answers[f].begin(), answers[f].end(),
                           [](const LatencyAnswer& a, const LatencyAnswer& b) { return a.latency_ns < b.latency_ns; });
      if (fastest->latency_ns >= kWon * answers[f][0].latency_ns) continue;
      const Workbench::Variant& winner = round[f][static_cast<size_t>(fastest - answers[f].begin())];
      tuned[winner.kernel] = {winner.choices, 1 - fastest->latency_ns / answers[f][0].latency_ns};
    }
    done += round.size();
  }
  return tuned;
}

}  // namespace fusion::tune
