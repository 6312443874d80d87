#include "compiler/tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/tune/search.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"

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

struct TunedKernel {
  int number;
  Search search;
  double own_ns = 0, own_estimate_ns = 0;
  int trials = 0, stale = 0;
  bool active = true;
  std::set<std::string> keys = {};  // of all its schedules so far
};

// One run of Tune, in steps.
class Tuning {
 public:
  Tuning(const std::vector<Subject>& subjects, const TuneOptions& options, Workbench* workbench)
      : subjects_(subjects),
        options_(options),
        workbench_(*workbench),
        limit_s_(options.budget.seconds),
        pace_(Seconds() + limit_s_, [this] { return Seconds(); }),
        tuned_(subjects.size()) {}

  absl::StatusOr<std::vector<Tuned>> Run() {
    RETURN_IF_ERROR(MakeOwn());
    if (own_.empty()) return tuned_;
    RETURN_IF_ERROR(MeasureOwn());
    for (const Own& own : own_) {
      if (IsMeasured(own.answer.source)) RETURN_IF_ERROR(BeginSearch(own));
    }
    RETURN_IF_ERROR(SearchAll());
    RETURN_IF_ERROR(RunFinals(Finals()));
    return tuned_;
  }

 private:
  // A kernel as the scheduler makes it.
  struct Own {
    int kernel;
    Workbench::Made made;
    LatencyAnswer answer;  // one that is never filled counts as not measured
  };
  // A schedule that is tried: its kernel, and the choices that the scheduler asked for.
  struct Asked {
    TunedKernel* kernel;
    std::vector<ChoicePoint> points;
  };
  using Group = std::vector<Workbench::Variant>;

  double Seconds() const { return options_.seconds ? options_.seconds() : static_cast<double>(SteadyNanos()) * 1e-9; }
  // The trials of all kernels that the budget allows.
  int64_t AllTrials() const { return static_cast<int64_t>(kernels_.size()) * options_.budget.trials; }

  // Makes the kernels that are worth tuning and have choices. The ones that matter most come first, in case time is
  // short.
  absl::Status MakeOwn() {
    double total_ns = 0;
    for (const Subject& subject : subjects_) total_ns += subject.weight_ns;
    for (int k = 0; k < static_cast<int>(subjects_.size()); ++k) {
      if (options_.budget.trials == 0 || subjects_[k].weight_ns < options_.budget.share * total_ns) continue;
      ASSIGN_OR_RETURN(Workbench::Made made, workbench_.Make(k, {}));
      if (!made.points.empty()) own_.push_back({k, std::move(made), {}});
    }
    std::stable_sort(own_.begin(), own_.end(), [&](const Own& a, const Own& b) {
      return subjects_[a.kernel].weight_ns > subjects_[b.kernel].weight_ns;
    });
    return absl::OkStatus();
  }

  absl::Status MeasureOwn() {
    const double reserve_s = std::isinf(limit_s_) ? 0 : limit_s_ * (1 - kOwnShare);
    for (size_t done = 0; done < own_.size();) {
      const size_t room = pace_.Room(own_.size() - done, reserve_s);
      if (room == 0) break;
      Group round;
      for (size_t i = done; i < done + room; ++i) round.push_back({own_[i].kernel, {}});
      ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, pace_.Ask([&] { return workbench_.Measure(round); }));
      for (size_t i = 0; i < room; ++i) own_[done + i].answer = answers[i];
      done += room;
    }
    return absl::OkStatus();
  }

  // Begins the search of a kernel with what earlier jobs learned of it and of kernels like it.
  absl::Status BeginSearch(const Own& own) {
    ASSIGN_OR_RETURN(const std::vector<KnownTrial> known, workbench_.Trials(own.kernel));
    std::vector<Choices> start;
    if (static_cast<int>(known.size()) < options_.budget.trials) {
      ASSIGN_OR_RETURN(start, StartOf(own));
    }
    TunedKernel kernel{own.kernel, Search(subjects_[own.kernel].seed, std::move(start))};
    kernel.own_ns = own.answer.latency_ns;
    kernel.own_estimate_ns = own.made.estimate_ns;
    kernel.keys.insert(own.made.key);
    kernel.search.Tell(own.made.points, kernel.own_ns);
    for (const KnownTrial& trial : known) {
      absl::StatusOr<Choices> choices = ParseChoices(trial.choices);
      if (choices.ok()) kernel.search.Tell(*choices, trial.latency_ns);
    }
    kernel.trials = static_cast<int>(known.size());
    tried_ += kernel.trials;
    kernels_.push_back(std::move(kernel));
    return absl::OkStatus();
  }

  // Returns the choices that a search tries first: those that the cost model cannot judge, and the neighbours' best.
  absl::StatusOr<std::vector<Choices>> StartOf(const Own& own) {
    std::vector<Choices> start;
    for (const ChoicePoint& point : own.made.points) {
      if (point.kind != ChoiceKind::kUnmodelled) continue;
      for (int taken = 1; taken < point.count; ++taken) start.push_back({{point.name, taken}});
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> neighbours, workbench_.NeighbourChoices(own.kernel, kNeighbours));
    for (const std::string& text : neighbours) {
      if (absl::StatusOr<Choices> choices = ParseChoices(text); choices.ok()) start.push_back(*std::move(choices));
    }
    return start;
  }

  // Measures generation after generation, until no search proposes anything or the time is up.
  absl::Status SearchAll() {
    while (true) {
      if (options_.cancelled && options_.cancelled()) return absl::CancelledError("the job was cancelled");
      std::vector<Asked> asked;
      const Group variants = NextGeneration(&asked);
      if (variants.empty()) return absl::OkStatus();
      Report(absl::StrCat("trying ", variants.size(), " schedules of ", kernels_.size(), " kernels"));
      std::vector<double> best;
      for (const TunedKernel& kernel : kernels_) best.push_back(kernel.search.told().front().latency_ns);
      ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers,
                       pace_.Ask([&] { return workbench_.Measure(variants); }));
      Learn(asked, answers, best);
    }
  }

  // Returns what to measure next, and whose it is. Leaves out schedules that the cost model rules out and those that
  // were tried before.
  Group NextGeneration(std::vector<Asked>* asked) {
    Group variants;
    // A trial that does not reach the final is wasted, so time for the final is reserved.
    const double reserve_s =
        std::isinf(limit_s_) ? 0 : std::max(limit_s_ * kFinalsShare, (1 + kFinalists) * pace_.variant_s());
    const size_t room = pace_.Room(kernels_.size() * kGeneration, reserve_s);
    for (TunedKernel& kernel : kernels_) {
      const int left = static_cast<int>(std::min<size_t>(room - variants.size(), kGeneration));
      const int most = std::min(left, options_.budget.trials - kernel.trials);
      if (left == 0) break;
      if (kernel.active && most > 0) AddTrials(&kernel, most, &variants, asked);
    }
    return variants;
  }

  void AddTrials(TunedKernel* kernel, int most, Group* variants, std::vector<Asked>* asked) {
    for (int added = 0; added < most;) {
      const std::vector<Choices> proposals = kernel->search.Propose(most - added);
      if (proposals.empty()) {
        kernel->active = false;
        return;
      }
      for (const Choices& choices : proposals) {
        absl::StatusOr<Workbench::Made> made = workbench_.Make(kernel->number, choices);
        if (!made.ok() || made->estimate_ns > kPruned * kernel->own_estimate_ns ||
            !kernel->keys.insert(made->key).second) {
          continue;
        }
        variants->push_back({kernel->number, choices});
        asked->push_back({kernel, std::move(made->points)});
        ++added;
      }
    }
  }

  // Tells the searches what a generation took, and ends those that no longer get better. `best` holds each kernel's
  // fastest schedule before.
  void Learn(const std::vector<Asked>& asked, const std::vector<LatencyAnswer>& answers,
             const std::vector<double>& best) {
    for (size_t v = 0; v < asked.size(); ++v) {
      const bool measured = IsMeasured(answers[v].source);  // otherwise the trial crashed or hung
      asked[v].kernel->search.Tell(asked[v].points,
                                   measured ? answers[v].latency_ns : std::numeric_limits<double>::infinity());
      ++asked[v].kernel->trials;
    }
    tried_ += static_cast<int64_t>(asked.size());
    for (size_t k = 0; k < kernels_.size(); ++k) {
      const bool was_tried =
          std::any_of(asked.begin(), asked.end(), [&](const Asked& one) { return one.kernel == &kernels_[k]; });
      if (!was_tried) continue;
      const bool better = kernels_[k].search.told().front().latency_ns < kProgress * best[k];
      kernels_[k].stale = better ? 0 : kernels_[k].stale + 1;
      if (kernels_[k].stale >= kPatience) kernels_[k].active = false;
    }
  }

  // Returns a group for each kernel that has promising trials: the scheduler's own choice first, then the best trials.
  std::vector<Group> Finals() {
    std::vector<Group> finals;
    for (const TunedKernel& kernel : kernels_) {
      Group group = {{kernel.number, {}}};
      std::set<std::string> finalists;  // by key: different choices may make the same kernel
      for (const Search::Told& told : kernel.search.told()) {
        if (told.latency_ns >= kPromising * kernel.own_ns || group.size() > kFinalists) break;
        if (PrintChoices(told.choices).empty()) continue;
        const absl::StatusOr<Workbench::Made> made = workbench_.Make(kernel.number, told.choices);
        if (!made.ok() || !finalists.insert(made->key).second) continue;
        group.push_back({kernel.number, told.choices});
      }
      if (group.size() > 1) finals.push_back(std::move(group));
    }
    return finals;
  }

  // Measures each comparison set in turns, in as many rounds as there is time for.
  absl::Status RunFinals(const std::vector<Group>& finals) {
    if (finals.empty()) return absl::OkStatus();
    Report(absl::StrCat("measuring ", finals.size(), " winners against what they replace"));
    for (size_t done = 0; done < finals.size();) {
      const std::vector<Group> round = NextRound(finals, done);
      if (round.empty()) break;
      ASSIGN_OR_RETURN(const std::vector<std::vector<LatencyAnswer>> answers,
                       pace_.Ask([&] { return workbench_.Compare(round); }));
      for (size_t f = 0; f < round.size(); ++f) Judge(round[f], answers[f]);
      done += round.size();
    }
    return absl::OkStatus();
  }

  // Returns the groups behind the first `done` that fit the time. A single group is measured if there is any time.
  std::vector<Group> NextRound(const std::vector<Group>& finals, size_t done) const {
    size_t left = 0;  // variants
    for (size_t f = done; f < finals.size(); ++f) left += finals[f].size();
    const size_t room = pace_.Room(left, 0);
    std::vector<Group> round;
    for (size_t variants = 0; done + round.size() < finals.size(); round.push_back(finals[done + round.size()])) {
      variants += finals[done + round.size()].size();
      if (variants > room && !(round.empty() && room > 0)) break;
    }
    return round;
  }

  // Takes the fastest of a group where it beats the scheduler's own choice.
  void Judge(const Group& group, const std::vector<LatencyAnswer>& answers) {
    const auto measured = [](const LatencyAnswer& answer) { return IsMeasured(answer.source); };
    if (!std::all_of(answers.begin(), answers.end(), measured)) return;
    const auto fastest =
        std::min_element(answers.begin(), answers.end(),
                         [](const LatencyAnswer& a, const LatencyAnswer& b) { return a.latency_ns < b.latency_ns; });
    if (fastest->latency_ns >= kWon * answers[0].latency_ns) return;
    const Workbench::Variant& winner = group[static_cast<size_t>(fastest - answers.begin())];
    tuned_[winner.kernel] = {winner.choices, 1 - fastest->latency_ns / answers[0].latency_ns};
  }

  void Report(const std::string& doing) const {
    if (options_.progress) options_.progress(tried_, AllTrials(), doing);
  }

  const std::vector<Subject>& subjects_;
  const TuneOptions& options_;
  Workbench& workbench_;
  const double limit_s_;
  Pace pace_;
  std::vector<Own> own_;
  std::vector<TunedKernel> kernels_;
  int64_t tried_ = 0;
  std::vector<Tuned> tuned_;
};

}  // namespace

absl::StatusOr<std::vector<Tuned>> Tune(const std::vector<Subject>& subjects, const TuneOptions& options,
                                        Workbench* workbench) {
  return Tuning(subjects, options, workbench).Run();
}

}  // namespace fusion::tune
