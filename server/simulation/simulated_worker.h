// SimulatedWorker: a fusion-worker as the server sees it. It does what worker/lease/lease_loop does, over a network
// that loses and delays messages, and it crashes, hangs and stands still when the seed says so.
#ifndef FUSION_SERVER_SIMULATION_SIMULATED_WORKER_H_
#define FUSION_SERVER_SIMULATION_SIMULATED_WORKER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/simulation/server_process.h"

namespace fusion::simulation {

struct WorkerFaults {
  double request_lost = 0, reply_lost = 0, request_late = 0;                // of a message
  double crashes = 0, hangs = 0, stands_still = 0, fails = 0, damaged = 0;  // of a task
};

class SimulatedWorker {
 public:
  // `server` returns the process that answers now, or null. `faults` may change while it runs.
  SimulatedWorker(ServerWorld* world, int number, bool measures, std::function<std::shared_ptr<ServerProcess>()> server,
                  const WorkerFaults* faults);
  // Works until `stopped`. Call it on a fiber.
  void Run(const std::function<bool()>& stopped);
  int64_t tasks_done() const { return tasks_done_; }

 private:
  struct Reply {
    absl::Status status;
    std::optional<TaskRow> task;
    absl::Duration next_sync;
  };
  struct Running {
    TaskRow task;
    absl::Time ends;
    bool hangs = false;
    absl::StatusOr<std::string> result = absl::UnknownError("it runs");
  };
  struct Call;
  Reply Synchronize(FarmPoll poll, absl::Duration patience);
  // Hands the poll to the process, as its worker service would.
  void Deliver(const std::shared_ptr<ServerProcess>& process, FarmPoll poll, const std::shared_ptr<Call>& call);
  void Begin(const TaskRow& task);
  absl::StatusOr<std::string> ResultOf(const TaskRow& task, const std::string& payload);
  AttachedWorker Describe(const std::string& id) const;
  // The process of the worker ends, and another one starts under another id.
  void Restart(absl::Duration pause);

  ServerWorld* const world_;
  const int number_;
  const bool measures_;
  const std::function<std::shared_ptr<ServerProcess>()> server_;
  const WorkerFaults* const faults_;
  int life_ = 0;
  std::string id_;
  std::optional<Running> running_;
  absl::Duration pause_;
  int64_t tasks_done_ = 0;
};

}  // namespace fusion::simulation

#endif  // FUSION_SERVER_SIMULATION_SIMULATED_WORKER_H_
