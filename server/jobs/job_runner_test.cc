// Tests the job runner on a farm, a compiler and a database of its own, without gRPC.
#include "server/jobs/job_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/retry/retry_info.h"
#include "server/compile_process/compile_process.h"
#include "server/testing/fake_compile.h"
#include "server/testing/forwarding_store.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class JobRunnerTest : public ::testing::Test {
 protected:
  void TearDown() override {
    runner_->BeginStop();
    farm_.Stop();
    runner_->Stop();
  }
  using Compile = decltype(CompilerFunctions::compile);
  // A job of nobody yet.
  void Insert(const std::string& id, const std::string& model = "ok") {
    JobRow job;
    job.id = job.key = id;
    job.created_ms = 1, job.target = "cuda:sm_90";
    job.request = Model(model).SerializeAsString();
    ASSERT_TRUE(state_.store().InsertJob(job, "").ok());
  }
  void Make(int compile_threads, Compile compile) {
    JobRunnerOptions options;
    options.work_folder = absl::StrCat(state_.folder(), "/work");
    options.compile_threads = compile_threads;
    options.first_worker_grace = absl::ZeroDuration();
    options.max_in_flight = 3;
    options.max_away = max_away_;
    CompilerFunctions compiler{std::move(compile), FakePlan, {"dnnfusion", "none"}, FakeCheckRule};
    runner_ = std::make_unique<JobRunner>(options, std::move(compiler), &state_.store(), &state_.artifacts(), &farm_,
                                          &metrics_);
  }
  // A runner that compiles one job after another and notes their models.
  void MakeNoting() {
    Make(1, [this](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                   const std::string& path) {
      absl::MutexLock lock(&noted_mutex_);
      noted_.push_back(files.model_name);
      return FakeCompile(files, options, context, path);
    });
  }
  std::vector<std::string> Noted() {
    absl::MutexLock lock(&noted_mutex_);
    return noted_;
  }
  void Begin() {
    farm_.Start();
    ASSERT_TRUE(runner_->Restore().ok());
    runner_->Start();
  }
  // A request to compile a model with these bytes for a device whose model is stored.
  v1::SubmitRequest Model(const std::string& bytes, const std::string& target = "cuda:sm_90") {
    v1::SubmitRequest request;
    request.set_model_name(bytes);
    request.mutable_options()->set_target(target);
    v1::ModelFile* file = request.add_files();
    file->set_path("model.onnx");
    file->set_size_bytes(static_cast<int64_t>(bytes.size()));
    const absl::StatusOr<Artifact> chunk = state_.artifacts().Put(bytes);
    EXPECT_TRUE(chunk.ok()) << chunk.status();
    file->add_chunk_digests(chunk->digest);
    return request;
  }
  std::string Submit(const v1::SubmitRequest& request) {
    const auto response = runner_->Submit(request, "me", [] { return false; });
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? response->job_id() : "";
  }
  // Waits until the job has an event for which `holds`, and returns the job.
  JobRow Await(const std::string& id, const std::function<bool(const JobRow&, const v1::JobEvent&)>& holds) {
    absl::Mutex mutex;
    int64_t wakes = 0, seen = -1;
    const int64_t token = runner_->hub().Subscribe(id, [&] {
      absl::MutexLock lock(&mutex);
      ++wakes;
    });
    while (true) {
      {
        absl::MutexLock lock(&mutex);
        const auto changed = [&] { return wakes != seen; };
        mutex.Await(absl::Condition(&changed));
        seen = wakes;
      }
      const absl::StatusOr<JobRow> job = state_.store().GetJob(id);
      EXPECT_TRUE(job.ok()) << job.status();
      bool found = false;
      const auto events = state_.store().JobEvents(id, 0, 1000);
      for (const JobEventRow& row : *events) {
        v1::JobEvent event;
        event.ParseFromString(row.event);
        found = found || holds(*job, event);
      }
      if (!found) continue;
      runner_->hub().Unsubscribe(token);
      return *job;
    }
  }
  JobRow AwaitEnd(const std::string& id) {
    return Await(id, [](const JobRow& job, const v1::JobEvent&) { return IsFinal(job.state); });
  }
  JobRow AwaitMessage(const std::string& id, const std::string& words) {
    return Await(
        id, [&](const JobRow&, const v1::JobEvent& event) { return event.message().find(words) != std::string::npos; });
  }

  int max_away_ = JobRunnerOptions().max_away;
  testing::TemporaryState state_;
  Metrics metrics_;
  Farm farm_{
      &state_.store(), &state_.artifacts(), &metrics_,
      [](const TaskRow&, const std::string&, const std::string&, const AttachedWorker&) { return AcceptedRows(); }};
  absl::Mutex noted_mutex_;
  std::vector<std::string> noted_;
  std::unique_ptr<JobRunner> runner_;
};

TEST_F(JobRunnerTest, AJobThatComesBeforeTheStartRunsOnce) {
  absl::Mutex mutex;
  std::map<std::string, int> runs;
  int begun = 0;
  bool go_on = false;
  Make(2, [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
              const std::string& path) {
    {
      absl::MutexLock lock(&mutex);
      ++runs[files.model_name];
      ++begun;
      mutex.Await(absl::Condition(&go_on));
    }
    return FakeCompile(files, options, context, path);
  });
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  const std::string early = Submit(Model("ok early"));
  runner_->Start();
  const std::string late = Submit(Model("ok late"));
  {
    absl::MutexLock lock(&mutex);
    const auto both_threads_run = [&] { return begun == 2; };
    mutex.Await(absl::Condition(&both_threads_run));
    EXPECT_THAT(runs, ElementsAre(Pair("ok early", 1), Pair("ok late", 1)));
    go_on = true;
  }
  EXPECT_EQ(AwaitEnd(early).state, JobPhase::kSucceeded);
  EXPECT_EQ(AwaitEnd(late).state, JobPhase::kSucceeded);
}

TEST_F(JobRunnerTest, JobsThatWaitForAWorkerKeepNoOtherJobFromRunning) {
  Make(1, FakeCompile);
  Begin();
  v1::SubmitRequest first_of_its_kind = Model("ok", "cpu"), builder = Model("build 1");
  for (v1::SubmitRequest* request : {&first_of_its_kind, &builder}) request->set_queue_timeout_ms(60000);
  const std::string waits_for_device = Submit(first_of_its_kind);
  AwaitMessage(waits_for_device, "no worker for cpu");
  const std::string waits_for_builder = Submit(builder);
  AwaitMessage(waits_for_builder, "no worker for cuda");
  EXPECT_EQ(AwaitEnd(Submit(Model("ok"))).state, JobPhase::kSucceeded);
  EXPECT_EQ(state_.store().GetJob(waits_for_device)->state, JobPhase::kQueued);
  EXPECT_EQ(state_.store().GetJob(waits_for_builder)->state, JobPhase::kRunning);
}

TEST_F(JobRunnerTest, AnyNumberOfJobsForADeviceThatIsNotThereStopsNobodyAndTheyGoOnWhenItComes) {
  max_away_ = 0;  // one thread
  Make(1, FakeCompile);
  Begin();
  std::vector<std::string> parked;
  for (const char* model : {"ok 1", "ok 2"}) {
    v1::SubmitRequest request = Model(model, "cpu");
    (*request.mutable_require())["rack"] = "7";
    parked.push_back(Submit(request));
  }
  EXPECT_EQ(AwaitEnd(Submit(Model("ok"))).state, JobPhase::kSucceeded);
  for (const std::string& id : parked) EXPECT_EQ(state_.store().GetJob(id)->state, JobPhase::kQueued) << id;
  ASSERT_TRUE(runner_->Cancel(parked[0]).ok());
  AttachedWorker worker;
  worker.id = "w", worker.name = "rack7", worker.device.kind = "cpu";
  worker.fingerprint = worker.device.Fingerprint();
  worker.measure_kinds = {"cpu"}, worker.labels = {{"rack", "7"}};
  ASSERT_TRUE(farm_.Register(worker).ok());
  FarmPoll poll;
  poll.worker_id = "w", poll.max_wait = absl::Hours(1), poll.reply = [](const FarmAnswer&) {};
  poll.gone = std::make_shared<std::atomic<bool>>(false);
  farm_.Poll(std::move(poll));
  EXPECT_EQ(AwaitEnd(parked[1]).state, JobPhase::kSucceeded);
  EXPECT_EQ(state_.store().GetJob(parked[0])->state, JobPhase::kCancelled);
}

TEST_F(JobRunnerTest, AJobThatHadBegunFailsInTheSameWordsWhenNoBuilderComes) {
  max_away_ = 0;
  std::atomic<int> compiled{0};
  Make(1, [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
              const std::string& path) {
    ++compiled;
    return FakeCompile(files, options, context, path);
  });
  Begin();
  v1::SubmitRequest request = Model("build 1");
  request.set_queue_timeout_ms(300);
  const std::string id = Submit(request);
  AwaitMessage(id, "no worker for cuda:sm_90; kinds attached: none; the job goes on afterwards");
  const JobRow failed = AwaitEnd(id);
  EXPECT_EQ(failed.error_code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(failed.error_message, HasSubstr("no worker for cuda:sm_90; kinds attached: none; gave up after 300ms"));
  EXPECT_EQ(failed.attempts, 0);
  EXPECT_EQ(compiled, 1) << "it is not compiled again to fail";
}

TEST_F(JobRunnerTest, AJobThatHadBegunAndGaveItsPlaceUpIsCancelledLikeAnother) {
  max_away_ = 0;
  Make(1, FakeCompile);
  Begin();
  const std::string id = Submit(Model("build 1"));
  AwaitMessage(id, "the job goes on afterwards");
  ASSERT_TRUE(runner_->Cancel(id).ok());
  EXPECT_EQ(AwaitEnd(id).state, JobPhase::kCancelled);
  EXPECT_EQ(AwaitEnd(Submit(Model("ok"))).state, JobPhase::kSucceeded);
}

// One job was submitted before its device was known, an equal one afterwards.
class LateDeviceTest : public JobRunnerTest {
 protected:
  void Attach() {
    AttachedWorker worker;
    worker.id = "w", worker.device.kind = "cpu";
    worker.fingerprint = worker.device.Fingerprint();
    worker.measure_kinds = {"cpu"};
    ASSERT_TRUE(farm_.Register(worker).ok());
  }
  void MakeWithAGate() {
    Make(1, [this](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                   const std::string& path) {
      {
        absl::MutexLock lock(&noted_mutex_);
        noted_.push_back(files.model_name);
        const auto is_open = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return open_.count("") + open_.count(files.model_name) > 0;
        };
        noted_mutex_.Await(absl::Condition(&is_open));
      }
      return FakeCompile(files, options, context, path);
    });
    Begin();
  }
  void AwaitNoted(const std::string& model) {
    absl::MutexLock lock(&noted_mutex_);
    const auto is_noted = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !noted_.empty() && noted_.back() == model; };
    noted_mutex_.Await(absl::Condition(&is_noted));
  }
  std::string SubmitAs(const std::string& owner, v1::SubmitRequest request, int priority) {
    request.set_priority(priority);
    return runner_->Submit(request, owner, [] { return false; }).value().job_id();
  }
  // Waits until so many jobs are parked for the device.
  void AwaitParked(int jobs) {
    while (metrics_.Value(Metric::kQueueDepth, {{"device_class", "cpu"}}) != jobs)
      absl::SleepFor(absl::Milliseconds(1));
  }
  // Lets a model's compilation end, or all.
  void Open(const std::string& model = "") {
    absl::MutexLock lock(&noted_mutex_);
    open_.insert(model);
  }
  std::set<std::string> open_;
};

TEST_F(LateDeviceTest, WhoSubmitsTheSameAfterwardsJoins) {
  MakeWithAGate();
  const std::string early = Submit(Model("ok", "cpu"));
  AwaitMessage(early, "no worker for cpu");
  Attach();
  AwaitNoted("ok");
  const auto late = runner_->Submit(Model("ok", "cpu"), "me", [] { return false; });
  EXPECT_TRUE(late->joined());
  Open();
  const JobRow job = AwaitEnd(early);
  EXPECT_EQ(job.state, JobPhase::kSucceeded);
  EXPECT_EQ(job.key, late->key());
  EXPECT_THAT(Noted(), ElementsAre("ok"));
}

TEST_F(LateDeviceTest, WhoComesToBeTheSameWaitsForTheOther) {
  MakeWithAGate();
  const std::string early = Submit(Model("ok", "cpu"));
  AwaitMessage(early, "no worker for cpu");
  const std::string other = Submit(Model("ok other"));
  AwaitNoted("ok other");  // and has the only place
  Attach();
  const std::string late = Submit(Model("ok", "cpu"));
  EXPECT_EQ(state_.store().FindSubmission(late)->runs_as, late);
  Open();
  EXPECT_EQ(AwaitEnd(late).state, JobPhase::kSucceeded);
  const JobRow job = AwaitEnd(early);
  EXPECT_EQ(job.state, JobPhase::kSucceeded);
  EXPECT_EQ(job.bundle_digest, AwaitEnd(late).bundle_digest);
  EXPECT_EQ(job.key, AwaitEnd(late).key);
  EXPECT_THAT(Noted(), ElementsAre("ok other", "ok"));
}

// The job that waits is more urgent than the one it waits for, and than one that came between.
TEST_F(LateDeviceTest, WhoWaitsForTheOtherLendsItHisPriority) {
  MakeWithAGate();
  const std::string early = SubmitAs("me", Model("ok", "cpu"), 50);
  AwaitParked(1);
  SubmitAs("another", Model("ok other"), 0);
  AwaitNoted("ok other");
  Attach();
  const std::string between = SubmitAs("me", Model("ok between"), 0);
  const std::string late = SubmitAs("me", Model("ok", "cpu"), -10);
  AwaitParked(0);
  Open();
  AwaitEnd(between);
  AwaitEnd(late);
  AwaitEnd(early);
  EXPECT_THAT(Noted(), ElementsAre("ok other", "ok", "ok between"));
}

TEST_F(LateDeviceTest, WhoNoLongerWaitsTakesHisPriorityBack) {
  MakeWithAGate();
  const std::string early = SubmitAs("me", Model("ok", "cpu"), 50);
  AwaitParked(1);
  SubmitAs("another", Model("ok other"), 0);
  AwaitNoted("ok other");
  SubmitAs("another", Model("ok first"), 0);
  Attach();
  const std::string between = SubmitAs("me", Model("ok between"), 0);
  const std::string late = SubmitAs("me", Model("ok", "cpu"), -10);
  AwaitParked(0);
  Open("ok other");
  AwaitMessage(early, "compiles the same");
  AwaitNoted("ok first");
  ASSERT_TRUE(runner_->Cancel(early).ok());
  Open();
  AwaitEnd(between);
  AwaitEnd(late);
  EXPECT_THAT(Noted(), ElementsAre("ok other", "ok first", "ok between", "ok"));
}

TEST_F(JobRunnerTest, AJobWaitsForADeviceAsLongAsItsMostPatientSubmission) {
  Make(1, FakeCompile);
  Begin();
  v1::SubmitRequest alone = Model("ok alone", "cpu"), joined = Model("ok joined", "cpu");
  alone.set_queue_timeout_ms(50);
  joined.set_queue_timeout_ms(50);
  const std::string patient = Submit(joined);
  joined.set_queue_timeout_ms(3600000);
  Submit(joined);
  const JobRow failed = AwaitEnd(Submit(alone));
  EXPECT_EQ(failed.error_code, static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(failed.error_message, HasSubstr("no worker for cpu; kinds attached: none; gave up after 50ms"));
  EXPECT_EQ(state_.store().GetJob(patient)->state, JobPhase::kQueued);
}

TEST_F(JobRunnerTest, ACompilationThatDiesIsTriedOnceMore) {
  std::atomic<int> deadly_runs{0}, shaky_runs{0};
  Make(2,
       [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
           const std::string& path) -> absl::StatusOr<CompileAccount> {
         context.progress({"simplify", 0, 0, ""});
         if (files.model_name == "ok deadly" && ++deadly_runs > 0) return ProcessEndedError("signal", "it fell");
         if (files.model_name == "ok shaky" && ++shaky_runs == 1) return ProcessEndedError("memory", "it grew");
         return FakeCompile(files, options, context, path);
       });
  Begin();
  const std::string deadly = Submit(Model("ok deadly")), shaky = Submit(Model("ok shaky")), well = Submit(Model("ok"));
  const JobRow failed = AwaitEnd(deadly);
  EXPECT_EQ(failed.state, JobPhase::kFailed);
  EXPECT_EQ(failed.attempts, 2);
  EXPECT_THAT(failed.error_message, HasSubstr("it fell. The job is not tried again after 2 attempts"));
  EXPECT_THAT(failed.error_message, HasSubstr(Model("ok deadly").files(0).chunk_digests(0)));
  EXPECT_EQ(deadly_runs, 2);
  const JobRow recovered = AwaitEnd(shaky);
  EXPECT_EQ(recovered.state, JobPhase::kSucceeded);
  EXPECT_EQ(recovered.attempts, 1);
  AwaitMessage(shaky, "tried once more, because it grew");
  EXPECT_EQ(AwaitEnd(well).attempts, 0);
  EXPECT_EQ(metrics_.Value(Metric::kCompileDeaths, {{"how", "signal"}}), 2);
  EXPECT_EQ(metrics_.Value(Metric::kCompileDeaths, {{"how", "memory"}}), 1);
}

TEST_F(JobRunnerTest, StartsOfTheServerCountForNoJobButDeathsOutliveThem) {
  JobRow job;
  job.created_ms = 1, job.target = "cuda:sm_90";
  for (const int deaths : {0, 1, 2}) {
    job.id = absl::StrCat("j-", deaths);
    job.key = job.id;
    job.request = Model(absl::StrCat("ok ", deaths)).SerializeAsString();
    ASSERT_TRUE(state_.store().InsertJob(job, "").ok());
    std::optional<JobRow> claimed;
    for (int start = 0; start < 5; ++start) {
      ASSERT_TRUE(state_.store().ReleaseAllJobs("the server died").ok());
      claimed = state_.store().ClaimJob(job.id, "the server before", absl::Seconds(30), 2).value();
    }
    for (int death = 0; death < deaths; ++death) {
      v1::JobEvent event;
      event.set_message("it fell");
      ASSERT_TRUE(state_.store().FailJobAttempt(claimed->claim(), event.SerializeAsString()).ok());
    }
  }
  Make(2,
       [&](const ModelFiles&, const CompileOptions&, const CompileContext&, const std::string&)
           -> absl::StatusOr<CompileAccount> { return ProcessEndedError("signal", "it fell again"); });
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  EXPECT_EQ(state_.store().GetJob("j-2")->state, JobPhase::kFailed) << "the server died before it stored the end";
  EXPECT_THAT(state_.store().GetJob("j-2")->error_message, HasSubstr("it fell. The job is not tried again"));
  runner_->Start();
  EXPECT_EQ(AwaitEnd("j-0").attempts, 2);
  EXPECT_EQ(AwaitEnd("j-1").attempts, 2);
  EXPECT_EQ(metrics_.Value(Metric::kCompileDeaths, {{"how", "signal"}}), 3);
}

TEST_F(JobRunnerTest, AStartSaysSomethingOfJobsThatRanAndNothingOfThoseThatWaited) {
  for (const char* id : {"waited", "ran"}) Insert(id);
  ASSERT_TRUE(state_.store().ClaimJob("ran", "the server before", absl::Seconds(30), 2).value().has_value());
  Make(2, FakeCompile);
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  EXPECT_EQ(state_.store().GetJob("waited")->last_seq, 1);
  v1::JobEvent last;
  last.ParseFromString(state_.store().JobEvents("ran", 1, 9)->back().event);
  EXPECT_EQ(last.message(), "the server was restarted; the job starts again");
  EXPECT_EQ(state_.store().GetJob("ran")->state, JobPhase::kQueued);
  runner_->Start();
  EXPECT_EQ(AwaitEnd("waited").state, JobPhase::kSucceeded);
  EXPECT_EQ(AwaitEnd("ran").state, JobPhase::kSucceeded);
}

// Two processes that have one database; here both are runners of this one.
class SharedJobsTest : public JobRunnerTest {
 protected:
  std::unique_ptr<JobRunner> Runner(const std::string& name, Store* store, absl::Duration lease, Compile compile) {
    JobRunnerOptions options;
    options.work_folder = absl::StrCat(state_.folder(), "/work of ", name);
    options.first_worker_grace = absl::ZeroDuration();
    options.alone = false;
    options.lease = lease;
    CompilerFunctions compiler{std::move(compile), FakePlan, {"dnnfusion", "none"}, FakeCheckRule};
    return std::make_unique<JobRunner>(options, std::move(compiler), store, &state_.artifacts(), &farm_, &metrics_);
  }
};

TEST_F(SharedJobsTest, EachJobIsCompiledByOneOfThem) {
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i) Insert(ids.emplace_back(absl::StrCat("j-", i)), absl::StrCat("ok ", i));
  absl::Mutex mutex;
  std::map<std::string, int> runs;
  const Compile compile = [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                              const std::string& path) {
    {
      absl::MutexLock lock(&mutex);
      ++runs[std::filesystem::path(path).parent_path().filename()];
    }
    return FakeCompile(files, options, context, path);
  };
  runner_ = Runner("one", &state_.store(), absl::Seconds(60), compile);
  const auto other = Runner("other", &state_.store(), absl::Seconds(60), compile);
  farm_.Start();
  for (JobRunner* runner : {runner_.get(), other.get()}) ASSERT_TRUE(runner->Restore().ok());
  for (JobRunner* runner : {runner_.get(), other.get()}) runner->Start();
  while (!state_.store().UnfinishedJobs()->empty()) absl::SleepFor(absl::Milliseconds(20));
  other->BeginStop();
  other->Stop();
  absl::MutexLock lock(&mutex);
  for (const std::string& id : ids) {
    EXPECT_EQ(state_.store().GetJob(id)->state, JobPhase::kSucceeded) << id;
    EXPECT_EQ(runs[id], 1) << id;
  }
}

TEST_F(SharedJobsTest, AJobWhoseClaimantIsGoneIsTakenOverAndWhatThatOneFindsLaterIsDropped) {
  // The first process hears nothing from the database but still compiles.
  struct CutOff : testing::ForwardingStore {
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::vector<bool>> RenewJobs(absl::Span<const JobClaim>, absl::Duration) override {
      return absl::UnavailableError("cut off");
    }
    absl::StatusOr<std::vector<JobRow>> LapsedJobs(const std::string&) override {
      return absl::UnavailableError("cut off");
    }
  } cut_off(&state_.store());
  Insert("j");
  absl::Mutex mutex;
  bool begun = false, go_on = false;
  std::atomic<int> others{0};
  runner_ = Runner("one", &cut_off, absl::Milliseconds(300),
                   [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                       const std::string& path) {
                     {
                       absl::MutexLock lock(&mutex);
                       begun = true;
                       mutex.Await(absl::Condition(&go_on));
                     }
                     return FakeCompile(files, options, context, path);
                   });
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  runner_->Start();
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&begun));
  }
  const JobClaim first = state_.store().GetJob("j")->claim();
  const auto other = Runner("other", &state_.store(), absl::Milliseconds(300),
                            [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
                                const std::string& path) {
                              ++others;
                              return FakeCompile(files, options, context, path);
                            });
  ASSERT_TRUE(other->Restore().ok());
  other->Start();
  while (!IsFinal(state_.store().GetJob("j")->state)) absl::SleepFor(absl::Milliseconds(20));
  const JobRow ended = state_.store().GetJob("j").value();
  EXPECT_EQ(ended.state, JobPhase::kSucceeded);
  EXPECT_EQ(ended.attempts, 0) << "nothing died";
  EXPECT_GT(ended.fence, first.fence);
  EXPECT_EQ(others, 1);
  AwaitMessage("j", "the server that compiled it is gone");
  {
    absl::MutexLock lock(&mutex);
    go_on = true;
  }
  TearDown();
  other->BeginStop();
  other->Stop();
  EXPECT_EQ(state_.store().GetJob("j")->last_seq, ended.last_seq) << "it ended once";
}

TEST_F(SharedJobsTest, ARunnerThatLosesItsClaimStopsCompiling) {
  Insert("j");
  absl::Mutex mutex;
  bool begun = false, stopped = false;
  runner_ = Runner("one", &state_.store(), absl::Milliseconds(300),
                   [&](const ModelFiles&, const CompileOptions&, const CompileContext& context,
                       const std::string&) -> absl::StatusOr<CompileAccount> {
                     {
                       absl::MutexLock lock(&mutex);
                       begun = true;
                     }
                     while (!context.cancelled()) absl::SleepFor(absl::Milliseconds(10));
                     absl::MutexLock lock(&mutex);
                     stopped = true;
                     return absl::CancelledError("cancelled");
                   });
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  runner_->Start();
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&begun));
  }
  ASSERT_TRUE(state_.store().ReleaseAllJobs("a server that is alone starts").ok());
  ASSERT_TRUE(state_.store().ClaimJob("j", "another", absl::Minutes(1), 5).value().has_value());
  absl::MutexLock lock(&mutex);
  mutex.Await(absl::Condition(&stopped));
  EXPECT_EQ(state_.store().GetJob("j")->claimant, "another");
  EXPECT_EQ(state_.store().GetJob("j")->state, JobPhase::kRunning);
}

TEST_F(JobRunnerTest, OwnersTakeTurnsAndHaveSoManyJobsInFlight) {
  absl::Mutex mutex;
  std::vector<std::string> order;
  bool go_on = false;
  Make(1, [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
              const std::string& path) {
    absl::MutexLock lock(&mutex);
    order.push_back(files.model_name);
    mutex.Await(absl::Condition(&go_on));
    return FakeCompile(files, options, context, path);
  });
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  const auto submit = [&](const std::string& owner, const std::string& model) {
    return runner_->Submit(Model(model), owner, [] { return false; });
  };
  for (const char* model : {"ok a1", "ok a2", "ok a3"}) ASSERT_TRUE(submit("a", model).ok());
  const absl::Status fourth = submit("a", "ok a4").status();
  EXPECT_TRUE(absl::IsResourceExhausted(fourth)) << fourth;
  EXPECT_THAT(fourth.message(), HasSubstr("caller 'a' has 3 jobs in flight"));
  EXPECT_EQ(RetryDelayOf(fourth), absl::Seconds(5));
  const auto b1 = submit("b", "ok b1");
  const auto b2 = submit("b", "ok b2");
  ASSERT_TRUE(b1.ok() && b2.ok());
  ASSERT_TRUE(runner_->Cancel(b2->job_id()).ok());
  runner_->Start();
  {
    absl::MutexLock lock(&mutex);
    go_on = true;
  }
  EXPECT_EQ(AwaitEnd(b1->job_id()).owner, "b");
  const std::vector<JobRow> of_a = state_.store().ListJobs(10, "a").value();  // the newest first
  ASSERT_EQ(of_a.size(), 3u);
  AwaitEnd(of_a[0].id);
  absl::MutexLock lock(&mutex);
  EXPECT_THAT(order, ElementsAre("ok a1", "ok b1", "ok a2", "ok a3"));
}

TEST_F(JobRunnerTest, PrioritiesOrderTheJobsOfAnOwnerAndAJoinedJobHasItsBest) {
  MakeNoting();
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  const auto submit = [&](const std::string& model, int priority, const std::string& owner) {
    v1::SubmitRequest request = Model(model);
    request.set_priority(priority);
    return runner_->Submit(request, owner, [] { return false; }).value().job_id();
  };
  const std::string low = submit("ok low", -10, "me"), normal = submit("ok normal", 0, "me");
  submit("ok high", 10, "me");
  submit("ok low", 50, "another");  // joins
  const std::string left = submit("ok normal", 90, "another");
  ASSERT_TRUE(runner_->Cancel(left).ok());
  runner_->Start();
  AwaitEnd(normal);
  AwaitEnd(low);
  EXPECT_THAT(Noted(), ElementsAre("ok low", "ok high", "ok normal"));
  v1::SubmitRequest wrong = Model("ok");
  wrong.set_priority(101);
  EXPECT_TRUE(absl::IsInvalidArgument(runner_->Submit(wrong, "me", [] { return false; }).status()));
}

// Were the shared job charged to the first alone, b2 would come before c1, which was submitted later.
TEST_F(JobRunnerTest, OwnersWhoShareAJobPayEqualPartsOfItsTurn) {
  MakeNoting();
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  std::vector<std::string> ids;
  for (const auto& [owner, model] : std::vector<std::pair<std::string, std::string>>{
           {"a", "ok shared"}, {"b", "ok shared"}, {"b", "ok b2"}, {"c", "ok c1"}, {"c", "ok c2"}}) {
    const v1::SubmitResponse submitted = runner_->Submit(Model(model), owner, [] { return false; }).value();
    if (!submitted.joined()) ids.push_back(submitted.job_id());
  }
  runner_->Start();
  for (const std::string& id : ids) EXPECT_EQ(AwaitEnd(id).state, JobPhase::kSucceeded);
  EXPECT_THAT(Noted(), ElementsAre("ok shared", "ok c1", "ok b2", "ok c2"));
}

TEST_F(JobRunnerTest, AJobThatWaitsForAPlaceLongerThanItMayFails) {
  absl::Mutex mutex;
  bool go_on = false;
  Make(1, [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
              const std::string& path) {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&go_on));
    return FakeCompile(files, options, context, path);
  });
  Begin();
  const std::string runs = Submit(Model("ok runs"));
  Await(runs, [](const JobRow& job, const v1::JobEvent&) { return job.state == JobPhase::kRunning; });
  v1::SubmitRequest waits = Model("ok waits"), joined = Model("ok joined");
  waits.set_queue_timeout_ms(50);
  joined.set_queue_timeout_ms(50);
  const std::string patient = Submit(joined);
  joined.clear_queue_timeout_ms();
  Submit(joined);  // for ever, so that the job they share waits for ever
  const JobRow failed = AwaitEnd(Submit(waits));
  EXPECT_EQ(failed.state, JobPhase::kFailed);
  EXPECT_EQ(failed.error_code, static_cast<int>(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(state_.store().GetJob(patient)->state, JobPhase::kQueued);
  {
    absl::MutexLock lock(&mutex);
    go_on = true;
  }
  EXPECT_EQ(AwaitEnd(runs).state, JobPhase::kSucceeded);
  EXPECT_EQ(AwaitEnd(patient).state, JobPhase::kSucceeded);
}

TEST_F(JobRunnerTest, ARequestThatComesAgainIsTheSameSubmission) {
  std::atomic<int> runs{0};
  Make(1, [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
              const std::string& path) {
    ++runs;
    return FakeCompile(files, options, context, path);
  });
  Begin();
  v1::SubmitRequest request = Model("ok");
  request.set_request_id("r-1");
  const std::string id = Submit(request);
  EXPECT_EQ(Submit(request), id);
  EXPECT_EQ(AwaitEnd(id).state, JobPhase::kSucceeded);
  EXPECT_EQ(Submit(request), id) << "when it has ended, too";
  request.set_request_id("r-2");
  const auto from_store = runner_->Submit(request, "me", [] { return false; });
  EXPECT_TRUE(from_store->from_store());
  const auto again = runner_->Submit(request, "me", [] { return false; });
  EXPECT_EQ(again->job_id(), from_store->job_id());
  EXPECT_TRUE(again->from_store());
  const auto of_another = runner_->Submit(request, "another", [] { return false; });
  EXPECT_NE(of_another->job_id(), from_store->job_id()) << "ids are the callers' own";
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(state_.store().ListJobs(10, "me")->size(), 2u);
}

TEST_F(JobRunnerTest, WhoWaitsForAWorkerLearnsSoFromTheFirstEvent) {
  Make(1, FakeCompile);
  farm_.Start();
  ASSERT_TRUE(runner_->Restore().ok());
  v1::JobEvent first;
  first.ParseFromString(state_.store().JobEvents(Submit(Model("ok", "cpu")), 0, 1)->front().event);
  EXPECT_EQ(first.message(), "no worker for cpu; kinds attached: none");
  EXPECT_EQ(first.state(), v1::QUEUED);
}

TEST_F(JobRunnerTest, AnEarlyBundleIsTheUnfusedFormAndIsOfferedWhileTheJobGoesOn) {
  absl::Mutex mutex;
  bool go_on = false;
  std::vector<std::string> compiled;
  Make(1, [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
              const std::string& path) {
    absl::MutexLock lock(&mutex);
    compiled.push_back(absl::StrCat(options.planner, " ", options.tune));
    if (options.planner != "none") mutex.Await(absl::Condition(&go_on));
    return FakeCompile(files, options, context, path);
  });
  Begin();
  v1::SubmitRequest request = Model("ok");
  request.set_early_bundle(true);
  const std::string id = Submit(request);
  v1::BundleInfo offered;
  const JobRow running = Await(id, [&](const JobRow&, const v1::JobEvent& event) {
    if (event.has_early_bundle()) offered = event.early_bundle();
    return event.has_early_bundle();
  });
  EXPECT_EQ(running.state, JobPhase::kRunning);
  EXPECT_EQ(running.early_digest, offered.digest());
  {
    absl::MutexLock lock(&mutex);
    go_on = true;
  }
  const JobRow done = AwaitEnd(id);
  EXPECT_EQ(done.state, JobPhase::kSucceeded);
  EXPECT_NE(done.bundle_digest, done.early_digest);
  EXPECT_THAT(compiled, ElementsAre("none off", "dnnfusion quick"));

  // The early bundle has a name of its own: whoever asks for the unfused form gets it from the store.
  v1::SubmitRequest unfused = Model("ok");
  unfused.mutable_options()->set_planner("none");
  unfused.mutable_options()->set_tune("off");
  const auto named = runner_->Submit(unfused, "me", [] { return false; });
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_TRUE(named->from_store());
  EXPECT_EQ(named->key(), done.early_key);
  EXPECT_EQ(state_.store().GetJob(named->job_id())->bundle_digest, done.early_digest);
}

TEST_F(JobRunnerTest, AJobGoesOnWithoutAnEarlyBundleThatCannotBeMade) {
  Make(1,
       [&](const ModelFiles& files, const CompileOptions& options, const CompileContext& context,
           const std::string& path) -> absl::StatusOr<CompileAccount> {
         if (options.planner == "none") return ProcessEndedError("memory", "it grew");
         return FakeCompile(files, options, context, path);
       });
  Begin();
  v1::SubmitRequest request = Model("ok");
  request.set_early_bundle(true);
  const std::string id = Submit(request);
  const JobRow done = AwaitEnd(id);
  EXPECT_EQ(done.state, JobPhase::kSucceeded);
  EXPECT_EQ(done.attempts, 0) << "the job's own compilation did not die";
  EXPECT_EQ(done.early_digest, "");
  AwaitMessage(id, "no early bundle: it grew");
}

}  // namespace
}  // namespace fusion
