// The two kinds of tasks that a compilation gives to workers, behind the compiler's interfaces.
//
// FarmToolchain (farm_builds.h) builds.
// FarmOracle answers from the database, else from a worker that measures, else from the cost model. If a measurement is
// given up, the model answers and the progress message says so.
// Both live for one job; one thread calls all functions of an object.
#ifndef FUSION_SERVER_SCHEDULER_FARM_TASKS_H_
#define FUSION_SERVER_SCHEDULER_FARM_TASKS_H_

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cost/latency_oracle.h"
#include "compiler/pipeline/compile.h"
#include "proto/worker.pb.h"
#include "server/scheduler/farm.h"

namespace fusion {

// Counts how this server has answered latency questions since its start.
struct ProfileSources {
  std::atomic<int64_t> database{0}, measured{0}, model{0};
};

struct FarmJob {
  Farm* farm = nullptr;
  Store* store = nullptr;
  ArtifactStore* artifacts = nullptr;
  Metrics* metrics = nullptr;
  ProfileSources* sources = nullptr;
  std::string id;           // of the job, for logs
  std::string trace = {};   // of the job, for logs
  std::string tenant = {};  // whose the bundle is
  AttachedWorker device;    // the target's device, with its model and fingerprint
  int threads = 1;
  absl::Duration queue_timeout = absl::Minutes(10);
  std::function<bool()> cancelled;
  std::function<void(const ProgressEvent&)> progress;
  // As in FarmWait:
  std::function<void(bool)> away = {};
  std::function<bool(const FarmLack&)> gives_up = {};
  std::map<std::string, absl::Duration> waited = {};
  // One in so many tasks of a trusted builder is also given to another one with the same toolchain; 0: none.
  int check_one_build_in = 32;
  bool needs_builds = true;  // the job fails without a builder

  FarmWait Wait(absl::Duration timeout,
                std::function<void(int64_t done, int64_t total, const std::string&)> told = nullptr) const {
    return {cancelled, std::move(told), timeout, away, gives_up, waited};
  }
};

class FarmOracle : public LatencyOracle {
 public:
  explicit FarmOracle(const FarmJob& job) : job_(job) {}
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override;
  absl::StatusOr<bool> Knows(const std::string& key) override;
  absl::StatusOr<ModelError> Error() override;
  int Devices() const override;
  absl::StatusOr<std::vector<KnownTrial>> Trials(const std::string& workload) override;
  absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string& structure, const std::string& workload,
                                                            int limit) override;

 private:
  // Has a worker measure the questions at the positions `open`, and writes their answers. A question that no worker
  // measures keeps its answer.
  absl::Status Measure(absl::Span<const LatencyQuestion> questions, const std::vector<size_t>& open,
                       MeasurementBundler& bundler, std::vector<LatencyAnswer>* answers);

  // Sources of imported rows that are to be checked, where a worker of the device is here.
  std::set<std::string> ImportsToCheck() const;
  // Has rows of such sources among the keys measured again until each source is believed or in quarantine. `stored` has
  // the latencies that count afterwards: none for a row of a source that stays in doubt.
  absl::Status CheckImports(absl::Span<const LatencyQuestion> questions, const std::vector<std::string>& keys,
                            MeasurementBundler& bundler, std::vector<std::optional<double>>* stored);

  const FarmJob& job_;
};

// Runs a finished bundle and another form of it on one worker (worker.proto). The outcome's status says why there is no
// result, as for every task. Fails with CANCELLED, or with UNAVAILABLE at a shutdown.
absl::StatusOr<FarmOutcome> RunModelOnFarm(const FarmJob& job, const v1::ModelRun& model,
                                           const std::string& description);

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_FARM_TASKS_H_
