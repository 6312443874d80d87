// Workers that lie, hang and crash, among some that do not: a thousand measurements through the farm, on simulated
// threads and time, with the database of the service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/worker.pb.h"
#include "runtime/base/sha256.h"
#include "server/scheduler/accept_result.h"
#include "server/scheduler/farm.h"
#include "server/scheduler/farm_tasks.h"
#include "server/simulation/fibers.h"
#include "server/testing/temporary_state.h"

namespace fusion::simulation {
namespace {

constexpr char kBundle[] = "kernel of ";

uint64_t HashOf(const std::string& text) { return std::stoull(Sha256Hex(text).substr(0, 12), nullptr, 16); }
// A kernel takes 20 µs to 2 ms, and computes one number.
double TruthNs(const std::string& bundle) {
  return 20e3 * std::pow(100.0, static_cast<double>(HashOf(bundle) % 1000) / 1000);
}
double Output(const std::string& bundle) { return static_cast<double>(HashOf(bundle + "'s output") % 1000); }

class Bundler : public MeasurementBundler {
 public:
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) override {
    std::vector<std::string> bundles;
    for (const std::string& key : keys) bundles.push_back(kBundle + key);
    return bundles;
  }
};

// How a worker behaves from its `turns_at`-th task on; honestly before.
struct Manner {
  double pace = 1;
  double sentinel_pace = 1;
  double wrong = 0;      // added to what its kernels compute
  bool is_old = false;   // knows neither canaries nor sentinels
  bool replays = false;  // sends its last honest message again
  bool hangs = false;    // says nothing for a long time
  bool crashes = false;  // reports an error
  bool is_slow = false;  // says that it goes on, for ever
  int turns_at = 0;
};

class BadWorkersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(farm_.Restore().ok());
    farm_.Start();
  }
  static AttachedWorker Describe(const std::string& name, bool is_believed) {
    AttachedWorker worker;
    worker.id = "id of " + name, worker.name = name, worker.measure_kinds = {"cpu"};
    worker.device.name = "a simulated device";
    worker.fingerprint = worker.device.Fingerprint();
    if (!is_believed) worker.source = "token " + name;
    return worker;
  }
  FarmAnswer Call(FarmPoll poll, const std::string& name) {
    auto answer = std::make_shared<FarmAnswer>();
    auto ended = std::make_shared<bool>(false);
    poll.worker_id = "id of " + name;
    poll.gone = std::make_shared<std::atomic<bool>>(false);
    poll.reply = [answer, ended](const FarmAnswer& got) { *answer = got, *ended = true; };
    farm_.Poll(std::move(poll));
    fibers_.Block([&] { return *ended; }, absl::InfiniteFuture());
    return *answer;
  }
  v1::MeasureResult Measured(const std::string& bundle, double pace, const Manner& manner, bool with_outputs) {
    v1::MeasureResult result;
    const double speed = 0.95 + 0.01 * random_.Below(16);  // of the machine in this moment
    for (int i = 0; i < 9; ++i) {
      result.add_samples_ns(TruthNs(bundle) * pace * speed * (1 + 1e-6 * random_.Below(10000)));
    }
    if (with_outputs) result.add_outputs(Output(bundle) + manner.wrong);
    return result;
  }
  absl::StatusOr<std::string> ResultOf(const TaskRow& task, const Manner& manner) {
    const absl::StatusOr<std::string> bytes = state_.artifacts().Get(task.payload_digest);
    v1::MeasurePayload payload;
    if (!bytes.ok() || !payload.ParseFromString(*bytes)) return absl::UnavailableError("no payload");
    v1::MeasureResults results;
    const bool canaries = payload.canaries() && !manner.is_old;
    for (const v1::MeasureItem& item : payload.items()) {
      *results.add_results() = Measured(item.bundle(), manner.pace, manner, canaries);
    }
    if (!payload.sentinel().empty() && !manner.is_old) {
      *results.mutable_sentinel() = Measured(payload.sentinel(), manner.sentinel_pace, manner, canaries);
    }
    return results.SerializeAsString();
  }
  void Attach(const std::string& name, Manner manner, bool is_believed = false) {
    ++working_;
    fibers_.Add([this, name, manner, is_believed] {
      EXPECT_TRUE(farm_.Register(Describe(name, is_believed)).ok());
      Work(name, manner);
      --working_;
    });
  }
  void Work(const std::string& name, const Manner& later) {
    FarmPoll ask;
    ask.max_wait = absl::Seconds(4);
    std::optional<TaskRow> task;
    absl::StatusOr<std::string> last = absl::UnavailableError("nothing yet");
    for (int tasks = 0; !over_;) {
      if (!task.has_value()) {
        task = Call(ask, name).task;
        continue;
      }
      const Manner manner = tasks++ < later.turns_at ? Manner() : later;
      if (manner.hangs) {
        fibers_.Block([this] { return over_; }, fibers_.now() + absl::Seconds(45));
        task.reset();
        continue;
      }
      FarmPoll poll = ask;
      poll.task_id = task->id, poll.fence = task->fence, poll.stage = TaskStage::kRunning;
      if (manner.is_slow) {
        poll.max_wait = absl::ZeroDuration();
        for (bool goes_on = true; goes_on && !over_;) {
          fibers_.Block([this] { return over_; }, fibers_.now() + absl::Seconds(5));
          const std::optional<TaskRow> next = Call(poll, name).task;
          goes_on = next.has_value() && next->fence == task->fence;
        }
        task.reset();
        continue;
      }
      fibers_.Sleep(random_.Between(absl::Milliseconds(20), absl::Milliseconds(200)));
      if (!manner.replays || !last.ok()) last = ResultOf(*task, manner);
      poll.finished = true;
      poll.result = manner.crashes ? absl::InternalError("signal 11") : last;
      task = Call(poll, name).task;
    }
  }
  // Asks `count` questions, `at_once` at a time. Returns how many were measured. Each answer must be near the truth,
  // unless `may_err`.
  int Ask(int count, bool may_err = false, int at_once = 25) {
    int measured = 0;
    bool asked = false;
    fibers_.Add([&] {
      FarmJob job;
      job.farm = &farm_, job.store = &state_.store(), job.artifacts = &state_.artifacts();
      job.metrics = &metrics_, job.sources = &sources_;
      job.device = Describe("any", true);
      job.progress = [](const ProgressEvent&) {};
      FarmOracle oracle(job);
      for (int first = 0; first < count; first += at_once) {
        std::vector<LatencyQuestion> questions;
        for (int i = first; i < std::min(count, first + at_once); ++i) {
          const std::string name = absl::StrCat("question ", asked_++);
          LatencyQuestion question;
          question.key = Sha256Hex(name), question.description = name;
          question.typical_ns = question.model_latency_ns =
              TruthNs(kBundle + question.key) * (0.8 + 0.01 * random_.Below(40));
          if (i % 3 == 0) question.workload = Sha256Hex(absl::StrCat("workload ", asked_ / 24));
          keys_.push_back(question.key);
          questions.push_back(question);
        }
        Bundler bundler;
        const auto answers = oracle.Latency(questions, bundler);
        ASSERT_TRUE(answers.ok()) << answers.status();
        for (size_t i = 0; i < questions.size(); ++i) {
          if (!IsMeasured(answers->at(i).source)) continue;
          ++measured;
          const double ratio = answers->at(i).latency_ns / TruthNs(kBundle + questions[i].key);
          EXPECT_TRUE(may_err || (ratio > 0.9 && ratio < 1.2)) << questions[i].description << ": " << ratio;
        }
      }
      asked = true;
    });
    while (!asked && fibers_.Step()) {
    }
    EXPECT_TRUE(asked);
    return measured;
  }
  void Rest(absl::Duration duration) {
    bool rested = false;
    fibers_.Add([&] {
      fibers_.Sleep(duration);
      rested = true;
    });
    while (!rested) ASSERT_TRUE(fibers_.Step());
  }
  void TearDown() override {
    over_ = true;
    bool stopped = false;
    fibers_.Add([&] {
      fibers_.Block([this] { return working_ == 0; }, absl::InfiniteFuture());
      farm_.Stop();
      stopped = true;
    });
    while (!stopped) ASSERT_TRUE(fibers_.Step());
    while (fibers_.Step()) {
    }
  }
  std::map<std::string, std::string> Quarantined() {
    std::map<std::string, std::string> reasons;
    for (const DrainedWorkerRow& row : farm_.Drained()) {
      EXPECT_TRUE(row.quarantined);
      reasons[row.name] = row.reason;
    }
    return reasons;
  }
  // Counts answers that a plan would use now and that are wrong.
  int WrongInTheDatabase(int* known) {
    int wrong = 0;
    const auto latencies = state_.store().MedianLatencies(keys_).value();
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (!latencies[i].has_value()) continue;
      ++*known;
      const double ratio = *latencies[i] / TruthNs(kBundle + keys_[i]);
      wrong += ratio < 0.9 || ratio > 1.2;
    }
    return wrong;
  }
  // Rows that count of a source.
  int RowsOf(const std::string& source) {
    int rows = 0;
    EXPECT_TRUE(
        state_.store()
            .ScanMeasurements({"", "", "", 1 << 30},
                              [&](const MeasurementRow& row) { rows += row.source == source && !row.quarantined; })
            .ok());
    return rows;
  }

  SeededRandom random_{7};
  Fibers fibers_{&random_};
  FiberThreads threads_{&fibers_};
  testing::TemporaryState state_;
  Metrics metrics_;
  ProfileSources sources_;
  bool over_ = false;
  int working_ = 0, asked_ = 0;
  std::vector<std::string> keys_;
  Farm farm_{
      &state_.store(),
      &state_.artifacts(),
      &metrics_,
      [this](const TaskRow& task, const std::string& payload, const std::string& result, const AttachedWorker& worker) {
        return AcceptTaskResult(state_.artifacts(), task, payload, result, worker);
      },
      {},
      NoLog(),
      [this] { return fibers_.now(); },
      &threads_};
};

// No two of them lie in the same way, which nobody could tell from two that are honest.
const std::map<std::string, Manner>& Liars() {
  static const auto* liars = new std::map<std::string, Manner>{
      {"half", {.pace = 0.5, .sentinel_pace = 0.5}},
      {"twice", {.pace = 2, .sentinel_pace = 2}},
      {"four times but for the sentinel", {.pace = 4}},
      {"wrong numbers", {.wrong = 50}},
      {"replay", {.replays = true}},
      {"a quarter, old", {.pace = 0.25, .is_old = true}},
      {"hang", {.hangs = true}},
      {"crash", {.crashes = true}},
      {"slow", {.is_slow = true}},
  };
  return *liars;
}

TEST_F(BadWorkersTest, NoRowOfALiarCountsAndEachIsQuarantined) {
  for (const auto& [name, manner] : Liars()) Attach(name, manner);
  for (const char* name : {"honest", "honest too", "also honest"}) Attach(name, {});
  Attach("old", {.is_old = true});
  const int measured = Ask(1000);
  EXPECT_GE(measured, 950) << "the others were estimated";
  int known = 0;
  EXPECT_EQ(WrongInTheDatabase(&known), 0);
  EXPECT_GE(known, measured);
  const std::map<std::string, std::string> quarantined = Quarantined();
  for (const auto& [name, manner] : Liars()) {
    EXPECT_EQ(quarantined.count("token " + name), 1u) << name << ": " << RowsOf("token " + name);
    // The first message of the one that replays is honest, and confirmed.
    EXPECT_LE(RowsOf("token " + name), manner.replays ? 1 : 0) << name;
  }
  EXPECT_EQ(quarantined.size(), Liars().size()) << "nobody else is";
  EXPECT_GT(RowsOf("token honest"), 100);
  EXPECT_GT(RowsOf("token old"), 10) << "others measured the same";
  double counted = 0;
  for (const char* reason : {"sentinel", "canary", "disagreement", "replay", "failures"}) {
    counted += metrics_.Value(Metric::kQuarantines, {{"reason", reason}});
  }
  EXPECT_EQ(counted, static_cast<double>(Liars().size()));
  std::cout << measured << " of 1000 measured; quarantined:\n";
  for (const auto& [name, reason] : quarantined) std::cout << "  " << name << ": " << reason << "\n";
}

// Those that are honest until they are known are found by lot, and what they said since the last confirmed batch is
// out of use then.
TEST_F(BadWorkersTest, WhoBeginsToLieLaterLosesWhatNobodyConfirmed) {
  for (const char* name : {"honest", "honest too", "also honest"}) Attach(name, {});
  Attach("late", {.pace = 0.5, .turns_at = 30});
  Attach("late replay", {.replays = true, .turns_at = 30});
  (void)Ask(1000, /*may_err=*/true);
  EXPECT_THAT(Quarantined(),
              ::testing::UnorderedElementsAre(::testing::Key("token late"), ::testing::Key("token late replay")));
  int known = 0;
  EXPECT_EQ(WrongInTheDatabase(&known), 0);
  EXPECT_GE(known, 900);
  EXPECT_GT(RowsOf("token late"), 0) << "those from before";
  // An operator may think otherwise.
  ASSERT_TRUE(farm_.Release("late").ok());
  EXPECT_EQ(Quarantined().size(), 1u);
}

TEST_F(BadWorkersTest, OneThatIsBelievedNeedsNobodyAndSaysWhoLies) {
  Attach("local", {}, /*is_believed=*/true);
  for (const char* name : {"half", "four times but for the sentinel", "wrong numbers"}) Attach(name, Liars().at(name));
  EXPECT_GE(Ask(200), 190);
  EXPECT_EQ(Quarantined().size(), 3u);
  for (const char* name : {"half", "four times but for the sentinel", "wrong numbers"}) {
    EXPECT_EQ(RowsOf(absl::StrCat("token ", name)), 0) << name;
  }
  EXPECT_GE(RowsOf(""), 190);
}

TEST_F(BadWorkersTest, ALonelyWorkerIsASingleSourceAndAnOperatorCanTakeItsRowsBack) {
  Attach("alone", {});
  EXPECT_EQ(Ask(60), 60);
  int single = 0;
  ASSERT_TRUE(
      state_.store()
          .ScanMeasurements({"", "", "", 1 << 30},
                            [&](const MeasurementRow& row) { single += row.standing == Standing::kSingleSource; })
          .ok());
  EXPECT_EQ(single, 60);
  EXPECT_TRUE(Quarantined().empty());
  bool done = false;
  fibers_.Add([&] {
    EXPECT_TRUE(farm_.Quarantine({"alone", "its fan is broken", "me", 5}).ok());
    done = true;
  });
  while (!done) ASSERT_TRUE(fibers_.Step());
  int known = 0;
  WrongInTheDatabase(&known);
  EXPECT_EQ(known, 0);
  EXPECT_EQ(farm_.Drain({"token alone", "", "me", 6}).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(farm_.Release("token alone").ok());
  WrongInTheDatabase(&known);
  EXPECT_EQ(known, 60);
}

// The database knows what is known of sources.
TEST_F(BadWorkersTest, ARestartMakesNoSourceNew) {
  for (const char* name : {"honest", "honest too", "also honest"}) Attach(name, {});
  Attach("late", {.wrong = 50, .turns_at = 40});
  Attach("liar", {.pace = 0.5});
  (void)Ask(100, /*may_err=*/true);
  Rest(absl::Seconds(1));  // what the last answers told is stored
  const auto words = [](const Farm& farm) {
    std::map<std::string, std::string> trust;
    for (const Farm::WorkerStatusRow& row : farm.WorkerStatuses()) trust[row.worker.name] = row.trust;
    return trust;
  };
  const std::map<std::string, std::string> known = words(farm_);
  EXPECT_THAT(known.at("honest"), ::testing::HasSubstr("confirmed by others"));
  EXPECT_EQ(known.at("liar"), "new") << "its quarantine is known";
  Farm later(
      &state_.store(), &state_.artifacts(), &metrics_, nullptr, {}, NoLog(), [this] { return fibers_.now(); },
      &threads_);
  ASSERT_TRUE(later.Restore().ok());
  for (const auto& [name, trust] : known) ASSERT_TRUE(later.Register(Describe(name, false)).ok());
  EXPECT_EQ(words(later), known);
}

// Rows of another server, of questions that are asked next. `pace`: of its machine.
MeasurementRow Imported(const LatencyQuestion& question, const std::string& source, double pace, int number) {
  MeasurementRow row;
  row.question_key = question.key, row.description = question.description, row.samples = 9;
  row.min_ns = row.median_ns = row.p90_ns = TruthNs(kBundle + question.key) * pace;
  row.samples_ns = {row.median_ns}, row.time_ms = number, row.worker = "of another server";
  row.origin = "another database", row.task = std::to_string(number), row.fence = number + 1;
  row.source = "imported/" + source, row.standing = Standing::kImported;
  return row;
}

TEST_F(BadWorkersTest, ImportedRowsAreMeasuredAgainUntilTheirSourceIsKnown) {
  std::vector<MeasurementRow> rows;
  for (int i = 0; i < 60; ++i) {
    LatencyQuestion question;
    question.description = absl::StrCat("question ", i), question.key = Sha256Hex(question.description);
    rows.push_back(Imported(question, i % 2 == 0 ? "honest" : "liar", i % 2 == 0 ? 1.05 : 0.4, i));
  }
  ASSERT_EQ(state_.store().MergeMeasurements(rows).value(), 60);
  ASSERT_TRUE(farm_.KnowImports().ok());
  EXPECT_EQ(farm_.DoubtedImports(), (std::set<std::string>{"imported/honest", "imported/liar"}));
  // Without a worker of the device they are used as they are.
  EXPECT_EQ(Ask(60, /*may_err=*/true), 60);
  EXPECT_EQ(sources_.database, 60);
  EXPECT_EQ(farm_.DoubtedImports().size(), 2u);
  Attach("local", {}, /*is_believed=*/true);
  asked_ = 0;
  for (int time = 0; time < Judge::kStrikes; ++time) {
    EXPECT_TRUE(Quarantined().empty());
    EXPECT_EQ(Ask(20), 20) << "each answer is near the truth";
    Rest(Farm::kBetweenDifferences);
  }
  EXPECT_TRUE(farm_.DoubtedImports().empty());
  EXPECT_THAT(Quarantined(), ::testing::ElementsAre(::testing::Pair(
                                 "imported/liar", ::testing::HasSubstr("of what a worker here measures"))));
  EXPECT_EQ(RowsOf("imported/liar"), 0);
  EXPECT_EQ(RowsOf("imported/honest"), 30);
  EXPECT_EQ(RowsOf(""), 30 + Judge::kConfirmedFirst) << "a sample of the honest one's, and all of the liar's";
  EXPECT_EQ(metrics_.Value(Metric::kQuarantines, {{"reason", "import"}}), 1);
  // It stays so at the next start.
  Farm later(
      &state_.store(), &state_.artifacts(), &metrics_, nullptr, {}, NoLog(), [this] { return fibers_.now(); },
      &threads_);
  ASSERT_TRUE(later.Restore().ok());
  EXPECT_TRUE(later.DoubtedImports().empty());
}

// Those that would decide most are looked at first.
TEST_F(BadWorkersTest, TwoTooFastRowsOfAnImportAreFoundAndTheOthersUsed) {
  std::vector<MeasurementRow> rows;
  for (int i = 0; i < 40; ++i) {
    LatencyQuestion question;
    question.description = absl::StrCat("question ", i), question.key = Sha256Hex(question.description);
    rows.push_back(Imported(question, "hasty", i == 17 || i == 28 ? 0.4 : 1, i));
  }
  ASSERT_TRUE(state_.store().MergeMeasurements(rows).ok());
  ASSERT_TRUE(farm_.KnowImports().ok());
  Attach("local", {}, /*is_believed=*/true);
  EXPECT_EQ(Ask(40, /*may_err=*/false, /*at_once=*/40), 40);
  EXPECT_EQ(RowsOf(""), 2 + Judge::kConfirmedFirst);
  EXPECT_TRUE(farm_.DoubtedImports().empty());
  EXPECT_TRUE(Quarantined().empty());
}

// While a machine is busy, right rows look too fast.
TEST_F(BadWorkersTest, AMachineThatIsBusyForAWhileQuarantinesNoImport) {
  std::vector<MeasurementRow> rows;
  for (int i = 0; i < 60; ++i) {
    LatencyQuestion question;
    question.description = absl::StrCat("question ", i), question.key = Sha256Hex(question.description);
    rows.push_back(Imported(question, "honest", i < 40 ? 0.5 : 1, i));
  }
  ASSERT_TRUE(state_.store().MergeMeasurements(rows).ok());
  ASSERT_TRUE(farm_.KnowImports().ok());
  Attach("local", {}, /*is_believed=*/true);
  EXPECT_EQ(Ask(40, /*may_err=*/false, /*at_once=*/20), 40) << "its own measurements count";
  EXPECT_EQ(farm_.DoubtedImports().size(), 1u);
  EXPECT_EQ(Ask(20), 20);
  EXPECT_TRUE(farm_.DoubtedImports().empty());
  EXPECT_TRUE(Quarantined().empty());
}

// Nobody knows which of two is right that contradict each other.
TEST_F(BadWorkersTest, AWorkerThatIsAloneAndNotBelievedQuarantinesNoImport) {
  std::vector<MeasurementRow> rows;
  for (int i = 0; i < 60; ++i) {
    LatencyQuestion question;
    question.description = absl::StrCat("question ", i), question.key = Sha256Hex(question.description);
    rows.push_back(Imported(question, "honest", 1, i));
  }
  ASSERT_TRUE(state_.store().MergeMeasurements(rows).ok());
  ASSERT_TRUE(farm_.KnowImports().ok());
  Attach("liar", {.pace = 0.5, .sentinel_pace = 0.5});
  for (int time = 0; time < Judge::kStrikes; ++time) {
    EXPECT_EQ(Ask(20, /*may_err=*/true), 20);
    Rest(Farm::kBetweenDifferences);
  }
  EXPECT_EQ(farm_.DoubtedImports().size(), 1u);
  EXPECT_TRUE(Quarantined().empty());
}

TEST_F(BadWorkersTest, AnImportForWhichSomebodyVouchesIsNotMeasuredAgain) {
  std::vector<MeasurementRow> rows;
  for (int i = 0; i < 20; ++i) {
    LatencyQuestion question;
    question.description = absl::StrCat("question ", i), question.key = Sha256Hex(question.description);
    rows.push_back(Imported(question, "other", 1, i));
  }
  ASSERT_TRUE(state_.store().MergeMeasurements(rows).ok());
  ASSERT_TRUE(farm_.KnowImports({"imported/other", "imported/nobody"}, "admin").ok());
  Attach("local", {}, /*is_believed=*/true);
  EXPECT_EQ(Ask(20), 20);
  EXPECT_EQ(sources_.database, 20);
  EXPECT_EQ(RowsOf(""), 0);
  Rest(absl::Seconds(1));
  Farm later(
      &state_.store(), &state_.artifacts(), &metrics_, nullptr, {}, NoLog(), [this] { return fibers_.now(); },
      &threads_);
  ASSERT_TRUE(later.Restore().ok());
  EXPECT_TRUE(later.DoubtedImports().empty());
  EXPECT_EQ(later.ConfirmedInARow("imported/other"), Judge::kConfirmedFirst);
}

// A worker that measures nothing does not keep a plan waiting: the imported rows count, as without one.
TEST_F(BadWorkersTest, AnImportIsUsedWhereNobodyCanMeasureItAgain) {
  std::vector<MeasurementRow> rows;
  for (int i = 0; i < 10; ++i) {
    LatencyQuestion question;
    question.description = absl::StrCat("question ", i), question.key = Sha256Hex(question.description);
    rows.push_back(Imported(question, "other", 1, i));
  }
  ASSERT_TRUE(state_.store().MergeMeasurements(rows).ok());
  ASSERT_TRUE(farm_.KnowImports().ok());
  Attach("local", {.crashes = true}, /*is_believed=*/true);
  EXPECT_EQ(Ask(10), 10);
  EXPECT_EQ(sources_.database, 10);
}

TEST_F(BadWorkersTest, TwoThatContradictEachOtherMeasureNothing) {
  Attach("honest", {});
  Attach("half", Liars().at("half"));
  EXPECT_EQ(Ask(20), 0);
  EXPECT_TRUE(Quarantined().empty()) << "nobody knows which of the two lies";
  // An operator does.
  bool done = false;
  fibers_.Add([&] {
    EXPECT_TRUE(farm_.Quarantine({"half", "", "me", 5}).ok());
    done = true;
  });
  while (!done) ASSERT_TRUE(fibers_.Step());
  EXPECT_EQ(Ask(20), 20);
}

}  // namespace
}  // namespace fusion::simulation
