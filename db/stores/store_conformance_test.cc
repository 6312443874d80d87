// Tests what every Store must do. A new engine adds its factory to the list at the end.
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "db/stores/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using StoreFactory = std::unique_ptr<Store> (*)();

std::unique_ptr<Store> MakeSqlite() {
  static int counter = 0;
  const std::string path = testing::TempDir() + "store-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  return OpenSqliteStore(path).value();
}

class StoreConformance : public testing::TestWithParam<StoreFactory> {
 protected:
  std::optional<JobRow> Claim(const std::string& job) {
    return store_->ClaimJob(job, "me", absl::Seconds(30), 6).value();
  }
  std::unique_ptr<Store> store_ = GetParam()();
};

JobRow MakeJob(const std::string& id, const std::string& key) {
  JobRow job;
  job.id = id, job.key = key, job.model_name = "m", job.target = "cpu", job.client_id = "me";
  job.request = std::string("\0bin", 4);
  job.created_ms = 5;
  return job;
}

TEST_P(StoreConformance, JobLifeAndEvents) {
  EXPECT_EQ(store_->InsertJob(MakeJob("j-1", "k"), "e1").value(), "j-1");
  EXPECT_EQ(store_->InsertJob(MakeJob("j-2", "k"), "e1").value(), "j-1") << "joined";
  EXPECT_EQ(store_->FindSubmission("j-2")->runs_as, "j-1");
  EXPECT_EQ(store_->GetJob("j-2").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Claim("j-1").has_value());
  ASSERT_TRUE(store_->AppendJobEvent(store_->GetJob("j-1")->claim(), "e2").ok());
  EXPECT_EQ(store_->UnfinishedJobs()->size(), 1u);

  JobRow job = store_->GetJob("j-1").value();
  EXPECT_EQ(job.request, std::string("\0bin", 4));
  EXPECT_EQ(job.state, JobPhase::kRunning);
  job.state = JobPhase::kSucceeded, job.finished_ms = 9, job.bundle_digest = "d", job.bundle_bytes = 3;
  const std::string key(64, 'a');
  job.checks = "found";
  ASSERT_TRUE(store_->FinishJob(job, "e3", ResultRow{key, "d", 3, "acc", 9, "found"}).ok());
  EXPECT_EQ(store_->FinishJob(job, "e4", std::nullopt).code(), absl::StatusCode::kFailedPrecondition);

  EXPECT_EQ(store_->OfferEarlyBundle("j-1", ResultRow{key}, "e4").code(), absl::StatusCode::kFailedPrecondition);

  auto events = store_->JobEvents("j-1", 1, 100).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].seq, 2);
  EXPECT_EQ(events[1].event, "e3");
  EXPECT_EQ(store_->GetJob("j-1")->last_seq, 3);
  EXPECT_EQ(store_->FindResult(key).value()->account, "acc");
  EXPECT_EQ(store_->FindResult(key).value()->checks, "found");
  EXPECT_EQ(store_->GetJob("j-1")->checks, "found");
  ASSERT_TRUE(store_->PutResult({key, "e", 4, "acc", 9, "more"}).ok());
  EXPECT_EQ(store_->FindResult(key).value()->bundle_digest, "e");
  EXPECT_EQ(store_->FindResult(key).value()->checks, "more");
  EXPECT_FALSE(store_->FindResult(std::string(64, 'b'))->has_value());
  EXPECT_TRUE(store_->UnfinishedJobs()->empty());
  EXPECT_EQ(store_->InsertJob(MakeJob("j-3", "k"), "e").value(), "j-3") << "a final job does not block its key";
  EXPECT_EQ(store_->ListJobs(1, std::nullopt)->front().id, "j-3");
}

TEST_P(StoreConformance, AttemptsAreCompilationsThatDiedNotStarts) {
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", "k"), "e").ok());
  const JobClaim nobodys = store_->GetJob("j")->claim();
  EXPECT_EQ(store_->FailJobAttempt(nobodys, "died").code(), absl::StatusCode::kFailedPrecondition) << "it does not run";
  EXPECT_EQ(store_->ReleaseJob(nobodys, "back").code(), absl::StatusCode::kFailedPrecondition) << "it does not run";
  EXPECT_EQ(store_->GetJob("j")->last_seq, 1) << "so that nothing is said";
  EXPECT_EQ(Claim("j")->fence, 1);
  const std::optional<JobRow> job = Claim("j");  // again: the answer may have been lost
  EXPECT_EQ(job->fence, 2);
  EXPECT_EQ(job->started_ms, 6);
  EXPECT_EQ(store_->UnfinishedJobs()->front().attempts, 0);
  ASSERT_TRUE(store_->FailJobAttempt(job->claim(), "died").ok());
  ASSERT_TRUE(store_->ReleaseJob(job->claim(), "back").ok());
  EXPECT_EQ(store_->GetJob("j")->attempts, 1);
  EXPECT_EQ(store_->GetJob("j")->state, JobPhase::kQueued);
  EXPECT_EQ(store_->JobEvents("j", 1, 9)->front().event, "died");
  EXPECT_EQ(store_->JobEvents("j", 1, 9)->back().event, "back");
}

TEST_P(StoreConformance, AllRunningJobsAreReleasedAtOnce) {
  for (const char* id : {"waits", "runs", "runs too", "ended"}) {
    ASSERT_TRUE(store_->InsertJob(MakeJob(id, id), "e").ok());
    if (id != std::string("waits")) {
      ASSERT_TRUE(Claim(id).has_value());
    }
  }
  JobRow ended = store_->GetJob("ended").value();
  ended.state = JobPhase::kFailed;
  ASSERT_TRUE(store_->FinishJob(ended, "end", std::nullopt).ok());
  ASSERT_TRUE(store_->ReleaseAllJobs("back").ok());
  for (const char* id : {"waits", "runs", "runs too"}) EXPECT_EQ(store_->GetJob(id)->state, JobPhase::kQueued) << id;
  EXPECT_EQ(store_->GetJob("ended")->state, JobPhase::kFailed);
  EXPECT_EQ(store_->JobEvents("waits", 0, 9)->back().event, "e");
  EXPECT_EQ(store_->JobEvents("runs", 1, 9)->back().event, "back");
  EXPECT_EQ(store_->JobEvents("runs too", 1, 9)->back().event, "back");
  EXPECT_EQ(store_->JobEvents("ended", 0, 9)->back().event, "end");
}

TEST_P(StoreConformance, AClaimHasAClaimantAndALeaseThatIsNotTooLong) {
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", "k"), "e").ok());
  for (const auto& claimed : {store_->ClaimJob("j", "", absl::Seconds(1), 6),
                              store_->ClaimJob("j", "me", kLongestLease + absl::Seconds(1), 6)}) {
    EXPECT_EQ(claimed.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_P(StoreConformance, ConcurrentEventsHaveNoGaps) {
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", "k"), "first").ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) EXPECT_TRUE(store_->AppendJobEvent({"j"}, "x").ok());
    });
  }
  for (auto& thread : threads) thread.join();
  auto events = store_->JobEvents("j", 0, 1000).value();
  ASSERT_EQ(events.size(), 101u);
  for (int i = 0; i < 101; ++i) EXPECT_EQ(events[i].seq, i + 1);
}

TEST_P(StoreConformance, Tasks) {
  TaskRow a;
  a.id = "t-a", a.key = "ka", a.kind = TaskType::kMeasure, a.requirement = "measure:cpu:f", a.fence = 4;
  TaskRow b = a;
  b.id = "t-b", b.key = "kb", b.fence = 9, b.state = TaskPhase::kLeased, b.worker = "w", b.attempts = 1;
  EXPECT_EQ(store_->LastFence().value(), 0);
  ASSERT_TRUE(store_->PutTasks({a, b}).ok());
  EXPECT_EQ(store_->LastFence().value(), 9);
  EXPECT_EQ(store_->UnfinishedTasks()->size(), 2u);
  b.state = TaskPhase::kDone;
  ASSERT_TRUE(store_->PutTasks({b}).ok());
  EXPECT_EQ(store_->UnfinishedTasks()->size(), 1u);
  auto found = store_->FindTask("kb").value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->state, TaskPhase::kDone);
  EXPECT_EQ(found->worker, "w");
  EXPECT_FALSE(store_->FindTask("kc")->has_value());
  ASSERT_TRUE(store_->CancelUnfinishedTasks().ok());
  EXPECT_TRUE(store_->UnfinishedTasks()->empty());
  TaskRow again = b;
  again.id = "t-b+", again.fence = 0;
  ASSERT_TRUE(store_->PutTasks({again}).ok());
  EXPECT_EQ(store_->FindTask("kb").value()->id, "t-b+");
  EXPECT_EQ(store_->LastFence().value(), 9) << "the row with the largest fence is gone";
}

TEST_P(StoreConformance, ATaskIsDoneExactlyWhenItsRowsAreThere) {
  TaskRow task;
  task.id = task.key = "t", task.state = TaskPhase::kDone, task.fence = 3;
  MeasurementRow good;
  good.question_key = "q", good.measurement_key = "m", good.samples = 1, good.samples_ns = {5}, good.median_ns = 5;
  good.task = "t", good.fence = 3;
  MeasurementRow bad = good;
  bad.question_key = "bad", bad.item = 1, bad.samples = 0;  // the schema refuses it
  EXPECT_FALSE(store_->PutTasks({task}, {.measurements = {good, bad}}).ok());
  EXPECT_FALSE(store_->FindTask("t")->has_value());
  EXPECT_EQ(store_->LastFence().value(), 0);
  EXPECT_FALSE(store_->MedianLatencies({"q"})->at(0).has_value());
  ASSERT_TRUE(store_->PutTasks({task}, {.measurements = {good}}).ok());
  EXPECT_EQ(store_->FindTask("t").value()->state, TaskPhase::kDone);
  EXPECT_EQ(store_->MedianLatencies({"q"})->at(0), 5);
}

TEST_P(StoreConformance, AJobLastsAsLongAsOneOfItsSubmissions) {
  ASSERT_EQ(store_->InsertJob(MakeJob("first", "k"), "e1").value(), "first");
  JobRow joined = MakeJob("joined", "k");
  joined.model_name = "another name", joined.created_ms = 6;
  ASSERT_EQ(store_->InsertJob(joined, "e1").value(), "first");
  EXPECT_FALSE(store_->LeaveJob("nobody", 7, "cancelled", 1, "cancelled")->left);
  const Store::Leaving first = store_->LeaveJob("first", 7, "cancelled", 1, "cancelled").value();
  EXPECT_TRUE(first.left);
  EXPECT_FALSE(first.ended);
  EXPECT_FALSE(store_->LeaveJob("first", 8, "cancelled", 1, "cancelled")->left) << "once";
  ASSERT_TRUE(store_->AppendJobEvent({"first"}, "e2").ok());
  EXPECT_EQ(store_->GetJob("first")->state, JobPhase::kQueued) << "it goes on for the other one";
  const JobRow left = store_->FindSubmission("first").value(), stays = store_->FindSubmission("joined").value();
  EXPECT_EQ(left.state, JobPhase::kCancelled);
  EXPECT_EQ(left.left_seq, 2);
  EXPECT_EQ(left.last_seq, 2) << "the events of the job are no longer its own";
  EXPECT_EQ(left.finished_ms, 7);
  EXPECT_EQ(stays.state, JobPhase::kQueued);
  EXPECT_EQ(stays.id, "joined");
  EXPECT_EQ(stays.model_name, "another name");
  EXPECT_EQ(stays.last_seq, 2);
  std::vector<std::string> listed;
  const std::vector<JobRow> jobs = store_->ListJobs(10, std::nullopt).value();
  for (const JobRow& job : jobs) listed.push_back(job.id);
  EXPECT_THAT(listed, testing::ElementsAre("joined", "first"));

  EXPECT_TRUE(store_->LeaveJob("joined", 9, "cancelled", 1, "cancelled")->ended);
  EXPECT_EQ(store_->GetJob("first")->state, JobPhase::kCancelled);
  EXPECT_EQ(store_->JobEvents("first", 2, 10)->front().event, "cancelled");
  EXPECT_EQ(store_->FindSubmission("joined")->left_seq, 3);
  EXPECT_EQ(store_->InsertJob(MakeJob("later", "k"), "e1").value(), "later") << "nothing is in flight";
  EXPECT_FALSE(store_->LeaveJob("joined", 10, "cancelled", 1, "cancelled")->left);
}

TEST_P(StoreConformance, AnAttemptIsMeasuredOnce) {
  MeasurementRow row{"q", "m", "dev", "Conv", 1, 1, 1, 1, {1}, "w", "clang", 1};
  row.task = "t", row.fence = 3, row.item = 0;
  MeasurementRow second = row;
  second.item = 1;
  ASSERT_TRUE(store_->PutTasks({}, {.measurements = {row, second}}).ok());
  ASSERT_TRUE(store_->PutTasks({}, {.measurements = {row, second}}).ok()) << "the worker delivers again";
  EXPECT_EQ(store_->CountMeasurements()->measurements, 2);
  MeasurementRow exported;
  ASSERT_TRUE(store_->ScanMeasurements({"", "", "", 1}, [&](const MeasurementRow& found) { exported = found; }).ok());
  EXPECT_EQ(exported.origin.size(), 32u) << exported.origin;
  EXPECT_EQ(store_->MergeMeasurements({exported}).value(), 0);
  exported.time_ms = 77;  // whatever else it says, it is that attempt
  EXPECT_EQ(store_->MergeMeasurements({exported}).value(), 0);
  exported.origin = std::string(32, '0');  // of another server, whose task has that id, too
  EXPECT_EQ(store_->MergeMeasurements({exported}).value(), 1);
  row.fence = 4;
  ASSERT_TRUE(store_->PutTasks({}, {.measurements = {row}}).ok()) << "another attempt";
  EXPECT_EQ(store_->CountMeasurements()->measurements, 4);

  PlanComparisonRow plan{std::string(64, 'a'), std::string(64, 'b'), "dev", "plan", 1, 20, 1, 1, 1, 1, 1, 1, 1, "w", 1};
  plan.task = "t", plan.fence = 3, plan.item = 1;
  ASSERT_TRUE(store_->PutTasks({}, {.comparisons = {plan}}).ok());
  plan.ratio = plan.ratio_high = 9;
  ASSERT_TRUE(store_->PutTasks({}, {.comparisons = {plan}}).ok());
  EXPECT_EQ(store_->PlanComparisons(plan.reference_key, {plan.plan_key})->at(0)->ratio, 1);
}

TEST_P(StoreConformance, WorkersKeepTheirDeviceModel) {
  EXPECT_FALSE(store_->LatestWorker("cpu")->has_value());
  ASSERT_TRUE(store_->PutWorker({"w1", "host", "cpu", "f1", "{}", 10}).ok());
  ASSERT_TRUE(store_->PutWorker({"w2", "host", "cpu", "f2", "{}", 20}).ok());
  ASSERT_TRUE(store_->PutWorker({"w1", "host", "cpu", "f3", "{}", 30}).ok());
  EXPECT_EQ(store_->LatestWorker("cpu").value()->fingerprint, "f3");
  EXPECT_EQ(store_->FindWorker("w2").value()->fingerprint, "f2");
  EXPECT_FALSE(store_->FindWorker("w3")->has_value());
}

TEST_P(StoreConformance, TheModelWithMoreMeasurementsBehindItStays) {
  EXPECT_TRUE(store_->Devices("dev")->empty());
  ASSERT_TRUE(store_->PutWorker({"w1", "host", "cpu", "dev", "first", 1}).ok());
  ASSERT_TRUE(store_->PutWorker({"w2", "host", "cpu", "dev", "second", 2}).ok());
  ASSERT_TRUE(store_->PutWorker({"w3", "host", "", "", "{}", 3}).ok()) << "it only builds";
  ASSERT_EQ(store_->Devices("dev")->size(), 1u);
  EXPECT_EQ(store_->Devices("dev")->front().model_json, "first");
  EXPECT_EQ(store_->MergeDevice({"dev", "elsewhere, unused", 3, 0}).value(), false);
  EXPECT_EQ(store_->MergeDevice({"dev", "elsewhere", 3, 1}).value(), true);
  ASSERT_TRUE(
      store_->PutTasks({}, {.measurements = {{"q", "m", "dev", "Conv", 1, 1, 1, 1, {1}, "w", "clang", 1}}}).ok());
  EXPECT_EQ(store_->MergeDevice({"dev", "as many", 3, 1}).value(), false);
  EXPECT_EQ(store_->MergeDevice({"another", "unknown here", 3, 0}).value(), true);
  ASSERT_EQ(store_->Devices("")->size(), 2u);
  EXPECT_EQ(store_->Devices("dev")->front().model_json, "elsewhere");
  EXPECT_EQ(store_->Devices("dev")->front().measurements, 1);
}

TEST_P(StoreConformance, MeasurementsAreAppendedAndTheirMedianAnswers) {
  MeasurementRow row{"q1", "m1", "dev", "Conv+Relu", 3, 90, 100, 120, {90, 100, 120}, "w", "clang", 1};
  ASSERT_TRUE(store_->PutTasks({}, {.measurements = {row}}).ok());
  row.median_ns = 1000;  // a noisy measurement does not win
  ASSERT_TRUE(store_->PutTasks({}, {.measurements = {row}}).ok());
  row.median_ns = 102;
  ASSERT_TRUE(store_->PutTasks({}, {.measurements = {row}}).ok());
  auto latencies = store_->MedianLatencies({"q1", "q2"}).value();
  EXPECT_EQ(latencies[0], 102);
  EXPECT_FALSE(latencies[1].has_value());
  EXPECT_EQ(store_->CountMeasurements()->measurements, 3);
  EXPECT_EQ(store_->CountMeasurements()->questions, 1);

  std::vector<MeasurementRow> rows;
  auto scan = [&](const MeasurementFilter& filter) {
    rows.clear();
    EXPECT_TRUE(store_->ScanMeasurements(filter, [&](const MeasurementRow& r) { rows.push_back(r); }).ok());
    return rows.size();
  };
  EXPECT_EQ(scan({"q", "relu", "dev", 2}), 2u);
  EXPECT_THAT(rows[0].samples_ns, testing::ElementsAre(90, 100, 120));
  EXPECT_EQ(rows[0].median_ns, 102) << "newest first";
  EXPECT_EQ(scan({"", "Gemm", "", 10}), 0u);
  EXPECT_EQ(scan({"%", "", "", 10}), 0u) << "no wildcards";
}

TEST_P(StoreConformance, TrialsAreRememberedByWorkloadAndStructure) {
  const auto append = [&](const char* question, double ns, const char* workload, const char* choices) {
    MeasurementRow row{question, "m", "dev", "Conv", 1, ns, ns, ns, {ns}, "w", "clang", 1};
    row.model_ns = 70;
    row.workload = workload, row.structure = *workload ? "s" : "", row.choices = choices;
    EXPECT_TRUE(store_->PutTasks({}, {.measurements = {row}}).ok());
  };
  append("q2", 100, "w1", "");
  append("q1", 80, "w1", "tile=1");
  append("q2", 1000, "w1", "");  // measured again on a slow day, and once more
  append("q2", 102, "w1", "");
  append("q3", 50, "w2", "tile=2");
  append("q4", 60, "w2", "tile=3");
  append("q5", 10, "", "");  // no trial

  const std::vector<TrialRow> trials = store_->Trials("w1").value();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].choices, "");
  EXPECT_EQ(trials[0].latency_ns, 102);
  EXPECT_EQ(trials[1].choices, "tile=1");
  EXPECT_TRUE(store_->Trials("")->empty());
  EXPECT_TRUE(store_->Trials("w3")->empty());

  EXPECT_THAT(store_->NeighbourChoices("s", "w1", 5).value(), testing::ElementsAre("tile=2"));
  EXPECT_THAT(store_->NeighbourChoices("s", "w3", 5).value(), testing::ElementsAre("tile=2", "tile=1"));
  EXPECT_THAT(store_->NeighbourChoices("s", "w3", 1).value(), testing::ElementsAre("tile=2"));
  EXPECT_TRUE(store_->NeighbourChoices("", "w1", 5)->empty());

  const std::vector<ModelErrorRow> errors = store_->ModelErrors("dev").value();
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_EQ(errors[1].latency_ns, 102);
  EXPECT_EQ(errors[1].model_ns, 70);
  EXPECT_EQ(store_->ModelErrors("")->size(), 5u);
  EXPECT_TRUE(store_->ModelErrors("other")->empty());
}

TEST_P(StoreConformance, WholePlansBesideTheirEstimates) {
  EXPECT_TRUE(store_->PlanErrors("")->empty());
  const PlanRow a{"digest a", "dev", "model", "dnnfusion", 1, 50, 100, 90, 110, "w", 1};
  PlanRow again = a, threads = a, unknown = a, other = a;
  again.median_ns = 120;
  threads.threads = 2;
  unknown.bundle_digest = "digest b", unknown.model_ns = 0;
  other.device_fingerprint = "other";
  ASSERT_TRUE(store_->AppendPlans({a, again, threads, unknown, other}).ok());
  const std::vector<ModelErrorRow> errors = store_->PlanErrors("dev").value();
  ASSERT_EQ(errors.size(), 2u) << "equal plans are one";
  EXPECT_EQ(errors[0].latency_ns, 120) << "the larger middle one";
  EXPECT_EQ(errors[0].model_ns, 50);
  EXPECT_EQ(errors[1].latency_ns, 100);
  EXPECT_EQ(store_->PlanErrors("")->size(), 3u);
}

TEST_P(StoreConformance, TheMedianOfAPlansComparisonsAnswers) {
  const std::string plan(64, 'a'), other(64, 'b'), reference(64, 'c');
  PlanComparisonRow row{plan, reference, "dev", "plan by measurements", 2, 20, 0.9, 0.89, 0.91, 900, 1000, 5,
                        6,    "w",       1};
  ASSERT_TRUE(store_->PutTasks({}, {.comparisons = {row}}).ok());
  auto found = store_->PlanComparisons(reference, {other, plan}).value();
  EXPECT_FALSE(found[0].has_value());
  ASSERT_TRUE(found[1].has_value());
  EXPECT_EQ(found[1]->ratio, 0.9);
  EXPECT_EQ(found[1]->ratio_low, 0.89);
  EXPECT_EQ(found[1]->ratio_high, 0.91);
  EXPECT_EQ(found[1]->median_ns, 900);
  EXPECT_EQ(found[1]->reference_ns, 1000);
  EXPECT_EQ(found[1]->model_ns, 5);
  EXPECT_EQ(found[1]->reference_model_ns, 6);
  EXPECT_EQ(found[1]->rounds, 20);
  EXPECT_EQ(found[1]->threads, 2);
  EXPECT_EQ(found[1]->worker, "w");
  EXPECT_FALSE(store_->PlanComparisons(other, {plan}).value()[0].has_value()) << "beside another reference";
  PlanComparisonRow slower = row, slowest = row, elsewhere = row;
  slower.ratio = 1.1, slowest.ratio = 1.2, slower.median_ns = 1100;
  elsewhere.reference_key = other, elsewhere.ratio = 5;
  ASSERT_TRUE(store_->PutTasks({}, {.comparisons = {slowest, slower, elsewhere}}).ok());
  found = store_->PlanComparisons(reference, {plan}).value();
  EXPECT_EQ(found[0]->ratio, 1.1);
  EXPECT_EQ(found[0]->median_ns, 1100) << "all figures are of one row";
}

TEST_P(StoreConformance, WhatIsKnownOfPlansMovesToAnotherServerOnce) {
  const std::string plan(64, 'a'), reference(64, 'b');
  PlanComparisonRow compared{plan, reference, "dev", "plan", 1, 20, 0.9, 0.8, 1, 90, 100, 5, 6, "w", 1};
  compared.task = "t", compared.fence = 3, compared.item = 1;
  PlanComparisonRow elsewhere = compared;
  elsewhere.device_fingerprint = "other", elsewhere.item = 2, elsewhere.time_ms = 2;
  ASSERT_TRUE(store_->PutTasks({}, {.comparisons = {compared, elsewhere}}).ok());
  const PlanRow measured{"digest", "dev", "model", "dnnfusion", 1, 50, 100, 90, 110, "w", 1};
  ASSERT_TRUE(store_->AppendPlans({measured}).ok());

  std::vector<PlanComparisonRow> comparisons;
  std::vector<PlanRow> plans;
  const auto scan = [&](const std::string& device) {
    comparisons.clear(), plans.clear();
    return store_->ScanPlans(
        device, [&](const PlanComparisonRow& row) { comparisons.push_back(row); },
        [&](const PlanRow& row) { plans.push_back(row); });
  };
  ASSERT_TRUE(scan("").ok());
  ASSERT_EQ(comparisons.size(), 2u);
  EXPECT_EQ(comparisons[0].device_fingerprint, "other") << "the newest first";
  ASSERT_TRUE(scan("dev").ok());
  ASSERT_EQ(comparisons.size(), 1u);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(comparisons[0].origin.size(), 32u) << comparisons[0].origin;
  EXPECT_EQ(comparisons[0].task, "t");
  EXPECT_EQ(comparisons[0].ratio_high, 1);
  EXPECT_EQ(plans[0].p75_ns, 110);
  EXPECT_EQ(plans[0].model_name + plans[0].source, "model");
  EXPECT_EQ(store_->MergePlans(comparisons, plans).value(), 0) << "they are of this database";

  // Another database has a task of that id, and a bundle of that digest.
  comparisons[0].origin = std::string(32, '0'), comparisons[0].time_ms = 5, comparisons[0].ratio = 0.95;
  comparisons[0].source = plans[0].source = "imported/w";
  plans[0].time_ms = 5, plans[0].median_ns = 105;
  EXPECT_EQ(store_->MergePlans(comparisons, plans).value(), 2);
  EXPECT_EQ(store_->MergePlans(comparisons, plans).value(), 0);
  EXPECT_EQ(store_->MergePlans({}, {}).value(), 0);
  EXPECT_EQ(store_->PlanComparisons(reference, {plan})->at(0)->ratio, 0.9) << "of 0.9, 0.9 and 0.95";
  EXPECT_EQ(store_->PlanErrors("dev")->at(0).latency_ns, 105);
}

TEST_P(StoreConformance, WhatIsKnownOfPlansIsQuarantinedWithItsSource) {
  const std::string plan(64, 'a'), reference(64, 'b');
  PlanComparisonRow compared{plan, reference, "dev", "plan", 1, 20, 0.9, 0.8, 1, 90, 100, 5, 6, "liar/1", 1};
  compared.source = "imported/liar", compared.standing = Standing::kImported;
  PlanRow measured{"digest", "dev", "model", "dnnfusion", 1, 50, 100, 90, 110, "liar/1", 1, "imported/liar"};
  DrainedWorkerRow quarantine{"liar", "half", "fusiond", 7};
  quarantine.quarantined = true;
  for (const bool before : {false, true}) {
    if (before) {
      ASSERT_TRUE(store_->PutDrainedWorker(quarantine).ok());
    }
    compared.time_ms = measured.time_ms = before;
    ASSERT_EQ(store_->MergePlans({compared}, {measured}).value(), 2);
    EXPECT_EQ(store_->PlanComparisons(reference, {plan})->at(0).has_value(), !before);
    EXPECT_EQ(store_->PlanErrors("dev")->size(), before ? 0u : 1u);
  }
  int out = 0;
  ASSERT_TRUE(store_
                  ->ScanPlans(
                      "", [&](const PlanComparisonRow& row) { out += row.quarantined; },
                      [&](const PlanRow& row) { out += row.quarantined; })
                  .ok());
  EXPECT_EQ(out, 4) << "those of before and those of afterwards";
  ASSERT_TRUE(store_->RemoveDrainedWorker("liar").ok());
  EXPECT_TRUE(store_->PlanComparisons(reference, {plan})->at(0).has_value());
  EXPECT_EQ(store_->PlanErrors("dev")->size(), 1u);
}

TEST_P(StoreConformance, MeasurementsFromElsewhereAreTakenOnce) {
  const MeasurementRow a{"q1", "m1", "dev", "Conv", 3, 90, 100, 120, {90, 100, 120}, "w", "clang", 1};
  MeasurementRow later = a, other = a;
  later.time_ms = 2;
  other.worker = "v";
  ASSERT_TRUE(store_->PutTasks({}, {.measurements = {a}}).ok());
  EXPECT_EQ(store_->MergeMeasurements({a, later, other, later}).value(), 2);
  EXPECT_EQ(store_->MergeMeasurements({a, later, other}).value(), 0);
  EXPECT_EQ(store_->MergeMeasurements({}).value(), 0);
  EXPECT_EQ(store_->CountMeasurements()->measurements, 3);
}

TEST_P(StoreConformance, Builds) {
  const std::string a(64, 'a'), b(64, 'b');
  ASSERT_TRUE(store_->PutTasks({}, {.builds = {{a, "bin1", 1}}}).ok());
  ASSERT_TRUE(store_->PutTasks({}, {.builds = {{a, "bin2", 2}}}).ok());
  auto found = store_->FindBuilds({b, a}).value();
  EXPECT_TRUE(found[0].empty());
  ASSERT_EQ(found[1].size(), 1u) << "of one builder";
  EXPECT_EQ(found[1][0].binary_digest, "bin2");
  EXPECT_EQ(found[1][0].created_ms, 2);
}

TEST_P(StoreConformance, BuildsAreToldApartByToolchainAndBuilderAndGoWithItsToken) {
  const std::string a(64, 'a'), b(64, 'b');
  for (const char* id : {"t1", "t2"}) {
    ASSERT_TRUE(store_->InsertToken({id, id, std::string(64, *(id + 1)), "untrusted-build", false, 10, 0, 0, ""}).ok());
  }
  const BuildRow one{a, "bin1", 5, "clang", "t1", false, true};
  ASSERT_TRUE(store_
                  ->PutTasks({}, {.builds = {one,
                                             {a, "bin2", 6, "clang", "t2", false, true},
                                             {a, "bin3", 7, "old clang", "t1", false, false},
                                             {b, "bin4", 8, "clang", ""}}})
                  .ok());
  auto found = store_->FindBuilds({a, b}).value();
  ASSERT_EQ(found[0].size(), 3u);
  const BuildRow& first = found[0][0];
  EXPECT_EQ(first.key, a);
  EXPECT_EQ(first.binary_digest, "bin1");
  EXPECT_EQ(first.created_ms, 5);
  EXPECT_EQ(first.toolchain, "clang");
  EXPECT_EQ(first.builder, "t1");
  EXPECT_FALSE(first.trusted);
  EXPECT_TRUE(first.reproduces);
  EXPECT_FALSE(found[0][2].reproduces);
  EXPECT_TRUE(found[1][0].trusted);

  ASSERT_TRUE(store_->RevokeToken("t1", 35).ok());
  ASSERT_TRUE(store_->RevokeToken("", 35).ok()) << "the socket's owner has no token";
  found = store_->FindBuilds({a, b}).value();
  ASSERT_EQ(found[0].size(), 1u);
  EXPECT_EQ(found[0][0].builder, "t2");
  EXPECT_EQ(found[1].size(), 1u);
  // A result that was under way when the token was revoked.
  ASSERT_TRUE(store_->PutTasks({}, {.builds = {one}}).ok());
  EXPECT_EQ(store_->FindBuilds({a})->at(0).size(), 1u);
  const auto expired = store_->ExpireRows({0, 0, 7}, 100);
  ASSERT_TRUE(expired.ok()) << expired.status();
  EXPECT_EQ(expired->builds, 1);
  EXPECT_EQ(store_->FindBuilds({b})->at(0).size(), 1u) << "it is younger";
}

TEST_P(StoreConformance, Blobs) {
  const std::string digest(64, 'c');
  const std::string other(64, 'e');
  ASSERT_TRUE(store_->PutBlobs({{digest, 12, 1}}).ok());
  ASSERT_TRUE(store_->PutBlobs({{digest, 12, 2}, {other, 3, 2}}).ok());
  auto sizes = store_->BlobSizes({digest, std::string(64, 'd'), other}).value();
  EXPECT_EQ(sizes[0], 12);
  EXPECT_FALSE(sizes[1].has_value());
  EXPECT_EQ(sizes[2], 3);
}

TEST_P(StoreConformance, Tokens) {
  const std::string hash(64, 'b');
  TokenRow token{"id2", "ci", hash, "client,admin", false, 20, 0, 0, "local"};
  ASSERT_TRUE(store_->InsertToken(token).ok());
  EXPECT_EQ(store_->InsertToken(token).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(store_->InsertToken({"id1", "rack", hash, "build", true, 30, 40, 0, "token id2"}).ok());
  ASSERT_TRUE(store_->RevokeToken("id1", 35).ok());
  ASSERT_TRUE(store_->RevokeToken("id1", 36).ok());
  EXPECT_TRUE(store_->RevokeToken("unknown", 36).ok());
  const auto tokens = store_->Tokens().value();
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0].id, "id2");
  EXPECT_EQ(tokens[0].roles, "client,admin");
  EXPECT_EQ(tokens[0].revoked_ms, 0);
  EXPECT_EQ(tokens[0].hash, hash);
  EXPECT_FALSE(tokens[0].joins);
  EXPECT_TRUE(tokens[1].joins);
  EXPECT_EQ(tokens[1].expires_ms, 40);
  EXPECT_EQ(tokens[1].revoked_ms, 35) << "the first time stays";
  EXPECT_EQ(tokens[1].created_by, "token id2");
}

TEST_P(StoreConformance, OldFinalRowsExpireInSteps) {
  for (int i = 0; i < 5; ++i) {
    const std::string id = "j-" + std::to_string(i), key(64, static_cast<char>('a' + i));
    ASSERT_TRUE(store_->InsertJob(MakeJob(id, key), "e").ok());
    if (i == 4) break;  // stays in flight
    ASSERT_TRUE(store_->InsertJob(MakeJob("s-" + std::to_string(i), key), "e").ok()) << "joins";
    JobRow job = store_->GetJob(id).value();
    job.state = JobPhase::kSucceeded, job.finished_ms = 10 * (i + 1), job.bundle_digest = "bundle";
    ASSERT_TRUE(store_->FinishJob(job, "e", ResultRow{key, "bundle", 3, "acc", job.finished_ms}).ok());
  }
  ExpiredRows expired = store_->ExpireRows({35, 0, 0}, 2).value();
  EXPECT_EQ(expired.jobs, 2) << "no more than the limit, the oldest first";
  EXPECT_EQ(expired.results, 2);
  EXPECT_EQ(store_->FindSubmission("s-0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->JobEvents("j-0", 0, 10)->empty());
  expired = store_->ExpireRows({35, 0, 0}, 2).value();
  EXPECT_EQ(expired.jobs, 1);
  EXPECT_EQ(store_->ExpireRows({35, 0, 0}, 2)->jobs, 0);
  EXPECT_TRUE(store_->GetJob("j-3").ok() && store_->FindSubmission("s-3").ok());
  EXPECT_TRUE(store_->GetJob("j-4").ok()) << "in flight, however old";
  EXPECT_TRUE(store_->FindResult(std::string(64, 'd'))->has_value());
  EXPECT_TRUE(store_->Faults()->empty());
}

TEST_P(StoreConformance, PinnedJobsStayAndTheOldestOthersGo) {
  for (int i = 1; i <= 4; ++i) {
    JobRow job = MakeJob("j-" + std::to_string(i), "k" + std::to_string(i));
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
    if (i == 2) ASSERT_EQ(store_->InsertJob(MakeJob("joined", "k2"), "e").value(), "j-2");
    job.state = JobPhase::kSucceeded, job.finished_ms = 10 * (5 - i);  // j-4 is the oldest
    const std::string bundle(64, static_cast<char>('0' + i));
    ASSERT_TRUE(
        store_->FinishJob(job, "e", ResultRow{std::string(63, 'f') + std::to_string(i), bundle, 1, "a", 1}).ok());
  }
  ASSERT_TRUE(store_->InsertJob(MakeJob("runs", "k5"), "e").ok());
  ASSERT_TRUE(store_->PinJob("j-4", true).ok());
  ASSERT_TRUE(store_->PinJob("joined", true).ok());
  EXPECT_EQ(store_->PinJob("nobody", true).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store_->GetJob("j-2")->pinned && store_->FindSubmission("joined")->pinned);
  EXPECT_FALSE(store_->GetJob("j-1")->pinned);
  EXPECT_EQ(store_->ExpireOldestJobs(1)->jobs, 1) << "j-3";
  EXPECT_TRUE(store_->GetJob("j-1").ok());
  EXPECT_EQ(store_->ExpireRows({1000, 0, 0}, 10)->jobs, 1) << "j-1";
  EXPECT_EQ(store_->ExpireOldestJobs(10)->jobs, 0);
  ASSERT_TRUE(store_->PinJob("j-2", false).ok());
  EXPECT_EQ(store_->ExpireRows({1000, 0, 0}, 10)->jobs, 1);
  EXPECT_TRUE(store_->GetJob("j-4").ok() && store_->GetJob("runs").ok());
}

TEST_P(StoreConformance, AnAnswerGoesWithTheLastJobOfItsKey) {
  const std::string key(64, 'k');
  for (const char* id : {"first", "again"}) {
    JobRow job = MakeJob(id, key);
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
    job.state = JobPhase::kSucceeded, job.finished_ms = id[0] == 'f' ? 1 : 2;
    ASSERT_TRUE(store_->FinishJob(job, "e", ResultRow{key, "b", 1, "a", 1}).ok());
  }
  EXPECT_EQ(store_->ExpireOldestJobs(1)->results, 0);
  EXPECT_TRUE(store_->FindResult(key)->has_value());
  EXPECT_EQ(store_->ExpireOldestJobs(1)->results, 1);
  EXPECT_FALSE(store_->FindResult(key)->has_value());
}

TEST_P(StoreConformance, TheBlobsOfAModelAreThoseOfAllItsJobs) {
  const std::string model(64, 'a'), one(64, '1'), two(64, '2');
  for (const char* id : {"j-1", "j-2"}) {
    JobRow job = MakeJob(id, id);
    job.model = model, job.model_blobs = {one, two, one};
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
    job.state = JobPhase::kFailed, job.finished_ms = id[2];
    ASSERT_TRUE(store_->FinishJob(job, "e", std::nullopt).ok());
  }
  ASSERT_TRUE(store_->InsertJob(MakeJob("unnamed", "k"), "e").ok());
  const auto named = [&] {
    std::vector<std::string> digests;
    EXPECT_TRUE(store_
                    ->ScanReferences(
                        [&](const Reference& reference) {
                          EXPECT_EQ(reference.kind, ReferenceKind::kModel);
                          EXPECT_THAT(reference.owner, testing::StartsWith("j-"));
                          digests.push_back(reference.digest);
                        },
                        [&](const std::string& id, const std::string&) { EXPECT_EQ(id, "unnamed"); })
                    .ok());
    return digests;
  };
  EXPECT_THAT(named(), testing::UnorderedElementsAre(one, two));
  ASSERT_EQ(store_->ExpireOldestJobs(1)->jobs, 1);
  EXPECT_THAT(named(), testing::UnorderedElementsAre(one, two));
  ASSERT_EQ(store_->ExpireOldestJobs(1)->jobs, 1);
  EXPECT_TRUE(named().empty());
}

TEST_P(StoreConformance, EveryRowThatNeedsABlobSaysSo) {
  const std::string key(64, 'k');
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", key), "e").ok());
  JobRow job = store_->GetJob("j").value();
  job.state = JobPhase::kSucceeded, job.finished_ms = 1, job.bundle_digest = "bundle";
  ASSERT_TRUE(store_->FinishJob(job, "e", ResultRow{key, "stored", 3, "acc", 1}).ok());
  ASSERT_TRUE(store_->PutTasks({}, {.builds = {BuildRow{key, "binary", 1}}}).ok());
  TaskRow queued;  // its payload is no blob
  queued.id = queued.key = "queued", queued.payload_digest = "payload";
  ASSERT_TRUE(store_->PutTasks({queued}).ok());
  std::vector<std::string> found;
  ASSERT_TRUE(store_
                  ->ScanReferences(
                      [&](const Reference& reference) { found.push_back(reference.digest); },
                      [&](const std::string& id, const std::string& request) { found.push_back(id + ":" + request); })
                  .ok());
  EXPECT_THAT(found, testing::UnorderedElementsAre("bundle", "stored", "binary", "j:" + std::string("\0bin", 4)));
}

TEST_P(StoreConformance, AnEarlyBundleIsOfItsJobAndAResultAndIsKept) {
  const std::string early(64, 'e');
  ASSERT_TRUE(store_->InsertJob(MakeJob("j", "k"), "e1").ok());
  ASSERT_TRUE(store_->InsertJob(MakeJob("joined", "k"), "").ok());
  ASSERT_TRUE(store_->OfferEarlyBundle("j", ResultRow{early, "digest", 7, "acc", 1}, "e2").ok());
  for (const char* id : {"j", "joined"}) {
    const JobRow job = store_->FindSubmission(id).value();
    EXPECT_EQ(job.early_digest, "digest");
    EXPECT_EQ(job.early_bytes, 7);
    EXPECT_EQ(job.early_key, early);
    EXPECT_EQ(job.last_seq, 2);
  }
  EXPECT_EQ(store_->FindResult(early).value()->bundle_digest, "digest");
  std::vector<std::string> owners;
  ASSERT_TRUE(store_
                  ->ScanReferences(
                      [&](const Reference& reference) {
                        if (reference.digest == "digest") owners.push_back(reference.owner);
                      },
                      [](const std::string&, const std::string&) {})
                  .ok());
  EXPECT_THAT(owners, testing::UnorderedElementsAre("j", early));
  ASSERT_TRUE(store_->LeaveJob("joined", 9, "c", 1, "cancelled").ok());
  EXPECT_EQ(store_->FindSubmission("joined")->early_digest, "") << "it has left";
}

TEST_P(StoreConformance, EachSubmissionHasItsOwnOwner) {
  JobRow first = MakeJob("first", "k"), joined = MakeJob("joined", "k"), other = MakeJob("other", "k2");
  first.owner = "a", joined.owner = "b", other.owner = "b";
  for (const JobRow& job : {first, joined, other}) ASSERT_TRUE(store_->InsertJob(job, "e").ok());
  const auto ids = [&](const std::optional<std::string>& owner) {
    std::vector<std::string> all;
    const std::vector<JobRow> jobs = store_->ListJobs(10, owner).value();
    for (const JobRow& job : jobs) all.push_back(job.id);
    return all;
  };
  EXPECT_THAT(ids("a"), testing::ElementsAre("first"));
  EXPECT_THAT(ids("b"), testing::UnorderedElementsAre("joined", "other"));
  EXPECT_THAT(ids("nobody"), testing::IsEmpty());
  EXPECT_EQ(ids(std::nullopt).size(), 3u);
  EXPECT_EQ(store_->FindSubmission("joined")->owner, "b");
  EXPECT_EQ(store_->FindSubmission("joined")->runs_as, "first");
  EXPECT_EQ(store_->GetJob("first")->owner, "a");
}

TEST_P(StoreConformance, DrainedWorkersAreKeptByName) {
  ASSERT_TRUE(store_->PutDrainedWorker({"b", "why", "me", 7}).ok());
  ASSERT_TRUE(store_->PutDrainedWorker({"a", "", "me", 8}).ok());
  ASSERT_TRUE(store_->PutDrainedWorker({"b", "another reason", "you", 9, 10, 20}).ok());
  const std::vector<DrainedWorkerRow> rows = store_->DrainedWorkers().value();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_EQ(rows[1].reason + rows[1].by, "another reasonyou");
  EXPECT_EQ(rows[1].since_ms, 9);
  EXPECT_FALSE(rows[1].HoldsAt(9));
  EXPECT_TRUE(rows[1].HoldsAt(10) && rows[1].HoldsAt(19));
  EXPECT_FALSE(rows[1].HoldsAt(20));
  EXPECT_TRUE(rows[0].HoldsAt(1) && rows[0].HoldsAt(int64_t{1} << 50)) << "until it is released";
  ASSERT_TRUE(store_->RemoveDrainedWorker("b").ok());
  EXPECT_EQ(store_->DrainedWorkers()->size(), 1u);
}

TEST_P(StoreConformance, RowsOfAQuarantinedSourceAnswerNothingUntilItIsReleased) {
  const std::string q(64, 'a'), later(64, 'b'), workload(64, 'c'), structure(64, 'd'), plan(64, 'e'), beside(64, 'f');
  const auto row = [&](const std::string& key, double ns, const std::string& source, Standing standing, int64_t fence) {
    MeasurementRow row{key, "m", "dev", "Conv", 1, ns, ns, ns, {ns}, "w", "clang", 1, 5, workload, structure, "tile=1"};
    row.task = "t", row.fence = fence, row.source = source, row.standing = standing;
    return row;
  };
  PlanComparisonRow compared;
  compared.plan_key = plan, compared.reference_key = beside, compared.device_fingerprint = "dev", compared.rounds = 5;
  compared.ratio = compared.ratio_low = compared.ratio_high = 1, compared.median_ns = compared.reference_ns = 100;
  compared.task = "t", compared.fence = 9, compared.source = "liar";
  ASSERT_TRUE(store_
                  ->PutTasks({}, {.measurements = {row(q, 100, "liar", Standing::kChecked, 1),
                                                   row(q, 110, "liar", Standing::kConfirmed, 2),
                                                   row(q, 50, "liar", Standing::kChecked, 3),
                                                   row(q, 120, "honest", Standing::kConfirmed, 4),
                                                   row(q, 130, "", Standing::kBelieved, 5),
                                                   row(later, 50, "liar", Standing::kSingleSource, 6)},
                                  .comparisons = {compared}})
                  .ok());
  MeasurementRow imported = row(later, 60, "imported/liar", Standing::kImported, 1);
  imported.origin = "another database";
  ASSERT_EQ(store_->MergeMeasurements({imported}).value(), 1);
  EXPECT_EQ(store_->MedianLatencies({q, later}).value(), (std::vector<std::optional<double>>{110, 60}));

  DrainedWorkerRow quarantine{"liar", "half", "fusiond", 7};
  quarantine.quarantined = true;
  ASSERT_TRUE(store_->PutDrainedWorker(quarantine).ok());
  EXPECT_TRUE(store_->DrainedWorkers()->front().quarantined);
  // Up to its last confirmed row the source still counts: 100, 110, 120, 130.
  EXPECT_EQ(store_->MedianLatencies({q, later}).value(), (std::vector<std::optional<double>>{120, std::nullopt}));
  EXPECT_EQ(store_->Trials(workload)->size(), 1u) << "of two questions";
  EXPECT_EQ(store_->ModelErrors("dev")->size(), 1u);
  EXPECT_EQ(store_->NeighbourChoices(structure, "another", 3)->size(), 1u);
  EXPECT_FALSE(store_->PlanComparisons(beside, {plan})->at(0).has_value());
  // Rows that come afterwards count neither, however they come.
  imported.item = 1, imported.time_ms = 6;
  ASSERT_EQ(store_->MergeMeasurements({imported}).value(), 1);
  compared.item = 1;
  ASSERT_TRUE(store_
                  ->PutTasks({}, {.measurements = {row(later, 51, "liar", Standing::kSingleSource, 7)},
                                  .comparisons = {compared}})
                  .ok());
  EXPECT_FALSE(store_->MedianLatencies({later})->at(0).has_value());
  EXPECT_FALSE(store_->PlanComparisons(beside, {plan})->at(0).has_value());
  int seen = 0, out = 0;
  ASSERT_TRUE(store_
                  ->ScanMeasurements({},
                                     [&](const MeasurementRow& found) {
                                       ++seen;
                                       out += found.quarantined;
                                       EXPECT_EQ(found.source.empty(), found.standing == Standing::kBelieved);
                                     })
                  .ok());
  EXPECT_EQ(seen, 9);
  EXPECT_EQ(out, 5);

  ASSERT_TRUE(store_->RemoveDrainedWorker("liar").ok());
  EXPECT_EQ(store_->MedianLatencies({q, later}).value(), (std::vector<std::optional<double>>{110, 60}));
  EXPECT_TRUE(store_->PlanComparisons(beside, {plan})->at(0).has_value());
  // A drain by that name is no quarantine.
  ASSERT_TRUE(store_->PutDrainedWorker({"liar", "", "me", 8}).ok());
  EXPECT_TRUE(store_->MedianLatencies({later})->at(0).has_value());
}

TEST_P(StoreConformance, ABlobIsOfTheTenantsThatBroughtItUntilItIsRemoved) {
  const std::string a(64, 'a'), b(64, 'b');
  ASSERT_TRUE(store_->PutBlobs({{a, 1, 5}}, "acme").ok());
  ASSERT_TRUE(store_->PutBlobs({{a, 1, 5}, {b, 2, 5}}).ok());
  EXPECT_EQ(store_->AreOfTenant("acme", {a, b, a}).value(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(store_->AreOfTenant("", {a, b}).value(), (std::vector<bool>{true, true}));
  EXPECT_EQ(store_->AreOfTenant("other", {a}).value(), (std::vector<bool>{false}));
  ASSERT_TRUE(store_->RemoveBlobs({a}).ok());
  EXPECT_EQ(store_->AreOfTenant("acme", {a}).value(), (std::vector<bool>{false}));
}

TEST_P(StoreConformance, BlobsAreListedInPagesAndRemoved) {
  const std::string a(64, 'a'), b(64, 'b'), c(64, 'c');
  ASSERT_TRUE(store_->PutBlobs({{b, 2, 5}, {a, 1, 5}, {c, 3, 5}}).ok());
  const auto digests = [&](const std::string& after, int limit) {
    std::vector<std::string> all;
    const std::vector<BlobRow> rows = store_->Blobs(after, limit).value();
    for (const BlobRow& row : rows) all.push_back(row.digest);
    return all;
  };
  EXPECT_THAT(digests("", 2), testing::ElementsAre(a, b));
  EXPECT_THAT(digests(b, 2), testing::ElementsAre(c));
  ASSERT_TRUE(store_->RemoveBlobs({b, "unknown"}).ok());
  EXPECT_THAT(digests("", 9), testing::ElementsAre(a, c));
  EXPECT_FALSE(store_->BlobSizes({b})->at(0).has_value());
}

TEST_P(StoreConformance, ARequestIsSubmittedOnce) {
  const auto submit = [&](const std::string& id, const std::string& owner, const std::string& request_id) {
    JobRow job = MakeJob(id, "k");
    job.owner = owner, job.request_id = request_id;
    return store_->InsertJob(job, "e").status().code();
  };
  EXPECT_EQ(submit("first", "a", "r1"), absl::StatusCode::kOk);
  EXPECT_EQ(submit("again", "a", "r1"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(submit("joined", "a", "r2"), absl::StatusCode::kOk);
  EXPECT_EQ(submit("joined again", "a", "r2"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(submit("of another", "b", "r1"), absl::StatusCode::kOk) << "ids are the callers' own";
  EXPECT_EQ(submit("without", "a", ""), absl::StatusCode::kOk);
  EXPECT_EQ(submit("without either", "a", ""), absl::StatusCode::kOk);
  EXPECT_EQ(store_->FindRequest("a", "r1")->id, "first");
  EXPECT_EQ(store_->FindRequest("a", "r2")->id, "joined");
  EXPECT_EQ(store_->FindRequest("a", "r2")->runs_as, "first");
  EXPECT_EQ(store_->FindRequest("b", "r1")->id, "of another");
  for (const char* unknown : {"", "r3"}) {
    EXPECT_EQ(store_->FindRequest("a", unknown).status().code(), absl::StatusCode::kNotFound);
  }
}

TEST_P(StoreConformance, AJobHasThePriorityOfItsBestSubmissionThatIsLeft) {
  const auto submit = [&](const std::string& id, int priority) {
    JobRow job = MakeJob(id, "k");
    job.priority = priority;
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
  };
  submit("first", -10);
  EXPECT_EQ(store_->GetJob("first")->priority, -10);
  submit("second", 10);
  submit("third", 0);
  EXPECT_EQ(store_->GetJob("first")->priority, 10);
  EXPECT_EQ(store_->UnfinishedJobs()->front().priority, 10);
  ASSERT_TRUE(store_->LeaveJob("second", 7, "cancelled", 1, "cancelled").ok());
  EXPECT_EQ(store_->GetJob("first")->priority, 0);
  for (const char* id : {"first", "third"}) ASSERT_TRUE(store_->LeaveJob(id, 8, "cancelled", 1, "cancelled").ok());
  EXPECT_EQ(store_->GetJob("first")->priority, -10) << "nobody waits any more";
}

// Pages through lists in which other submissions come meanwhile.
TEST_P(StoreConformance, PagesOfJobsHaveEachOnceWhateverComesMeanwhile) {
  int64_t now_ms = 100;
  int count = 0;
  const auto submit = [&](const std::string& owner, const std::string& key) {
    JobRow job = MakeJob("s" + std::to_string(1000 + count++), key);
    job.owner = owner, job.created_ms = now_ms;
    ASSERT_TRUE(store_->InsertJob(job, "e").ok());
  };
  // Every third one joins, and several come within one millisecond.
  for (int i = 0; i < 40; ++i, now_ms += i % 4 == 0)
    submit(i % 2 ? "a" : "b", i % 3 == 0 ? "shared" : "k" + std::to_string(i));
  for (const std::optional<std::string>& owner : {std::optional<std::string>(), std::optional<std::string>("a")}) {
    for (const int limit : {1, 3, 7, 100}) {
      const std::vector<JobRow> before = store_->ListJobs(1000, owner).value();
      const int limit_of_new = count + 6;
      std::vector<std::string> expected, paged;
      for (const JobRow& job : before) expected.push_back(job.id);
      JobCursor cursor;
      for (bool more = true; more;) {
        const JobPage page = store_->PageOfJobs(limit, owner, cursor).value();
        EXPECT_LE(page.jobs.size(), static_cast<size_t>(limit));
        for (const JobRow& job : page.jobs) paged.push_back(job.id);
        if (count < limit_of_new) {
          ++now_ms;
          submit("a", "shared");
          submit("a", "new" + std::to_string(count));
        }
        more = page.next.has_value();
        if (more) cursor = *page.next;
      }
      EXPECT_EQ(paged, expected) << "pages of " << limit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreConformance, testing::Values(&MakeSqlite));

}  // namespace
}  // namespace fusion
