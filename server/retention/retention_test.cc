#include "server/retention/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "db/stores/testing/add_rows.h"
#include "proto/compile.pb.h"
#include "runtime/base/sha256.h"
#include "server/testing/temporary_state.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

bool GoOn(int64_t, int64_t) { return true; }

class RetentionTest : public ::testing::Test {
 protected:
  std::string Put(const std::string& bytes) { return state_.artifacts().Put(bytes)->digest; }
  bool IsThere(const std::string& digest) { return state_.artifacts().SizeBytes(digest).ok(); }
  // A job that ended `age` ago, with a model of one chunk, a bundle and a result.
  void AddJob(const std::string& id, absl::Duration age, const std::string& chunk, const std::string& bundle) {
    v1::SubmitRequest request;
    request.add_files()->add_chunk_digests(chunk);
    JobRow job;
    job.id = id, job.key = Sha256Hex(id), job.model_name = "m";
    job.request = request.SerializeAsString();
    ASSERT_TRUE(state_.store().InsertJob(job, "event").ok());
    job.state = JobPhase::kSucceeded;
    job.finished_ms = absl::ToUnixMillis(absl::Now() - age);
    job.bundle_digest = bundle;
    ASSERT_TRUE(state_.store().FinishJob(job, "event", ResultRow{job.key, bundle, 3, "account", job.finished_ms}).ok());
  }
  // Rows and files, which must name the same blobs.
  int64_t LiveFiles() {
    int64_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(state_.folder() + "/blobs")) {
      if (entry.is_regular_file()) ++files;
    }
    EXPECT_EQ(files, static_cast<int64_t>(state_.store().Blobs("", 1 << 20)->size()));
    return files;
  }

  // So that a sweep without grace finds blobs old enough.
  Retention::Collected Collect(absl::Duration keep) {
    const auto collected = retention_.Collect({keep, 0, keep, -absl::Seconds(1)});
    EXPECT_TRUE(collected.ok()) << collected.status();
    return collected.value();
  }

  testing::TemporaryState state_;
  Retention retention_{&state_.store(), &state_.artifacts(), {}, NoLog()};
};

TEST_F(RetentionTest, OldJobsGoWithWhatTheyAloneName) {
  const std::string model = Put("model"), shared = Put("shared"), young = Put("young bundle"), old = Put("old bundle");
  AddJob("old", absl::Hours(50), shared, old);
  AddJob("old, another model", absl::Hours(50), model, old);
  AddJob("young", absl::Hours(1), shared, young);
  const Retention::Collected collected = Collect(absl::Hours(24));
  EXPECT_EQ(collected.rows.jobs, 2);
  EXPECT_EQ(collected.rows.results, 2);
  EXPECT_FALSE(IsThere(model) || IsThere(old));
  EXPECT_TRUE(IsThere(shared) && IsThere(young));
  EXPECT_EQ(state_.store().GetJob("old").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(state_.store().JobEvents("old", 0, 10)->empty());
  EXPECT_TRUE(state_.store().FindResult(Sha256Hex("young"))->has_value());
  EXPECT_EQ(Collect(absl::InfiniteDuration()).rows.jobs, 0) << "for ever";
  EXPECT_EQ(LiveFiles(), 2);
}

TEST_F(RetentionTest, AnInstantAnswerStaysWhileAJobOfItsKeyDoes) {
  const std::string chunk = Put("chunk"), bundle = Put("bundle");
  AddJob("first", absl::Hours(50), chunk, bundle);
  JobRow again;  // answered from the store, much later
  again.id = "again", again.key = Sha256Hex("first"), again.state = JobPhase::kSucceeded;
  again.finished_ms = absl::ToUnixMillis(absl::Now()), again.bundle_digest = bundle;
  ASSERT_TRUE(state_.store().InsertJob(again, "event").ok());
  EXPECT_EQ(Collect(absl::Hours(24)).rows.results, 0);
  EXPECT_TRUE(state_.store().FindResult(again.key)->has_value());
  EXPECT_TRUE(IsThere(bundle));
}

TEST_F(RetentionTest, AJobInFlightKeepsItsModelHoweverOldItIs) {
  const std::string chunk = Put("chunk");
  v1::SubmitRequest request;
  request.add_files()->add_chunk_digests(chunk);
  JobRow job;
  job.id = "j", job.key = "k", job.created_ms = 1, job.request = request.SerializeAsString();
  ASSERT_TRUE(state_.store().InsertJob(job, "event").ok());
  EXPECT_EQ(Collect(absl::ZeroDuration()).rows.jobs, 0);
  EXPECT_TRUE(IsThere(chunk));
}

// Ten thousand binaries, one in a hundred of which a build still names. Trials leave rows and no files.
TEST_F(RetentionTest, AfterManyTrialsFilesEqualLiveRows) {
  constexpr int kTrials = 10000;
  AcceptedRows accepted;
  std::vector<BlobRow> blobs;
  std::vector<TaskRow> tasks;
  const int64_t hour_ago = absl::ToUnixMillis(absl::Now() - absl::Hours(1));
  const auto write = [&](const std::string& bytes) {  // as a worker's upload leaves it, without its syncs
    const std::string digest = Sha256Hex(bytes);
    const std::string folder = absl::StrCat(state_.folder(), "/blobs/", digest.substr(0, 2));
    std::filesystem::create_directories(folder);
    std::ofstream(absl::StrCat(folder, "/", digest)) << bytes;
    blobs.push_back({digest, static_cast<int64_t>(bytes.size()), hour_ago});
    return digest;
  };
  for (int i = 0; i < kTrials; ++i) {
    TaskRow& task = tasks.emplace_back();
    task.id = absl::StrCat("t", i), task.key = task.id;
    task.state = i % 100 == 0 ? TaskPhase::kQueued : TaskPhase::kDone;
    task.updated_ms = hour_ago;
    const std::string binary = write(absl::StrCat("binary ", i));
    const int64_t used_ms = absl::ToUnixMillis(absl::Now());
    accepted.builds.push_back({Sha256Hex(task.id), binary, i % 100 == 0 ? used_ms : hour_ago});
  }
  ASSERT_TRUE(state_.store().PutBlobs(blobs).ok());
  ASSERT_TRUE(testing::Add(state_.store(), tasks, accepted).ok());
  const Retention::Collected collected = Collect(absl::Minutes(30));
  EXPECT_EQ(collected.rows.tasks, kTrials - kTrials / 100);
  EXPECT_EQ(collected.rows.builds, kTrials - kTrials / 100);
  EXPECT_EQ(LiveFiles(), kTrials / 100);
  EXPECT_EQ(state_.store().UnfinishedTasks()->size(), static_cast<size_t>(kTrials / 100));
  EXPECT_TRUE(retention_.Check(false, GoOn)->findings.empty());
}

TEST_F(RetentionTest, CheckNamesWhoNeedsADamagedBlobAndRepairLetsItBeMadeAgain) {
  const std::string chunk = Put("chunk"), bundle = Put("bundle"), spare = Put("spare");
  AddJob("j-1", absl::ZeroDuration(), chunk, bundle);
  EXPECT_TRUE(retention_.Check(false, GoOn)->findings.empty());
  for (const std::string& digest : {bundle, spare}) {
    std::ofstream(absl::StrCat(state_.folder(), "/blobs/", digest.substr(0, 2), "/", digest), std::ios::in) << "X";
  }
  std::filesystem::remove(absl::StrCat(state_.folder(), "/blobs/", chunk.substr(0, 2), "/", chunk));
  for (const bool repair : {false, true}) {
    const auto checked = retention_.Check(repair, GoOn);
    ASSERT_TRUE(checked.ok()) << checked.status();
    EXPECT_EQ(checked->blobs, 3);
    std::string all;
    for (const Retention::Finding& finding : checked->findings) {
      EXPECT_EQ(finding.mended, repair);
      absl::StrAppend(&all, finding.what, "\n");
    }
    EXPECT_EQ(checked->findings.size(), 3u);
    EXPECT_THAT(all, AllOf(HasSubstr(absl::StrCat(bundle, " is damaged: the bundle of job j-1")),
                           HasSubstr(absl::StrCat(chunk, " is missing: a part of the model of job j-1")),
                           HasSubstr(absl::StrCat(spare, " is damaged; nothing needs it"))));
  }
  EXPECT_EQ(Put("bundle"), bundle);
  EXPECT_EQ(*state_.artifacts().Get(bundle), "bundle");
  const auto later = retention_.Check(false, GoOn);
  ASSERT_EQ(later->findings.size(), 1u) << "the chunk, which nobody has uploaded again";
  EXPECT_TRUE(later->findings[0].mended);
}

TEST_F(RetentionTest, ABackupIsAStateFolderOfOneInstant) {
  const std::string chunk = Put("chunk"), bundle = Put("bundle");
  AddJob("j-1", absl::ZeroDuration(), chunk, bundle);
  const std::string folder = state_.folder() + "/backup";
  const auto copied = retention_.BackUp(folder, GoOn);
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->blobs, 2);
  EXPECT_FALSE(std::filesystem::exists(folder + ".partial"));
  AddJob("j-2", absl::ZeroDuration(), chunk, bundle);
  auto store = OpenSqliteStore(folder + "/fusion.db").value();
  auto artifacts = ArtifactStore::Open(folder + "/blobs", store.get()).value();
  EXPECT_EQ(store->ListJobs(10, std::nullopt)->size(), 1u);
  EXPECT_EQ(*artifacts->Get(bundle), "bundle");
  Retention restored(store.get(), artifacts.get(), {}, NoLog());
  EXPECT_TRUE(restored.Check(false, GoOn)->findings.empty());

  EXPECT_EQ(retention_.BackUp(folder, GoOn).status().code(), absl::StatusCode::kInvalidArgument) << "it exists";
  EXPECT_EQ(retention_.BackUp("relative", GoOn).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(retention_.BackUp("/no/such/folder/backup", GoOn).status().code(), absl::StatusCode::kInvalidArgument);
  const auto stopped = retention_.BackUp(folder + "2", [](int64_t done, int64_t) { return done < 1; });
  EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(folder + "2") || std::filesystem::exists(folder + "2.partial"));
  std::ofstream(absl::StrCat(state_.folder(), "/blobs/", bundle.substr(0, 2), "/", bundle), std::ios::in) << "X";
  EXPECT_EQ(retention_.BackUp(folder + "3", GoOn).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(folder + "3"));
}

TEST_F(RetentionTest, TheOldestGoUntilTheRestFits) {
  std::vector<std::string> bundles;
  for (int i = 0; i < 5; ++i) {
    bundles.push_back(Put(std::string(1000, static_cast<char>('a' + i))));
    AddJob(absl::StrCat("j-", i), absl::Hours(10 - i), Put(absl::StrCat("model ", i)), bundles[i]);
  }
  ASSERT_TRUE(state_.store().PinJob("j-0", true).ok());
  RetentionOptions options{absl::InfiniteDuration(), 3100};
  options.grace = -absl::Seconds(1);
  const auto collected = retention_.Collect(options);
  ASSERT_TRUE(collected.ok()) << collected.status();
  EXPECT_EQ(collected->rows.jobs, 2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(IsThere(bundles[i]), i != 1 && i != 2) << i;
  options.keep_bytes = 1;
  EXPECT_EQ(retention_.Collect(options)->rows.jobs, 2);
  EXPECT_TRUE(IsThere(bundles[0])) << "it is pinned";
  EXPECT_EQ(LiveFiles(), 2);
}

TEST_F(RetentionTest, PruningRemovesOldMeasurementsOfADevice) {
  MeasurementRow row;
  row.question_key = "q", row.measurement_key = "m", row.samples = 1, row.samples_ns = {1};
  for (const char* device : {"a", "a", "b"}) {
    row.device_fingerprint = device;
    row.time_ms += 10;
    ASSERT_TRUE(testing::AddRows(state_.store(), {.measurements = {row}}).ok());
  }
  EXPECT_EQ(*retention_.Prune({20, ""}), 1);
  EXPECT_EQ(*retention_.Prune({100, "a"}), 1);
  EXPECT_EQ(state_.store().CountMeasurements()->measurements, 1);
  EXPECT_EQ(*retention_.Prune({100, "nobody"}), 0);
}

}  // namespace
}  // namespace fusion
