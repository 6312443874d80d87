// The two kinds of tasks that a compilation farms out, as the compiler's interfaces.
//
// FarmToolchain: units whose binaries are in the database are answered from there; the others travel in groups to any
// worker with the toolchain. Without one it waits, saying so, until the queue timeout.
// FarmOracle: database, else a worker that measures, else the cost model. A measurement that is given up is answered by
// the model and said in the progress message.
// Both live for one job; all functions of one object are called from one thread.
#ifndef FUSION_SERVER_SCHEDULER_FARM_TASKS_H_
#define FUSION_SERVER_SCHEDULER_FARM_TASKS_H_

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "compiler/backends/toolchain.h"
#include "compiler/cost/latency_oracle.h"
#include "compiler/pipeline/compile.h"
#include "server/scheduler/farm.h"

namespace fusion {

// How this server answered latency questions since its start.
struct ProfileSources {
  std::atomic<int64_t> database{0}, measured{0}, model{0};
};

struct FarmJob {
  Farm* farm = nullptr;
  Store* store = nullptr;
  ArtifactStore* artifacts = nullptr;
  Metrics* metrics = nullptr;
  ProfileSources* sources = nullptr;
  AttachedWorker device;  // of the target; its model and fingerprint
  int threads = 1;
  absl::Duration queue_timeout = absl::Minutes(10);
  std::function<bool()> cancelled;
  std::function<void(const ProgressEvent&)> progress;
};

class FarmToolchain : public Toolchain {
 public:
  explicit FarmToolchain(const FarmJob& job) : job_(job) {}
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override;

 private:
  const FarmJob& job_;
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
  const FarmJob& job_;
};

// The ResultAcceptor of both kinds: parses the untrusted result, checks it, and stores measurements and binaries.
absl::Status AcceptTaskResult(Store& store, ArtifactStore& artifacts, const TaskRow& task, const std::string& result,
                              const AttachedWorker& worker);

// Identifies what a unit's binary depends on.
std::string BuildUnitKey(const BuildUnit& unit);

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_FARM_TASKS_H_
