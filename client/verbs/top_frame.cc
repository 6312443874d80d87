#include "client/verbs/top_frame.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/connection.h"
#include "client/cli/words.h"

namespace fusion {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// "2 workers: 1 busy, 1 idle"
std::string Summary(const std::string& noun, const std::map<std::string, int64_t>& counts) {
  int64_t all = 0;
  for (const auto& [state, count] : counts) all += count;
  if (all == 0) return absl::StrCat("no ", noun, "s");
  return absl::StrCat(Plural(all, noun), ": ", absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
                        absl::StrAppend(out, entry.second, " ", entry.first);
                      }));
}

std::string StateOf(const v1::Job& job) { return absl::AsciiStrToLower(v1::JobState_Name(job.state())); }

std::string StageOf(const v1::JobEvent& event) {
  std::string words = event.stage();
  if (event.total() > 0) absl::StrAppend(&words, " ", event.done(), "/", event.total());
  if (!event.message().empty()) absl::StrAppend(&words, "  ", Printable(event.message()));
  return words;
}

std::vector<std::string> RowOf(const v1::Job& job, const FarmPicture& picture) {
  const bool ended = IsFinal(job.state());
  const int64_t since_ms = job.started_ms() > 0 ? job.started_ms() : job.created_ms();
  const int64_t until_ms = ended ? job.finished_ms() : picture.now_ms;
  const auto event = picture.last_event.find(job.job_id());
  return {job.job_id(),
          StateOf(job),
          Printable(job.model_name()),
          job.target(),
          SecondsInWords(static_cast<double>(std::max<int64_t>(0, until_ms - since_ms)) * 1e-3),
          event != picture.last_event.end() ? StageOf(event->second) : Printable(job.error().message().substr(0, 80))};
}

}  // namespace

std::string TopFrame(const FarmPicture& picture, int finished) {
  std::map<std::string, int64_t> worker_states, job_states;
  Rows workers, jobs, ended;
  for (const v1::WorkerStatus& worker : picture.workers.workers()) {
    ++worker_states[worker.state()];
    const std::string measures = absl::StrJoin(worker.info().measure_kinds(), ",");
    workers.push_back({Printable(worker.info().name()), worker.state(), measures.empty() ? "-" : measures,
                       absl::StrCat(worker.tasks_done()), absl::StrCat(worker.tasks_failed()),
                       worker.task().empty() ? "-" : Printable(worker.task())});
  }
  for (const v1::Job& job : picture.jobs.jobs()) {
    if (!IsFinal(job.state())) {
      ++job_states[StateOf(job)];
      jobs.insert(jobs.begin(), RowOf(job, picture));
    } else if (static_cast<int>(ended.size()) < finished) {
      ended.push_back(RowOf(job, picture));
    }
  }
  std::string frame = absl::StrCat(picture.address, "   ", Summary("worker", worker_states), "   ",
                                   Summary("job", job_states), " in flight   ", TimeInWords(picture.now_ms), "\n");
  if (!workers.empty()) {
    absl::StrAppend(&frame, "\n", Table({"WORKER", "STATE", "MEASURES", "DONE", "FAILED", "TASK"}, workers));
  }
  jobs.insert(jobs.end(), ended.begin(), ended.end());
  if (!jobs.empty()) absl::StrAppend(&frame, "\n", Table({"JOB", "STATE", "MODEL", "TARGET", "TOOK", "STAGE"}, jobs));
  return frame;
}

}  // namespace fusion
