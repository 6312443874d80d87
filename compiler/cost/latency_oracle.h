// LatencyOracle: how long does this fusion block take on that device? The answer comes from the profile database, else
// from a worker's measurement, else (where no worker has such a device) from the cost model, and says which of the
// three it is. (DNNFusion §3.2's yellow cases and §5.3's profile database.)
#ifndef FUSION_COMPILER_COST_LATENCY_ORACLE_H_
#define FUSION_COMPILER_COST_LATENCY_ORACLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/cost/model_error.h"

namespace fusion {

struct LatencyQuestion {
  std::string key;          // SHA-256 hex of the canonical fusion block, boundary layouts, device
                            // fingerprint, threads, cache state and generator version; not of names or weights
  std::string description;  // for people: "Conv+Relu+Add [1,64,56,56]"
  double model_latency_ns;  // the cost model's estimate, used when nobody can measure
  double typical_ns = 0;    // the same estimate at typical rates, which planners compare; stored with a measurement
  // Questions with the same group name are measured alternately by one worker, if they must be measured at all, so that
  // small differences between their answers count. Empty: measured alone.
  std::string group = {};
  // Set for a trial (compiler/tune): the key of the same kernel with the scheduler's own choices, a key of the kernel's
  // text without its numbers, and the choices. A question with a workload is stored as a trial of it.
  std::string workload = {}, structure = {}, choices = {};
};

// A trial that was measured before.
struct KnownTrial {
  std::string choices;
  double latency_ns = 0;
};

// Ordered from the most certain source to the least. kModel: nobody could measure. kFailed: a measurement crashed, hung
// or computed wrong numbers. Both carry the model's estimate.
enum class LatencySource { kDatabase, kMeasured, kModel, kFailed };
const char* LatencySourceName(LatencySource source);  // "database", "measured", "model", "failed"
inline bool IsMeasured(LatencySource source) { return source <= LatencySource::kMeasured; }

struct LatencyAnswer {
  double latency_ns = 0;
  LatencySource source = LatencySource::kModel;
};

// Makes what a worker runs: one tiny bundle (runtime/bundle/FORMAT.md) per key. It is called only for questions that
// the database cannot answer, and with as many keys at once as possible, because many kernels share one compiler call.
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
  // How far the cost model is from everything measured on this device so far.
  virtual absl::StatusOr<ModelError> Error() { return ModelError(); }
  // Number of devices that measure at the same time, at least 1.
  virtual int Devices() const { return 1; }
  // All stored trials of this workload, the oldest first.
  virtual absl::StatusOr<std::vector<KnownTrial>> Trials(const std::string& /*workload*/) {
    return std::vector<KnownTrial>();
  }
  // The fastest choices of other workloads with this structure, without duplicates: at most `limit`, the newest first.
  virtual absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string& /*structure*/,
                                                                    const std::string& /*workload*/, int /*limit*/) {
    return std::vector<std::string>();
  }
};

// Always answers from the cost model: for planning without devices, and for tests.
class ModelOracle : public LatencyOracle {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_LATENCY_ORACLE_H_
