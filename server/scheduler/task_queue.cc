#include "server/scheduler/task_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fusion {

int64_t TaskQueue::PartOf(const Job& job) {
  return std::max<int64_t>(1, kTurn / static_cast<int64_t>(job.owners.size()));
}

void TaskQueue::Enter(const std::string& id, const Job& job) {
  for (const std::string& name : job.owners) {
    Owner& owner = owners_[name];
    if (owner.jobs.empty()) owner.begins = std::max(owner.begins, now_);
    owner.jobs.insert(id);
  }
}

void TaskQueue::Leave(const std::string& id, const Job& job) {
  for (const std::string& name : job.owners) {
    const auto owner = owners_.find(name);
    if (owner == owners_.end()) continue;
    owner->second.jobs.erase(id);
    if (owner->second.jobs.empty() && owner->second.begins <= now_) owners_.erase(owner);
  }
}

void TaskQueue::SetJob(const std::string& id, std::vector<std::string> owners, int priority) {
  std::sort(owners.begin(), owners.end());
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  if (owners.empty()) owners.emplace_back();
  Job& job = jobs_[id];
  if (!job.tasks.empty()) Leave(id, job);
  job.owners = std::move(owners), job.priority = priority, job.known = true;
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
  if (job.tasks[requirement].insert_or_assign(order, task).second) ++waiting_[requirement];
}

void TaskQueue::Remove(const std::string& id, const std::string& requirement, int64_t order) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  const auto tasks = job->second.tasks.find(requirement);
  if (tasks == job->second.tasks.end() || tasks->second.erase(order) == 0) return;
  if (const auto waiting = waiting_.find(requirement); --waiting->second == 0) waiting_.erase(waiting);
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
      first = {id, task, order, PartOf(job), job.priority, job.passed >= kMostPassed};
      break;
    }
  }
  return first;
}

bool TaskQueue::Holds(const std::set<std::string>& requirements) const {
  return !waiting_.empty() && std::any_of(requirements.begin(), requirements.end(),
                                          [&](const std::string& one) { return waiting_.count(one) > 0; });
}

std::string TaskQueue::Take(const std::set<std::string>& requirements,
                            absl::FunctionRef<bool(const std::string&)> may_run) {
  if (!Holds(requirements)) return "";
  const Owner* chosen = nullptr;
  int64_t ends = 0;                   // the turn of the chosen owner
  std::vector<Candidate> candidates;  // of the chosen owner; the one that is taken is the first
  for (const auto& [name, owner] : owners_) {
    if (chosen != nullptr && owner.begins > ends) continue;
    std::vector<Candidate> own;
    for (const std::string& id : owner.jobs) {
      Candidate first = FirstOf(id, jobs_.at(id), requirements, may_run);
      if (first.task.empty()) continue;
      own.push_back(std::move(first));
      if (own.back().ComesBefore(own.front())) std::swap(own.front(), own.back());
    }
    if (own.empty()) continue;
    const int64_t end = owner.begins + own.front().part;
    // At the same time, whoever has waited longer.
    const bool is_later =
        chosen != nullptr && (end > ends || (end == ends && candidates.front().order <= own.front().order));
    if (is_later) continue;
    chosen = &owner;
    ends = end;
    candidates = std::move(own);
  }
  if (chosen == nullptr) return "";
  const Candidate& taken = candidates.front();
  now_ = std::max(now_, chosen->begins);
  for (const std::string& name : jobs_.at(taken.job).owners) owners_.at(name).begins += taken.part;
  for (const Candidate& other : candidates) {
    if (other.order < taken.order) ++jobs_.at(other.job).passed;
  }
  jobs_.at(taken.job).passed = 0;
  // Owners whose turns are over are as if they had never been here.
  std::erase_if(owners_, [&](const auto& one) { return one.second.jobs.empty() && one.second.begins <= now_; });
  return taken.task;
}

}  // namespace fusion
