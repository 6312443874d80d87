#include "server/simulation/simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/simulation/random.h"
#include "server/testing/temporary_state.h"

namespace fusion::simulation {
namespace {

// FUSION_SIMULATION_FIRST and FUSION_SIMULATION_COUNT choose other seeds; each that fails is named.
int64_t Number(const char* text, int64_t otherwise) {
  int64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

class SimulationTest : public ::testing::Test {
 protected:
  // On a file system in memory where there is one: the simulation is about order, not about disks.
  static std::string Folder() {
    const std::string base = std::filesystem::exists("/dev/shm") ? "/dev/shm/" : ::testing::TempDir();
    return absl::StrCat(base, "fusion-simulation-", getpid());
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(Folder(), ignored);
  }
  Outcome Run(uint64_t seed, Store* store = nullptr) {
    Environment environment{&rest_.store(), store, &metrics_, Folder()};
    if (std::getenv("FUSION_SIMULATION_LOG") != nullptr) environment.log = *MakeLog({"simulation", "text", "debug"});
    return Simulate(seed, environment);
  }

  testing::TemporaryState rest_;
  Metrics metrics_;
};

TEST_F(SimulationTest, NothingIsLostDoubledOrStarvedUnderAnySeed) {
  const int64_t first = Number(std::getenv("FUSION_SIMULATION_FIRST"), 0);
  const int64_t count = Number(std::getenv("FUSION_SIMULATION_COUNT"), 10000);
  Outcome all;
  int failures = 0;
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t processor_begin = std::clock();
  for (int64_t seed = first; seed < first + count && failures < 10; ++seed) {
    const Outcome one = Run(Mixed(static_cast<uint64_t>(seed)));
    if (!one.violations.empty()) {
      ++failures;
      ADD_FAILURE() << "seed " << seed << ": " << absl::StrJoin(one.violations, "\n  ");
    }
    all.steps += one.steps, all.submissions += one.submissions, all.succeeded += one.succeeded;
    all.failed += one.failed, all.cancelled += one.cancelled, all.starts += one.starts, all.deaths += one.deaths;
    all.leases += one.leases, all.measurements += one.measurements, all.simulated_s += one.simulated_s;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double processor_s = static_cast<double>(std::clock() - processor_begin) / CLOCKS_PER_SEC;
  std::cout << count << " seeds in " << seconds << " s, " << processor_s << " s of processor time: " << all.submissions
            << " submissions (" << all.succeeded << " succeeded, " << all.failed << " failed, " << all.cancelled
            << " cancelled), " << all.deaths << " deaths and " << all.starts << " orderly ends of the server, "
            << all.leases << " leases, " << all.measurements << " measurements, " << all.steps << " steps, "
            << all.simulated_s / 3600 << " simulated hours\n";
  // A simulation in which nothing happens finds nothing.
  EXPECT_GT(all.succeeded, count);
  EXPECT_GT(all.leases, count);
  if (count >= 1000) {
    EXPECT_GT(all.deaths, count / 4);
    EXPECT_GT(all.failed, 0);
    EXPECT_GT(all.cancelled, 0);
  }
}

// Each of these once found a bug, which is mended.
TEST_F(SimulationTest, SeedsThatFoundBugs) {
  for (const auto& [seed, bug] : std::vector<std::pair<uint64_t, const char*>>{
           {50, "a job whose start could not be stored was forgotten until the next start of the server"},
           {910, "submissions that arrived together all passed the cap of their owner"},
           {2167455, "a server that stopped on a full disk lost a round, and stored the next one, which stands on it"},
       }) {
    EXPECT_EQ(absl::StrJoin(Run(seed).violations, "\n"), "") << "seed " << seed << ": " << bug;
  }
}

TEST_F(SimulationTest, ASeedDecidesEverything) {
  for (uint64_t seed = 0; seed < 50; ++seed) EXPECT_EQ(Run(seed).digest, Run(seed).digest) << seed;
  EXPECT_NE(Run(1).digest, Run(2).digest);
}

TEST_F(SimulationTest, SqliteGivesTheSameHistoryAsTheStoreInMemory) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Outcome memory = Run(seed);
    testing::TemporaryState disk;
    const Outcome sqlite = Run(seed, &disk.store());
    EXPECT_EQ(memory.digest, sqlite.digest) << "seed " << seed;
    EXPECT_TRUE(sqlite.violations.empty()) << "seed " << seed << ": " << absl::StrJoin(sqlite.violations, "\n  ");
  }
}

}  // namespace
}  // namespace fusion::simulation
