// Questions to a large profile: 200,000 rows here, or the database that $FUSION_PROFILE_DATABASE names, as
// tests/faults/reliability.py makes it. The times are printed; asserted is what does not depend on the machine's load.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "db/sqlite/connection.h"
#include "db/stores/store.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

constexpr int64_t kRows = 200000, kRowsOfQuestion = 3;
constexpr int kKeys = 1000, kBatches = 50;

// Adds rows as long as real ones, three for each question, with medians from 1000 ns on.
void Fill(const std::string& path) {
  const auto connection = Connection::Open(path, Connection::Mode::kReadWrite).value();
  ASSERT_TRUE(
      connection
          ->Run("WITH RECURSIVE counter(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counter WHERE n < ?1 - 1) "
                "INSERT INTO measurements (question_key, measurement_key, device_fingerprint, description, "
                "samples, min_ns, median_ns, p90_ns, samples_ns, worker, toolchain, time_ms, model_ns, workload, "
                "structure, choices, origin, task, fence, item) SELECT printf('%032x%032x', (n / ?2 * "
                "2654435761) % 4294967296, n / ?2), hex(randomblob(32)), 'devfingerprint', hex(randomblob(40)), "
                "20, 900.0, 1000.0 + n % 100, 1100.0, randomblob(512), 'worker', 'clang 14', n, 1000.0, "
                "hex(randomblob(32)), hex(randomblob(32)), hex(randomblob(40)), hex(randomblob(16)), 't' || n, "
                "n, 0 FROM counter",
                {kRows, kRowsOfQuestion})
          .ok());
}

TEST(ProfileScale, AThousandQuestionsAreAnsweredByAnIndex) {
  const char* given = std::getenv("FUSION_PROFILE_DATABASE");
  const std::string path = given != nullptr ? given : testing::TempDir() + "profile_scale.db";
  if (given == nullptr) {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
    ASSERT_TRUE(OpenSqliteStore(path).ok());
    Fill(path);
  }
  std::string of_batch;
  SqliteStoreOptions options;
  options.on_statement = [&](const std::string& sql) {
    if (sql.find("measurements") != std::string::npos) of_batch = sql;
  };
  const auto store = OpenSqliteStore(path, options).value();
  const auto connection = Connection::Open(path, Connection::Mode::kReadOnly).value();
  // Keys from all over the table, and some that nobody has measured.
  std::vector<std::string> keys;
  const int64_t last = connection->QueryInt("SELECT MAX(id) FROM measurements").value();
  for (int i = 0; i < kKeys; ++i) {
    if (i % 10 == 0) {
      keys.push_back("unknown " + std::to_string(i));
      continue;
    }
    ASSERT_TRUE(connection
                    ->Query("SELECT question_key FROM measurements WHERE id >= ? AND task <> '' ORDER BY id LIMIT 1",
                            {1 + last / kKeys * i}, [&](const SqlRow& row) { keys.push_back(row.Text(0)); })
                    .ok());
  }
  ASSERT_EQ(keys.size(), static_cast<size_t>(kKeys));
  std::vector<double> ms;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    const auto latencies = store->MedianLatencies(keys);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    ASSERT_TRUE(latencies.ok()) << latencies.status();
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ((*latencies)[i].has_value(), i % 10 != 0) << keys[i];
  }
  std::string plan;
  ASSERT_TRUE(
      connection->Query("EXPLAIN QUERY PLAN " + of_batch, {}, [&](const SqlRow& row) { plan += row.Text(3) + "\n"; })
          .ok());
  EXPECT_NE(plan.find("COVERING INDEX"), std::string::npos) << of_batch << "\n" << plan;
  std::sort(ms.begin(), ms.end());
  std::printf("{\"batches\": %d, \"batch_p50_ms\": %.2f, \"batch_max_ms\": %.2f}\n", kBatches, ms[kBatches / 2],
              ms.back());
}

}  // namespace
}  // namespace fusion
