#include "server/simulation/history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fusion::simulation {
namespace {

constexpr size_t kMostViolations = 5;

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

void History::TaskStored(const TaskRow& row, int64_t fence_before) {
  Task& task = tasks_[row.id];
  const bool was_final = task.state > TaskPhase::kLeased;
  const bool is_final = row.state > TaskPhase::kLeased;
  if (row.state == TaskPhase::kLeased) {
    const auto known = lease_of_fence_.find(row.fence);
    if (known == lease_of_fence_.end()) {
      if (row.fence <= fence_before) {
        Violate(absl::StrCat("fence ", row.fence, " of task ", row.id, " comes after fence ", fence_before));
      }
      lease_of_fence_[row.fence] = {row.id, row.worker};
    } else if (known->second.task != row.id || known->second.worker != row.worker) {
      Violate(absl::StrCat("fence ", row.fence, " is of two leases: task ", known->second.task, " on ",
                           known->second.worker, ", and task ", row.id, " on ", row.worker));
    }
  }
  const bool ends_an_attempt = row.state == TaskPhase::kDone || row.state == TaskPhase::kPoisoned;
  if (was_final && ends_an_attempt && row.fence == task.fence && row.fence > 0 && task.state != TaskPhase::kCancelled) {
    Violate(absl::StrCat("task ", row.id, " ended twice under fence ", row.fence));
  }
  if (row.state == TaskPhase::kDone && (task.state != TaskPhase::kLeased || task.fence != row.fence)) {
    Violate(absl::StrCat("task ", row.id, " is done under fence ", row.fence, ", which was never stored as its lease"));
  }
  last_fence_ = std::max(last_fence_, row.fence);
  task = {row.state, row.fence, row.worker};
  Note(row.key);
  Note(static_cast<uint64_t>(row.state) * 1000 + (is_final ? 1 : 0));
  Note(static_cast<uint64_t>(row.fence));
}

void History::TasksStored(absl::Span<const TaskRow> tasks, const AcceptedRows& accepted) {
  std::map<std::pair<std::string, int64_t>, int> rows_of;
  for (const MeasurementRow& row : accepted.measurements) {
    ++rows_of[{row.task, row.fence}];
    if (!measured_.insert({row.task, row.fence, row.item}).second) {
      Violate(absl::StrCat("measurement of task ", row.task, " fence ", row.fence, " item ", row.item, " twice"));
    }
    const double first = row.samples_ns.empty() ? 0 : row.samples_ns.front();
    if (first != SampleOf(row.fence)) {
      Violate(absl::StrCat("the row of task ", row.task, " fence ", row.fence, " holds what was measured under fence ",
                           first - SampleOf(0)));
    }
  }
  const int64_t fence_before = last_fence_;
  for (const TaskRow& task : tasks) {
    TaskStored(task, fence_before);
    const int rows = rows_of[{task.id, task.fence}];
    const int expected = task.state == TaskPhase::kDone ? ItemsOf(task) : 0;
    if (rows != expected) {
      Violate(absl::StrCat("task ", task.id, " is stored in state ", static_cast<int>(task.state), " with ", rows,
                           " measurements instead of ", expected));
    }
    rows_of.erase({task.id, task.fence});
  }
  for (const auto& [attempt, rows] : rows_of) {
    if (rows > 0)
      Violate(absl::StrCat(rows, " measurements of task ", attempt.first, ", which does not end with them"));
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
