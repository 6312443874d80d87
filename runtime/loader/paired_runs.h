// Times bundles as a caller would run them: whole models, warm, with inputs and outputs in place. Several are timed in
// turns, so that other load on the machine, its clock and its temperature affect all of them.
#ifndef FUSION_RUNTIME_LOADER_PAIRED_RUNS_H_
#define FUSION_RUNTIME_LOADER_PAIRED_RUNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/loader/session.h"

namespace fusion {

// A session whose inputs and outputs lie in its own memory, so that kernels are timed, not the copies that a caller's
// memory could need.
class PreparedRun {
 public:
  // Selects the program that fits `inputs` and copies them into place. `threads` and `pool` are as for Session::Create.
  // Prepared runs that are compared must share a pool; without one they share that of the process.
  static absl::StatusOr<PreparedRun> Create(std::shared_ptr<const Bundle> bundle, absl::Span<const Tensor> inputs,
                                            int threads, std::shared_ptr<ThreadPool> pool = nullptr);
  // The same for a program by its number, on inputs of that program's shapes.
  static absl::StatusOr<PreparedRun> CreateProgram(std::shared_ptr<const Bundle> bundle, size_t program,
                                                   absl::Span<const Tensor> inputs, int threads,
                                                   std::shared_ptr<ThreadPool> pool = nullptr);

  const ManifestProgram& program() const { return session_->program(); }
  int threads() const { return session_->threads(); }
  std::optional<SimulatedTime> simulated_time() const { return session_->simulated_time(); }

  // Returns the nanoseconds of one run. On a simulated device these are the device's, which are known without a run;
  // the numbers are computed only for an observer.
  absl::StatusOr<double> Run(const LaunchObserver& observer = {});

 private:
  PreparedRun() = default;
  static absl::StatusOr<PreparedRun> Create(std::shared_ptr<const Bundle> bundle,
                                            const std::function<absl::Status(Session&)>& select,
                                            absl::Span<const Tensor> inputs, int threads,
                                            std::shared_ptr<ThreadPool> pool);
  std::unique_ptr<Session> session_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

struct PairedLimits {
  int64_t warmup = 3;        // runs of each before the first round
  int64_t runs = 0;          // at least so many timed runs of each; 0: the other limits decide
  int64_t least_rounds = 5;  // whatever they take
  absl::Duration time = absl::Seconds(4);
  // Stops before `time` once the middle half of the rounds' ratios lies within this share of their median, and there
  // are kSettledRounds of them. 0: never.
  double settled = 0;
  // Stops before `time` once the 95% confidence interval (MedianInterval) of each median ratio lies within this share
  // of it, and there are kSettledRounds rounds. 0: never.
  double certain = 0;
  // Leaves a model other than the first out of further rounds once that interval lies, by more than this share, above
  // the whole interval of another model (that of the first is 1), and there are kHopelessRounds of them. 0: never.
  double hopeless = 0;
};

struct TurnTimes {
  std::vector<std::vector<double>> latencies_ns;  // by model: of every timed run, in order
  // By model after the first and by round: its median latency over that of the first. Models that are left out have
  // fewer rounds.
  std::vector<std::vector<double>> ratios;
  int64_t rounds = 0;
};

// Runs the models, of which there are at least two, in rounds; every other round has the opposite order (ABBA, ABCCBA).
// A turn lasts 10 ms or one run, whichever is longer. A turn of short runs begins with one that is not timed, so that
// each finds the caches as it left them itself. On simulated devices one round says everything. INVALID_ARGUMENT where
// only some of the models run on one: their times mean different things.
absl::StatusOr<TurnTimes> RunInTurns(absl::Span<PreparedRun> runs, const PairedLimits& limits);

// Which of the models after the first are certainly slower than another model by more than `share`, as PairedLimits
// says of `hopeless`? `ratios` are those of TurnTimes.
std::vector<bool> FindHopeless(const std::vector<std::vector<double>>& ratios, double share);

struct PairedTimes {
  std::array<std::vector<double>, 2> latencies_ns;  // of every timed run, in order
  std::vector<double> ratios;                       // by round: median latency of the second over that of the first
};

// RunInTurns of two.
absl::StatusOr<PairedTimes> RunPaired(PreparedRun& first, PreparedRun& second, const PairedLimits& limits);

// The rounds after which `settled` and `certain` may end a comparison.
inline constexpr size_t kSettledRounds = 20;
// The rounds after which a model may be left out: the range of six ratios holds their median with 97% confidence.
inline constexpr size_t kHopelessRounds = 6;

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOADER_PAIRED_RUNS_H_
