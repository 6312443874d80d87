#include "server/simulation/history.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fusion::simulation {
namespace {

constexpr size_t kMostViolations = 5;

std::string InWords(const TaskCall& call) {
  struct Words {
    std::string operator()(const QueueTask& queue) const {
      return absl::StrCat("to queue task ", queue.row.id, " of key ", queue.row.key);
    }
    std::string operator()(const ClaimTask& claim) const { return absl::StrCat("to claim task ", claim.task); }
    std::string operator()(const RenewTask& renew) const { return absl::StrCat("to renew ", Claim(renew.claim)); }
    std::string operator()(const CompleteTask& done) const { return absl::StrCat("to complete ", Claim(done.claim)); }
    std::string operator()(const FailTask& fail) const { return absl::StrCat("to fail ", Claim(fail.claim)); }
    std::string operator()(const NoteSource& note) const { return absl::StrCat("to note source ", note.row.source); }
    static std::string Claim(const TaskClaim& claim) {
      return absl::StrCat("task ", claim.task, " of '", claim.worker, "' under fence ", claim.fence);
    }
  };
  return std::visit(Words(), call);
}

}  // namespace

int ItemsOf(const TaskRow& task) {
  if (task.kind != TaskType::kMeasure) return 0;
  const std::vector<std::string> items = absl::StrSplit(task.description, " against ");
  return static_cast<int>(items.size());
}

double SampleOf(int64_t fence) { return 1000.0 + static_cast<double>(fence); }

void History::Violate(const std::string& what) {
  if (violations_.size() < kMostViolations) violations_.push_back(what);
}

void History::Note(uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) digest_ = (digest_ ^ (number >> (8 * byte) & 0xff)) * 1099511628211u;
}

void History::Note(const std::string& what) {
  for (const char c : what) digest_ = (digest_ ^ static_cast<unsigned char>(c)) * 1099511628211u;
}

void History::NoteTask(const std::string& id, TaskPhase state, int64_t fence) {
  Task& task = tasks_[id];
  task.state = state;
  Note(task.key);
  Note(static_cast<uint64_t>(state));
  Note(static_cast<uint64_t>(fence));
}

void History::Claimed(const ClaimTask& call, int64_t fence) {
  if (fence <= last_fence_) {
    Violate(absl::StrCat("fence ", fence, " of task ", call.task, " comes after fence ", last_fence_));
  }
  last_fence_ = std::max(last_fence_, fence);
  if (tasks_[call.task].state != TaskPhase::kQueued) {
    Violate(absl::StrCat("task ", call.task, " is claimed in state ", static_cast<int>(tasks_[call.task].state)));
  }
  lease_of_fence_[fence] = {call.task, call.worker};
  NoteTask(call.task, TaskPhase::kLeased, fence);
}

void History::Completed(const CompleteTask& call) {
  const TaskClaim& claim = call.claim;
  const auto lease = lease_of_fence_.find(claim.fence);
  if (lease == lease_of_fence_.end() || lease->second.task != claim.task || lease->second.worker != call.worker) {
    Violate(absl::StrCat("task ", claim.task, " is done by ", call.worker, " under fence ", claim.fence,
                         ", which was never stored as its lease"));
  }
  for (const MeasurementRow& row : call.rows.measurements) {
    if (row.task != claim.task || row.fence != claim.fence) {
      Violate(absl::StrCat("task ", claim.task, " ends under fence ", claim.fence, " with a measurement of task ",
                           row.task, " under fence ", row.fence));
    }
    if (!measured_.insert({row.task, row.fence, row.item}).second) {
      Violate(absl::StrCat("measurement of task ", row.task, " fence ", row.fence, " item ", row.item, " twice"));
    }
    const double first = row.samples_ns.empty() ? 0 : row.samples_ns.front();
    if (first != SampleOf(row.fence)) {
      Violate(absl::StrCat("the row of task ", row.task, " fence ", row.fence, " holds what was measured under fence ",
                           first - SampleOf(0)));
    }
  }
  const size_t rows = call.rows.measurements.size();
  if (rows != static_cast<size_t>(tasks_[claim.task].items)) {
    Violate(absl::StrCat("task ", claim.task, " is done with ", rows, " measurements instead of ",
                         tasks_[claim.task].items));
  }
  NoteTask(claim.task, TaskPhase::kDone, claim.fence);
}

void History::TasksCalled(absl::Span<const TaskCall> calls, absl::Span<const TaskAnswer> answers) {
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!answers[i].held) {
      Violate(absl::StrCat("the store refuses call ", i, " of ", calls.size(), ", ", InWords(calls[i])));
      continue;
    }
    if (const auto* queue = std::get_if<QueueTask>(&calls[i])) {
      tasks_[queue->row.id].key = queue->row.key;
      tasks_[queue->row.id].items = ItemsOf(queue->row);
      NoteTask(queue->row.id, TaskPhase::kQueued, 0);
    } else if (const auto* claim = std::get_if<ClaimTask>(&calls[i])) {
      Claimed(*claim, answers[i].fence);
    } else if (const auto* complete = std::get_if<CompleteTask>(&calls[i])) {
      Completed(*complete);
    } else if (const auto* fail = std::get_if<FailTask>(&calls[i])) {
      NoteTask(fail->claim.task, fail->then, fail->claim.fence);
    }
  }
}

void History::JobInserted(const std::string& owner, int unfinished) {
  Note("job");
  if (unfinished > limits_.jobs_in_flight) {
    Violate(absl::StrCat("owner ", owner, " has ", unfinished, " jobs in flight; the cap is ", limits_.jobs_in_flight));
  }
}

void History::JobEnded(const std::string& job_id, JobPhase state) {
  if (!ended_.emplace(job_id, state).second) Violate(absl::StrCat("job ", job_id, " ended twice"));
  Note(static_cast<uint64_t>(state));
}

void History::TaskReceived(const std::string& worker, const TaskRow& row) {
  const auto lease = lease_of_fence_.find(row.fence);
  if (lease == lease_of_fence_.end()) {
    Violate(absl::StrCat("worker ", worker, " got fence ", row.fence, " before it was stored"));
    return;
  }
  if (lease->second.worker != worker || lease->second.task != row.id) {
    Violate(absl::StrCat("worker ", worker, " got task ", row.id, " under fence ", row.fence, ", the lease of task ",
                         lease->second.task, " on ", lease->second.worker));
  }
  lease->second.received = true;
}

void History::CompileBegan(const std::string& key, const std::string& job, int deaths) {
  std::set<std::string>& jobs = compiling_[key];
  for (const std::string& other : jobs) {
    // A job that was cancelled ends before its compilation notices.
    if (ended_.count(other) == 0 && ended_.count(job) == 0) {
      Violate(absl::StrCat("jobs ", other, " and ", job, " compile key ", key));
    }
  }
  jobs.insert(job);
  if (deaths >= limits_.attempts) {
    Violate(absl::StrCat("job ", job, " compiles again after ", deaths, " deaths; ", limits_.attempts, " are allowed"));
  }
}

void History::CompileEnded(const std::string& key, const std::string& job) { compiling_[key].erase(job); }

void History::ComputeBegan() {
  if (++computing_ > limits_.places) {
    Violate(absl::StrCat(computing_, " compilations compute at a time; there are ", limits_.places, " places"));
  }
}

}  // namespace fusion::simulation
