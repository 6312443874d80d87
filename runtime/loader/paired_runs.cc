#include "runtime/loader/paired_runs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "runtime/base/quantile.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr absl::Duration kTurn = absl::Milliseconds(10);

bool Settled(const std::vector<double>& ratios, double within) {
  if (within <= 0 || ratios.size() < kSettledRounds) return false;
  return Quantile(ratios, 0.75) - Quantile(ratios, 0.25) <= within * Quantile(ratios, 0.5);
}

bool Enough(const PairedTimes& times, const PairedLimits& limits, absl::Time end) {
  const auto rounds = static_cast<int64_t>(times.ratios.size());
  if (limits.runs > 0) {
    const size_t fewest = std::min(times.latencies_ns[0].size(), times.latencies_ns[1].size());
    return fewest >= static_cast<size_t>(limits.runs);
  }
  return rounds >= limits.least_rounds && (absl::Now() >= end || Settled(times.ratios, limits.settled));
}

// Returns the latencies of one turn.
absl::StatusOr<std::vector<double>> TakeTurn(PreparedRun& run, bool is_short) {
  if (is_short) RETURN_IF_ERROR(run.Run().status());
  std::vector<double> latencies_ns;
  const absl::Time end = absl::Now() + kTurn;
  do {
    ASSIGN_OR_RETURN(const double latency_ns, run.Run());
    latencies_ns.push_back(latency_ns);
  } while (absl::Now() < end);
  return latencies_ns;
}

}  // namespace

absl::StatusOr<PreparedRun> PreparedRun::Create(std::shared_ptr<const Bundle> bundle, absl::Span<const Tensor> inputs,
                                                int threads, std::shared_ptr<ThreadPool> pool) {
  PreparedRun run;
  ASSIGN_OR_RETURN(run.session_, Session::Create(std::move(bundle), threads, std::move(pool)));
  std::vector<Shape> shapes;
  for (const Tensor& tensor : inputs) shapes.push_back(tensor.shape());
  RETURN_IF_ERROR(run.session_->Select(shapes));
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
  const int64_t start = absl::GetCurrentTimeNanos();
  RETURN_IF_ERROR(session_->RunRaw(inputs_, outputs_, observer));
  return static_cast<double>(std::max<int64_t>(1, absl::GetCurrentTimeNanos() - start));
}

absl::StatusOr<PairedTimes> RunPaired(PreparedRun& first, PreparedRun& second, const PairedLimits& limits) {
  const std::array<PreparedRun*, 2> runs = {&first, &second};
  std::array<bool, 2> is_short = {false, false};
  for (size_t which = 0; which < runs.size(); ++which) {
    for (int64_t run = 0; run < limits.warmup; ++run) {
      ASSIGN_OR_RETURN(const double latency_ns, runs[which]->Run());
      is_short[which] = latency_ns < absl::ToDoubleNanoseconds(kTurn);
    }
  }
  PairedTimes times;
  const absl::Time end = absl::Now() + limits.time;
  for (size_t round = 0; !Enough(times, limits, end); ++round) {
    std::array<double, 2> medians{};
    for (size_t turn = 0; turn < 2; ++turn) {
      const size_t which = (round + turn) % 2;
      ASSIGN_OR_RETURN(const std::vector<double> latencies_ns, TakeTurn(*runs[which], is_short[which]));
      medians[which] = Quantile(latencies_ns, 0.5);
      std::vector<double>& all = times.latencies_ns[which];
      all.insert(all.end(), latencies_ns.begin(), latencies_ns.end());
    }
    times.ratios.push_back(medians[1] / medians[0]);
  }
  return times;
}

}  // namespace fusion
