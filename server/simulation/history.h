// History: what a simulation has seen so far, and what is wrong with it. Whoever commits, delivers or compiles tells
// it; it remembers the first few violations in words, and a digest of everything, by which runs of one seed are
// compared.
#ifndef FUSION_SERVER_SIMULATION_HISTORY_H_
#define FUSION_SERVER_SIMULATION_HISTORY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "db/stores/store.h"

namespace fusion::simulation {

class History {
 public:
  struct Limits {
    int jobs_in_flight = 0;  // of one owner
    int places = 0;          // compilations that compute at a time
    int attempts = 0;        // deaths of one job's compilations
  };
  explicit History(const Limits& limits) : limits_(limits) {}

  // Commits. There is one server, so that the store refuses none of its calls.
  void TasksCalled(absl::Span<const TaskCall> calls, absl::Span<const TaskAnswer> answers);
  // `unfinished` are the owner's jobs in flight with the new one.
  void JobInserted(const std::string& owner, int unfinished);
  void JobEnded(const std::string& job_id, JobPhase state);
  // A worker received the row as its task.
  void TaskReceived(const std::string& worker, const TaskRow& row);
  // A process of the server compiles, and computes while it asks nothing.
  // `deaths`: compilations of the job that have died, as stored.
  void CompileBegan(const std::string& key, const std::string& job, int deaths);
  void CompileEnded(const std::string& key, const std::string& job);
  void ComputeBegan();
  void ComputeEnded() { --computing_; }

  void Violate(const std::string& what);
  // Adds to the digest.
  void Note(const std::string& what);
  void Note(uint64_t number);

  const std::vector<std::string>& violations() const { return violations_; }
  uint64_t digest() const { return digest_; }
  int64_t leases() const { return static_cast<int64_t>(lease_of_fence_.size()); }
  int64_t measured() const { return static_cast<int64_t>(measured_.size()); }

 private:
  struct Task {
    TaskPhase state = TaskPhase::kQueued;
    std::string key;
    int items = 0;  // that it measures
  };
  struct Lease {
    std::string task, worker;
    bool received = false;
  };
  void Claimed(const ClaimTask& call, int64_t fence);
  void Completed(const CompleteTask& call);
  void NoteTask(const std::string& id, TaskPhase state, int64_t fence);

  const Limits limits_;
  std::map<std::string, Task> tasks_;                             // by id, as stored
  std::map<int64_t, Lease> lease_of_fence_;                       // as stored
  int64_t last_fence_ = 0;                                        // stored
  std::set<std::tuple<std::string, int64_t, int64_t>> measured_;  // task, fence, item
  std::map<std::string, JobPhase> ended_;
  std::map<std::string, std::set<std::string>> compiling_;  // key to jobs
  int computing_ = 0;
  std::vector<std::string> violations_;
  uint64_t digest_ = 1469598103934665603u;
};

// The number of items that a task measures, by its description: "block 1 against block 2" are two.
int ItemsOf(const TaskRow& task);
// A worker puts its fence into what it measures, so that the row says which lease it is of.
double SampleOf(int64_t fence);

}  // namespace fusion::simulation

#endif  // FUSION_SERVER_SIMULATION_HISTORY_H_
