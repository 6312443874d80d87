// FairQueue: jobs that wait, by owner. Owners take turns however many jobs each has: start-time fair queueing (Goyal,
// Vin and Cheng, SIGCOMM 1996) with jobs of equal cost. One who was idle gets no credit for that.
//
// Priorities order an owner's own jobs, so that nobody gets ahead of another by naming a high one. Among equals the
// first one comes first. No job starves: after kMostPassed later ones of its owner have passed it, none does any more.
#ifndef FUSION_SERVER_JOBS_FAIR_QUEUE_H_
#define FUSION_SERVER_JOBS_FAIR_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace fusion {

class FairQueue {
 public:
  static constexpr int kMostPassed = 16;

  struct Entry {
    std::string owner, job;
  };

  bool empty() const { return turns_.empty(); }
  void Push(const std::string& owner, const std::string& job, int priority = 0);
  // Changes the priority of a job, if it waits.
  void SetPriority(const std::string& job, int priority);
  // Takes out the job whose turn it is. There must be one.
  Entry Pop();
  // Takes out this job, or nothing if it does not wait.
  std::optional<Entry> Remove(const std::string& job);

 private:
  struct Waiting {
    std::string job;
    int priority = 0;
    int passed = 0;  // later jobs of the owner that came out before it
  };
  using Jobs = std::map<int64_t, Waiting>;  // by arrival
  static Jobs::iterator NextOf(Jobs& jobs);

  int64_t turn_ = 0;  // of the job that came out last
  int64_t arrivals_ = 0;
  std::map<std::string, int64_t> next_turn_;                  // by owner, of the job that it adds next
  std::map<std::pair<int64_t, int64_t>, std::string> turns_;  // by turn and arrival: whose it is
  std::map<std::string, Jobs> waiting_;                       // by owner; each has as many as it has turns
};

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_FAIR_QUEUE_H_
