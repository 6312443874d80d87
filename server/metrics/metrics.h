// Metrics: every series of the server, declared once in kFamilies (metrics.cc) with its help line. No label contains a
// job, model, user or kernel.
#ifndef FUSION_SERVER_METRICS_METRICS_H_
#define FUSION_SERVER_METRICS_METRICS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

enum class Metric {
  kRpcRequests,  // method, code
  kRpcDuration,  // method
  kRpcInFlight,
  kWorkers,     // device_class, state
  kQueueDepth,  // device_class
  kQueueOldestAge,
  kJobs,    // outcome
  kChecks,  // check, outcome
  kJobsRunning,
  kJobWait,
  kJobDuration,      // stage
  kCompileDeaths,    // how
  kProfileRequests,  // source
  kPlanComparisons,  // source
  kCacheRequests,    // tier, result
  kLeaseExpiries,
  kTaskRetries,
  kPoisonedTasks,
  kTasks,        // kind, outcome
  kQuarantines,  // reason
  kDbCommitDuration,
  kDbWriteQueueDepth,
  kBundleBytes,
  kUploadBytes,
  kDiskFreeBytes,
  kCertificateEnd,
  kWorkerCertificateEnd,
  kBuildInfo,  // version
  kCount
};

using Labels = std::map<std::string, std::string>;

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Thread-safe. The call must match the metric's kind (counter, gauge, histogram).
  void Count(Metric metric, const Labels& labels = {}, double by = 1);
  void Set(Metric metric, double value, const Labels& labels = {});
  void Observe(Metric metric, double value, const Labels& labels = {});
  double Value(Metric metric, const Labels& labels = {});  // of a counter or gauge; for tests and statistics

  // Serves /metrics on `address` ("127.0.0.1:9464"; port 0: any free port) and returns the port.
  absl::StatusOr<int> Serve(const std::string& address);
  std::string Text() const;  // in Prometheus' text format

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_METRICS_METRICS_H_
