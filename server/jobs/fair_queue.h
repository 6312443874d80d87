// FairQueue: jobs that wait, by owner. Owners take turns however many jobs each has: start-time fair queueing (Goyal,
// Vin and Cheng, SIGCOMM 1996) with jobs of equal cost. An owner's jobs come out in the order in which they came in,
// and one who was idle gets no credit for that.
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
  struct Entry {
    std::string owner, job;
  };

  bool empty() const { return waiting_.empty(); }
  void Push(const std::string& owner, const std::string& job);
  // Takes out the job whose turn it is. There must be one.
  Entry Pop();
  // Takes out this job, or nothing if it does not wait.
  std::optional<Entry> Remove(const std::string& job);

 private:
  int64_t turn_ = 0;  // of the job that came out last
  int64_t arrivals_ = 0;
  std::map<std::string, int64_t> next_turn_;              // by owner, of the job that it adds next
  std::map<std::pair<int64_t, int64_t>, Entry> waiting_;  // by turn and arrival
};

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_FAIR_QUEUE_H_
