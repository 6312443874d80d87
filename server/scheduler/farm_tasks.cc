#include "server/scheduler/farm_tasks.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "compiler/api/generator_version.h"
#include "proto/worker.pb.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/scheduler/model_error_of.h"

namespace fusion {
namespace {

constexpr absl::Duration kModelRunTimeout = absl::Minutes(10);  // fetching the bundles included
// How long a measurement waits for a worker that could do it.
constexpr absl::Duration kMeasureQueueTimeout = absl::Seconds(45);
constexpr absl::Duration kKernelTimeout = absl::Seconds(30);  // for each kernel that a task measures

// A task for a worker with the job's device, without what to measure.
FarmTask MeasureTask(const FarmJob& job) {
  FarmTask task;
  task.kind = TaskType::kMeasure;
  task.job = job.id, task.trace = job.trace;
  task.device_kind = job.device.device.kind;
  task.requirement = MeasureRequirement(task.device_kind, job.device.fingerprint);
  task.threads = job.threads;
  return task;
}

// Tasks that measure kernels. The members of a group share a task, because they are measured alternately.
struct MeasureTasks {
  std::vector<FarmTask> tasks;
  std::vector<size_t> task_of;  // by position in `open`
};

// `open`: the positions of the questions to ask; `bundles` is parallel to it.
MeasureTasks TasksFor(const FarmJob& job, absl::Span<const LatencyQuestion> questions, const std::vector<size_t>& open,
                      std::vector<std::string> bundles) {
  MeasureTasks result;
  std::vector<FarmTask>& tasks = result.tasks;
  std::vector<v1::MeasurePayload> payloads;
  std::unordered_map<std::string, size_t> task_of_group;
  for (size_t o = 0; o < open.size(); ++o) {
    const LatencyQuestion& question = questions[open[o]];
    size_t t = tasks.size();
    if (!question.group.empty()) t = task_of_group.emplace(question.group, t).first->second;
    result.task_of.push_back(t);
    if (t == tasks.size()) {
      tasks.push_back(MeasureTask(job));
      tasks.back().timeout = absl::ZeroDuration();
      payloads.emplace_back();
    }
    FarmTask& task = tasks[t];
    task.key = task.key.empty() ? question.key : Sha256Hex(absl::StrCat(task.key, " ", question.key));
    absl::StrAppend(&task.description, task.description.empty() ? "" : " against ", question.description);
    task.timeout += kKernelTimeout;
    v1::MeasureItem& item = *payloads[t].add_items();
    item.set_question_key(question.key);
    item.set_description(question.description);
    item.set_bundle(std::move(bundles[o]));
    item.mutable_origin()->set_model_ns(question.typical_ns);
    item.mutable_origin()->set_workload(question.workload);
    item.mutable_origin()->set_structure(question.structure);
    item.mutable_origin()->set_choices(question.choices);
  }
  const Farm::Checks checks =
      tasks.empty() ? Farm::Checks() : job.farm->ChecksFor(tasks[0].requirement, tasks[0].threads);
  for (size_t t = 0; t < tasks.size(); ++t) {
    payloads[t].set_canaries(checks.canaries);
    payloads[t].set_sentinel(checks.sentinel);
    tasks[t].payload = payloads[t].SerializeAsString();
  }
  return result;
}

}  // namespace

absl::StatusOr<FarmOutcome> RunModelOnFarm(const FarmJob& job, const v1::ModelRun& model,
                                           const std::string& description) {
  v1::MeasurePayload payload;
  *payload.mutable_model() = model;
  FarmTask task = MeasureTask(job);
  task.requirement = ModelRequirement(task.device_kind, job.device.fingerprint);
  task.payload = payload.SerializeAsString();
  task.key = Sha256Hex(absl::StrCat("model run ", job.threads, " ", task.requirement, ":", task.payload));
  task.description = description;
  task.timeout = kModelRunTimeout;
  const FarmWait wait = job.Wait(std::min(job.queue_timeout, kMeasureQueueTimeout));
  ASSIGN_OR_RETURN(std::vector<FarmOutcome> outcomes, job.farm->RunAll({task}, wait));
  return std::move(outcomes[0]);
}

int FarmOracle::Devices() const {
  return std::max(1, job_.farm->WorkersThatOffer(MeasureRequirement(job_.device.device.kind, job_.device.fingerprint)));
}

absl::StatusOr<std::vector<KnownTrial>> FarmOracle::Trials(const std::string& workload) {
  ASSIGN_OR_RETURN(const std::vector<TrialRow> rows, job_.store->Trials(workload));
  std::vector<KnownTrial> trials;
  // A trial that would be the best by the word of somebody who is doubted is tried again.
  const std::set<std::string> doubted = ImportsToCheck();
  for (const TrialRow& row : rows) {
    if (doubted.count(row.imported_from) == 0) trials.push_back({row.choices, row.latency_ns});
  }
  return trials;
}

absl::StatusOr<std::vector<std::string>> FarmOracle::NeighbourChoices(const std::string& structure,
                                                                      const std::string& workload, int limit) {
  return job_.store->NeighbourChoices(structure, workload, limit);
}

absl::StatusOr<bool> FarmOracle::Knows(const std::string& key) {
  ASSIGN_OR_RETURN(const auto latencies, job_.store->MedianLatencies({key}));
  return latencies[0].has_value();
}

absl::StatusOr<ModelError> FarmOracle::Error() { return ModelErrorOf(*job_.store, job_.device.fingerprint); }

absl::StatusOr<std::vector<LatencyAnswer>> FarmOracle::Latency(absl::Span<const LatencyQuestion> questions,
                                                               MeasurementBundler& bundler) {
  std::vector<std::string> keys;
  for (const LatencyQuestion& question : questions) keys.push_back(question.key);
  ASSIGN_OR_RETURN(auto stored, job_.store->MedianLatencies(keys));
  RETURN_IF_ERROR(CheckImports(questions, keys, bundler, &stored));
  std::vector<LatencyAnswer> answers(questions.size());
  std::vector<size_t> open;
  std::unordered_map<std::string, size_t> first_of_key;
  for (size_t i = 0; i < questions.size(); ++i) {
    answers[i] = {questions[i].model_latency_ns, LatencySource::kModel};
    if (stored[i].has_value()) {
      answers[i] = {*stored[i], LatencySource::kDatabase};
    } else if (first_of_key.emplace(keys[i], i).second) {
      open.push_back(i);
    }
  }
  RETURN_IF_ERROR(Measure(questions, open, bundler, &answers));
  for (size_t i = 0; i < questions.size(); ++i) {
    const auto first = first_of_key.find(keys[i]);
    if (first != first_of_key.end() && !IsMeasured(answers[i].source)) answers[i] = answers[first->second];
    auto& counter = answers[i].source == LatencySource::kDatabase   ? job_.sources->database
                    : answers[i].source == LatencySource::kMeasured ? job_.sources->measured
                                                                    : job_.sources->model;
    ++counter;
    job_.metrics->Count(Metric::kProfileRequests, {{"source", LatencySourceName(answers[i].source)}});
  }
  return answers;
}

std::set<std::string> FarmOracle::ImportsToCheck() const {
  return job_.farm->ImportsToCheck(MeasureRequirement(job_.device.device.kind, job_.device.fingerprint));
}

absl::Status FarmOracle::CheckImports(absl::Span<const LatencyQuestion> questions, const std::vector<std::string>& keys,
                                      MeasurementBundler& bundler, std::vector<std::optional<double>>* stored) {
  // A source may be right and wrong in turns. Its rows are then measured again instead of being used.
  constexpr int kMostRounds = 4;
  std::set<std::string> doubted = ImportsToCheck();
  if (doubted.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<ImportedLatency> before, job_.store->ImportedLatencies(keys));
  // The rows that would decide most come first: those that are fastest for what was estimated.
  std::vector<size_t> by_gain;
  std::set<std::string> seen;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (doubted.count(before[i].source) > 0 && before[i].own_ns == 0 && seen.insert(keys[i]).second) {
      by_gain.push_back(i);
    }
  }
  const auto gain = [&](size_t i) { return before[i].imported_ns / std::max(1.0, questions[i].model_latency_ns); };
  std::stable_sort(by_gain.begin(), by_gain.end(), [&](size_t a, size_t b) { return gain(a) < gain(b); });
  std::map<std::string, double> own_ns;  // by key
  bool can_measure = true;
  for (int round = 0; round < kMostRounds && can_measure; ++round) {
    std::map<std::string, int> asked;  // by source
    std::vector<size_t> sample;
    for (const size_t i : by_gain) {
      const std::string& source = before[i].source;
      if (own_ns.count(keys[i]) > 0 || doubted.count(source) == 0) continue;
      if (asked[source]++ < Judge::kConfirmedFirst - job_.farm->ConfirmedInARow(source)) sample.push_back(i);
    }
    if (sample.empty()) break;
    std::vector<LatencyAnswer> ignored(questions.size());
    RETURN_IF_ERROR(Measure(questions, sample, bundler, &ignored));
    ASSIGN_OR_RETURN(const std::vector<ImportedLatency> after, job_.store->ImportedLatencies(keys));
    can_measure = false;
    for (const size_t i : sample) {
      own_ns[keys[i]] = after[i].own_ns;
      if (after[i].own_ns == 0) continue;
      can_measure = true;
      job_.farm->CompareImport(before[i].source, questions[i].description, before[i].imported_ns, after[i].own_ns,
                               Judge::kSameTime, after[i].is_firm);
    }
    doubted = ImportsToCheck();
  }
  ASSIGN_OR_RETURN(*stored, job_.store->MedianLatencies(keys));
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto own = own_ns.find(keys[i]);
    if (own != own_ns.end() && own->second > 0) {
      (*stored)[i] = own->second;
    } else if (own == own_ns.end() && can_measure && before[i].own_ns == 0 && doubted.count(before[i].source) > 0) {
      (*stored)[i].reset();
    }
  }
  return absl::OkStatus();
}

absl::Status FarmOracle::Measure(absl::Span<const LatencyQuestion> questions, const std::vector<size_t>& open,
                                 MeasurementBundler& bundler, std::vector<LatencyAnswer>* answers) {
  const std::string requirement = MeasureRequirement(job_.device.device.kind, job_.device.fingerprint);
  if (open.empty() || job_.farm->WorkersThatOffer(requirement) == 0) return absl::OkStatus();
  const auto all = static_cast<int64_t>(open.size());
  job_.progress({"profiling", 0, all, "preparing measurements"});
  std::vector<std::string> keys;
  for (size_t i : open) keys.push_back(questions[i].key);
  ASSIGN_OR_RETURN(std::vector<std::string> bundles, bundler.MakeBundles(keys));
  const MeasureTasks measure = TasksFor(job_, questions, open, std::move(bundles));
  const FarmWait wait = job_.Wait(std::min(job_.queue_timeout, kMeasureQueueTimeout),
                                  [&](int64_t done, int64_t total, const std::string& message) {
                                    job_.progress({"profiling", done, total, message});
                                  });
  ASSIGN_OR_RETURN(const std::vector<FarmOutcome> outcomes, job_.farm->RunAll(measure.tasks, wait));
  ASSIGN_OR_RETURN(const auto measured, job_.store->MedianLatencies(keys));
  // If nothing was ever measured, the worker cannot measure; the kernel is not the reason.
  const bool can_measure = job_.sources->measured > 0 ||
                           std::any_of(measured.begin(), measured.end(), [](const auto& m) { return m.has_value(); });
  bool told = false;
  for (size_t t = 0; t < open.size(); ++t) {
    LatencyAnswer& answer = (*answers)[open[t]];
    if (measured[t].has_value()) {
      answer = {*measured[t], LatencySource::kMeasured};
      continue;
    }
    const absl::Status& status = outcomes[measure.task_of[t]].status;  // FAILED_PRECONDITION: there was no worker
    if (can_measure && !absl::IsFailedPrecondition(status)) answer.source = LatencySource::kFailed;
    if (told) continue;
    told = true;
    job_.progress({"profiling", all, all, absl::StrCat("not measured, estimated instead: ", status.message())});
  }
  return absl::OkStatus();
}

}  // namespace fusion
