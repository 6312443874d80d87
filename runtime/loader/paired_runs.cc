#include "runtime/loader/paired_runs.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "runtime/base/quantile.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"

namespace fusion {
namespace {

constexpr absl::Duration kTurn = absl::Milliseconds(10);

// Does this hold for the rounds' ratios of each model that was in all rounds?
template <typename Condition>
bool HoldsForAll(const TurnTimes& times, const Condition& condition) {
  const auto rounds = static_cast<size_t>(times.rounds);
  return rounds >= kSettledRounds && std::all_of(times.ratios.begin(), times.ratios.end(), [&](const auto& ratios) {
           return ratios.size() < rounds || condition(ratios);
         });
}

bool Settled(const TurnTimes& times, double within) {
  return within > 0 && HoldsForAll(times, [&](const std::vector<double>& ratios) {
           return Quantile(ratios, 0.75) - Quantile(ratios, 0.25) <= within * Quantile(ratios, 0.5);
         });
}

bool Certain(const TurnTimes& times, double within) {
  return within > 0 && HoldsForAll(times, [&](const std::vector<double>& ratios) {
           const Interval interval = MedianInterval(ratios);
           const double median = Quantile(ratios, 0.5);
           return interval.low >= (1 - within) * median && interval.high <= (1 + within) * median;
         });
}

bool Enough(const TurnTimes& times, const PairedLimits& limits, absl::Time end) {
  if (limits.runs > 0) {
    return std::all_of(times.latencies_ns.begin(), times.latencies_ns.end(),
                       [&](const std::vector<double>& one) { return one.size() >= static_cast<size_t>(limits.runs); });
  }
  return times.rounds >= limits.least_rounds &&
         (SteadyNow() >= end || Settled(times, limits.settled) || Certain(times, limits.certain));
}

// Returns the latencies of one turn.
absl::StatusOr<std::vector<double>> TakeTurn(PreparedRun& run, bool is_short) {
  if (is_short) RETURN_IF_ERROR(run.Run().status());
  std::vector<double> latencies_ns;
  const absl::Time end = SteadyNow() + kTurn;
  do {
    ASSIGN_OR_RETURN(const double latency_ns, run.Run());
    latencies_ns.push_back(latency_ns);
  } while (SteadyNow() < end && !run.simulated_time());
  return latencies_ns;
}

}  // namespace

std::vector<bool> FindHopeless(const std::vector<std::vector<double>>& ratios, double share) {
  double bound = 1;
  for (const std::vector<double>& one : ratios) {
    if (one.size() >= kHopelessRounds) bound = std::min(bound, MedianInterval(one).high);
  }
  std::vector<bool> hopeless;
  for (const std::vector<double>& one : ratios) {
    hopeless.push_back(one.size() >= kHopelessRounds && MedianInterval(one).low > (1 + share) * bound);
  }
  return hopeless;
}

absl::StatusOr<PreparedRun> PreparedRun::Create(std::shared_ptr<const Bundle> bundle, absl::Span<const Tensor> inputs,
                                                int threads, std::shared_ptr<ThreadPool> pool) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : inputs) shapes.push_back(tensor.shape());
  return Create(
      std::move(bundle), [&](Session& session) { return session.Select(shapes); }, inputs, threads, std::move(pool));
}

absl::StatusOr<PreparedRun> PreparedRun::CreateProgram(std::shared_ptr<const Bundle> bundle, size_t program,
                                                       absl::Span<const Tensor> inputs, int threads,
                                                       std::shared_ptr<ThreadPool> pool) {
  return Create(
      std::move(bundle), [&](Session& session) { return session.SelectProgram(program); }, inputs, threads,
      std::move(pool));
}

absl::StatusOr<PreparedRun> PreparedRun::Create(std::shared_ptr<const Bundle> bundle,
                                                const std::function<absl::Status(Session&)>& select,
                                                absl::Span<const Tensor> inputs, int threads,
                                                std::shared_ptr<ThreadPool> pool) {
  PreparedRun run;
  ASSIGN_OR_RETURN(run.session_, Session::Create(std::move(bundle), threads, std::move(pool)));
  RETURN_IF_ERROR(select(*run.session_));
  for (size_t i = 0; i < inputs.size(); ++i) {
    void* place = run.session_->input(static_cast<int>(i));
    std::memcpy(place, inputs[i].data(), static_cast<size_t>(inputs[i].size_bytes()));
    run.inputs_.push_back(place);
  }
  for (size_t i = 0; i < run.program().outputs.size(); ++i) {
    run.outputs_.push_back(const_cast<void*>(run.session_->output(static_cast<int>(i))));
  }
  return run;
}

absl::StatusOr<double> PreparedRun::Run(const LaunchObserver& observer) {
  const std::optional<SimulatedTime> simulated = simulated_time();
  // A program that computes nothing takes no time; the least that is told is a nanosecond, as below.
  if (simulated && !observer) return std::max(1.0, 1e9 * simulated->seconds);
  const int64_t start = SteadyNanos();
  RETURN_IF_ERROR(session_->RunRaw(inputs_, outputs_, observer));
  if (simulated) return std::max(1.0, 1e9 * simulated->seconds);
  return static_cast<double>(std::max<int64_t>(1, SteadyNanos() - start));
}

absl::StatusOr<TurnTimes> RunInTurns(absl::Span<PreparedRun> runs, const PairedLimits& given) {
  const auto simulated =
      std::count_if(runs.begin(), runs.end(), [](const PreparedRun& run) { return run.simulated_time().has_value(); });
  if (simulated != 0 && simulated != std::ssize(runs)) {
    return absl::InvalidArgumentError(
        "some of these bundles run on a simulated device: its time cannot be compared with that of a real one");
  }
  PairedLimits limits = given;
  if (simulated != 0) {
    limits.runs = limits.warmup = limits.least_rounds = 1;
  }
  std::vector<bool> is_short(runs.size());
  for (size_t which = 0; which < runs.size(); ++which) {
    for (int64_t run = 0; run < limits.warmup; ++run) {
      ASSIGN_OR_RETURN(const double latency_ns, runs[which].Run());
      is_short[which] = latency_ns < absl::ToDoubleNanoseconds(kTurn);
    }
  }
  TurnTimes times;
  times.latencies_ns.resize(runs.size());
  times.ratios.resize(runs.size() - 1);
  const absl::Time end = SteadyNow() + limits.time;
  std::vector<bool> is_out(runs.size());
  for (; !Enough(times, limits, end); ++times.rounds) {
    if (limits.hopeless > 0) {
      const std::vector<bool> hopeless = FindHopeless(times.ratios, limits.hopeless);
      std::transform(hopeless.begin(), hopeless.end(), is_out.begin() + 1, is_out.begin() + 1, std::logical_or<>());
    }
    std::vector<double> medians(runs.size());
    for (size_t turn = 0; turn < runs.size(); ++turn) {
      const size_t which = times.rounds % 2 == 0 ? turn : runs.size() - 1 - turn;
      if (is_out[which]) continue;
      ASSIGN_OR_RETURN(const std::vector<double> latencies_ns, TakeTurn(runs[which], is_short[which]));
      medians[which] = Quantile(latencies_ns, 0.5);
      std::vector<double>& all = times.latencies_ns[which];
      all.insert(all.end(), latencies_ns.begin(), latencies_ns.end());
    }
    for (size_t other = 1; other < runs.size(); ++other) {
      if (!is_out[other]) times.ratios[other - 1].push_back(medians[other] / medians[0]);
    }
  }
  return times;
}

absl::StatusOr<PairedTimes> RunPaired(PreparedRun& first, PreparedRun& second, const PairedLimits& limits) {
  std::array<PreparedRun, 2> runs = {std::move(first), std::move(second)};
  absl::StatusOr<TurnTimes> times = RunInTurns(absl::MakeSpan(runs), limits);
  first = std::move(runs[0]);
  second = std::move(runs[1]);
  RETURN_IF_ERROR(times.status());
  return PairedTimes{{std::move(times->latencies_ns[0]), std::move(times->latencies_ns[1])},
                     std::move(times->ratios[0])};
}

}  // namespace fusion
