// LatencyAnswers: asks how long kernels take and remembers the answers, so that equal questions are asked once. It also
// keeps to the time that measuring may take: what does not fit is answered by the cost model.
#ifndef FUSION_COMPILER_MEASURE_LATENCY_ANSWERS_H_
#define FUSION_COMPILER_MEASURE_LATENCY_ANSWERS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/api/compile_context.h"
#include "compiler/cost/latency_oracle.h"
#include "compiler/measure/measurement_bundle.h"
#include "compiler/measure/question_keys.h"

namespace fusion {

// Serves one compilation; not thread-safe. `context` must outlive it.
class LatencyAnswers {
 public:
  LatencyAnswers(const CompileContext& context, int threads)
      : context_(context), threads_(threads), bundles_(context, threads) {}

  // Call it before the first question. `typical` is the context's device at typical rates (KernelCache::typical), and
  // must outlive the questions.
  void Start(const DeviceModel* typical) { typical_ = typical; }

  // Returns answers parallel to `questions`. Equal kernels are asked about once, but again in each group.
  absl::StatusOr<std::vector<LatencyAnswer>> Ask(const std::vector<KernelQuestion>& questions);
  // Returns whether Ask remembers the answers of all these questions.
  bool Remembers(const std::vector<KernelQuestion>& questions) const;
  // Returns whether the database answers all these questions. The first answer about a question stands, because the
  // rounds of one plan must agree.
  absl::StatusOr<bool> Knows(const std::vector<KernelQuestion>& questions);

  // From here on, measuring takes at most about this many seconds. `clock` returns seconds; empty: the system's clock.
  void LimitMeasuring(double seconds, std::function<double()> clock);
  // From here on, the caller keeps to the limit.
  void LeaveLimitToCaller() { limits_ = false; }
  double left_s() const { return limit_s_ - spent_s_; }

  int64_t questions() const { return questions_; }
  int64_t answered(LatencySource source) const { return answered_[static_cast<int>(source)]; }

 private:
  LatencyQuestion Estimated(const std::string& key, const KernelQuestion& question) const;
  absl::StatusOr<std::vector<LatencyAnswer>> Measure(const std::vector<LatencyQuestion>& questions);
  // Decides, while time is short, which questions are answered by the database or a measurement instead of an estimate:
  // groups that are known, and as many others as fit into the time. Parallel to `questions`.
  absl::StatusOr<std::vector<bool>> InTime(const std::vector<LatencyQuestion>& questions);

  const CompileContext& context_;
  const int threads_;
  const DeviceModel* typical_ = nullptr;
  MeasurementBundles bundles_;
  std::map<std::string, LatencyAnswer> answers_;
  std::map<std::string, bool> knows_;
  std::function<double()> clock_;
  double limit_s_ = std::numeric_limits<double>::infinity(), spent_s_ = 0;
  double question_s_ = 0;  // the time that each of the last questions took; 0: not known
  bool limits_ = true;
  int64_t questions_ = 0;
  int64_t answered_[4] = {0, 0, 0, 0};
};

}  // namespace fusion

#endif  // FUSION_COMPILER_MEASURE_LATENCY_ANSWERS_H_
