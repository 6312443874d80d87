#include "db/sqlite/migrator.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace fusion {
namespace {

class MigratorTest : public testing::Test {
 protected:
  MigratorTest() : path_(testing::TempDir() + "migrate.db") {
    for (const char* suffix : {"", "-wal", "-shm", ".v1.bak"}) std::filesystem::remove(path_ + suffix);
  }
  absl::Status Apply(const std::vector<Migration>& migrations) {
    auto connection = Connection::Open(path_, Connection::Mode::kReadWrite);
    if (!connection.ok()) return connection.status();
    return Migrate(**connection, path_, migrations).status();
  }
  int64_t Query(const std::string& sql) {
    return (*Connection::Open(path_, Connection::Mode::kReadWrite))->QueryInt(sql).value();
  }
  const std::string path_;
  const Migration first_{"0001_a", "CREATE TABLE a (v INTEGER) STRICT; INSERT INTO a VALUES (7)"};
  const Migration second_{"0002_b", "ALTER TABLE a ADD COLUMN w INTEGER NOT NULL DEFAULT 3"};
};

TEST_F(MigratorTest, AppliesEachOnceAndBacksUp) {
  ASSERT_TRUE(Apply({first_}).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + ".v1.bak"));
  ASSERT_TRUE(Apply({first_, second_}).ok());
  EXPECT_EQ(Query("PRAGMA user_version"), 2);
  EXPECT_EQ(Query("SELECT v * 10 + w FROM a"), 73);
  EXPECT_TRUE(std::filesystem::exists(path_ + ".v1.bak"));
  EXPECT_TRUE(Apply({first_, second_}).ok());
}

TEST_F(MigratorTest, AStepWithASmallerNumberThatComesLaterIsStillApplied) {
  const Migration fifth{"0005_e", "CREATE TABLE e (v INTEGER) STRICT"};
  ASSERT_TRUE(Apply({first_, fifth}).ok());
  EXPECT_EQ(Query("PRAGMA user_version"), 5);
  ASSERT_TRUE(Apply({first_, second_, fifth}).ok());
  EXPECT_EQ(Query("SELECT w FROM a"), 3);
  EXPECT_EQ(Query("PRAGMA user_version"), 5);
  EXPECT_EQ(Query("SELECT COUNT(*) FROM applied_migrations"), 3);
  const absl::Status older = Apply({first_, fifth});
  EXPECT_EQ(older.code(), absl::StatusCode::kFailedPrecondition) << "it has a step that this program does not know";
}

TEST_F(MigratorTest, ADatabaseFromBeforeTheNumbersWereWrittenDownHasAllUpToItsVersion) {
  ASSERT_TRUE(Apply({first_, second_}).ok());
  {
    const auto connection = Connection::Open(path_, Connection::Mode::kReadWrite);
    ASSERT_TRUE((*connection)->ExecScript("DROP TABLE applied_migrations").ok());
  }
  ASSERT_TRUE(Apply({first_, second_, {"0004_d", "CREATE TABLE d (v INTEGER) STRICT"}}).ok());
  EXPECT_EQ(Query("SELECT COUNT(*) FROM applied_migrations"), 3);
}

TEST_F(MigratorTest, RefusesNewerFile) {
  ASSERT_TRUE(Apply({first_, second_}).ok());
  absl::Status status = Apply({first_});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

TEST_F(MigratorTest, FailedMigrationLeavesTheOldSchema) {
  ASSERT_TRUE(Apply({first_}).ok());
  EXPECT_FALSE(Apply({first_, {"0002_bad", "CREATE TABLE b (v INTEGER) STRICT; INSERT INTO nowhere VALUES (1)"}}).ok());
  EXPECT_EQ(Query("PRAGMA user_version"), 1);
  EXPECT_EQ(Query("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'b'"), 0);
  EXPECT_TRUE(Apply({first_, second_}).ok());
}

TEST_F(MigratorTest, TheEmbeddedStepsHaveRisingNumbers) {
  int last = 0;
  for (const Migration& migration : EmbeddedMigrations()) {
    const int number = std::stoi(migration.name);
    EXPECT_GT(number, last) << migration.name;
    last = number;
  }
}

TEST_F(MigratorTest, DamagedFileIsDataLoss) {
  std::ofstream(path_) << std::string(8192, 'x');
  EXPECT_EQ(Apply({first_}).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace fusion
