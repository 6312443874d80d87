// ServerProcess: one simulated run of fusiond, from its start to its end or death: the farm and the job runner as they
// are, on a store, threads and a compiler of the simulation.
#ifndef FUSION_SERVER_SIMULATION_SERVER_PROCESS_H_
#define FUSION_SERVER_SIMULATION_SERVER_PROCESS_H_

#include <memory>
#include <string>

#include "server/artifacts/artifact_store.h"
#include "server/jobs/job_runner.h"
#include "server/scheduler/farm.h"
#include "server/simulation/fibers.h"
#include "server/simulation/history.h"
#include "server/simulation/process_store.h"
#include "server/simulation/random.h"

namespace fusion::simulation {

// Shared by all processes of a simulation, and outlives them.
struct ServerWorld {
  Fibers* fibers = nullptr;
  SeededRandom* random = nullptr;
  History* history = nullptr;
  Store* store = nullptr;  // what is on disk
  Metrics* metrics = nullptr;
  std::string folder;  // the state folder
  Log log = NoLog();
  StoreFaults store_faults;
  double compile_dies = 0;  // probability
};

// The limits of the simulated service, which are small so that little time passes.
History::Limits ServiceLimits();

class ServerProcess {
 public:
  explicit ServerProcess(ServerWorld* world);
  // Restores what is stored and starts the threads, in the order of Server::Start. It fails if the process dies
  // meanwhile.
  absl::Status Start();
  // An orderly stop, unless the process is dead. Returns when its threads have ended. Nobody may be calling it any
  // more.
  void Stop();
  void Kill() { threads_.Kill(); }
  bool dead() const { return threads_.killed(); }

  Farm& farm() { return *farm_; }
  JobRunner& jobs() { return *jobs_; }
  ArtifactStore& artifacts() { return *artifacts_; }
  // Callers that are inside.
  int calls = 0;

 private:
  // The models of a simulation are lines: "model-3 ask 4 build 2" has four questions and two units.
  absl::StatusOr<CompileAccount> Compile(const ModelFiles& files, const CompileOptions& options,
                                         const CompileContext& context, const std::string& bundle_path);
  absl::Status Compute(const CompileContext& context);
  absl::Status Ask(const std::string& model, int count, const CompileContext& context, CompileAccount* account);

  ServerWorld* const world_;
  FiberThreads threads_;
  ProcessStore store_;
  std::unique_ptr<ArtifactStore> artifacts_;
  std::unique_ptr<Farm> farm_;
  std::unique_ptr<JobRunner> jobs_;
};

// Returns the content of the bundle of a model.
std::string BundleOf(const std::string& model);

}  // namespace fusion::simulation

#endif  // FUSION_SERVER_SIMULATION_SERVER_PROCESS_H_
