// LatencyOracle: how long does this block take on that device? Answered from the profile database, else measured by a
// worker, else (no worker of the kind) by the cost model; the answer says which of the three it was. (DNNFusion §3.2's
// yellow cases and §5.3's profile database.)
#ifndef FUSION_COMPILER_COST_LATENCY_ORACLE_H_
#define FUSION_COMPILER_COST_LATENCY_ORACLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/cost/model_error.h"

namespace fusion {

struct LatencyQuestion {
  std::string key;          // SHA-256 hex of the canonical block, boundary layouts, device fingerprint, threads,
                            // cache state and generator version; names and weights do not enter
  std::string description;  // for people: "Conv+Relu+Add [1,64,56,56]"
  double model_latency_ns;  // the cost model's estimate, used when nobody can measure
  double typical_ns = 0;    // the same at typical rates, which planners compare; kept beside a measurement
  // Questions of one group that have to be measured are measured by one worker in turns, so that their answers may be
  // compared closely. Empty: alone.
  std::string group = {};
  // Of a trial (compiler/tune): the key of the same kernel as the scheduler would have it, what its text is but for all
  // numbers, as a key, and the choices. A question with a workload is remembered as its trial.
  std::string workload = {}, structure = {}, choices = {};
};

// A trial that was measured before.
struct KnownTrial {
  std::string choices;
  double latency_ns = 0;
};

// From the most certain on. kModel: nobody could measure; kFailed: somebody tried, and it crashed, hung or was wrong.
// Both come with the model's estimate.
enum class LatencySource { kDatabase, kMeasured, kModel, kFailed };
const char* LatencySourceName(LatencySource source);  // "database", "measured", "model", "failed"
inline bool IsMeasured(LatencySource source) { return source <= LatencySource::kMeasured; }

struct LatencyAnswer {
  double latency_ns = 0;
  LatencySource source = LatencySource::kModel;
};

// Makes what a worker runs: one tiny bundle (runtime/bundle/FORMAT.md) per key. Called only for questions that the
// database cannot answer, with as many keys at once as possible, because many kernels share one compiler call.
class MeasurementBundler {
 public:
  virtual ~MeasurementBundler() = default;
  // Bundle bytes, parallel to `keys`.
  virtual absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) = 0;
};

class LatencyOracle {
 public:
  virtual ~LatencyOracle() = default;
  // Answers parallel to `questions`. Duplicate keys are measured once. Blocks until all are answered.
  virtual absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                             MeasurementBundler& bundler) = 0;
  // Has the database an answer?
  virtual absl::StatusOr<bool> Knows(const std::string& /*key*/) { return false; }
  // How far the cost model is from what was measured on this device so far.
  virtual absl::StatusOr<ModelError> Error() { return ModelError(); }
  // Devices that measure at the same time, at least 1.
  virtual int Devices() const { return 1; }
  // All that was tried for this workload; the oldest first.
  virtual absl::StatusOr<std::vector<KnownTrial>> Trials(const std::string& /*workload*/) {
    return std::vector<KnownTrial>();
  }
  // The fastest choices of other workloads of this structure, each once, at most `limit`; the newest first.
  virtual absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string& /*structure*/,
                                                                    const std::string& /*workload*/, int /*limit*/) {
    return std::vector<std::string>();
  }
};

// Always answers from the model: planning without devices, tests.
class ModelOracle : public LatencyOracle {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_LATENCY_ORACLE_H_
