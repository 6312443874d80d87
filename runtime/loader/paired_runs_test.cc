#include "runtime/loader/paired_runs.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/thread_pool.h"
#include "runtime/loader/testing/tiny_bundle.h"

namespace fusion {
namespace {

int64_t ThreadsOfThisProcess() {
  int64_t threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    (void)task;
    ++threads;
  }
  return threads;
}

class PairedRunsTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = testing::TempDir() + "/paired_runs_" + std::to_string(getpid()) + ".fusion";
    const auto built = BuildSharedObject(kTinyKernelSource);
    ASSERT_TRUE(built.ok()) << built.status();
    ASSERT_TRUE(WriteTinyBundle(path, *built, TinyManifest()).ok());
    auto bundle = Bundle::Open(path);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    bundle_ = *bundle;
    std::filesystem::remove(path);
  }
  absl::StatusOr<PreparedRun> Prepare(int threads, std::shared_ptr<ThreadPool> pool = nullptr) {
    return PreparedRun::Create(bundle_, RandomInputs(bundle_->manifest(), /*seed=*/1), threads, std::move(pool));
  }
  absl::StatusOr<std::vector<PreparedRun>> PrepareThree() {
    std::vector<PreparedRun> runs;
    for (int i = 0; i < 3; ++i) {
      ASSIGN_OR_RETURN(PreparedRun run, Prepare(1));
      runs.push_back(std::move(run));
    }
    return runs;
  }
  std::shared_ptr<const Bundle> bundle_;
};

// Two pools would both spin between their runs, and the ratio would be that of the pools.
TEST_F(PairedRunsTest, BothRunOnTheThreadsOfOnePool) {
  constexpr int kThreads = 3;
  const int64_t before = ThreadsOfThisProcess();
  auto first = Prepare(kThreads), second = Prepare(kThreads);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  PairedLimits limits;
  limits.runs = 2;
  auto times = RunPaired(*first, *second, limits);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(ThreadsOfThisProcess(), before + kThreads - 1);
}

TEST_F(PairedRunsTest, RoundsAlternateUntilThereAreEnoughRuns) {
  auto first = Prepare(1), second = Prepare(1);
  ASSERT_TRUE(first.ok() && second.ok());
  PairedLimits limits;
  limits.runs = 7;
  auto times = RunPaired(*first, *second, limits);
  ASSERT_TRUE(times.ok()) << times.status();
  for (const std::vector<double>& latencies : times->latencies_ns) EXPECT_GE(latencies.size(), 7u);
  ASSERT_FALSE(times->ratios.empty());
  for (const double ratio : times->ratios) EXPECT_GT(ratio, 0);
}

TEST_F(PairedRunsTest, TheLeastRoundsAreTakenWhateverTheTime) {
  auto first = Prepare(1), second = Prepare(1);
  ASSERT_TRUE(first.ok() && second.ok());
  PairedLimits limits;
  limits.time = absl::ZeroDuration();
  limits.least_rounds = 3;
  auto times = RunPaired(*first, *second, limits);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->ratios.size(), 3u);
  limits.time = absl::InfiniteDuration();
  limits.settled = 1e9;
  times = RunPaired(*first, *second, limits);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->ratios.size(), kSettledRounds) << "every spread is within a factor of a billion";
}

TEST_F(PairedRunsTest, SeveralRunInTurnsAndEachIsComparedWithTheFirst) {
  auto runs = PrepareThree();
  ASSERT_TRUE(runs.ok()) << runs.status();
  PairedLimits limits;
  limits.time = absl::InfiniteDuration();
  limits.certain = 1e9;
  const auto times = RunInTurns(absl::MakeSpan(*runs), limits);
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->latencies_ns.size(), 3u);
  ASSERT_EQ(times->ratios.size(), 2u);
  for (const auto& ratios : times->ratios) {
    EXPECT_EQ(ratios.size(), kSettledRounds) << "every interval is within a factor of a billion";
  }
}

TEST(FindHopelessTest, ModelsThatAreCertainlySlowerThanAnotherAre) {
  const auto around = [](double ratio) {
    return std::vector<double>{ratio - 0.01, ratio + 0.01, ratio, ratio, ratio - 0.01, ratio + 0.01};
  };
  EXPECT_EQ(FindHopeless({around(1.05), around(1.02), around(0.9)}, 0.02), std::vector<bool>({true, true, false}));
  EXPECT_EQ(FindHopeless({around(1.05), around(1.02)}, 0.02), std::vector<bool>({true, false})) << "the first has 1";
  EXPECT_EQ(FindHopeless({around(1.05), around(1.02)}, 0.05), std::vector<bool>({false, false}));
  const std::vector<double> noise = {0.9, 1.5, 1.5, 1.5, 1.5, 1.5};
  EXPECT_EQ(FindHopeless({noise}, 0.02), std::vector<bool>({false}));
  EXPECT_EQ(FindHopeless({{1.5, 1.5, 1.5, 1.5, 1.5}}, 0.02), std::vector<bool>({false})) << "too few rounds";
}

TEST_F(PairedRunsTest, ModelsAreLeftOutAfterTheirLeastRounds) {
  auto runs = PrepareThree();
  ASSERT_TRUE(runs.ok()) << runs.status();
  PairedLimits limits;
  limits.time = absl::ZeroDuration();
  limits.least_rounds = 12;
  limits.hopeless = 1e9;
  const auto times = RunInTurns(absl::MakeSpan(*runs), limits);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->rounds, 12);
  for (const auto& ratios : times->ratios) EXPECT_EQ(ratios.size(), 12u) << "none is a billion times as slow";
  limits.hopeless = 1e-300;
  const auto strict = RunInTurns(absl::MakeSpan(*runs), limits);
  ASSERT_TRUE(strict.ok()) << strict.status();
  for (const auto& ratios : strict->ratios) EXPECT_GE(ratios.size(), kHopelessRounds);
}

TEST_F(PairedRunsTest, AProgramIsSelectedByItsNumber) {
  const std::string path = testing::TempDir() + "/paired_programs_" + std::to_string(getpid()) + ".fusion";
  const auto built = BuildSharedObject(kTinyKernelSource);
  ASSERT_TRUE(built.ok()) << built.status();
  Manifest manifest = TinySpecialisedManifest();
  manifest.others[0] = manifest;  // two plans of one model: the same shapes
  manifest.others[0].launches[1].label = "another plan";
  ASSERT_TRUE(WriteTinyBundle(path, *built, manifest).ok());
  auto bundle = Bundle::Open(path);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  std::filesystem::remove(path);
  const std::vector<Tensor> inputs = RandomInputs((*bundle)->manifest(), /*seed=*/1);
  auto second = PreparedRun::CreateProgram(*bundle, 1, inputs, 1);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->program().launches[1].label, "another plan");
  EXPECT_TRUE(second->Run().ok());
  EXPECT_EQ(PreparedRun::CreateProgram(*bundle, 2, inputs, 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PairedRunsTest, RefusesMoreThreadsThanThePoolHas) {
  auto pool = ThreadPool::Create(2);
  ASSERT_TRUE(pool.ok());
  EXPECT_TRUE(Prepare(2, *pool).ok());
  EXPECT_EQ(Prepare(3, *pool).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fusion
