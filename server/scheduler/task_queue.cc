#include "server/scheduler/task_queue.h"

#include <algorithm>
#include <vector>

namespace fusion {

void TaskQueue::Enter(const std::string& id, const Job& job) {
  Owner& owner = owners_[job.owner];
  if (owner.jobs.empty()) owner.next_turn = std::max(owner.next_turn, turn_);
  owner.jobs.insert(id);
}

void TaskQueue::Leave(const std::string& id, const Job& job) {
  const auto owner = owners_.find(job.owner);
  if (owner == owners_.end()) return;
  owner->second.jobs.erase(id);
  if (owner->second.jobs.empty() && owner->second.next_turn <= turn_) owners_.erase(owner);
}

void TaskQueue::SetJob(const std::string& id, const std::string& owner, int priority) {
  Job& job = jobs_[id];
  if (!job.tasks.empty()) Leave(id, job);
  job.owner = owner, job.priority = priority, job.known = true;
  if (!job.tasks.empty()) Enter(id, job);
}

void TaskQueue::ForgetJob(const std::string& id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  if (job->second.tasks.empty()) {
    jobs_.erase(job);
  } else {
    job->second.known = false;  // its last tasks keep its standing
  }
}

void TaskQueue::Push(const std::string& id, const std::string& requirement, int64_t order, const std::string& task) {
  Job& job = jobs_[id];
  if (job.tasks.empty()) Enter(id, job);
  job.tasks[requirement][order] = task;
}

void TaskQueue::Remove(const std::string& id, const std::string& requirement, int64_t order) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  const auto tasks = job->second.tasks.find(requirement);
  if (tasks == job->second.tasks.end() || tasks->second.erase(order) == 0) return;
  if (!tasks->second.empty()) return;
  job->second.tasks.erase(tasks);
  if (!job->second.tasks.empty()) return;
  Leave(id, job->second);
  job->second.passed = 0;
  if (!job->second.known) jobs_.erase(job);
}

TaskQueue::Candidate TaskQueue::FirstOf(const std::string& id, const Job& job,
                                        const std::set<std::string>& requirements,
                                        absl::FunctionRef<bool(const std::string&)> may_run) const {
  Candidate first;
  for (const auto& [requirement, tasks] : job.tasks) {
    if (requirements.count(requirement) == 0) continue;
    for (const auto& [order, task] : tasks) {
      if (!first.task.empty() && first.order < order) break;
      if (!may_run(task)) continue;
      first = {id, task, order, job.priority, job.passed >= kMostPassed};
      break;
    }
  }
  return first;
}

std::string TaskQueue::Take(const std::set<std::string>& requirements,
                            absl::FunctionRef<bool(const std::string&)> may_run) {
  Owner* chosen = nullptr;
  std::vector<Candidate> candidates;  // of the chosen owner; the one that is taken is the first
  for (auto& [name, owner] : owners_) {
    if (chosen != nullptr && owner.next_turn > chosen->next_turn) continue;
    std::vector<Candidate> own;
    for (const std::string& id : owner.jobs) {
      Candidate first = FirstOf(id, jobs_.at(id), requirements, may_run);
      if (first.task.empty()) continue;
      own.push_back(std::move(first));
      if (own.back().ComesBefore(own.front())) std::swap(own.front(), own.back());
    }
    if (own.empty()) continue;
    // In the same turn, whoever has waited longer.
    if (chosen != nullptr && owner.next_turn == chosen->next_turn && candidates.front().order <= own.front().order) {
      continue;
    }
    chosen = &owner;
    candidates = std::move(own);
  }
  if (chosen == nullptr) return "";
  turn_ = chosen->next_turn++;
  const Candidate& taken = candidates.front();
  for (const Candidate& other : candidates) {
    if (other.order < taken.order) ++jobs_.at(other.job).passed;
  }
  jobs_.at(taken.job).passed = 0;
  // Owners whose turns are over are as if they had never been here.
  std::erase_if(owners_, [&](const auto& one) { return one.second.jobs.empty() && one.second.next_turn <= turn_; });
  return taken.task;
}

}  // namespace fusion
