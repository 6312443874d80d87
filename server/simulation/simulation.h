// Simulation: the whole service logic (scheduler, farm, job runner, on a store) with its clients and workers, in one
// thread, without the machine's clock. A seed decides everything that chance decides: who submits, cancels, joins, gets
// lost, hangs and comes back when; which messages are lost or late; when commits stand still or fail; when the server
// is stopped or dies, in the middle of a commit, too. Dates that rows hold for people are the machine's; nothing
// decides by them.
//
// Checked while it runs: fences only grow, and each is of one lease; no worker sees a lease that is not stored; a task
// ends once under a fence, with exactly its measurements, which were measured under that fence; at most one compilation
// of a key at a time, no more of them than there are places, no more deaths of a job than attempts; no owner has more
// jobs in flight than the cap. Checked at the end, some time after the last fault: every acknowledged submission has
// ended, its job exactly once, and the bundles of those that succeeded are there and right.
#ifndef FUSION_SERVER_SIMULATION_SIMULATION_H_
#define FUSION_SERVER_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "db/stores/store.h"
#include "runtime/log/log.h"
#include "server/metrics/metrics.h"

namespace fusion::simulation {

struct Environment {
  Store* rest = nullptr;   // for what a simulation's own store does not have; it is left empty
  Store* store = nullptr;  // the store that the simulation uses; null: one of its own, in memory
  Metrics* metrics = nullptr;
  std::string folder;  // is emptied; best on a file system in memory
  Log log = NoLog();   // of the simulated server, with the field "at": simulated seconds
};

struct Outcome {
  std::vector<std::string> violations;  // the first few, in words
  uint64_t digest = 0;                  // of everything that happened
  int64_t steps = 0, submissions = 0, succeeded = 0, failed = 0, cancelled = 0, starts = 0, deaths = 0, leases = 0,
          measurements = 0;
  double simulated_s = 0;
};

Outcome Simulate(uint64_t seed, const Environment& environment);

}  // namespace fusion::simulation

#endif  // FUSION_SERVER_SIMULATION_SIMULATION_H_
