// TaskQueue: tasks that wait for a worker, and whose turn it is (decisions 62, 64 and 73). Jobs that wait for a place
// among the compilations stand in one, too, each with a task of its own.
//
//   Owners take turns, one task each, however many each has; one who was idle gets no credit for that. A task of a job
//   that several owners have joined is an equal part of a turn of each. Virtual time decides: a
//   turn takes one unit of it, and the task that would be finished first comes first.
//   Among the tasks of an owner those of the job with the higher priority come first, then those that came first.
//   Nothing starves: after kMostPassed later tasks of its owner have passed a job's first task, none does before it.
//
// A task that several jobs wait for stands in the queue for each of them, and leaves it for all at once. A pure data
// structure; the caller locks.
#ifndef FUSION_SERVER_SCHEDULER_TASK_QUEUE_H_
#define FUSION_SERVER_SCHEDULER_TASK_QUEUE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace fusion {

class TaskQueue {
 public:
  static constexpr int kMostPassed = 16;

  // Says whose a job is and how urgent, or changes that. A job of which nothing was said is that of the owner "" and
  // has priority 0.
  void SetJob(const std::string& job, std::vector<std::string> owners, int priority);
  void ForgetJob(const std::string& job);

  // The task waits for this job's sake. `order` rises with the arrival of tasks, and is the same for each of its jobs.
  void Push(const std::string& job, const std::string& requirement, int64_t order, const std::string& task);
  // It does so no longer; nothing happens if it did not.
  void Remove(const std::string& job, const std::string& requirement, int64_t order);

  // Returns the task whose turn it is among those with one of these requirements that `may_run` accepts, and counts the
  // turn; "" if there is none. The caller removes the task, for all of its jobs.
  std::string Take(const std::set<std::string>& requirements, absl::FunctionRef<bool(const std::string&)> may_run);
  // Does a task wait with one of these requirements, or at all?
  bool Holds(const std::set<std::string>& requirements) const;
  bool empty() const { return waiting_.empty(); }

 private:
  using Tasks = std::map<int64_t, std::string>;  // by order
  struct Job {
    std::vector<std::string> owners = {""};
    int priority = 0;
    bool known = false;                  // by SetJob
    int passed = 0;                      // later tasks of the owner that were taken before the first of this job
    std::map<std::string, Tasks> tasks;  // by requirement; none is empty
  };
  struct Owner {
    int64_t begins = 0;          // its next turn, in virtual time
    std::set<std::string> jobs;  // that have tasks here
  };
  struct Candidate {
    std::string job, task;
    int64_t order = 0;
    int64_t part = 0;  // of the turns of its job's owners
    int priority = 0;
    bool overdue = false;  // passed often enough

    bool ComesBefore(const Candidate& other) const {
      if (overdue != other.overdue) return overdue;
      if (!overdue && priority != other.priority) return priority > other.priority;
      return order < other.order;
    }
  };
  Candidate FirstOf(const std::string& id, const Job& job, const std::set<std::string>& requirements,
                    absl::FunctionRef<bool(const std::string&)> may_run) const;
  void Leave(const std::string& id, const Job& job);
  void Enter(const std::string& id, const Job& job);

  static constexpr int64_t kTurn = 720720;  // the virtual time of a turn, which many numbers divide
  static int64_t PartOf(const Job& job);

  std::map<std::string, int64_t> waiting_;  // how often a task waits for a job's sake, by requirement; none is 0
  int64_t now_ = 0;                         // virtual time: when the turn of the task that was taken last began
  std::map<std::string, Job> jobs_;
  std::map<std::string, Owner> owners_;  // those with tasks, or whose turns are not over
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_TASK_QUEUE_H_
