// Tunes a model's kernels. Each kernel has a genetic search (search.h), and their generations are measured together, so
// that trials share compiler calls and workers. A search starts from earlier trials of the same kernel and of kernels
// that differ only in numbers. A winner must win again in a paired measurement with the scheduler's own choice.
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

// The numbered kernels and the operations on them.
class Workbench {
 public:
  virtual ~Workbench() = default;

  struct Made {
    std::string key;  // equal keys mean equal kernels
    std::vector<ChoicePoint> points;
    double estimate_ns = 0;
  };
  // Schedules a kernel with these choices and remembers it. Fails if no schedule follows from them.
  virtual absl::StatusOr<Made> Make(int kernel, const Choices& choices) = 0;

  struct Variant {
    int kernel = 0;
    Choices choices;  // of a schedule that Make has returned
  };
  // Answers parallel to `variants`.
  virtual absl::StatusOr<std::vector<LatencyAnswer>> Measure(const std::vector<Variant>& variants) = 0;
  // The variants of each inner list are measured alternately on one worker (a paired measurement).
  virtual absl::StatusOr<std::vector<std::vector<LatencyAnswer>>> Compare(
      const std::vector<std::vector<Variant>>& groups) = 0;

  // Earlier trials from the profile database.
  virtual absl::StatusOr<std::vector<KnownTrial>> Trials(int kernel) = 0;
  virtual absl::StatusOr<std::vector<std::string>> NeighbourChoices(int kernel, int limit) = 0;
};

struct Subject {
  uint64_t seed = 0;
  double weight_ns = 0;  // its part of the model's time
};

struct TuneOptions {
  Budget budget;
  std::function<bool()> cancelled;                                                      // may be empty
  std::function<void(int64_t tried, int64_t of, const std::string& message)> progress;  // may be empty
  std::function<double()> seconds;  // a clock; if empty, the system's clock
};

struct Tuned {
  Choices choices;  // empty: the scheduler's own choices
  double gain = 0;  // share of the kernel's latency that it saves, from a paired measurement
};

// Returns one result per subject, in their order. Fails with CANCELLED or with the workbench's error. A kernel that
// nobody measures keeps the scheduler's choices.
absl::StatusOr<std::vector<Tuned>> Tune(const std::vector<Subject>& subjects, const TuneOptions& options,
                                        Workbench* workbench);

}  // namespace fusion::tune

#endif  // FUSION_COMPILER_TUNE_TUNER_H_
