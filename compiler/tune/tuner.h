// Tuning of a model's kernels: generations of a genetic search for each of them (search.h), measured together, so that
// trials share compiler calls and workers. What was tried before, for this kernel or for one that differs in numbers
// only, is where the search starts. A winner must win once more, measured in turns with the scheduler's own choice.
#ifndef FUSION_COMPILER_TUNE_TUNER_H_
#define FUSION_COMPILER_TUNE_TUNER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/latency_oracle.h"
#include "compiler/schedule/choices.h"
#include "compiler/tune/budget.h"

namespace fusion::tune {

// The kernels, numbered, and what can be done with them.
class Workbench {
 public:
  virtual ~Workbench() = default;

  struct Made {
    std::string key;  // equal keys, equal kernels
    std::vector<ChoicePoint> points;
    double estimate_ns = 0;
  };
  // Schedules a kernel with these choices and remembers it. An error: these choices make none.
  virtual absl::StatusOr<Made> Make(int kernel, const Choices& choices) = 0;

  struct Variant {
    int kernel = 0;
    Choices choices;  // of a schedule that was made
  };
  // Answers parallel to `variants`.
  virtual absl::StatusOr<std::vector<LatencyAnswer>> Measure(const std::vector<Variant>& variants) = 0;
  // Variants of each inner list are measured in turns.
  virtual absl::StatusOr<std::vector<std::vector<LatencyAnswer>>> Compare(
      const std::vector<std::vector<Variant>>& groups) = 0;

  // From the profile database.
  virtual absl::StatusOr<std::vector<KnownTrial>> Trials(int kernel) = 0;
  virtual absl::StatusOr<std::vector<std::string>> NeighbourChoices(int kernel, int limit) = 0;
};

struct Subject {
  uint64_t seed = 0;
  double weight_ns = 0;  // of the model's time
};

struct TuneOptions {
  Budget budget;
  std::function<bool()> cancelled;                                                      // may be empty
  std::function<void(int64_t tried, int64_t of, const std::string& message)> progress;  // may be empty
  std::function<double()> seconds;                                                      // a clock; empty: the real one
};

struct Tuned {
  Choices choices;  // empty: the scheduler's own
  double gain = 0;  // share of the kernel's latency that it saves, measured in turns
};

// Parallel to `subjects`. CANCELLED, or what the workbench says; a kernel that nobody measures keeps its own choices.
absl::StatusOr<std::vector<Tuned>> Tune(const std::vector<Subject>& subjects, const TuneOptions& options,
                                        Workbench* workbench);

}  // namespace fusion::tune

#endif  // FUSION_COMPILER_TUNE_TUNER_H_
